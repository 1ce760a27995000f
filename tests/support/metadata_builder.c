/* SPDX-License-Identifier: MIT */
/* Rows are written as they are added; heaps only grow. */
#include "tests/support/metadata_builder.h"

#include <string.h>

#include "tests/support/byte_writer.h"

static const size_t most_bytes = 1 << 24;

void metadata_builder_init(struct metadata_builder *builder)
{
	*builder = (struct metadata_builder){ 0 };
	buf_init(&builder->strings, most_bytes);
	buf_init(&builder->blobs, most_bytes);
	buf_init(&builder->guids, most_bytes);
	for (size_t i = 0; i < BUILDER_TABLES; i++)
		buf_init(&builder->rows[i], most_bytes);
	put_u8(&builder->strings, 0);
	put_u8(&builder->blobs, 0);
}

void metadata_builder_deinit(struct metadata_builder *builder)
{
	buf_deinit(&builder->strings);
	buf_deinit(&builder->blobs);
	buf_deinit(&builder->guids);
	for (size_t i = 0; i < BUILDER_TABLES; i++)
		buf_deinit(&builder->rows[i]);
}

static struct buf *new_row(struct metadata_builder *builder, unsigned int table)
{
	builder->counts[table]++;
	return &builder->rows[table];
}

static void put_heap_index(const struct metadata_builder *builder, struct buf *row, size_t index)
{
	if (builder->wide_heaps)
		put_u32(row, (uint32_t)index);
	else
		put_u16(row, (uint16_t)index);
}

static void put_string(struct metadata_builder *builder, struct buf *row, const char *text)
{
	size_t offset = *text ? builder->strings.size_bytes : 0;

	if (*text)
		buf_append(&builder->strings, text, strlen(text) + 1);
	put_heap_index(builder, row, offset);
}

static void put_blob(struct metadata_builder *builder, struct buf *row, const void *bytes,
		     size_t size_bytes)
{
	size_t offset = builder->blobs.size_bytes;

	if (size_bytes < 0x80) {
		put_u8(&builder->blobs, (uint8_t)size_bytes);
	} else {
		put_u8(&builder->blobs, (uint8_t)(0xc0 | size_bytes >> 24));
		put_u8(&builder->blobs, (uint8_t)(size_bytes >> 16));
		put_u8(&builder->blobs, (uint8_t)(size_bytes >> 8));
		put_u8(&builder->blobs, (uint8_t)size_bytes);
	}
	buf_append(&builder->blobs, bytes, size_bytes);
	put_heap_index(builder, row, offset);
}

uint32_t add_module(struct metadata_builder *builder, const char *name, const uint8_t mvid[16])
{
	struct buf *row = new_row(builder, 0x00);

	buf_append(&builder->guids, mvid, 16);
	put_u16(row, 0);
	put_string(builder, row, name);
	put_heap_index(builder, row, builder->guids.size_bytes / 16);
	put_heap_index(builder, row, 0);
	put_heap_index(builder, row, 0);
	return builder->counts[0x00];
}

uint32_t add_assembly(struct metadata_builder *builder, const char *name)
{
	struct buf *row = new_row(builder, 0x20);

	put_u32(row, 0x8004);
	put_zeros(row, 8);
	put_u32(row, 0);
	put_heap_index(builder, row, 0);
	put_string(builder, row, name);
	put_heap_index(builder, row, 0);
	return builder->counts[0x20];
}

uint32_t add_assembly_ref(struct metadata_builder *builder, const char *name)
{
	struct buf *row = new_row(builder, 0x23);

	put_zeros(row, 8);
	put_u32(row, 0);
	put_heap_index(builder, row, 0);
	put_string(builder, row, name);
	put_heap_index(builder, row, 0);
	put_heap_index(builder, row, 0);
	return builder->counts[0x23];
}

uint32_t add_module_ref(struct metadata_builder *builder, const char *name)
{
	put_string(builder, new_row(builder, 0x1a), name);
	return builder->counts[0x1a];
}

uint32_t add_type_ref(struct metadata_builder *builder, unsigned int scope_kind, uint32_t scope_rid,
		      const char *name_space, const char *name)
{
	struct buf *row = new_row(builder, 0x01);

	put_u16(row, (uint16_t)(scope_rid << 2 | scope_kind));
	put_string(builder, row, name);
	put_string(builder, row, name_space);
	return builder->counts[0x01];
}

uint32_t add_type_def(struct metadata_builder *builder, const char *name_space, const char *name)
{
	struct buf *row = new_row(builder, 0x02);

	put_u32(row, 0);
	put_string(builder, row, name);
	put_string(builder, row, name_space);
	put_u16(row, 0);
	put_u16(row, 1);
	put_u16(row, (uint16_t)(builder->counts[0x06] + 1));
	return builder->counts[0x02];
}

uint32_t add_type_spec(struct metadata_builder *builder, const void *signature, size_t size_bytes)
{
	put_blob(builder, new_row(builder, 0x1b), signature, size_bytes);
	return builder->counts[0x1b];
}

