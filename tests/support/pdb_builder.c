/* SPDX-License-Identifier: MIT */
#include "tests/support/pdb_builder.h"

#include <string.h>

static const uint8_t source_link_guid[16] = { 0x56, 0x05, 0x11, 0xcc, 0x91, 0xa0, 0x38, 0x4d,
					      0x9f, 0xec, 0x25, 0xab, 0x9a, 0x35, 0x1a, 0x6a };

static void put(struct buf *out, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		buf_append_char(out, (char)(value >> (8 * i)));
}

/* Blobs of less than 128 bytes. Returns the offset. */
static uint32_t add_blob(struct buf *blobs, const void *bytes, size_t count)
{
	uint32_t offset = (uint32_t)blobs->size_bytes;

	buf_append_char(blobs, (char)count);
	buf_append(blobs, bytes, count);
	return offset;
}

static uint32_t add_name(struct buf *blobs, const char *path)
{
	char name[64] = { '/' };
	size_t length = 1;

	while (path) {
		const char *slash = strchr(path, '/');
		size_t part = slash ? (size_t)(slash - path) : strlen(path);

		name[length++] = (char)(part ? add_blob(blobs, path, part) : 0);
		path = slash ? slash + 1 : NULL;
	}
	return add_blob(blobs, name, length);
}

static void pad(struct buf *out)
{
	while (out->size_bytes % 4)
		buf_append_char(out, 0);
}

static void write_pdb_stream(const struct pdb_recipe *recipe, struct buf *out)
{
	buf_append(out, recipe->id, sizeof(recipe->id));
	put(out, 0, 4);
	put(out, 1 << 2 | 1 << 6, 8);
	put(out, recipe->type_row_counts[0], 4);
	put(out, recipe->type_row_counts[1], 4);
}

static void write_tables(const struct pdb_recipe *recipe, struct buf *blobs, struct buf *out)
{
	size_t method_width = recipe->type_row_counts[1] > 0xffff ? 4 : 2;
	size_t parent_width = recipe->type_row_counts[1] > 0x7ff ? 4 : 2;
	uint32_t names[2];

	for (size_t i = 0; i < 2; i++)
		names[i] = add_name(blobs, recipe->documents[i]);
	put(out, 0, 4);
	put(out, 2, 2);
	put(out, 1 << 8, 2);
	put(out,
	    1ull << 0x30 | 1ull << 0x31 | (recipe->move_next ? 1ull << 0x36 : 0) |
		    (recipe->source_link ? 1ull << 0x37 : 0),
	    8);
	put(out, 0, 8);
	put(out, 2 - recipe->left_out, 4);
	put(out, recipe->method_count + recipe->more_rows, 4);
	if (recipe->move_next)
		put(out, 1, 4);
	if (recipe->source_link)
		put(out, 1, 4);
	for (size_t i = 0; i < 2; i++) {
		put(out, names[i], 2);
		put(out, 0, 6);
	}
	for (size_t i = 0; i < recipe->method_count; i++) {
		put(out, recipe->methods[i].document, 2);
		put(out,
		    recipe->methods[i].points ? add_blob(blobs, recipe->methods[i].points,
							 recipe->methods[i].points_bytes)
					      : 0,
		    2);
	}
	if (recipe->move_next) {
		put(out, recipe->move_next, method_width);
		put(out, recipe->kickoff, method_width);
	}
	if (recipe->source_link) {
		put(out, 1 << 5 | 7, parent_width);
		put(out, 1, 2);
		put(out, add_blob(blobs, recipe->source_link, strlen(recipe->source_link)), 2);
	}
}

static void write_header(struct buf *out, const char *const names[], const struct buf streams[],
			 size_t count)
{
	size_t offset = 16 + 12 + 4;

	for (size_t i = 0; i < count; i++)
		offset += 8 + ((strlen(names[i]) + 4) & ~(size_t)3);
	buf_append_string(out, "BSJB");
	put(out, 1 | 1 << 16, 4);
	put(out, 0, 4);
	put(out, 12, 4);
	buf_append(out, "PDB v1.0\0\0\0\0", 12);
	put(out, 0, 2);
	put(out, count, 2);
	for (size_t i = 0; i < count; i++) {
		put(out, offset, 4);
		put(out, streams[i].size_bytes, 4);
		buf_append(out, names[i], strlen(names[i]) + 1);
		pad(out);
		offset += streams[i].size_bytes;
	}
}

void build_pdb(const struct pdb_recipe *recipe, struct buf *out)
{
	static const char *const names[] = { "#Pdb", "#~", "#GUID", "#Blob" };
	struct buf streams[4];

	for (size_t i = 0; i < 4; i++)
		buf_init(&streams[i], 1 << 20);
	buf_append_char(&streams[3], 0);
	write_pdb_stream(recipe, &streams[0]);
	write_tables(recipe, &streams[3], &streams[1]);
	buf_append(&streams[2], source_link_guid, sizeof(source_link_guid));
	for (size_t i = 0; i < 4; i++)
		pad(&streams[i]);
	write_header(out, names, streams, 4);
	for (size_t i = 0; i < 4; i++) {
		buf_append(out, streams[i].data, streams[i].size_bytes);
		buf_deinit(&streams[i]);
	}
}
