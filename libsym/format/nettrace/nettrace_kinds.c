/* SPDX-License-Identifier: MIT */
#include "libsym/format/nettrace/nettrace_kinds.h"

#include <stdlib.h>

#include "libsym/base/grow.h"
#include "libsym/base/leb.h"
#include "libsym/limits.h"

enum {
	MOST_NUMBERS = 1 << 16, /* of one stream; a runtime has some hundreds */
	MOST_PROVIDER_BYTES = 4096,
	TAG_OPCODE = 1,
	TAG_FIELDS = 2,
};

enum option {
	OPTION_OPCODE = 1,
	OPTION_KEYWORDS = 3,
	OPTION_TEMPLATE = 4,
	OPTION_DESCRIPTION = 5,
	OPTION_KEY_VALUE = 6,
	OPTION_GUID = 7,
	OPTION_LEVEL = 8,
	OPTION_VERSION = 9,
};

static void kind_destroy(struct nettrace_kind *kind)
{
	free(kind->provider);
	free(kind->name);
	nettrace_fields_deinit(&kind->fields);
	free(kind);
}

void nettrace_kinds_deinit(struct nettrace_kinds *kinds)
{
	for (size_t i = 0; i < kinds->count; i++)
		kind_destroy(kinds->all[i]);
	free(kinds->all);
	free(kinds->by_number);
	*kinds = (struct nettrace_kinds){ 0 };
}

void nettrace_kinds_forget(struct nettrace_kinds *kinds)
{
	for (size_t i = 0; i < kinds->number_count; i++)
		kinds->by_number[i] = NULL;
}

struct nettrace_kind *nettrace_kinds_find(const struct nettrace_kinds *kinds, uint32_t number)
{
	return number < kinds->number_count ? kinds->by_number[number] : NULL;
}

static bool grow_numbers(struct nettrace_kinds *kinds, uint32_t number)
{
	size_t count = kinds->number_count ? kinds->number_count : 256;
	struct nettrace_kind **by_number;

	if (number < kinds->number_count)
		return true;
	while (count <= number)
		count *= 2;
	by_number = reallocarray(kinds->by_number, count, sizeof(*by_number));
	if (!by_number)
		return false;
	for (size_t i = kinds->number_count; i < count; i++)
		by_number[i] = NULL;
	kinds->by_number = by_number;
	kinds->number_count = count;
	return true;
}

/* Takes the kind over. */
static bool add(struct nettrace_kinds *kinds, uint32_t number, struct nettrace_kind *kind)
{
	if (!grow_numbers(kinds, number) || !grow_items((void **)&kinds->all, &kinds->capacity,
							kinds->count, sizeof(*kinds->all))) {
		kind_destroy(kind);
		return false;
	}
	kinds->all[kinds->count++] = kind;
	kinds->by_number[number] = kind;
	return true;
}

typedef bool read_kind_fn(struct nettrace_kind *kind, struct reader *reader, bool *no_memory);

/* Returns false if out of memory. */
static bool read_as(struct nettrace_kinds *kinds, uint64_t number, read_kind_fn *read_kind,
		    struct reader *reader)
{
	struct nettrace_kind *kind = calloc(1, sizeof(*kind));
	bool no_memory = false;

	if (!kind)
		return false;
	if (number < MOST_NUMBERS && read_kind(kind, reader, &no_memory) && !no_memory)
		return add(kinds, (uint32_t)number, kind);
	kind_destroy(kind);
	return !no_memory;
}

/* ---- versions 4 and 5 ------------------------------------------------------------------------ */

/* A malformed description leaves fields without a name. */
static void drop_damaged(struct nettrace_kind *kind)
{
	if (!kind->has_fields)
		nettrace_fields_deinit(&kind->fields);
}

static void read_tags(struct nettrace_kind *kind, struct reader *payload, bool *no_memory)
{
	while (reader_left(payload) > 4) {
		uint32_t size_bytes = reader_u32(payload);
		uint8_t tag = reader_u8(payload);
		struct reader content = reader_part(payload, payload->position, size_bytes);

		if (tag == TAG_OPCODE) {
			kind->opcode = reader_u8(&content);
		} else if (tag == TAG_FIELDS) {
			nettrace_fields_deinit(&kind->fields);
			kind->has_fields = nettrace_fields_read(NETTRACE_LAYOUT_V5, &content,
								&kind->fields, no_memory);
		}
		reader_skip(payload, size_bytes);
	}
}

static bool read_kind_v4(struct nettrace_kind *kind, struct reader *payload, bool *no_memory)
{
	kind->provider = nettrace_read_text16(payload, MOST_PROVIDER_BYTES, no_memory);
	kind->event_id = reader_u32(payload);
	kind->name = nettrace_read_text16(payload, LIMIT_NAME_BYTES, no_memory);
	kind->keywords = reader_u64(payload);
	kind->version = reader_u32(payload);
	if (!kind->provider || !kind->name || !reader_ok(payload))
		return false;
	/* The fields from here on may be missing. */
	kind->level = reader_u32(payload);
	kind->has_fields =
		nettrace_fields_read(NETTRACE_LAYOUT_V4, payload, &kind->fields, no_memory);
	if (kind->has_fields)
		read_tags(kind, payload, no_memory);
	drop_damaged(kind);
	kind->has_fields &= kind->fields.count || *kind->name;
	return true;
}

bool nettrace_kinds_read_v4(struct nettrace_kinds *kinds, struct reader payload)
{
	uint32_t number = reader_u32(&payload);

	return read_as(kinds, number, read_kind_v4, &payload);
}

/* ---- version 6 ------------------------------------------------------------------------------- */

static void read_option(struct nettrace_kind *kind, struct reader *options)
{
	switch ((enum option)reader_u8(options)) {
	case OPTION_OPCODE:
		kind->opcode = reader_u8(options);
		break;
	case OPTION_KEYWORDS:
		kind->keywords = reader_u64(options);
		break;
	case OPTION_TEMPLATE:
	case OPTION_DESCRIPTION:
		nettrace_skip_text8(options);
		break;
	case OPTION_KEY_VALUE:
		nettrace_skip_text8(options);
		nettrace_skip_text8(options);
		break;
	case OPTION_GUID:
		reader_skip(options, 16);
		break;
	case OPTION_LEVEL:
		kind->level = reader_u8(options);
		break;
	case OPTION_VERSION:
		kind->version = reader_u8(options);
		break;
	default:
		reader_fail(options, "unknown option");
	}
}

static bool read_kind_v6(struct nettrace_kind *kind, struct reader *row, bool *no_memory)
{
	struct reader options;
	uint16_t size_bytes;

	kind->provider = nettrace_read_text8(row, MOST_PROVIDER_BYTES, no_memory);
	kind->event_id = (uint32_t)leb_unsigned(row);
	kind->name = nettrace_read_text8(row, LIMIT_NAME_BYTES, no_memory);
	if (!kind->provider || !kind->name || !reader_ok(row))
		return false;
	kind->has_fields = nettrace_fields_read(NETTRACE_LAYOUT_V6, row, &kind->fields, no_memory);
	drop_damaged(kind);
	size_bytes = reader_u16(row);
	options = reader_part(row, row->position, size_bytes);
	while (reader_left(&options))
		read_option(kind, &options);
	kind->has_fields &= kind->fields.count || *kind->name;
	return true;
}

bool nettrace_kinds_read_v6(struct nettrace_kinds *kinds, struct reader row)
{
	uint64_t number = leb_unsigned(&row);

	return read_as(kinds, number, read_kind_v6, &row);
}
