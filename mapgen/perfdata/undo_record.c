/* SPDX-License-Identifier: MIT */
#include "mapgen/perfdata/undo_record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/foreign_file.h"
#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "mapgen/cli/message.h"

enum {
	MOST_BYTES = INT32_MAX,
	LONGEST_RECORD = 65535
};

static const char first_line[] = "dotnet-mapgen undo 1\n";

void undo_record_init(struct undo_record *undo)
{
	undo->count = 0;
	buf_init(&undo->text, MOST_BYTES);
	buf_append_string(&undo->text, first_line);
}

void undo_record_deinit(struct undo_record *undo)
{
	buf_deinit(&undo->text);
}

static void append_hex(struct buf *text, const uint8_t *bytes, size_t count)
{
	char *room = buf_reserve(text, 2 * count + 1);

	if (!room)
		return;
	hex_write_bytes(room, bytes, count);
	text->size_bytes += 2 * count;
}

void undo_record_add(struct undo_record *undo, const char *part, uint64_t offset,
		     const uint8_t *old_bytes, const uint8_t *new_bytes, size_t count)
{
	buf_printf(&undo->text, "%s %" PRIx64 " ", part, offset);
	append_hex(&undo->text, old_bytes, count);
	buf_append_char(&undo->text, ' ');
	append_hex(&undo->text, new_bytes, count);
	buf_append_char(&undo->text, '\n');
	undo->count++;
}

void undo_record_append(struct undo_record *undo, const struct undo_record *more)
{
	const size_t head_bytes = sizeof(first_line) - 1;

	if (more->text.failure)
		undo->text.failure = more->text.failure;
	else
		buf_append(&undo->text, more->text.data + head_bytes,
			   more->text.size_bytes - head_bytes);
	undo->count += more->count;
}

struct sym_error *undo_record_write(const struct undo_record *undo, const char *path,
				    unsigned int mode)
{
	struct path_output output;
	int failure;

	if (undo->text.failure)
		return sym_error_create(SYM_ERROR_IO, "out of memory for the undo record");
	failure = path_output_open(&output, path);
	if (!failure)
		failure = path_output_finish(&output, undo->text.data, undo->text.size_bytes, mode);
	return failure ? sym_error_create(SYM_ERROR_IO, "%s: cannot write: %s", path,
					  strerror(-failure))
		       : NULL;
}

/* ---- reading -------------------------------------------------------------------------- */

struct line_bytes {
	uint8_t old_bytes[LONGEST_RECORD];
	uint8_t new_bytes[LONGEST_RECORD];
};

/* `line`: one line without its newline; it is cut at its blanks. */
static bool parse_line(char *line, struct line_bytes *bytes, struct undo_line *ret)
{
	char *save = NULL;
	const char *part = strtok_r(line, " ", &save);
	const char *offset = strtok_r(NULL, " ", &save);
	const char *old_digits = strtok_r(NULL, " ", &save);
	const char *new_digits = strtok_r(NULL, " ", &save);
	size_t digits;

	if (!part || !offset || !old_digits || !new_digits)
		return false;
	digits = strlen(old_digits);
	if (digits % 2 || digits / 2 > LONGEST_RECORD || strlen(new_digits) != digits ||
	    hex_read_u64(offset, strlen(offset), &ret->offset) != strlen(offset) ||
	    !hex_read_bytes(old_digits, bytes->old_bytes, digits / 2) ||
	    !hex_read_bytes(new_digits, bytes->new_bytes, digits / 2))
		return false;
	ret->part = part;
	ret->count = digits / 2;
	ret->old_bytes = bytes->old_bytes;
	ret->new_bytes = bytes->new_bytes;
	return true;
}

static struct sym_error *
read_lines(char *text, const char *path, struct line_bytes *bytes,
	   struct sym_error *(*take)(void *context, const struct undo_line *line), void *context)
{
	char *line = text + strlen(first_line);

	if (strncmp(text, first_line, strlen(first_line)) != 0)
		return sym_error_create(SYM_ERROR_IO, "%s: no undo record", path);
	while (*line) {
		char *end = strchr(line, '\n');
		struct undo_line parsed;
		struct sym_error *failure;

		if (!end)
			return sym_error_create(SYM_ERROR_IO, "%s: its last line is incomplete",
						path);
		*end = '\0';
		if (!parse_line(line, bytes, &parsed))
			return sym_error_create(SYM_ERROR_IO, "%s: a line is malformed", path);
		failure = take(context, &parsed);
		if (failure)
			return failure;
		line = end + 1;
	}
	return NULL;
}

struct sym_error *undo_record_read(const char *path,
				   struct sym_error *(*take)(void *context,
							     const struct undo_line *line),
				   void *context)
{
	int fd AUTO_CLOSE = foreign_file_open(-1, path, 0, NULL, NULL);
	struct line_bytes *bytes AUTO_FREE = malloc(sizeof(*bytes));
	char *text AUTO_FREE = NULL;
	struct buf buf;
	int failure;

	if (fd < 0)
		return sym_error_create(SYM_ERROR_IO, "%s: cannot open: %s", path, strerror(-fd));
	buf_init(&buf, MOST_BYTES);
	failure = path_read_all(fd, &buf);
	text = failure ? NULL : buf_steal(&buf, NULL);
	buf_deinit(&buf);
	if (failure)
		return sym_error_create(SYM_ERROR_IO, "%s: cannot read: %s", path,
					strerror(-failure));
	if (!text || !bytes)
		return &sym_error_no_memory;
	return read_lines(text, path, bytes, take, context);
}
