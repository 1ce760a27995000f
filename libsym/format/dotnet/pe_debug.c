/* SPDX-License-Identifier: MIT */
#include "libsym/format/dotnet/pe_debug.h"

#include <string.h>

enum {
	TYPE_CODEVIEW = 2,
	TYPE_EMBEDDED = 17,
	TYPE_CHECKSUM = 19,
	PORTABLE_MINOR = 0x504d,
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

static void take_entry(const struct pe *pe, const struct pe_debug_entry *entry,
		       struct pe_debug *debug)
{
	const struct pe_directory *part = &entry->content;
	const uint8_t *bytes = part->rva ? pe_bytes(pe, part->rva, part->size_bytes) : NULL;
	struct reader content;

	if (!bytes)
		return;
	content = reader_over(bytes, part->size_bytes);
	if (entry->type == TYPE_CODEVIEW)
		take_codeview(&content, entry->minor == PORTABLE_MINOR, entry->stamp, debug);
	else if (entry->type == TYPE_EMBEDDED)
		take_embedded(&content, debug);
	else if (entry->type == TYPE_CHECKSUM)
		take_checksum(&content, debug);
}

void pe_debug_read(const struct pe *pe, struct pe_debug *ret)
{
	struct pe_debug_entry entry;

	*ret = (struct pe_debug){ .path = "" };
	for (unsigned int i = 0; pe_debug_entry(pe, i, &entry); i++)
		take_entry(pe, &entry, ret);
}
