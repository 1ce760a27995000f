/* SPDX-License-Identifier: MIT */
#include "libsym/source/runtime_source.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/index.h"
#include "libsym/limits.h"

enum {
	MAX_TIERS = 32,
	TIER_MASK = MAX_TIERS - 1,
	STUB_BIT = MAX_TIERS,
	YIELDS_BIT = 2 * MAX_TIERS
};

struct runtime_source {
	struct index *index;          /* value: number of the tier, STUB_BIT, YIELDS_BIT */
	struct index_name_set *names; /* NULL: the index has its own */
	const char *tiers[MAX_TIERS]; /* the first one is "none" */
	unsigned int tier_count;
	size_t name_bytes;
	struct runtime_counts counts;
};

/* A source while its index is made. */
struct making {
	struct runtime_source *source;
	struct index_builder *builder;
	struct sym_error *error; /* of adding names */
	/* Where the runtime writes of stubs where they are: with W^X those of .NET 10 have
	 * addresses of views that do not last. */
	bool stubs_yield;
};

void runtime_source_close(struct runtime_source *source)
{
	if (!source)
		return;
	index_destroy(source->index);
	index_name_set_release(source->names);
	free(source);
}

static struct sym_error *begin(struct index_name_set *names, struct making *ret)
{
	struct runtime_source *source = calloc(1, sizeof(*source));
	struct sym_error *error;

	if (!source)
		return &sym_error_no_memory;
	source->tier_count = 1;
	if (names)
		source->names = index_name_set_share(names);
	*ret = (struct making){ .source = source };
	error = names ? index_builder_create_numbered(&ret->builder)
		      : index_builder_create(&ret->builder);
	if (error)
		runtime_source_close(source);
	return error;
}

/* Ends what begin() began. */
static struct sym_error *end(struct making *making, struct runtime_source **ret)
{
	struct sym_error *error = making->error;

	if (!error)
		error = index_freeze(making->builder, &making->source->index);
	index_builder_destroy(making->builder);
	if (error)
		runtime_source_close(making->source);
	else
		*ret = making->source;
	return error;
}

