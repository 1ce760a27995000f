/* SPDX-License-Identifier: MIT */
/* Look-ups in a runtime's data contract, by name. */
#include "libsym/clr/contract.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/hex.h"
#include "libsym/clr/contract_text.h"
#include "libsym/limits.h"

struct contract {
	struct contract_text text;
	const struct contract_value *types, *globals, *contracts; /* in `text` */
	uint64_t *pointers;
	size_t pointer_count;
	bool has_text_versions;
};

static const uint32_t max_offset = UINT16_MAX;

void contract_close(struct contract *contract)
{
	if (!contract)
		return;
	contract_text_deinit(&contract->text);
	free(contract->pointers);
	free(contract);
}

static struct sym_error *contract_unsupported_error(const char *what, const char *name,
						    const char *how)
{
	return sym_error_create(SYM_ERROR_UNSUPPORTED, "data contract of the runtime: %s %s %s",
				what, name, how);
}

static bool contract_value_of_kind(const struct contract_value *value, enum contract_kind kind)
{
	return value && value->kind == kind;
}

/* Checks that the required parts exist and the version is supported. */
static struct sym_error *contract_check(struct contract *contract)
{
	const struct contract_value *root = contract->text.values;
	const struct contract_value *version =
		contract_text_member(&contract->text, root, "version");

	contract->types = contract_text_member(&contract->text, root, "types");
	contract->globals = contract_text_member(&contract->text, root, "globals");
	contract->contracts = contract_text_member(&contract->text, root, "contracts");
	if (!contract_value_of_kind(version, CONTRACT_NUMBER))
		return contract_unsupported_error("its", "version", "is not a number");
	contract->has_text_versions = version->number == 2;
	if (version->number != 0 && version->number != 2)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"data contract of the runtime: version %" PRId64
					" is not known, only 0 and 2 are",
					version->number);
	if (!contract_value_of_kind(contract->types, CONTRACT_OBJECT))
		return contract_unsupported_error("its", "types", "are missing");
	if (!contract_value_of_kind(contract->globals, CONTRACT_OBJECT))
		return contract_unsupported_error("its", "globals", "are missing");
	if (!contract_value_of_kind(contract->contracts, CONTRACT_OBJECT))
		return contract_unsupported_error("its", "contracts", "are missing");
	return NULL;
}

struct sym_error *contract_parse(const void *text, size_t text_bytes, const uint64_t *pointers,
				 size_t pointer_count, struct contract **ret)
{
	GUARDED(contract) struct contract *contract = NULL;
	struct sym_error *error;

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
	error = contract_text_parse(text, text_bytes, &contract->text);
	if (!error)
		error = contract_check(contract);
	if (error)
		return error;
	*ret = STEAL(contract);
	return NULL;
}

static struct sym_error *require_number(const char *name, const struct contract_value *value,
					uint32_t version)
{
	if (contract_value_of_kind(value, CONTRACT_TEXT))
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"data contract of the runtime: contract %s has version "
					"\"%s\", not %" PRIu32,
					name, value->text, version);
	if (!contract_value_of_kind(value, CONTRACT_NUMBER))
		return contract_unsupported_error("contract", name, "has no version");
	if (value->number == version)
		return NULL;
	return sym_error_create(SYM_ERROR_UNSUPPORTED,
				"data contract of the runtime: contract %s has version "
				"%" PRId64 ", not %" PRIu32,
				name, value->number, version);
}

static struct sym_error *require_text(const char *name, const struct contract_value *value,
				      const char *version)
{
	if (!contract_value_of_kind(value, CONTRACT_TEXT))
		return contract_unsupported_error("contract", name, "has no version in text form");
	if (!strcmp(value->text, version))
		return NULL;
	return sym_error_create(SYM_ERROR_UNSUPPORTED,
				"data contract of the runtime: contract %s has version "
				"\"%s\", not \"%s\"",
				name, value->text, version);
}

struct sym_error *contract_require(const struct contract *contract, const char *name,
				   struct contract_version version)
{
	const struct contract_value *value =
		contract_text_member(&contract->text, contract->contracts, name);

	if (!value)
		return contract_unsupported_error("contract", name, "is missing");
	return contract->has_text_versions ? require_text(name, value, version.text)
					   : require_number(name, value, version.number);
}

bool contract_has_field(const struct contract *contract, const char *type, const char *field)
{
	const struct contract_value *fields =
		contract_text_member(&contract->text, contract->types, type);

	return contract_value_of_kind(fields, CONTRACT_OBJECT) &&
	       contract_text_member(&contract->text, fields, field);
}

static struct sym_error *field_error(const char *type, const char *field, const char *how)
{
	return sym_error_create(SYM_ERROR_UNSUPPORTED,
				"data contract of the runtime: field %s.%s %s", type, field, how);
}

struct sym_error *contract_field(const struct contract *contract, const char *type,
				 const char *field, uint32_t *ret)
{
	const struct contract_value *fields = contract_text_member(&contract->text, contract->types,
								   type),
				    *value;

	if (!contract_value_of_kind(fields, CONTRACT_OBJECT))
		return contract_unsupported_error("type", type, "is missing");
	value = contract_text_member(&contract->text, fields, field);
	if (!value)
		return field_error(type, field, "is missing");
	value = contract_text_first(&contract->text, value);
	if (!contract_value_of_kind(value, CONTRACT_NUMBER) || value->number < 0 ||
	    value->number > max_offset)
		return field_error(type, field, "has no sensible offset");
	*ret = (uint32_t)value->number;
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
	const struct contract_value *value =
		contract_text_member(&contract->text, contract->globals, name);

	if (!value)
		return contract_unsupported_error("global", name, "is missing");
	value = contract_text_first(&contract->text, value);
	if (contract_value_of_kind(value, CONTRACT_NUMBER) && value->number >= 0) {
		*ret = (uint64_t)value->number;
		return NULL;
	}
	if (!contract_value_of_kind(value, CONTRACT_TEXT) || !parse_number(value->text, ret))
		return contract_unsupported_error("global", name, "is not a number");
	return NULL;
}

struct sym_error *contract_pointer(const struct contract *contract, const char *name, uint64_t *ret)
{
	const struct contract_value *value =
		contract_text_member(&contract->text, contract->globals, name);

	if (!value)
		return contract_unsupported_error("global", name, "is missing");
	/* An array inside an array. */
	value = contract_value_of_kind(value, CONTRACT_ARRAY)
			? contract_text_first(&contract->text, value)
			: NULL;
	value = contract_value_of_kind(value, CONTRACT_ARRAY)
			? contract_text_first(&contract->text, value)
			: NULL;
	if (!contract_value_of_kind(value, CONTRACT_NUMBER) || value->number < 0 ||
	    (uint64_t)value->number >= contract->pointer_count)
		return contract_unsupported_error("global", name, "is not a pointer in its table");
	*ret = contract->pointers[value->number];
	return NULL;
}

const char *contract_string(const struct contract *contract, const char *name)
{
	const struct contract_value *value = contract_text_first(
		&contract->text, contract_text_member(&contract->text, contract->globals, name));

	return contract_value_of_kind(value, CONTRACT_TEXT) ? value->text : NULL;
}
