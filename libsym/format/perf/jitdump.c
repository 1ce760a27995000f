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

static struct reader reader_in_order(const void *bytes, size_t size_bytes, bool swapped)
{
	struct reader reader = reader_over(bytes, size_bytes);

	reader.is_big_endian = swapped;
	return reader;
}

const char *jitdump_header_read(const void *bytes, size_t size_bytes, struct jitdump_header *ret)
{
	struct reader reader = reader_over(bytes, size_bytes);
	uint32_t found = reader_u32(&reader), version;

	reader.is_big_endian = found == swapped_magic;
	version = reader_u32(&reader);
	*ret = (struct jitdump_header){ .size_bytes = reader_u32(&reader),
					.machine = reader_u32(&reader),
					.swapped = reader.is_big_endian };
	reader_skip(&reader, 4);
	ret->pid = reader_u32(&reader);
	ret->timestamp = reader_u64(&reader);
	ret->flags = reader_u64(&reader);
	if (!reader_ok(&reader))
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

static enum jitdump_outcome read_load(struct reader *reader, struct jitdump_record *ret)
{
	size_t left, room, most;
	const char *end;

	reader_skip(reader, 4 + 8);
	ret->code_address = reader_u64(reader);
	ret->code_size_bytes = reader_u64(reader);
	reader_skip(reader, 8);
	if (!reader_ok(reader))
		return JITDUMP_SHORT;
	if (wraps_around(ret->code_address, ret->code_size_bytes) ||
	    ret->size_bytes <= JITDUMP_LOAD_BYTES)
		return reject_code(ret);
	/* The name and its NUL, then the code or nothing. */
	room = ret->size_bytes - JITDUMP_LOAD_BYTES;
	left = reader_left(reader);
	most = left < room ? left : room;
	ret->name = (const char *)reader->data + reader->position;
	end = memchr(ret->name, '\0', most);
	if ((end ? (size_t)(end - ret->name) : most) > LIMIT_NAME_BYTES)
		return JITDUMP_GOOD;
	if (!end)
		return left < room ? JITDUMP_SHORT : reject_code(ret);
	ret->name_bytes = (size_t)(end - ret->name);
	room -= ret->name_bytes + 1;
	return room && ret->code_size_bytes > room ? reject_code(ret) : JITDUMP_GOOD;
}

static enum jitdump_outcome read_move(struct reader *reader, struct jitdump_record *ret)
{
	reader_skip(reader, 4 + 8);
	ret->old_address = reader_u64(reader);
	ret->code_address = reader_u64(reader);
	ret->code_size_bytes = reader_u64(reader);
	reader_skip(reader, 8);
	if (!reader_ok(reader))
		return JITDUMP_SHORT;
	return wraps_around(ret->code_address, ret->code_size_bytes) ||
			       wraps_around(ret->old_address, ret->code_size_bytes)
		       ? reject_code(ret)
		       : JITDUMP_GOOD;
}

static enum jitdump_outcome read_lines(struct reader *reader, struct jitdump_record *ret)
{
	ret->code_address = reader_u64(reader);
	ret->line_count = reader_u64(reader);
	if (ret->line_count)
		ret->first_line_address = reader_u64(reader);
	return reader_ok(reader) ? JITDUMP_GOOD : JITDUMP_SHORT;
}

enum jitdump_outcome jitdump_record_read(const void *bytes, size_t size_bytes, bool swapped,
					 struct jitdump_record *ret)
{
	struct reader reader = reader_in_order(bytes, size_bytes, swapped);

	*ret = (struct jitdump_record){ .id = reader_u32(&reader),
					.size_bytes = reader_u32(&reader),
					.timestamp = reader_u64(&reader) };
	if (!reader_ok(&reader))
		return JITDUMP_SHORT;
	if (ret->size_bytes < JITDUMP_RECORD_BYTES)
		return JITDUMP_BAD;
	if (ret->id == JITDUMP_LINES && ret->size_bytes >= JITDUMP_LINES_BYTES)
		return read_lines(&reader, ret);
	if (ret->id != JITDUMP_LOAD && ret->id != JITDUMP_MOVE)
		return JITDUMP_GOOD;
	ret->pid = reader_u32(&reader);
	if (!reader_ok(&reader))
		return JITDUMP_SHORT;
	return ret->id == JITDUMP_LOAD ? read_load(&reader, ret) : read_move(&reader, ret);
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
static bool read_line(struct reader *reader, uint64_t *address_ret, struct jitdump_line *line)
{
	const char *name;

	*address_ret = reader_u64(reader);
	line->line = reader_u32(reader);
	reader_skip(reader, 4);
	name = reader_string(reader);
	if (!name)
		return false;
	if (!strcmp(name, "\xff"))
		return line->file;
	line->file = name;
	line->file_bytes = strlen(name);
	return is_file_name(name, line->file_bytes);
}

bool jitdump_line_find(const void *bytes, size_t size_bytes, bool swapped, uint64_t code_size_bytes,
		       uint64_t shift_bytes, uint64_t offset_bytes, struct jitdump_line *ret)
{
	struct jitdump_line line = { 0 };
	uint64_t address, best = 0;
	struct jitdump_record record;
	struct reader reader;
	bool found = false;

	if (jitdump_record_read(bytes, size_bytes, swapped, &record) != JITDUMP_GOOD ||
	    record.id != JITDUMP_LINES || record.size_bytes > size_bytes)
		return false;
	reader = reader_in_order(bytes, record.size_bytes, swapped);
	reader_skip(&reader, JITDUMP_LINES_BYTES);
	for (uint64_t i = 0; i < record.line_count; i++) {
		if (!read_line(&reader, &address, &line))
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
