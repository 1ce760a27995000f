/* SPDX-License-Identifier: MIT */
/*
 * Reads the JSON of a runtime's data contract and answers questions about it.
 * The only includer of jansson in the library.
 */
#include "libsym/clr/contract.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/hex.h"
#include "libsym/limits.h"

struct contract {
	json_t *root;
	const json_t *types, *globals, *contracts; /* inside root */
	uint64_t *pointers;
	size_t pointer_count;
};

static const uint32_t max_offset = UINT16_MAX;

void contract_close(struct contract *contract)
{
	if (!contract)
		return;
	json_decref(contract->root);
	free(contract->pointers);
	free(contract);
}

static struct sym_error *unsupported(const char *what, const char *name, const char *how)
{
	return sym_error_create(SYM_ERROR_UNSUPPORTED, "data contract of the runtime: %s %s %s",
				what, name, how);
}

/* The parts that must be there, and the version that is understood. */
static struct sym_error *contract_check(struct contract *contract)
{
	const json_t *version = json_object_get(contract->root, "version");

	contract->types = json_object_get(contract->root, "types");
	contract->globals = json_object_get(contract->root, "globals");
	contract->contracts = json_object_get(contract->root, "contracts");
	if (!json_is_integer(version))
		return unsupported("its", "version", "is not a number");
	if (json_integer_value(version) != 0)
		return sym_error_create(
			SYM_ERROR_UNSUPPORTED,
			"data contract of the runtime: version %" JSON_INTEGER_FORMAT
			" is not known, only 0 is",
			json_integer_value(version));
	if (!json_is_object(contract->types))
		return unsupported("its", "types", "are missing");
	if (!json_is_object(contract->globals))
		return unsupported("its", "globals", "are missing");
	if (!json_is_object(contract->contracts))
		return unsupported("its", "contracts", "are missing");
	return NULL;
}

struct sym_error *contract_parse(const void *text, size_t text_bytes, const uint64_t *pointers,
				 size_t pointer_count, struct contract **ret)
{
	GUARDED(contract) struct contract *contract = NULL;
	struct sym_error *error;
	json_error_t trouble;

	if (text_bytes > LIMIT_CONTRACT_BYTES || pointer_count > LIMIT_CONTRACT_POINTERS)
		return sym_error_create(
			SYM_ERROR_LIMIT,
			"data contract of the runtime: %zu bytes and %zu pointers are too many",
			text_bytes, pointer_count);
	while (text_bytes && !((const char *)text)[text_bytes - 1])
		text_bytes--;
	contract = calloc(1, sizeof(*contract));
	if (!contract)
		return &sym_error_no_memory;
	contract->pointers = calloc(pointer_count + 1, sizeof(*pointers));
	if (!contract->pointers)
		return &sym_error_no_memory;
	if (pointer_count)
		memcpy(contract->pointers, pointers, pointer_count * sizeof(*pointers));
	contract->pointer_count = pointer_count;
	contract->root = json_loadb(text, text_bytes, JSON_REJECT_DUPLICATES, &trouble);
	if (!contract->root && json_error_code(&trouble) == json_error_out_of_memory)
		return &sym_error_no_memory;
	if (!contract->root)
		return sym_error_create(SYM_ERROR_FORMAT,
					"data contract of the runtime: byte %d: %s",
					trouble.position, trouble.text);
	error = contract_check(contract);
	if (error)
		return error;
	*ret = STEAL(contract);
	return NULL;
}

struct sym_error *contract_require(const struct contract *contract, const char *name,
				   uint32_t version)
{
	const json_t *value = json_object_get(contract->contracts, name);

	if (!value)
		return unsupported("contract", name, "is missing");
	if (json_is_string(value))
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"data contract of the runtime: contract %s has version "
					"\"%s\", not %" PRIu32,
					name, json_string_value(value), version);
	if (!json_is_integer(value) || json_integer_value(value) != version)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"data contract of the runtime: contract %s has version "
					"%" JSON_INTEGER_FORMAT ", not %" PRIu32,
					name, json_integer_value(value), version);
	return NULL;
}

static struct sym_error *field_error(const char *type, const char *field, const char *how)
{
	return sym_error_create(SYM_ERROR_UNSUPPORTED,
				"data contract of the runtime: field %s.%s %s", type, field, how);
}

struct sym_error *contract_field(const struct contract *contract, const char *type,
				 const char *field, uint32_t *ret)
{
	const json_t *fields = json_object_get(contract->types, type), *value;

	if (!json_is_object(fields))
		return unsupported("type", type, "is missing");
	value = json_object_get(fields, field);
	if (!value)
		return field_error(type, field, "is missing");
	if (json_is_array(value))
		value = json_array_get(value, 0);
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    json_integer_value(value) > max_offset)
		return field_error(type, field, "has no sensible offset");
	*ret = (uint32_t)json_integer_value(value);
	return NULL;
}

struct sym_error *contract_type_size(const struct contract *contract, const char *type,
				     uint32_t *ret)
{
	struct sym_error *error = contract_field(contract, type, "!", ret);

	if (!error && !*ret)
		error = field_error(type, "!", "is zero");
	return error;
}

/* "0x1f" or "31". */
static bool parse_number(const char *text, uint64_t *ret)
{
	bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	size_t length = strlen(text), digits;
	char *end;

	if (is_hex) {
		digits = hex_read_u64(text + 2, length - 2, ret);
		return digits && digits == length - 2;
	}
	if (text[0] < '0' || text[0] > '9')
		return false;
	*ret = strtoull(text, &end, 10);
	return !*end;
}

struct sym_error *contract_number(const struct contract *contract, const char *name, uint64_t *ret)
{
	const json_t *value = json_object_get(contract->globals, name);

	if (!value)
		return unsupported("global", name, "is missing");
	if (json_is_array(value))
		value = json_array_get(value, 0);
	if (json_is_integer(value) && json_integer_value(value) >= 0) {
		*ret = (uint64_t)json_integer_value(value);
		return NULL;
	}
	if (!json_is_string(value) || !parse_number(json_string_value(value), ret))
		return unsupported("global", name, "is no number");
	return NULL;
}

struct sym_error *contract_pointer(const struct contract *contract, const char *name, uint64_t *ret)
{
	const json_t *value = json_object_get(contract->globals, name);

	if (!value)
		return unsupported("global", name, "is missing");
	value = json_array_get(json_array_get(value, 0), 0);
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    (uint64_t)json_integer_value(value) >= contract->pointer_count)
		return unsupported("global", name, "is no pointer of its table");
	*ret = contract->pointers[json_integer_value(value)];
	return NULL;
}

const char *contract_string(const struct contract *contract, const char *name)
{
	const json_t *value = json_object_get(contract->globals, name);

	if (json_is_array(value))
		value = json_array_get(value, 0);
	return json_string_value(value);
}
