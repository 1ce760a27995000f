/* SPDX-License-Identifier: MIT */
/*
 * Reads one record at a time; the caller finds the next one by size_bytes. read_load(), read_move()
 * and read_lines() check a record against its own size. A record that contradicts itself keeps its
 * size but loses its code (reject_code()), so the records after it can still be read. JITDUMP_SHORT
 * asks for more bytes, because a JIT may be writing the record right now.
 */
#include "libsym/format/perf/jitdump.h"

#include <string.h>

#include "libsym/base/reader.h"
#include "libsym/limits.h"

static const uint32_t magic = 0x4a695444;
static const uint32_t swapped_magic = 0x4454694a;

/* A reader of numbers in either byte order. */
struct cursor {
	struct reader reader;
	bool swapped;
};

static uint32_t read_u32(struct cursor *cursor)
{
	uint32_t value = reader_u32(&cursor->reader);

	return cursor->swapped ? __builtin_bswap32(value) : value;
}

static uint64_t read_u64(struct cursor *cursor)
{
	uint64_t value = reader_u64(&cursor->reader);

	return cursor->swapped ? __builtin_bswap64(value) : value;
}

const char *jitdump_header_read(const void *bytes, size_t size_bytes, struct jitdump_header *ret)
{
	struct cursor cursor = { .reader = reader_over(bytes, size_bytes) };
	uint32_t found = reader_u32(&cursor.reader), version;

	cursor.swapped = found == swapped_magic;
	version = read_u32(&cursor);
	*ret = (struct jitdump_header){ .size_bytes = read_u32(&cursor),
					.machine = read_u32(&cursor),
					.swapped = cursor.swapped };
	reader_skip(&cursor.reader, 4);
	ret->pid = read_u32(&cursor);
	ret->timestamp = read_u64(&cursor);
	ret->flags = read_u64(&cursor);
	if (!reader_ok(&cursor.reader))
		return "the header is truncated";
	if (found != magic && found != swapped_magic)
		return "not a jitdump";
	if (version != 1)
		return "unsupported version of jitdump";
	return ret->size_bytes < JITDUMP_HEADER_BYTES ? "the header contradicts itself" : NULL;
}

static bool wraps_around(uint64_t start, uint64_t size_bytes)
{
	return start + size_bytes < start;
}

/* The record contradicts itself, but its size is known. So it counts as a load without code. */
static enum jitdump_outcome reject_code(struct jitdump_record *ret)
{
	ret->code_size_bytes = 0;
	return JITDUMP_GOOD;
}

static enum jitdump_outcome read_load(struct cursor *cursor, struct jitdump_record *ret)
{
	size_t left, room, most;
	const char *end;

	reader_skip(&cursor->reader, 4 + 8);
	ret->code_address = read_u64(cursor);
	ret->code_size_bytes = read_u64(cursor);
	reader_skip(&cursor->reader, 8);
	if (!reader_ok(&cursor->reader))
		return JITDUMP_SHORT;
	if (wraps_around(ret->code_address, ret->code_size_bytes) ||
	    ret->size_bytes <= JITDUMP_LOAD_BYTES)
		return reject_code(ret);
	/* The name and its NUL, then the code or nothing. */
	room = ret->size_bytes - JITDUMP_LOAD_BYTES;
	left = reader_left(&cursor->reader);
	most = left < room ? left : room;
	ret->name = (const char *)cursor->reader.data + cursor->reader.position;
	end = memchr(ret->name, '\0', most);
	if ((end ? (size_t)(end - ret->name) : most) > LIMIT_NAME_BYTES)
		return JITDUMP_GOOD;
	if (!end)
		return left < room ? JITDUMP_SHORT : reject_code(ret);
	ret->name_bytes = (size_t)(end - ret->name);
	room -= ret->name_bytes + 1;
	return room && ret->code_size_bytes > room ? reject_code(ret) : JITDUMP_GOOD;
}

static enum jitdump_outcome read_move(struct cursor *cursor, struct jitdump_record *ret)
{
	reader_skip(&cursor->reader, 4 + 8);
	ret->old_address = read_u64(cursor);
	ret->code_address = read_u64(cursor);
	ret->code_size_bytes = read_u64(cursor);
	reader_skip(&cursor->reader, 8);
	if (!reader_ok(&cursor->reader))
		return JITDUMP_SHORT;
	return wraps_around(ret->code_address, ret->code_size_bytes) ||
			       wraps_around(ret->old_address, ret->code_size_bytes)
		       ? reject_code(ret)
		       : JITDUMP_GOOD;
}

