/* SPDX-License-Identifier: MIT */
/*
 * Descriptions of fields, by version of the format:
 *
 *   4   u32 count; each: i32 type, [OBJECT: a description], UTF-16 name
 *   5   u32 count; each: i32 size, UTF-16 name, i32 type, [ARRAY: i32 type of the element, ...],
 *       [OBJECT: a description], padding up to the size
 *   6   u16 count; each: u16 size, name (varint length, UTF-8), u8 type, [arrays: the type of the
 *       element; FIXED_ARRAY: u16 count], [OBJECT: a description], padding up to the size
 *
 * A description may nest. Nesting deeper than MOST_DEPTH is malformed.
 */
#include "libsym/format/nettrace/nettrace_fields.h"

#include <stdlib.h>

#include "libsym/format/nettrace/nettrace_text.h"

enum {
	MOST_DEPTH = 8,
	MOST_FIELDS = 1 << 10, /* of one structure */
	MOST_NAME_BYTES = 1 << 12,
};

void nettrace_fields_deinit(struct nettrace_fields *fields)
{
	for (size_t i = 0; i < fields->count; i++) {
		free(fields->items[i].name);
		nettrace_fields_deinit(&fields->items[i].inner);
	}
	free(fields->items);
	*fields = (struct nettrace_fields){ 0 };
}

struct nettrace_field *nettrace_fields_add(struct nettrace_fields *fields)
{
	size_t count = fields->count;

	/* Grows where the count is a power of two. */
	if (!(count & (count - 1))) {
		struct nettrace_field *items =
			reallocarray(fields->items, count ? count * 2 : 1, sizeof(*items));

		if (!items)
			return NULL;
		fields->items = items;
	}
	fields->items[count] = (struct nettrace_field){ 0 };
	return &fields->items[fields->count++];
}

/* ---- descriptions ---------------------------------------------------------------------------- */

struct description {
	enum nettrace_layout layout;
	unsigned int depth;
	bool no_memory;
};

static bool read_name(struct description *description, struct reader *reader, char **ret)
{
	*ret = description->layout == NETTRACE_LAYOUT_V6
		       ? nettrace_read_text8(reader, MOST_NAME_BYTES, &description->no_memory)
		       : nettrace_read_text16(reader, MOST_NAME_BYTES, &description->no_memory);
	return *ret;
}

static bool read_fields(struct description *description, struct reader *reader,
			struct nettrace_fields *ret);

static bool read_type(struct description *description, struct reader *reader,
		      struct nettrace_field *field)
{
	bool is_v6 = description->layout == NETTRACE_LAYOUT_V6, is_read = true;
	uint32_t type = is_v6 ? reader_u8(reader) : reader_u32(reader);
	struct nettrace_field *element;

	if (!reader_ok(reader) || type > NETTRACE_BOOL8 || description->depth >= MOST_DEPTH)
		return false;
	field->type = (uint8_t)type;
	description->depth++;
	if (type == NETTRACE_OBJECT) {
		is_read = read_fields(description, reader, &field->inner);
	} else if (nettrace_type_is_array(field->type)) {
		element = nettrace_fields_add(&field->inner);
		description->no_memory |= !element;
		is_read = element && read_type(description, reader, element);
		if (type == NETTRACE_FIXED_ARRAY)
			field->count = reader_u16(reader);
	}
	description->depth--;
	return is_read && reader_ok(reader);
}

static bool read_field(struct description *description, struct reader *reader,
		       struct nettrace_field *field)
{
	size_t start = reader->position, size_bytes;

	if (description->layout == NETTRACE_LAYOUT_V4)
		return read_type(description, reader, field) &&
		       read_name(description, reader, &field->name);
	size_bytes = description->layout == NETTRACE_LAYOUT_V5 ? reader_u32(reader)
							       : (size_t)reader_u16(reader) + 2;
	if (!read_name(description, reader, &field->name) || !read_type(description, reader, field))
		return false;
	if (size_bytes < reader->position - start || size_bytes > reader->size_bytes - start)
		return false;
	reader_seek(reader, start + size_bytes);
	return reader_ok(reader);
}

static bool read_fields(struct description *description, struct reader *reader,
			struct nettrace_fields *ret)
{
	uint32_t count =
		description->layout == NETTRACE_LAYOUT_V6 ? reader_u16(reader) : reader_u32(reader);

	if (!reader_ok(reader) || count > MOST_FIELDS)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		struct nettrace_field *field = nettrace_fields_add(ret);

		description->no_memory |= !field;
		if (!field || !read_field(description, reader, field))
			return false;
	}
	return true;
}

bool nettrace_fields_read(enum nettrace_layout layout, struct reader *reader,
			  struct nettrace_fields *ret, bool *no_memory_ret)
{
	struct description description = { .layout = layout };
	bool is_read = read_fields(&description, reader, ret);

	*no_memory_ret |= description.no_memory;
	return is_read;
}
