/* SPDX-License-Identifier: MIT */
#include "libsym/perf/jitdump_lines.h"

#include <stdlib.h>

#include "libsym/base/cleanup.h"
#include "libsym/limits.h"

void jitdump_lines_deinit(struct jitdump_lines *lines)
{
	text_set_deinit(&lines->files);
}

void jitdump_lines_note(struct jitdump_lines *lines, const struct jitdump_record *record)
{
	uint64_t distance = record->first_line_address - record->code_address;

	if (!record->line_count)
		return;
	lines->from_code |= distance < JITDUMP_ELF_BYTES || -distance <= JITDUMP_HEAD_BYTES;
	lines->from_header |= distance == JITDUMP_ELF_BYTES;
}

static bool read_whole(const struct jitdump_lines_of *of, void *room, size_t bytes)
{
	return growing_file_read(of->file, room, bytes, of->record_offset) == (ssize_t)bytes;
}

/* Reads the whole record; from malloc(), NULL on failure. */
static void *read_record(const struct jitdump_lines_of *of, size_t *size_bytes_ret)
{
	uint8_t head[JITDUMP_RECORD_BYTES];
	struct jitdump_record record;
	void *bytes;

	if (!read_whole(of, head, sizeof(head)))
		return NULL;
	/* Being cut here does not affect its size. */
	jitdump_record_read(head, sizeof(head), of->swapped, &record);
	if (record.size_bytes > LIMIT_JITDUMP_LINES_BYTES)
		return NULL;
	bytes = malloc((size_t)record.size_bytes + 1);
	if (bytes && !read_whole(of, bytes, record.size_bytes)) {
		free(bytes);
		return NULL;
	}
	*size_bytes_ret = record.size_bytes;
	return bytes;
}

bool jitdump_lines_find(struct jitdump_lines *lines, const struct jitdump_lines_of *of,
			uint64_t offset_bytes, struct source_line *ret)
{
	uint64_t shift_bytes = lines->from_code ? 0 : JITDUMP_ELF_BYTES;
	struct jitdump_line line;
	void *bytes AUTO_FREE = NULL;
	size_t size_bytes;

	if (!lines->from_code && !lines->from_header)
		return false;
	bytes = read_record(of, &size_bytes);
	if (!bytes || !jitdump_line_find(bytes, size_bytes, of->swapped, of->code_size_bytes,
					 shift_bytes, offset_bytes, &line))
		return false;
	ret->file = text_set_add(&lines->files, line.file, line.file_bytes);
	ret->line = line.line;
	return ret->file;
}
