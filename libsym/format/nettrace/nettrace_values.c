/* SPDX-License-Identifier: MIT */
/*
 * Reads the values in payloads. A walk reads one field after the other. It skips the content of a
 * structure or an array to find its end; the caller can then walk into it. The walk ends where the
 * payload ends, because an older version of an event has fewer fields.
 */
#include <string.h>

#include "libsym/base/leb.h"
#include "libsym/format/nettrace/nettrace_fields.h"
#include "libsym/format/nettrace/nettrace_text.h"

enum {
	MOST_DEPTH = 8,
	NUMBERED = sizeof(((struct nettrace_walk *)NULL)->numbers) / sizeof(uint64_t),
	GUID_BYTES = 16,
};

bool nettrace_type_is_signed(uint8_t type)
{
	return type == NETTRACE_I8 || type == NETTRACE_I16 || type == NETTRACE_I32 ||
	       type == NETTRACE_I64 || type == NETTRACE_VARINT;
}

bool nettrace_type_is_real(uint8_t type)
{
	return type == NETTRACE_F32 || type == NETTRACE_F64;
}

bool nettrace_type_is_text(uint8_t type)
{
	return type == NETTRACE_STRING16 || type == NETTRACE_STRING8;
}

bool nettrace_type_is_array(uint8_t type)
{
	return type == NETTRACE_ARRAY || type == NETTRACE_FIXED_ARRAY ||
	       type == NETTRACE_RELATIVE || type == NETTRACE_ABSOLUTE ||
	       type == NETTRACE_COUNTED_ARRAY;
}

/* The size of a number; 0 for other types, and for numbers without a fixed size. */
static size_t width_of(uint8_t type, uint32_t pointer_bytes)
{
	switch (type) {
	case NETTRACE_I8:
	case NETTRACE_U8:
	case NETTRACE_CHAR8:
	case NETTRACE_BOOL8:
		return 1;
	case NETTRACE_I16:
	case NETTRACE_U16:
	case NETTRACE_CHAR16:
		return 2;
	case NETTRACE_I32:
	case NETTRACE_U32:
	case NETTRACE_BOOL32:
	case NETTRACE_F32:
		return 4;
	case NETTRACE_I64:
	case NETTRACE_U64:
	case NETTRACE_F64:
	case NETTRACE_DATE: /* a FILETIME; the specification says 16 bytes, EventSource writes 8 */
		return 8;
	case NETTRACE_POINTER:
		return pointer_bytes;
	default:
		return 0;
	}
}

static int64_t sign_extended(uint64_t number, size_t width)
{
	unsigned int shift = 64 - 8 * (unsigned int)width;

	return (int64_t)(number << shift) >> shift;
}

