/* SPDX-License-Identifier: MIT */
/*
 * Reads signatures within bounds; signature_write.c writes them as text.
 *
 * type: element type byte, then what the element needs: a token, an index, an inner type, a method
 * signature (FNPTR), a list of arguments (GENERICINST)
 */
#include "libsym/format/dotnet/signature.h"

#include "libsym/limits.h"

uint32_t signature_unsigned(struct reader *reader)
{
	uint32_t value = reader_u8(reader);
	const uint8_t *rest;

	if (!(value & 0x80))
		return value;
	if (!(value & 0x40))
		return (value & 0x3f) << 8 | reader_u8(reader);
	rest = reader_bytes(reader, 3);
	if (!rest)
		return 0;
	if (value & 0x20) {
		reader_fail(reader, "malformed compressed integer");
		return 0;
	}
	return (value & 0x1f) << 24 | (uint32_t)rest[0] << 16 | (uint32_t)rest[1] << 8 | rest[2];
}

/* The sign bit is rotated into bit 0. The number of bits depends on the bytes used. */
int32_t signature_signed(struct reader *reader)
{
	size_t start = reader->position;
	uint32_t value = signature_unsigned(reader);
	size_t length = reader->position - start;
	uint32_t sign = length == 1 ? 0x40 : length == 2 ? 0x2000 : 0x10000000;

	return value & 1 ? (int32_t)(value >> 1) - (int32_t)sign : (int32_t)(value >> 1);
}

struct signature_budget signature_budget_full(void)
{
	return (struct signature_budget){
		.depth = LIMIT_SIGNATURE_DEPTH,
		.nodes = LIMIT_SIGNATURE_NODES,
	};
}

struct signature_method signature_read_method(struct reader *reader)
{
	struct signature_method method = { .calling_convention = reader_u8(reader) };

	if (method.calling_convention & 0x10)
		signature_unsigned(reader);
	method.parameter_count = signature_unsigned(reader);
	return method;
}

static void skip_integers(struct reader *reader)
{
	uint32_t count = signature_unsigned(reader);

	while (count-- && reader_ok(reader))
		signature_unsigned(reader);
}

static void skip_types(struct reader *reader, struct signature_budget *budget, uint32_t count)
{
	while (count-- && reader_ok(reader))
		signature_skip_type(reader, budget);
}

static void skip_method(struct reader *reader, struct signature_budget *budget)
{
	struct signature_method method = signature_read_method(reader);

	signature_skip_type(reader, budget);
	skip_types(reader, budget, method.parameter_count);
}

static void skip_element(struct reader *reader, struct signature_budget *budget)
{
	uint8_t element = reader_u8(reader);
	uint32_t index;

	switch (element) {
	case ELEMENT_VALUETYPE:
	case ELEMENT_CLASS:
	case ELEMENT_VAR:
	case ELEMENT_MVAR:
	case ELEMENT_VAR_ZAPSIG:
		signature_unsigned(reader);
		return;
	case ELEMENT_CMOD_REQD:
	case ELEMENT_CMOD_OPT:
		signature_unsigned(reader);
		signature_skip_type(reader, budget);
		return;
	case ELEMENT_PTR:
	case ELEMENT_BYREF:
	case ELEMENT_SZARRAY:
	case ELEMENT_PINNED:
	case ELEMENT_SENTINEL:
	case ELEMENT_NATIVE_ARRAY_TEMPLATE_ZAPSIG:
	case ELEMENT_NATIVE_VALUETYPE_ZAPSIG:
		signature_skip_type(reader, budget);
		return;
	case ELEMENT_ARRAY:
		signature_skip_type(reader, budget);
		if (signature_unsigned(reader)) {
			skip_integers(reader);
			skip_integers(reader);
		}
		return;
	case ELEMENT_GENERICINST:
		signature_skip_type(reader, budget);
		skip_types(reader, budget, signature_unsigned(reader));
		return;
	case ELEMENT_FNPTR:
		skip_method(reader, budget);
		return;
	case ELEMENT_MODULE_ZAPSIG:
		index = signature_unsigned(reader);
		if (reader_ok(reader) && budget->use_module)
			budget->use_module(budget->context, index);
		signature_skip_type(reader, budget);
		return;
	case ELEMENT_CANON_ZAPSIG:
	case 0x16: /* typedref */
	case 0x18: /* native int */
	case 0x19: /* native uint */
	case 0x1c: /* object */
		return;
	default:
		if (element < ELEMENT_VOID || element > 0x0e)
			reader_fail(reader, "unknown element type");
	}
}

void signature_skip_type(struct reader *reader, struct signature_budget *budget)
{
	if (!budget->depth || !budget->nodes) {
		reader_fail(reader, "signature past the limits");
		return;
	}
	budget->depth--;
	budget->nodes--;
	skip_element(reader, budget);
	budget->depth++;
}
