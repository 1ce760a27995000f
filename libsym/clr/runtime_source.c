/* SPDX-License-Identifier: MIT */
/*
 * How a runtime's code becomes an index.
 *
 * Later additions win over earlier ones where they share bytes. So stubs known by their bytes and
 * memory known as a whole come first, then what the runtime names.
 * The value of an entry has three parts:
 *
 *   number of the tier   index into `tiers`
 *   STUB_BIT             the symbol is a stub
 *   YIELDS_BIT           a line of the perf map may be more precise
 */
#include "libsym/clr/runtime_source.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/index/index.h"

enum {
	MAX_TIERS = 32,
	TIER_MASK = MAX_TIERS - 1,
	STUB_BIT = MAX_TIERS,
	YIELDS_BIT = 2 * MAX_TIERS
};

struct runtime_source {
	struct index *index;           /* value: index of the tier, STUB_BIT, YIELDS_BIT */
	struct string_interner *names; /* NULL: the index has its own */
	const char *tiers[MAX_TIERS];  /* the first one is "none" */
	unsigned int tier_count;
	size_t name_bytes;
	struct runtime_counts counts;
};

/* State of building an index. */
struct making {
	struct runtime_source *source;
	struct index_builder *builder;
	struct sym_error *error; /* of adding names */
	/*
	 * Stubs yield to lines of the perf map that have their addresses. With W^X the lines of
	 * .NET 10 have addresses of temporary views.
	 */
	bool stubs_yield;
};

void runtime_source_close(struct runtime_source *source)
{
	if (!source)
		return;
	index_destroy(source->index);
	string_interner_release(source->names);
	free(source);
}

static struct sym_error *runtime_source_begin(struct string_interner *names, struct making *ret)
{
	struct runtime_source *source = calloc(1, sizeof(*source));
	struct sym_error *error;

	if (!source)
		return &sym_error_no_memory;
	source->tier_count = 1;
	if (names)
		source->names = string_interner_share(names);
	*ret = (struct making){ .source = source };
	error = names ? index_builder_create_numbered(&ret->builder)
		      : index_builder_create(&ret->builder);
	if (error)
		runtime_source_close(source);
	return error;
}

/* Ends what begin() started. */
static struct sym_error *runtime_source_end(struct making *making, struct runtime_source **ret)
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

static void runtime_source_add(struct making *making, uint64_t start, uint64_t size_bytes,
			       const char *name, size_t name_bytes, uint32_t value)
{
	struct string_interner *names = making->source->names;
	uint32_t offset;

	if (making->stubs_yield && value & STUB_BIT && !strcmp(name, jit_stub_name))
		value |= YIELDS_BIT;
	making->source->name_bytes += name_bytes + 1;
	if (!names) {
		index_builder_add(making->builder, start, size_bytes, name, name_bytes, value);
		return;
	}
	if (!making->error)
		making->error = string_interner_add(names, name, name_bytes, &offset);
	if (!making->error)
		index_builder_add_number(making->builder, start, size_bytes, offset, value);
}

/* Tiers are a few static strings, each with a number of 5 bits; 0: none, or one too many. */
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

/*
 * Adds a stub range up to a function that the runtime names. Such a function extends to the next
 * one, or to the end.
 */
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
			runtime_source_add(making, begin, next - begin, name, strlen(name), value);
		begin = next;
		name = functions->items[i].name;
		value = 0;
	}
	if (begin < end)
		runtime_source_add(making, begin, end - begin, name, strlen(name), value);
}

/*
 * Adds memory of the runtime without its code heaps: unnamed code in a heap is a method, not a
 * stub.
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
		runtime_source_add(making, stubs->items[i].start,
				   stubs->items[i].end - stubs->items[i].start, jit_stub_name,
				   strlen(jit_stub_name), STUB_BIT);
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

		runtime_source_add(making, function->start_address, function->size_bytes,
				   function->name, strlen(function->name), 0);
	}
}

static struct sym_error *make_source(const struct jit_reading *reading,
				     const struct runtime_contract *contract,
				     struct string_interner *names, struct runtime_source **ret)
{
	struct making making;
	struct sym_error *error = runtime_source_begin(names, &making);

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
		runtime_source_add(&making, symbol->start_address, symbol->size_bytes, symbol->name,
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
	return runtime_source_end(&making, ret);
}

struct sym_error *runtime_source_open_contract(const struct runtime_contract *contract,
					       struct string_interner *names,
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

/* For methods without a file the runtime reports no signature. */
static void add_reported(struct making *making, const struct reported_methods *reported,
			 const struct reported_method *method)
{
	const char *name = reported->names.data + method->name_offset;
	uint32_t value = number_of_tier(making->source, method->tier);

	if (!method->name_bytes || name[method->name_bytes - 1] != ')')
		value |= YIELDS_BIT;
	runtime_source_add(making, method->start_address, method->size_bytes, name,
			   method->name_bytes, value);
}

struct sym_error *runtime_source_open_reported(const struct reported_methods *reported,
					       struct string_interner *names,
					       struct runtime_source **ret)
{
	struct making making;
	struct sym_error *error = runtime_source_begin(names, &making);

	if (error)
		return error;
	making.stubs_yield = true;
	/* Methods win where both claim a byte. */
	add_stubs(&making, &reported->stubs);
	for (size_t i = 0; i < reported->count; i++)
		add_reported(&making, reported, &reported->items[i]);
	add_barrier(&making, &reported->barrier);
	making.source->counts.method_count = reported->count;
	making.source->counts.unnamed_count = reported->unnamed_count;
	return runtime_source_end(&making, ret);
}

const struct string_interner *runtime_source_names(const struct runtime_source *source)
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

bool runtime_source_yields_to(const struct source_match *reported, const struct source_match *line)
{
	const char *same;

	if (reported->kind == SYM_SYMBOL_STUB)
		return line->kind == SYM_SYMBOL_STUB;
	if (line->start != reported->start || line->size_bytes != reported->size_bytes)
		return false;
	same = strstr(line->name, reported->name);
	return same && same[strlen(reported->name)] == '(';
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
	return string_pool_at(string_interner_names(source->names), entry->number);
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