static void read_number(struct reader *reader, size_t width, struct nettrace_value *value)
{
	uint64_t number = width == 1   ? reader_u8(reader)
			  : width == 2 ? reader_u16(reader)
			  : width == 4 ? reader_u32(reader)
				       : reader_u64(reader);
	uint32_t half = (uint32_t)number;
	float single;

	value->number = number;
	if (nettrace_type_is_signed(value->type)) {
		value->signed_number = sign_extended(number, width);
	} else if (value->type == NETTRACE_F32) {
		memcpy(&single, &half, sizeof(single));
		value->real = (double)single;
	} else if (value->type == NETTRACE_F64) {
		memcpy(&value->real, &number, sizeof(value->real));
	}
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void read_string16(struct reader *reader, struct nettrace_value *value)
{
	size_t start = reader->position, at = start;

	while (at + 2 <= reader->size_bytes && (reader->data[at] || reader->data[at + 1]))
		at += 2;
	/* The last string of a payload may come without its NUL. */
	value->bytes = reader->data + start;
	value->size_bytes = at - start;
	reader_seek(reader, at + 2 <= reader->size_bytes ? at + 2 : reader->size_bytes);
}

static void read_string8(struct reader *reader, struct nettrace_value *value)
{
	const char *text = reader_string(reader);

	value->bytes = (const uint8_t *)text;
	value->size_bytes = text ? strlen(text) : 0;
}

/* ---- structures and arrays ------------------------------------------------------------------- */

static bool read_value(struct nettrace_walk *walk, const struct nettrace_field *field,
		       struct nettrace_value *ret);

/* Leaves the walk behind all of the structure. */
static void skip_fields(struct nettrace_walk *walk, const struct nettrace_fields *fields)
{
	struct nettrace_walk inner = *walk;
	struct nettrace_value value;

	inner.fields = fields;
	inner.next = 0;
	inner.depth = walk->depth + 1;
	if (inner.depth > MOST_DEPTH) {
		reader_fail(&walk->reader, "nested too deep");
		return;
	}
	while (inner.next < fields->count && reader_ok(&inner.reader))
		if (!nettrace_walk_next(&inner, &value))
			reader_fail(&inner.reader, "structure without an end");
	walk->reader = inner.reader;
}

static size_t count_of(struct nettrace_walk *walk, const struct nettrace_field *field)
{
	if (field->type == NETTRACE_ARRAY)
		return reader_u16(&walk->reader);
	if (field->type == NETTRACE_FIXED_ARRAY)
		return field->count;
	return field->counted_by < NUMBERED && field->counted_by < walk->next
		       ? (size_t)walk->numbers[field->counted_by]
		       : 0;
}

static void skip_elements(struct nettrace_walk *walk, const struct nettrace_field *field,
			  size_t count)
{
	const struct nettrace_field *element = field->inner.items;
	size_t width = element ? width_of(element->type, walk->pointer_bytes) : 0;
	struct nettrace_value value;

	if (width && count > reader_left(&walk->reader) / width) {
		reader_fail(&walk->reader, "array without an end");
	} else if (width) {
		reader_skip(&walk->reader, count * width);
	} else {
		for (size_t i = 0; element && i < count && reader_ok(&walk->reader); i++) {
			size_t before = walk->reader.position;

			read_value(walk, element, &value);
			/* A structure without fields has no bytes. */
			if (walk->reader.position == before)
				break;
		}
	}
}

/* An array elsewhere in the payload: u16 place, u16 size in bytes. */
static void read_elsewhere(struct nettrace_walk *walk, const struct nettrace_field *field,
			   struct nettrace_value *value)
{
	size_t offset = reader_u16(&walk->reader), size_bytes = reader_u16(&walk->reader);
	size_t width =
		field->inner.count ? width_of(field->inner.items->type, walk->pointer_bytes) : 0;

	if (field->type == NETTRACE_RELATIVE)
		offset += (size_t)(walk->reader.data + walk->reader.position - walk->payload);
	if (!width || offset > walk->payload_bytes || size_bytes > walk->payload_bytes - offset)
		return;
	value->bytes = walk->payload + offset;
	value->size_bytes = size_bytes;
	value->count = size_bytes / width;
}

static void read_array(struct nettrace_walk *walk, const struct nettrace_field *field,
		       struct nettrace_value *value)
{
	size_t start;

	if (field->type == NETTRACE_RELATIVE || field->type == NETTRACE_ABSOLUTE) {
		read_elsewhere(walk, field, value);
		return;
	}
	value->count = count_of(walk, field);
	start = walk->reader.position;
	skip_elements(walk, field, value->count);
	value->bytes = walk->reader.data + start;
	value->size_bytes = walk->reader.position - start;
}

static bool read_value(struct nettrace_walk *walk, const struct nettrace_field *field,
		       struct nettrace_value *ret)
{
	struct reader *reader = &walk->reader;
	size_t width = width_of(field->type, walk->pointer_bytes), start = reader->position;

	*ret = (struct nettrace_value){ .field = field, .type = field->type };
	if (width) {
		read_number(reader, width, ret);
	} else if (field->type == NETTRACE_STRING16) {
		read_string16(reader, ret);
	} else if (field->type == NETTRACE_STRING8) {
		read_string8(reader, ret);
	} else if (field->type == NETTRACE_GUID || field->type == NETTRACE_DECIMAL) {
		ret->bytes = reader_bytes(reader, GUID_BYTES);
		ret->size_bytes = GUID_BYTES;
	} else if (field->type == NETTRACE_VARUINT) {
		ret->number = leb_unsigned(reader);
	} else if (field->type == NETTRACE_VARINT) {
		uint64_t number = leb_unsigned(reader);

		ret->signed_number = (int64_t)(number >> 1 ^ (0 - (number & 1)));
	} else if (field->type == NETTRACE_OBJECT) {
		skip_fields(walk, &field->inner);
		ret->bytes = reader->data + start;
		ret->size_bytes = reader->position - start;
	} else if (nettrace_type_is_array(field->type)) {
		read_array(walk, field, ret);
	} else {
		reader_fail(reader, "field of an unknown type");
	}
	return reader_ok(reader);
}

/* ---- walks ----------------------------------------------------------------------------------- */

void nettrace_walk_begin(struct nettrace_walk *walk, const struct nettrace_fields *fields,
			 const uint8_t *payload, size_t payload_bytes, uint32_t pointer_bytes)
{
	*walk = (struct nettrace_walk){ .fields = fields,
					.reader = reader_over(payload, payload_bytes),
					.payload = payload,
					.payload_bytes = payload_bytes,
					.pointer_bytes = pointer_bytes == 4 ? 4 : 8 };
}

bool nettrace_walk_next(struct nettrace_walk *walk, struct nettrace_value *ret)
{
	if (walk->next >= walk->fields->count || !reader_left(&walk->reader))
		return false;
	if (!read_value(walk, &walk->fields->items[walk->next], ret))
		return false;
	if (walk->next < NUMBERED)
		walk->numbers[walk->next] = ret->number;
	walk->next++;
	return true;
}

void nettrace_walk_into(const struct nettrace_walk *walk, const struct nettrace_value *value,
			struct nettrace_walk *ret)
{
	*ret = (struct nettrace_walk){ .fields = &value->field->inner,
				       .reader = reader_over(value->bytes, value->size_bytes),
				       .payload = walk->payload,
				       .payload_bytes = walk->payload_bytes,
				       .pointer_bytes = walk->pointer_bytes,
				       .depth = walk->depth + 1 };
}

bool nettrace_walk_element(struct nettrace_walk *walk, struct nettrace_value *ret)
{
	return walk->fields->count && reader_left(&walk->reader) &&
	       read_value(walk, walk->fields->items, ret);
}

void nettrace_value_append_text(const struct nettrace_value *value, struct buf *text)
{
	uint8_t element = value->type;

	if (nettrace_type_is_array(value->type) && value->field->inner.count)
		element = value->field->inner.items->type;
	if (element == NETTRACE_STRING16 || element == NETTRACE_CHAR16)
		nettrace_append_utf16(text, value->bytes, value->size_bytes);
	else if (value->size_bytes)
		buf_append(text, value->bytes,
			   strnlen((const char *)value->bytes, value->size_bytes));
}