uint32_t add_method(struct metadata_builder *builder, const char *name, const void *signature,
		    size_t size_bytes)
{
	struct buf *row = new_row(builder, 0x06);

	put_u32(row, 0);
	put_u16(row, 0);
	put_u16(row, 0);
	put_string(builder, row, name);
	put_blob(builder, row, signature, size_bytes);
	put_u16(row, 1);
	return builder->counts[0x06];
}

/* RVA, ImplFlags, Flags, Name, Signature, ParamList. The last three take 6 or 10 bytes. */
static void set_in_last_method(struct metadata_builder *builder, size_t at, const uint8_t *bytes,
			       size_t count)
{
	struct buf *rows = &builder->rows[0x06];
	size_t row_bytes = builder->wide_heaps ? 18 : 14;

	memcpy(rows->data + rows->size_bytes - row_bytes + at, bytes, count);
}

void set_method_rva(struct metadata_builder *builder, uint32_t rva)
{
	uint8_t bytes[4] = { (uint8_t)rva, (uint8_t)(rva >> 8), (uint8_t)(rva >> 16),
			     (uint8_t)(rva >> 24) };

	set_in_last_method(builder, 0, bytes, sizeof(bytes));
}

void set_impl_flags(struct metadata_builder *builder, uint16_t flags)
{
	uint8_t bytes[2] = { (uint8_t)flags, (uint8_t)(flags >> 8) };

	set_in_last_method(builder, 4, bytes, sizeof(bytes));
}

uint32_t add_member_ref(struct metadata_builder *builder, unsigned int parent_kind,
			uint32_t parent_rid, const char *name, const void *signature,
			size_t size_bytes)
{
	struct buf *row = new_row(builder, 0x0a);

	put_u16(row, (uint16_t)(parent_rid << 3 | parent_kind));
	put_string(builder, row, name);
	put_blob(builder, row, signature, size_bytes);
	return builder->counts[0x0a];
}

void add_nested(struct metadata_builder *builder, uint32_t nested, uint32_t encloser)
{
	struct buf *row = new_row(builder, 0x29);

	put_u16(row, (uint16_t)nested);
	put_u16(row, (uint16_t)encloser);
}

static void build_tables(const struct metadata_builder *builder, struct buf *out)
{
	uint64_t valid = 0;

	for (unsigned int i = 0; i < BUILDER_TABLES; i++)
		if (builder->counts[i])
			valid |= (uint64_t)1 << i;
	put_u32(out, 0);
	put_u8(out, 2);
	put_u8(out, 0);
	put_u8(out, builder->wide_heaps ? 7 : 0);
	put_u8(out, 1);
	put_u64(out, valid);
	put_u64(out, 0);
	for (unsigned int i = 0; i < BUILDER_TABLES; i++)
		if (builder->counts[i])
			put_u32(out, builder->counts[i]);
	for (unsigned int i = 0; i < BUILDER_TABLES; i++)
		buf_append(out, builder->rows[i].data, builder->rows[i].size_bytes);
	put_padding(out, 4);
}

static void put_stream(struct buf *out, uint32_t offset, size_t size_bytes, const char *name)
{
	put_u32(out, offset);
	put_u32(out, (uint32_t)size_bytes);
	buf_append(out, name, strlen(name) + 1);
	put_padding(out, 4);
}

void build_metadata(const struct metadata_builder *builder, struct buf *out)
{
	struct buf root, tables;
	uint32_t offset;

	buf_init(&root, most_bytes);
	buf_init(&tables, most_bytes);
	build_tables(builder, &tables);
	put_u32(&root, 0x424a5342);
	put_u16(&root, 1);
	put_u16(&root, 1);
	put_u32(&root, 0);
	put_u32(&root, 12);
	buf_append(&root, "v4.0.30319\0\0", 12);
	put_u16(&root, 0);
	put_u16(&root, 4);
	offset = (uint32_t)root.size_bytes + 12 + 20 + 16 + 16; /* the four stream headers */
	put_stream(&root, offset, tables.size_bytes, "#~");
	offset += (uint32_t)tables.size_bytes;
	put_stream(&root, offset, builder->strings.size_bytes, "#Strings");
	offset += (uint32_t)builder->strings.size_bytes;
	put_stream(&root, offset, builder->guids.size_bytes, "#GUID");
	offset += (uint32_t)builder->guids.size_bytes;
	put_stream(&root, offset, builder->blobs.size_bytes, "#Blob");
	buf_append(out, root.data, root.size_bytes);
	buf_append(out, tables.data, tables.size_bytes);
	buf_append(out, builder->strings.data, builder->strings.size_bytes);
	buf_append(out, builder->guids.data, builder->guids.size_bytes);
	buf_append(out, builder->blobs.data, builder->blobs.size_bytes);
	put_padding(out, 4);
	buf_deinit(&root);
	buf_deinit(&tables);
}