static void add(struct making *making, uint64_t start, uint64_t size_bytes, const char *name,
		size_t name_bytes, uint32_t value)
{
	struct index_name_set *names = making->source->names;
	uint32_t offset;

	if (making->stubs_yield && value & STUB_BIT && !strcmp(name, jit_stub_name))
		value |= YIELDS_BIT;
	making->source->name_bytes += name_bytes + 1;
	if (!names) {
		index_builder_add(making->builder, start, size_bytes, name, name_bytes, value);
		return;
	}
	if (!making->error)
		making->error = index_name_set_add(names, name, name_bytes, &offset);
	if (!making->error)
		index_builder_add_number(making->builder, start, size_bytes, offset, value);
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

/* Up to a function that the runtime names; that one goes on to the next one, or to the end. */
static void add_stub_range(struct making *making, const struct jit_reading *reading, uint64_t begin,
			   uint64_t end)
{
	const struct auxiliary_symbols *functions = &reading->functions;
	const char *name = jit_stub_name;
	uint32_t value = STUB_BIT;

	for (size_t i = 0; i < functions->count && begin < end; i++) {
		uint64_t next = functions->items[i].address;

		if (next < begin || next >= end)
			continue;
		if (next > begin)
			add(making, begin, next - begin, name, strlen(name), value);
		begin = next;
		name = functions->items[i].name;
		value = 0;
	}
	if (begin < end)
		add(making, begin, end - begin, name, strlen(name), value);
}

/* Memory of the runtime without its code heaps: code there that has no name is a method, no stub.
 */
static void add_own_memory(struct making *making, const struct jit_reading *reading,
			   const struct runtime_contract *contract)
{
	for (size_t i = 0; i < contract->own_memory_count; i++) {
		uint64_t begin = contract->own_memory[i].begin_address,
			 end = contract->own_memory[i].end_address;

		for (size_t j = 0; j < reading->heap_count && begin < end; j++) {
			const struct jit_range *heap = &reading->heaps[j];

			if (heap->end_address <= begin || heap->begin_address >= end)
				continue;
			add_stub_range(making, reading, begin, heap->begin_address);
			begin = heap->end_address;
		}
		add_stub_range(making, reading, begin, end);
	}
}

static void add_stubs(struct making *making, const struct address_ranges *stubs)
{
	for (size_t i = 0; i < stubs->count; i++)
		add(making, stubs->items[i].start, stubs->items[i].end - stubs->items[i].start,
		    jit_stub_name, strlen(jit_stub_name), STUB_BIT);
}

static void add_found_stubs(struct making *making, const struct runtime_contract *contract)
{
	struct address_ranges stubs = { 0 };

	making->stubs_yield = contract->find_stubs;
	if (!contract->find_stubs)
		return;
	if (!making->error)
		making->error = contract->find_stubs(contract->context, &stubs);
	add_stubs(making, &stubs);
	address_ranges_deinit(&stubs);
}

static void add_barrier(struct making *making, const struct write_barrier *barrier)
{
	for (size_t i = 0; i < barrier->count; i++) {
		const struct write_barrier_function *function = &barrier->functions[i];

		add(making, function->start_address, function->size_bytes, function->name,
		    strlen(function->name), 0);
	}
}

static struct sym_error *make_source(const struct jit_reading *reading,
				     const struct runtime_contract *contract,
				     struct index_name_set *names, struct runtime_source **ret)
{
	struct making making;
	struct sym_error *error = begin(names, &making);

	if (error)
		return error;
	add_found_stubs(&making, contract);
	add_own_memory(&making, reading, contract);
	if (!reading->functions.count)
		add_barrier(&making, &contract->barrier);
	for (size_t i = 0; i < reading->symbol_count; i++) {
		const struct jit_symbol *symbol = &reading->symbols[i];
		uint32_t value = number_of_tier(making.source, symbol->tier);

		if (symbol->kind == SYM_SYMBOL_STUB)
			value |= STUB_BIT;
		add(&making, symbol->start_address, symbol->size_bytes, symbol->name,
		    symbol->name_bytes, value);
	}
	making.source->counts = (struct runtime_counts){
		.method_count = reading->method_count,
		.unnamed_count = reading->unnamed_count,
		.unnamed_dynamic_count = reading->unnamed_dynamic_count,
		.is_editable = reading->is_editable,
		.read_calls = reading->cost.calls,
		.read_bytes = reading->cost.bytes,
	};
	return end(&making, ret);
}

struct sym_error *runtime_source_open_contract(const struct runtime_contract *contract,
					       struct index_name_set *names,
					       struct runtime_source **ret)
{
	struct jit_reading *reading AUTO_JIT_READING = NULL;
	struct sym_error *error = jit_reader_read(
		contract->reader,
		JIT_READ_STUBS | JIT_READ_PRECODES | (contract->is_other ? JIT_READ_UNCHANGED : 0),
		&reading);

	if (error)
		return error;
	if (reading)
		return make_source(reading, contract, names, ret);
	*ret = NULL;
	return NULL;
}

/* Of methods in no file no signature is told. */
static void add_told(struct making *making, const struct told_methods *told,
		     const struct told_method *method)
{
	const char *name = told->names.data + method->name_offset;
	uint32_t value = number_of_tier(making->source, method->tier);

	if (!method->name_bytes || name[method->name_bytes - 1] != ')')
		value |= YIELDS_BIT;
	add(making, method->start_address, method->size_bytes, name, method->name_bytes, value);
}

struct sym_error *runtime_source_open_told(const struct told_methods *told,
					   struct index_name_set *names,
					   struct runtime_source **ret)
{
	struct making making;
	struct sym_error *error = begin(names, &making);

	if (error)
		return error;
	making.stubs_yield = true;
	/* Methods hold where both claim a byte. */
	add_stubs(&making, &told->stubs);
	for (size_t i = 0; i < told->count; i++)
		add_told(&making, told, &told->items[i]);
	add_barrier(&making, &told->barrier);
	making.source->counts.method_count = told->count;
	making.source->counts.unnamed_count = told->unnamed_count;
	return end(&making, ret);
}

const struct index_name_set *runtime_source_names(const struct runtime_source *source)
{
	return source->names;
}

size_t runtime_source_name_bytes(const struct runtime_source *source)
{
	return source->name_bytes;
}

const struct runtime_counts *runtime_source_counts(const struct runtime_source *source)
{
	return &source->counts;
}

bool runtime_source_yields_to(const struct source_match *told, const struct source_match *line)
{
	const char *same;

	if (told->kind == SYM_SYMBOL_STUB)
		return line->kind == SYM_SYMBOL_STUB;
	if (line->start != told->start || line->size_bytes != told->size_bytes)
		return false;
	same = strstr(line->name, told->name);
	return same && same[strlen(told->name)] == '(';
}

size_t runtime_source_count(const struct runtime_source *source)
{
	return index_count(source->index);
}

static enum sym_symbol_kind kind_of(uint32_t value)
{
	return value & STUB_BIT ? SYM_SYMBOL_STUB : SYM_SYMBOL_FUNCTION;
}

static const char *name_of(const struct runtime_source *source, const struct index_entry *entry)
{
	if (!source->names)
		return entry->name;
	return index_names_at(index_name_set_names(source->names), entry->number);
}

bool runtime_source_at(const struct runtime_source *source, size_t i, struct sym_symbol *ret)
{
	struct index_entry entry;

	index_at(source->index, i, &entry);
	*ret = (struct sym_symbol){
		.start = entry.start,
		.size_bytes = entry.size_bytes,
		.name = name_of(source, &entry),
		.tier = source->tiers[entry.value & TIER_MASK],
		.kind = kind_of(entry.value),
		.source = SYM_SOURCE_RUNTIME,
		.image_index = UINT32_MAX,
	};
	return entry.value & YIELDS_BIT;
}

static bool is_equal(const struct sym_symbol *a, const struct sym_symbol *b)
{
	return a->start == b->start && a->size_bytes == b->size_bytes && a->kind == b->kind &&
	       a->tier == b->tier && (a->name == b->name || !strcmp(a->name, b->name));
}

bool runtime_source_is_equal(const struct runtime_source *a, const struct runtime_source *b)
{
	size_t count = runtime_source_count(a);

	if (count != runtime_source_count(b))
		return false;
	for (size_t i = 0; i < count; i++) {
		struct sym_symbol left, right;

		runtime_source_at(a, i, &left);
		runtime_source_at(b, i, &right);
		if (!is_equal(&left, &right))
			return false;
	}
	return true;
}

void runtime_source_warm(const struct runtime_source *source, const uint64_t *addresses,
			 size_t count)
{
	index_warm(source->index, addresses, count);
}

enum source_outcome runtime_source_find(const struct runtime_source *source, uint64_t address,
					struct source_match *ret, bool *yields_ret)
{
	struct index_entry entry;

	if (index_look_up(source->index, address, &entry) == INDEX_NONE)
		return SOURCE_MISS;
	*ret = (struct source_match){
		.start = entry.symbol_start,
		.size_bytes = entry.symbol_size_bytes,
		.name = name_of(source, &entry),
		.tier = source->tiers[entry.value & TIER_MASK],
		.kind = kind_of(entry.value),
	};
	*yields_ret = entry.value & YIELDS_BIT;
	return SOURCE_HIT;
}
