/* SPDX-License-Identifier: MIT */
#include "libsym/symbols/result.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/huge_memory.h"

struct sym_error *sym_result_create(struct sym_result **ret)
{
	struct sym_result *result = calloc(1, sizeof(*result));

	if (!result)
		return &sym_error_no_memory;
	*ret = result;
	return NULL;
}

void sym_result_destroy(struct sym_result *result)
{
	if (!result)
		return;
	free(result->slots);
	free(result->inlined);
	free(result);
}

size_t sym_result_count(const struct sym_result *result)
{
	return result->count;
}

const struct sym_answer *sym_result_at(const struct sym_result *result, size_t index)
{
	return index < result->count ? &result->slots[index] : NULL;
}

struct sym_error *result_grow(struct sym_result *result, size_t count)
{
	struct sym_answer *slots = NULL;

	if (count <= SIZE_MAX / sizeof(*slots))
		slots = huge_memory_allocate(count * sizeof(*slots));
	if (!slots)
		return &sym_error_no_memory;
	free(result->slots);
	result->slots = slots;
	result->capacity = count;
	return NULL;
}

struct sym_error *result_prepare(struct sym_result *result, const uint64_t *positions, size_t count)
{
	struct sym_error *error = result_begin(result, count);

	for (size_t i = 0; !error && i < count; i++)
		result_blank(result, i, positions[i]);
	return error;
}

struct sym_error *sym_result_set_fields(struct sym_result *result, uint32_t fields)
{
	if (fields & ~(uint32_t)(SYM_FIELD_LINES | SYM_FIELD_INLINED | SYM_FIELD_COMPONENT |
				 SYM_FIELD_RETURN_ADDRESSES))
		return sym_error_create(SYM_ERROR_ARGUMENT, "unknown flags 0x%x", fields);
	result->fields = fields;
	return NULL;
}

const uint64_t *result_looked_up(const struct sym_result *result, const uint64_t *positions,
				 size_t count, uint64_t **room_ret)
{
	uint64_t *room;

	*room_ret = NULL;
	if (!(result->fields & SYM_FIELD_RETURN_ADDRESSES) || !count)
		return positions;
	room = reallocarray(NULL, count, sizeof(*room));
	for (size_t i = 0; room && i < count; i++)
		room[i] = positions[i] - !!positions[i];
	*room_ret = room;
	return room;
}

void result_return(struct sym_result *result)
{
	for (size_t i = 0; result->fields & SYM_FIELD_RETURN_ADDRESSES && i < result->count; i++) {
		struct sym_answer *answer = &result->slots[i];

		if (answer->address || answer->offset_bytes)
			answer->address++;
		answer->offset_bytes += answer->name != NULL;
		answer->image_position += answer->image_position != UINT64_MAX;
	}
}

struct sym_error *result_add_inlined(struct sym_result *result, size_t number,
				     const struct sym_inlined *inlined, size_t count)
{
	size_t needed = result->inlined_count + count;

	if (needed > result->inlined_capacity) {
		size_t capacity = needed + needed / 2;
		struct sym_inlined *room =
			reallocarray(result->inlined, capacity, sizeof(*result->inlined));

		if (!room)
			return &sym_error_no_memory;
		result->inlined = room;
		result->inlined_capacity = capacity;
	}
	if (count)
		memcpy(result->inlined + result->inlined_count, inlined, count * sizeof(*inlined));
	result->inlined_count = needed;
	result->slots[number].inlined_count = count;
	return NULL;
}

/* Sets the pointers to chains, which were added in the order of the answers. */
void result_finish(struct sym_result *result)
{
	size_t first = 0;

	for (size_t i = 0; result->inlined_count && i < result->count; i++) {
		struct sym_answer *answer = &result->slots[i];

		answer->inlined = answer->inlined_count ? result->inlined + first : NULL;
		first += answer->inlined_count;
	}
}

const char *sym_status_text(enum sym_status status)
{
	static const char *const texts[] = {
		[SYM_RESOLVED] = "resolved",
		[SYM_UNMAPPED] = "not mapped",
		[SYM_NO_SYMBOLS] = "no symbols",
		[SYM_NO_MATCH] = "no symbol here",
		[SYM_STALE] = "not the mapped file",
		[SYM_UNREADABLE] = "not readable",
		[SYM_BAD_FORMAT] = "malformed file",
		[SYM_UNSUPPORTED] = "not supported",
		[SYM_BOUNDS_ONLY] = "function without a name",
	};

	return (size_t)status < sizeof(texts) / sizeof(texts[0]) ? texts[status] : "unknown status";
}

const char *sym_source_text(enum sym_source_kind source)
{
	static const char *const texts[] = {
		[SYM_SOURCE_NONE] = "none",           [SYM_SOURCE_ELF] = "elf",
		[SYM_SOURCE_PERF_MAP] = "perfmap",    [SYM_SOURCE_RELATIVE_MAP] = "relmap",
		[SYM_SOURCE_READYTORUN] = "r2r",      [SYM_SOURCE_RUNTIME] = "runtime",
		[SYM_SOURCE_EH_FRAME] = "eh_frame",   [SYM_SOURCE_DWARF] = "dwarf",
		[SYM_SOURCE_KERNEL] = "kernel",       [SYM_SOURCE_JITDUMP] = "jitdump",
		[SYM_SOURCE_GOPCLNTAB] = "gopclntab",
	};

	return (size_t)source < sizeof(texts) / sizeof(texts[0]) ? texts[source] : "unknown";
}
