/* SPDX-License-Identifier: MIT */
#include "libsym/format/dotnet/pe_debug.h"

#include <string.h>

enum {
	ENTRY_BYTES = 28,
	TYPE_CODEVIEW = 2,
	TYPE_EMBEDDED = 17,
	TYPE_CHECKSUM = 19,
	PORTABLE_MINOR = 0x504d,
	MOST_ENTRIES = 64, /* compilers write at most six */
};

static const uint32_t codeview_magic = 0x53445352; /* "RSDS" */
static const uint32_t embedded_magic = 0x4244504d; /* "MPDB" */

static void take_codeview(struct reader *content, bool is_portable, uint32_t stamp,
			  struct pe_debug *debug)
{
	const uint8_t *guid;
	uint32_t age;
	const char *path;

	if (reader_u32(content) != codeview_magic || (debug->has_pdb && debug->is_portable))
		return;
	guid = reader_bytes(content, sizeof(debug->guid));
	age = reader_u32(content);
	if (!reader_ok(content) || (debug->has_pdb && !is_portable))
		return;
	path = reader_string(content);
	memcpy(debug->guid, guid, sizeof(debug->guid));
	debug->has_pdb = true;
	debug->is_portable = is_portable;
	debug->age = age;
	debug->stamp = stamp;
	debug->path = path ? path : "";
}

static void take_embedded(struct reader *content, struct pe_debug *debug)
{
	uint32_t unpacked_bytes;

	if (reader_u32(content) != embedded_magic)
		return;
	unpacked_bytes = reader_u32(content);
	if (!reader_left(content))
		return;
	debug->unpacked_bytes = unpacked_bytes;
	debug->packed_bytes = reader_left(content);
	debug->packed = content->data + content->position;
}

static void take_checksum(struct reader *content, struct pe_debug *debug)
{
	const char *algorithm = reader_string(content);

	if (!algorithm || !*algorithm || !reader_left(content))
		return;
	debug->algorithm = algorithm;
	debug->checksum_bytes = reader_left(content);
	debug->checksum = content->data + content->position;
}

static void take_entry(const struct pe *pe, struct reader *entry, struct pe_debug *debug)
{
	uint32_t stamp, type, size_bytes, rva;
	uint16_t minor;
	const uint8_t *bytes;
	struct reader content;

	reader_skip(entry, 4);
	stamp = reader_u32(entry);
	reader_skip(entry, 2);
	minor = reader_u16(entry);
	type = reader_u32(entry);
	size_bytes = reader_u32(entry);
	rva = reader_u32(entry);
	reader_skip(entry, 4);
	bytes = rva ? pe_bytes(pe, rva, size_bytes) : NULL;
	if (!bytes)
		return;
	content = reader_over(bytes, size_bytes);
	if (type == TYPE_CODEVIEW)
		take_codeview(&content, minor == PORTABLE_MINOR, stamp, debug);
	else if (type == TYPE_EMBEDDED)
		take_embedded(&content, debug);
	else if (type == TYPE_CHECKSUM)
		take_checksum(&content, debug);
}

bool pe_debug_part(const struct pe *pe, unsigned int index, struct pe_directory *ret)
{
	const uint8_t *bytes = pe_bytes(pe, pe->debug.rva, pe->debug.size_bytes);
	struct reader reader;

	if (!pe->debug.rva || !bytes || index >= MOST_ENTRIES)
		return false;
	reader = reader_over(bytes, pe->debug.size_bytes);
	reader_skip(&reader, (size_t)index * ENTRY_BYTES + 16);
	ret->size_bytes = reader_u32(&reader);
	ret->rva = reader_u32(&reader);
	reader_skip(&reader, 4);
	return reader_ok(&reader);
}

void pe_debug_read(const struct pe *pe, struct pe_debug *ret)
{
	const uint8_t *bytes = pe_bytes(pe, pe->debug.rva, pe->debug.size_bytes);
	struct reader reader;

	*ret = (struct pe_debug){ .path = "" };
	if (!pe->debug.rva || !bytes)
		return;
	reader = reader_over(bytes, pe->debug.size_bytes);
	for (unsigned int i = 0; i < MOST_ENTRIES && reader_left(&reader) >= ENTRY_BYTES; i++)
		take_entry(pe, &reader, ret);
}
