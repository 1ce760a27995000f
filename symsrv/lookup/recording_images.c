/* SPDX-License-Identifier: MIT */
#include "symsrv/lookup/recording_images.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "libsym/base/cleanup.h"
#include "libsym/format/file/zip.h"

static const char member_name[] = "names/symbols";

/* The names of a recording of an hour have 20 MB. */
static const uint64_t most_text_bytes = 256 << 20;

/* A line so far. What is wanted is in its first bytes, and the rest is dropped. */
struct image_lines {
	bool (*visit)(void *context, const char *build_id);
	void *context;
	char line[512];
	size_t line_bytes;
	bool has_ended;
};

static void take_line(struct image_lines *lines)
{
	char *fields[5] = { NULL }, *rest = lines->line;
	size_t count = 0;

	lines->line[lines->line_bytes] = 0;
	lines->line_bytes = 0;
	if (strncmp(lines->line, "I\t", 2) != 0)
		return;
	while (count < 5 && (fields[count] = strsep(&rest, "\t")))
		count++;
	/* Without a tab behind it the id was cut. */
	if (count == 5 && rest && !strcmp(fields[3], "elf") && strcmp(fields[4], "-") != 0)
		lines->has_ended = !lines->visit(lines->context, fields[4]);
}

static void take_text(struct image_lines *lines, const char *text, size_t count)
{
	for (size_t i = 0; i < count && !lines->has_ended; i++) {
		if (text[i] == '\n')
			take_line(lines);
		else if (lines->line_bytes < sizeof(lines->line) - 1)
			lines->line[lines->line_bytes++] = text[i];
	}
}

static bool take_stored(const struct byte_source *source, uint64_t offset, uint64_t count,
			struct image_lines *lines)
{
	char piece[16 << 10];

	while (count && !lines->has_ended) {
		size_t size_bytes = count < sizeof(piece) ? (size_t)count : sizeof(piece);

		if (!byte_source_read(source, piece, size_bytes, offset))
			return false;
		take_text(lines, piece, size_bytes);
		offset += size_bytes;
		count -= size_bytes;
	}
	return true;
}

/* False when the bytes are damaged, or unpack to more than they should. */
static bool unpack(const struct byte_source *source, uint64_t offset,
		   const struct zip_member *member, struct image_lines *lines, z_stream *stream)
{
	uint64_t left = member->packed_bytes, made = 0;
	unsigned char packed[16 << 10];
	char text[16 << 10];
	int state = Z_OK;

	while (state == Z_OK && !lines->has_ended) {
		if (!stream->avail_in && left) {
			size_t count = left < sizeof(packed) ? (size_t)left : sizeof(packed);

			if (!byte_source_read(source, packed, count, offset))
				return false;
			stream->next_in = packed;
			stream->avail_in = (unsigned int)count;
			offset += count;
			left -= count;
		}
		stream->next_out = (unsigned char *)text;
		stream->avail_out = sizeof(text);
		state = inflate(stream, Z_NO_FLUSH);
		made += sizeof(text) - stream->avail_out;
		if (made > member->size_bytes)
			return false;
		take_text(lines, text, sizeof(text) - stream->avail_out);
	}
	return state == Z_STREAM_END || lines->has_ended;
}

static int take_packed(const struct byte_source *source, uint64_t offset,
		       const struct zip_member *member, struct image_lines *lines)
{
	z_stream stream = { 0 };
	bool is_good;

	if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
		return -ENOMEM;
	is_good = unpack(source, offset, member, lines, &stream);
	inflateEnd(&stream);
	return is_good ? 0 : -EBADMSG;
}

/* Destroys the error. */
static int failure_of(struct sym_error *error)
{
	bool no_memory = sym_error_code(error) == SYM_ERROR_NO_MEMORY;

	sym_error_destroy(error);
	return no_memory ? -ENOMEM : -EBADMSG;
}

int recording_images_each(const struct byte_source *source,
			  bool (*visit)(void *context, const char *build_id), void *context)
{
	struct image_lines lines = { .visit = visit, .context = context };
	const struct zip_member *member;
	struct zip zip AUTO_ZIP = { 0 };
	struct sym_error *error;
	bool is_zip = false;
	uint64_t offset;

	error = zip_read(source, &zip, &is_zip);
	if (!error && !is_zip)
		return -EBADMSG;
	if (!error)
		error = zip_find(&zip, member_name, strlen(member_name), &member);
	if (!error)
		error = zip_locate_packed(source, &zip, member, &offset);
	if (error)
		return failure_of(error);
	if (member->is_encrypted || member->size_bytes > most_text_bytes ||
	    (member->method != 0 && member->method != 8))
		return -EBADMSG;
	if (member->method)
		return take_packed(source, offset, member, &lines);
	return take_stored(source, offset, member->packed_bytes, &lines) ? 0 : -EBADMSG;
}
