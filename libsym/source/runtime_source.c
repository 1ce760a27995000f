/* SPDX-License-Identifier: MIT */
#include "libsym/source/runtime_source.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/index.h"
#include "libsym/limits.h"

enum {
	MAX_TIERS = 32,
	TIER_MASK = MAX_TIERS - 1,
	STUB_BIT = MAX_TIERS
};

struct runtime_source {
	struct index *index;          /* value: number of the tier, and STUB_BIT */
	const char *tiers[MAX_TIERS]; /* the first one is "none" */
	unsigned int tier_count;
	struct runtime_counts counts;
};

void runtime_source_close(struct runtime_source *source)
{
	if (!source)
		return;
	index_destroy(source->index);
	free(source);
}

/* Tiers are a few static strings: a number of 5 bits stands for one; 0 for none, or one too many.
 */
static uint32_t number_of_tier(struct runtime_source *source, const char *tier)
{
	if (!tier)
		return 0;
	for (unsigned int i = 1; i < source->tier_count; i++)
		if (source->tiers[i] == tier)
			return i;
	if (source->tier_count == MAX_TIERS)
		return 0;
	source->tiers[source->tier_count] = tier;
	return source->tier_count++;
}

static void add_stub_range(struct index_builder *builder, uint64_t begin, uint64_t end)
{
	if (begin < end)
		index_builder_add(builder, begin, end - begin, jit_stub_name, strlen(jit_stub_name),
				  STUB_BIT);
}

/* Memory of the runtime without its code heaps: code there that has no name is a method, no stub.
 */
static void add_own_memory(struct index_builder *builder, const struct jit_reading *reading,
			   const struct jit_range *memory, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t begin = memory[i].begin_address, end = memory[i].end_address;

		for (size_t j = 0; j < reading->heap_count && begin < end; j++) {
			const struct jit_range *heap = &reading->heaps[j];

			if (heap->end_address <= begin || heap->begin_address >= end)
				continue;
			add_stub_range(builder, begin, heap->begin_address);
			begin = heap->end_address;
		}
		add_stub_range(builder, begin, end);
	}
}

static struct sym_error *make_index(struct runtime_source *source,
				    const struct jit_reading *reading,
				    const struct jit_range *own_memory, size_t own_memory_count)
{
	struct index_builder *builder AUTO_INDEX_BUILDER = NULL;
	struct sym_error *error = index_builder_create(&builder);

	if (error)
		return error;
	source->tier_count = 1;
	add_own_memory(builder, reading, own_memory, own_memory_count);
	for (size_t i = 0; i < reading->symbol_count; i++) {
		const struct jit_symbol *symbol = &reading->symbols[i];
		uint32_t value = number_of_tier(source, symbol->tier);

		if (symbol->kind == SYM_SYMBOL_STUB)
			value |= STUB_BIT;
		index_builder_add(builder, symbol->start_address, symbol->size_bytes, symbol->name,
				  symbol->name_bytes, value);
	}
	return index_freeze(builder, &source->index);
}

struct sym_error *runtime_source_open_contract(struct jit_reader *reader,
					       const struct jit_range *own_memory,
					       size_t own_memory_count, struct runtime_source **ret)
{
	struct runtime_source *source AUTO_RUNTIME_SOURCE = calloc(1, sizeof(*source));
	struct jit_reading *reading AUTO_JIT_READING = NULL;
	struct sym_error *error;

	if (!source)
		return &sym_error_no_memory;
	error = jit_reader_read(reader, JIT_READ_STUBS | JIT_READ_PRECODES, &reading);
	if (!error && reading)
		error = make_index(source, reading, own_memory, own_memory_count);
	if (error)
		return error;
	*ret = NULL;
	if (!reading)
		return NULL;
	source->counts = (struct runtime_counts){
		.method_count = reading->method_count,
		.unnamed_count = reading->unnamed_count,
		.unnamed_dynamic_count = reading->unnamed_dynamic_count,
		.read_calls = reading->cost.calls,
		.read_bytes = reading->cost.bytes,
	};
	*ret = STEAL(source);
	return NULL;
}

struct sym_error *runtime_source_open_told(const struct told_methods *told,
					   struct runtime_source **ret)
{
	struct runtime_source *source AUTO_RUNTIME_SOURCE = calloc(1, sizeof(*source));
	struct index_builder *builder AUTO_INDEX_BUILDER = NULL;
	struct sym_error *error;

	if (!source)
		return &sym_error_no_memory;
	source->tier_count = 1;
	error = index_builder_create(&builder);
	if (error)
		return error;
	for (size_t i = 0; i < told->count; i++) {
		const struct told_method *method = &told->items[i];

		index_builder_add(builder, method->start_address, method->size_bytes,
				  told->names.data + method->name_offset, method->name_bytes,
				  number_of_tier(source, method->tier));
	}
	source->counts.method_count = told->count;
	source->counts.unnamed_count = told->unnamed_count;
	error = index_freeze(builder, &source->index);
	if (!error)
		*ret = STEAL(source);
	return error;
}

const struct runtime_counts *runtime_source_counts(const struct runtime_source *source)
{
	return &source->counts;
}

size_t runtime_source_count(const struct runtime_source *source)
{
	return index_count(source->index);
}

static enum sym_symbol_kind kind_of(uint32_t value)
{
	return value & STUB_BIT ? SYM_SYMBOL_STUB : SYM_SYMBOL_FUNCTION;
}

void runtime_source_at(const struct runtime_source *source, size_t i, struct sym_symbol *ret)
{
	struct index_entry entry;

	index_at(source->index, i, &entry);
	*ret = (struct sym_symbol){
		.start = entry.start,
		.size_bytes = entry.size_bytes,
		.name = entry.name,
		.tier = source->tiers[entry.value & TIER_MASK],
		.kind = kind_of(entry.value),
		.source = SYM_SOURCE_RUNTIME,
		.image_index = UINT32_MAX,
	};
}

enum source_outcome runtime_source_find(const struct runtime_source *source, uint64_t address,
					struct source_match *ret)
{
	struct index_entry entry;

	if (index_look_up(source->index, address, &entry) == INDEX_NONE)
		return SOURCE_MISS;
	*ret = (struct source_match){
		.start = entry.symbol_start,
		.size_bytes = entry.symbol_size_bytes,
		.name = entry.name,
		.tier = source->tiers[entry.value & TIER_MASK],
		.kind = kind_of(entry.value),
	};
	return SOURCE_HIT;
}
