/* SPDX-License-Identifier: MIT */
#include "libsym/format/dotnet/signature_names.h"

#include <stdlib.h>

#include "libsym/base/address_table.h"
#include "libsym/base/grow.h"
#include "libsym/limits.h"

/* Names of one table by rid; size 0: not cached. */
struct names_table {
	uint32_t row_count;
	struct place {
		uint32_t offset, size_bytes;
	} * places; /* NULL until the first name */
};

struct method_text {
	uint32_t offset, return_bytes, parameter_bytes;
};

struct signature_names {
	struct names_table type_defs, type_refs;
	struct address_table methods; /* index into method_texts, plus one */
	struct method_text *method_texts;
	size_t method_count, method_capacity;
	struct buf text;
};

static const size_t max_text_bytes = (size_t)16 << 20;

struct signature_names *signature_names_create(const struct metadata *metadata)
{
	struct signature_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->type_defs.row_count = metadata_row_count(metadata, METADATA_TYPE_DEF);
	names->type_refs.row_count = metadata_row_count(metadata, METADATA_TYPE_REF);
	buf_init(&names->text, max_text_bytes);
	return names;
}

void signature_names_destroy(struct signature_names *names)
{
	if (!names)
		return;
	free(names->type_defs.places);
	free(names->type_refs.places);
	address_table_deinit(&names->methods);
	free(names->method_texts);
	buf_deinit(&names->text);
	free(names);
}

const char *signature_names_find(const struct signature_names *names, enum metadata_table table,
				 uint32_t rid, size_t *size_bytes_ret)
{
	const struct names_table *rows =
		table == METADATA_TYPE_DEF ? &names->type_defs : &names->type_refs;

	if (!rows->places || rid > rows->row_count || !rows->places[rid].size_bytes)
		return NULL;
	*size_bytes_ret = rows->places[rid].size_bytes;
	return names->text.data + rows->places[rid].offset;
}

void signature_names_add(struct signature_names *names, enum metadata_table table, uint32_t rid,
			 const char *text, size_t size_bytes)
{
	struct names_table *rows =
		table == METADATA_TYPE_DEF ? &names->type_defs : &names->type_refs;
	size_t offset = names->text.size_bytes;

	if (!rid || rid > rows->row_count || !size_bytes || size_bytes > LIMIT_NAME_BYTES)
		return;
	if (!rows->places)
		rows->places = calloc((size_t)rows->row_count + 1, sizeof(*rows->places));
	if (!rows->places || !buf_append(&names->text, text, size_bytes))
		return;
	rows->places[rid] = (struct place){ (uint32_t)offset, (uint32_t)size_bytes };
}

bool signature_names_find_method(const struct signature_names *names, const uint8_t *signature,
				 struct signature_text *ret)
{
	uintptr_t place =
		(uintptr_t)address_table_find(&names->methods, (uint64_t)(uintptr_t)signature);
	const struct method_text *method;

	if (!place)
		return false;
	method = &names->method_texts[place - 1];
	*ret = (struct signature_text){ names->text.data + method->offset, method->return_bytes,
					method->parameter_bytes };
	return true;
}

void signature_names_add_method(struct signature_names *names, const uint8_t *signature,
				const char *return_text, size_t return_bytes,
				const char *parameter_text, size_t parameter_bytes)
{
	size_t offset = names->text.size_bytes;

	if (!signature || return_bytes > LIMIT_NAME_BYTES || parameter_bytes > LIMIT_NAME_BYTES ||
	    !grow_items((void **)&names->method_texts, &names->method_capacity, names->method_count,
			sizeof(*names->method_texts)) ||
	    !buf_append(&names->text, return_text, return_bytes) ||
	    !buf_append(&names->text, parameter_text, parameter_bytes))
		return;
	names->method_texts[names->method_count] =
		(struct method_text){ (uint32_t)offset, (uint32_t)return_bytes,
				      (uint32_t)parameter_bytes };
	if (address_table_add(&names->methods, (uint64_t)(uintptr_t)signature,
			      (void *)(uintptr_t)(names->method_count + 1)))
		names->method_count++;
}
