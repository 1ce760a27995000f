/* SPDX-License-Identifier: MIT */
/*
 * Reads the fields of an event's payload. The metadata of the stream describe the fields; values
 * are read by that description. Everything is little-endian and packed.
 */
#ifndef LIBSYM_FORMAT_NETTRACE_NETTRACE_FIELDS_H
#define LIBSYM_FORMAT_NETTRACE_NETTRACE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/base/reader.h"

/* The codes up to 26 are those of the format. The last three are for events of the runtime itself,
 * which the stream does not describe. */
enum nettrace_type {
	NETTRACE_OBJECT = 1,
	NETTRACE_BOOL32 = 3,
	NETTRACE_CHAR16 = 4,
	NETTRACE_I8 = 5,
	NETTRACE_U8 = 6,
	NETTRACE_I16 = 7,
	NETTRACE_U16 = 8,
	NETTRACE_I32 = 9,
	NETTRACE_U32 = 10,
	NETTRACE_I64 = 11,
	NETTRACE_U64 = 12,
	NETTRACE_F32 = 13,
	NETTRACE_F64 = 14,
	NETTRACE_DECIMAL = 15, /* 16 bytes; not read as a number */
	NETTRACE_DATE = 16,
	NETTRACE_GUID = 17,
	NETTRACE_STRING16 = 18,
	NETTRACE_ARRAY = 19, /* u16 count, elements */
	NETTRACE_VARINT = 20,
	NETTRACE_VARUINT = 21,
	NETTRACE_FIXED_ARRAY = 22, /* `count` elements */
	NETTRACE_CHAR8 = 23,
	NETTRACE_RELATIVE = 24, /* u16 distance from behind the field, u16 size in bytes */
	NETTRACE_ABSOLUTE = 25, /* u16 offset in the payload, u16 size in bytes */
	NETTRACE_BOOL8 = 26,
	NETTRACE_POINTER = 64,
	NETTRACE_STRING8 = 65,
	NETTRACE_COUNTED_ARRAY = 66, /* as many elements as an earlier field says */
};

struct nettrace_field;

struct nettrace_fields {
	struct nettrace_field *items;
	size_t count;
};

struct nettrace_field {
	char *name; /* UTF-8 */
	uint8_t type;
	uint16_t count;      /* FIXED_ARRAY */
	uint16_t counted_by; /* COUNTED_ARRAY: number of a field of the same structure */
	/* OBJECT: its fields. Arrays, RELATIVE, ABSOLUTE: one, without a name: the element. */
	struct nettrace_fields inner;
};

void nettrace_fields_deinit(struct nettrace_fields *fields);

/* Appends an empty field; NULL for want of memory. */
struct nettrace_field *nettrace_fields_add(struct nettrace_fields *fields);

enum nettrace_layout {
	NETTRACE_LAYOUT_V4,
	NETTRACE_LAYOUT_V5, /* in a tag of version 5, which may have arrays */
	NETTRACE_LAYOUT_V6,
};

/*
 * Reads a description. False: malformed (the reader has failed), too deep or too many, or no memory
 * (*no_memory_ret). Then `ret` has the fields that were read, and the caller destroys them.
 */
bool nettrace_fields_read(enum nettrace_layout layout, struct reader *reader,
			  struct nettrace_fields *ret, bool *no_memory_ret);

/* ---- values ---------------------------------------------------------------------------------- */

/* A value in a payload. */
struct nettrace_value {
	const struct nettrace_field *field;
	uint8_t type;
	union {
		uint64_t number; /* unsigned types, BOOL, CHAR, POINTER */
		int64_t signed_number;
		double real;
	};
	const uint8_t *bytes; /* strings, without their NUL; all of an array or structure; GUID */
	size_t size_bytes;
	size_t count; /* elements of an array */
};

/* Goes through the fields of a payload, or of a part of it. */
struct nettrace_walk {
	const struct nettrace_fields *fields;
	struct reader reader;
	const uint8_t *payload;
	size_t payload_bytes;
	uint32_t pointer_bytes;
	size_t next;
	uint64_t numbers[16]; /* of the first fields, for those that are counted by one */
	unsigned int depth;
};

void nettrace_walk_begin(struct nettrace_walk *walk, const struct nettrace_fields *fields,
			 const uint8_t *payload, size_t payload_bytes, uint32_t pointer_bytes);
/* False at the end, also where the payload is shorter than the fields. */
bool nettrace_walk_next(struct nettrace_walk *walk, struct nettrace_value *ret);

/* Begins a walk through an OBJECT, or through an array, whose elements nettrace_walk_element()
 * reads. */
void nettrace_walk_into(const struct nettrace_walk *walk, const struct nettrace_value *value,
			struct nettrace_walk *ret);
bool nettrace_walk_element(struct nettrace_walk *walk, struct nettrace_value *ret);

bool nettrace_type_is_signed(uint8_t type);
bool nettrace_type_is_real(uint8_t type);
bool nettrace_type_is_text(uint8_t type);
bool nettrace_type_is_array(uint8_t type);

/* Appends a string, or an array of characters, as UTF-8. */
void nettrace_value_append_text(const struct nettrace_value *value, struct buf *text);

#endif