static enum jitdump_outcome read_lines(struct cursor *cursor, struct jitdump_record *ret)
{
	ret->code_address = read_u64(cursor);
	ret->line_count = read_u64(cursor);
	if (ret->line_count)
		ret->first_line_address = read_u64(cursor);
	return reader_ok(&cursor->reader) ? JITDUMP_GOOD : JITDUMP_SHORT;
}

enum jitdump_outcome jitdump_record_read(const void *bytes, size_t size_bytes, bool swapped,
					 struct jitdump_record *ret)
{
	struct cursor cursor = { .reader = reader_over(bytes, size_bytes), .swapped = swapped };

	*ret = (struct jitdump_record){ .id = read_u32(&cursor),
					.size_bytes = read_u32(&cursor),
					.timestamp = read_u64(&cursor) };
	if (!reader_ok(&cursor.reader))
		return JITDUMP_SHORT;
	if (ret->size_bytes < JITDUMP_RECORD_BYTES)
		return JITDUMP_BAD;
	if (ret->id == JITDUMP_LINES && ret->size_bytes >= JITDUMP_LINES_BYTES)
		return read_lines(&cursor, ret);
	if (ret->id != JITDUMP_LOAD && ret->id != JITDUMP_MOVE)
		return JITDUMP_GOOD;
	ret->pid = read_u32(&cursor);
	if (!reader_ok(&cursor.reader))
		return JITDUMP_SHORT;
	return ret->id == JITDUMP_LOAD ? read_load(&cursor, ret) : read_move(&cursor, ret);
}

/* ---- lines ----------------------------------------------------------------------------- */

/* Rejects names that contain bytes of other memory. */
static bool is_file_name(const char *name, size_t name_bytes)
{
	for (size_t i = 0; i < name_bytes; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
			return false;
	return true;
}

/* Reads one line entry; an entry can repeat the file of the previous one. Returns false if it is
 * malformed. */
static bool read_line(struct cursor *cursor, uint64_t *address_ret, struct jitdump_line *line)
{
	const char *name, *end;
	size_t left;

	*address_ret = read_u64(cursor);
	line->line = read_u32(cursor);
	reader_skip(&cursor->reader, 4);
	left = reader_left(&cursor->reader);
	name = (const char *)cursor->reader.data + cursor->reader.position;
	end = left ? memchr(name, '\0', left) : NULL;
	if (!end)
		return false;
	reader_skip(&cursor->reader, (size_t)(end - name) + 1);
	if (end - name == 1 && *name == '\xff')
		return line->file;
	line->file = name;
	line->file_bytes = (size_t)(end - name);
	return is_file_name(name, line->file_bytes);
}

bool jitdump_line_find(const void *bytes, size_t size_bytes, bool swapped, uint64_t code_size_bytes,
		       uint64_t shift_bytes, uint64_t offset_bytes, struct jitdump_line *ret)
{
	struct cursor cursor = { .reader = reader_over(bytes, size_bytes), .swapped = swapped };
	struct jitdump_line line = { 0 };
	uint64_t address, best = 0;
	struct jitdump_record record;
	bool found = false;

	if (jitdump_record_read(bytes, size_bytes, swapped, &record) != JITDUMP_GOOD ||
	    record.id != JITDUMP_LINES || record.size_bytes > size_bytes)
		return false;
	cursor.reader = reader_over(bytes, record.size_bytes);
	reader_skip(&cursor.reader, JITDUMP_LINES_BYTES);
	for (uint64_t i = 0; i < record.line_count; i++) {
		if (!read_line(&cursor, &address, &line))
			return false;
		address -= record.code_address + shift_bytes;
		if (!i && !shift_bytes && -address <= JITDUMP_HEAD_BYTES)
			address = 0;
		/* The entry after the last instruction may start at its end. */
		if (address > code_size_bytes)
			return false;
		/* If several start at one address, the last one counts. */
		if (address > offset_bytes || (found && address < best))
			continue;
		best = address;
		*ret = line;
		found = true;
	}
	return found && ret->line && ret->line <= INT32_MAX && ret->file_bytes;
}
