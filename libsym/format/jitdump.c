/* SPDX-License-Identifier: MIT */
#include "libsym/format/jitdump.h"

#include <string.h>

#include "libsym/base/reader.h"

static const uint32_t magic = 0x4a695444;
static const uint32_t swapped_magic = 0x4454694a;

const char *jitdump_header_read(const void *bytes, size_t size_bytes, struct jitdump_header *ret)
{
	struct reader reader = reader_over(bytes, size_bytes);
	uint32_t found = reader_u32(&reader);
	uint32_t version = reader_u32(&reader);

	*ret = (struct jitdump_header){ .size_bytes = reader_u32(&reader),
					.machine = reader_u32(&reader) };
	reader_skip(&reader, 4);
	ret->pid = reader_u32(&reader);
	ret->timestamp = reader_u64(&reader);
	ret->flags = reader_u64(&reader);
	if (!reader_ok(&reader))
		return "the header is cut";
	if (found == swapped_magic)
		return "of a machine with the other byte order";
	if (found != magic)
		return "no jitdump";
	if (version != 1)
		return "a version of jitdump that is not read";
	return ret->size_bytes < JITDUMP_HEADER_BYTES ? "the header contradicts itself" : NULL;
}

static bool ends_beyond(uint64_t start, uint64_t size_bytes)
{
	return start + size_bytes < start;
}

static enum jitdump_outcome read_load(struct reader *reader, struct jitdump_record *ret)
{
	size_t left, most;
	const char *end;

	reader_skip(reader, 4 + 8);
	ret->code_address = reader_u64(reader);
	ret->code_size_bytes = reader_u64(reader);
	reader_skip(reader, 8);
	if (!reader_ok(reader))
		return JITDUMP_SHORT;
	if (ends_beyond(ret->code_address, ret->code_size_bytes) ||
	    ret->size_bytes <= JITDUMP_LOAD_BYTES ||
	    ret->code_size_bytes > ret->size_bytes - JITDUMP_LOAD_BYTES - 1)
		return JITDUMP_BAD;
	/* What is left for the name and its NUL beside the code. */
	most = ret->size_bytes - JITDUMP_LOAD_BYTES - (size_t)ret->code_size_bytes;
	left = reader_left(reader);
	ret->name = (const char *)reader->data + reader->position;
	end = memchr(ret->name, '\0', left < most ? left : most);
	if (!end)
		return left < most ? JITDUMP_SHORT : JITDUMP_BAD;
	ret->name_bytes = (size_t)(end - ret->name);
	return JITDUMP_GOOD;
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
	return ends_beyond(ret->code_address, ret->code_size_bytes) ||
			       ends_beyond(ret->old_address, ret->code_size_bytes)
		       ? JITDUMP_BAD
		       : JITDUMP_GOOD;
}

enum jitdump_outcome jitdump_record_read(const void *bytes, size_t size_bytes,
					 struct jitdump_record *ret)
{
	struct reader reader = reader_over(bytes, size_bytes);

	*ret = (struct jitdump_record){ .id = reader_u32(&reader),
					.size_bytes = reader_u32(&reader),
					.timestamp = reader_u64(&reader) };
	if (!reader_ok(&reader))
		return JITDUMP_SHORT;
	if (ret->size_bytes < JITDUMP_RECORD_BYTES)
		return JITDUMP_BAD;
	if (ret->id != JITDUMP_LOAD && ret->id != JITDUMP_MOVE)
		return JITDUMP_GOOD;
	ret->pid = reader_u32(&reader);
	if (!reader_ok(&reader))
		return JITDUMP_SHORT;
	return ret->id == JITDUMP_LOAD ? read_load(&reader, ret) : read_move(&reader, ret);
}
