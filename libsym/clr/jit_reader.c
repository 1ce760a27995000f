/* SPDX-License-Identifier: MIT */
/* Reads a runtime repeatedly: what is kept between two readings, and which results are trusted. */
#include "libsym/clr/jit_reader.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/clr/contract_locate.h"
#include "libsym/clr/jit_scan.h"
#include "libsym/clr/precode_names.h"

const char jit_stub_name[] = "[runtime stub]";

/*
 * Precodes are created with types, not with code, and nothing announces them.
 * They are read again after so many changes, and after so many unchanged readings. The latter
 * number doubles each time nothing new was found.
 */
static const unsigned int changes_per_thunks = 16;
static const unsigned int shortest_quiet = 2, longest_quiet = 64;

struct jit_reader {
	struct remote_memory *memory;
	struct layout layout;
	struct layout_tiers tier_layout;
	bool has_tiers;
	struct layout_precodes precode_layout;
	bool has_precodes;
	struct layout_auxiliary auxiliary_layout;
	bool has_auxiliary;
	struct modules *modules;
	struct types *types;
	struct methods *methods;
	/* As of the last reading. */
	struct jit_scan known;
	bool has_known; /* false before the first */
	struct precode_names thunks;
	struct auxiliary_symbols functions; /* read once */
	size_t stub_sections;               /* when the thunks were read */
	/*
	 * Readings since the thunks were read, with and without changes, and the number of
	 * unchanged ones after which they are read again.
	 */
	unsigned int changes, quiet, quiet_wanted;
};

/* ---- opening ---------------------------------------------------------------- */

static struct sym_error *load_layouts(struct jit_reader *reader, uint64_t runtime_base)
{
	AUTO_CONTRACT struct contract *contract = NULL;
	struct sym_error *error = contract_locate(reader->memory, runtime_base, &contract),
			 *optional_error;

	if (!error)
		error = layout_load(contract, &reader->layout);
	if (error)
		return error;
	optional_error = layout_load_tiers(contract, &reader->tier_layout);
	reader->has_tiers = !optional_error;
	sym_error_destroy(optional_error);
	optional_error = layout_load_precodes(contract, &reader->precode_layout);
	reader->has_precodes = !optional_error;
	sym_error_destroy(optional_error);
	optional_error = layout_load_auxiliary(contract, &reader->auxiliary_layout);
	reader->has_auxiliary = !optional_error;
	sym_error_destroy(optional_error);
	return NULL;
}

struct sym_error *jit_reader_open(struct remote_memory *memory, uint64_t runtime_base,
				  struct jit_reader **ret)
{
	AUTO_JIT_READER struct jit_reader *reader = calloc(1, sizeof(*reader));
	struct sym_error *error;

	if (!reader)
		return &sym_error_no_memory;
	reader->memory = memory;
	reader->quiet_wanted = shortest_quiet;
	error = load_layouts(reader, runtime_base);
	if (!error)
		error = modules_create(memory, &reader->layout, &reader->modules);
	if (!error)
		error = types_create(memory, &reader->layout, reader->modules, &reader->types);
	if (!error)
		error = methods_create(memory, &reader->layout,
				       reader->has_tiers ? &reader->tier_layout : NULL,
				       reader->types, &reader->methods);
	if (error) {
		reader->memory = NULL; /* owned by the caller again */
		return error;
	}
	*ret = STEAL(reader);
	return NULL;
}

void jit_reader_close(struct jit_reader *reader)
{
	if (!reader)
		return;
	jit_scan_deinit(&reader->known);
	precode_names_deinit(&reader->thunks);
	auxiliary_symbols_deinit(&reader->functions);
	methods_destroy(reader->methods);
	types_destroy(reader->types);
	modules_destroy(reader->modules);
	remote_memory_close(reader->memory);
	free(reader);
}

/* ---- the result ------------------------------------------------------------------ */

void jit_reading_destroy(struct jit_reading *reading)
{
	if (!reading)
		return;
	free(reading->symbols);
	free(reading->heaps);
	free(reading);
}

static void add_method(struct jit_reading *reading, const struct look *look, const char *names)
{
	reading->method_count++;
	reading->symbols[reading->symbol_count++] = (struct jit_symbol){
		.start_address = look->method.start_address,
		.size_bytes = look->method.size_bytes,
		.name = names + look->name_offset,
		.name_bytes = look->name_bytes,
		.kind = SYM_SYMBOL_FUNCTION,
		.tier = look->tier,
	};
}

static void add_stub(struct jit_reading *reading, const struct code_block *block,
		     const struct look *look)
{
	const char *name = code_stub_name(look->stub_kind) ?: jit_stub_name;

	reading->symbols[reading->symbol_count++] = (struct jit_symbol){
		.start_address = block->start_address,
		.size_bytes = block->limit_address - block->start_address,
		.name = name,
		.name_bytes = (uint32_t)strlen(name),
		.kind = SYM_SYMBOL_STUB,
	};
}

/* A method must not extend into the next one. A block that does was read while it changed. */
static bool is_method_in_place(const struct code_block *block, const struct look *look)
{
	return look->method.size_bytes <= block->limit_address - block->start_address;
}

static void add_pages(struct jit_reading *reading, const struct precode_names *thunks)
{
	for (size_t i = 0; i < thunks->count; i++) {
		const struct precode *page = &thunks->items[i].precode;

		if (!page->method_desc)
			reading->symbols[reading->symbol_count++] = (struct jit_symbol){
				.start_address = page->address,
				.size_bytes = page->size_bytes,
				.name = jit_stub_name,
				.name_bytes = (uint32_t)strlen(jit_stub_name),
				.kind = SYM_SYMBOL_STUB,
			};
	}
}

static void add_precodes(struct jit_reading *reading, const struct precode_names *thunks,
			 const char *names)
{
	for (size_t i = 0; i < thunks->count; i++) {
		const struct precode_name *thunk = &thunks->items[i];

		if (thunk->name_bytes)
			reading->symbols[reading->symbol_count++] = (struct jit_symbol){
				.start_address = thunk->precode.address,
				.size_bytes = thunk->precode.size_bytes,
				.name = names + thunk->name_offset,
				.name_bytes = thunk->name_bytes,
				.kind = SYM_SYMBOL_STUB,
			};
	}
}

static void add_heaps(struct jit_reading *reading, const struct code_map *map)
{
	for (size_t i = 0; i < map->section_count; i++)
		if (map->sections[i].flags & CODE_SECTION_HEAP)
			reading->heaps[reading->heap_count++] = (struct jit_range){
				map->sections[i].begin_address,
				map->sections[i].end_address,
			};
}

/*
 * Adds methods and stub blocks. False when too much immutable data is inconsistent. Methods that a
 * profiler has added do not count, as long as there are others.
 */
static bool add_blocks(struct jit_reading *reading, const struct jit_scan *round, uint32_t flags,
		       size_t *ordinary_ret, size_t *bad_ret)
{
	size_t ordinary = 0, bad = 0, added = 0;

	for (size_t i = 0; i < round->map.block_count; i++) {
		const struct look *look = &round->looks[i];
		bool named = look->state == BLOCK_NAMED &&
			     is_method_in_place(&round->map.blocks[i], look);

		if (look->state == BLOCK_STUB && flags & JIT_READ_STUBS)
			add_stub(reading, &round->map.blocks[i], look);
		if (look->state == BLOCK_STUB || look->state == BLOCK_GONE)
			continue;
		if (named)
			add_method(reading, look, round->names.data);
		else
			reading->unnamed_count++;
		if (look->is_volatile) {
			reading->unnamed_dynamic_count += !named;
		} else if (!named && look->is_added) {
			added++;
		} else {
			ordinary++;
			bad += !named;
		}
	}
	if (added > ordinary) {
		bad += added;
		ordinary += added;
	}
	*ordinary_ret = ordinary;
	*bad_ret = bad;
	return bad <= ordinary / 20;
}

static struct sym_error *make_reading(const struct jit_reader *reader, const struct jit_scan *round,
				      uint32_t flags, struct jit_reading **ret)
{
	AUTO_JIT_READING struct jit_reading *reading = calloc(1, sizeof(*reading));
	const struct precode_names *thunks = &reader->thunks;
	size_t ordinary, bad;

	if (!reading)
		return &sym_error_no_memory;
	reading->symbols =
		malloc((round->map.block_count + thunks->count + 1) * sizeof(*reading->symbols));
	reading->heaps = calloc(round->map.section_count + 1, sizeof(*reading->heaps));
	if (!reading->symbols || !reading->heaps)
		return &sym_error_no_memory;
	reading->functions = reader->functions;
	reading->is_editable = modules_any_editable(reader->modules);
	add_heaps(reading, &round->map);
	add_pages(reading, thunks);
	if (!add_blocks(reading, round, flags, &ordinary, &bad))
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"%zu of %zu methods of the runtime contradict its data "
					"contract: none is believed",
					bad, ordinary);
	add_precodes(reading, thunks, thunks->names.data);
	*ret = STEAL(reading);
	return NULL;
}

/* ---- reading -------------------------------------------------------------------- */

static size_t count_stub_sections(const struct jit_scan *round)
{
	size_t count = 0;

	for (size_t i = 0; i < round->map.section_count; i++)
		count += (round->map.sections[i].flags & CODE_SECTION_RANGE_LIST) != 0;
	return count;
}

/* Counts the readings since the thunks were read. */
static bool thunks_are_due(struct jit_reader *reader, const struct jit_scan *round, bool changed)
{
	if (!reader->has_known || count_stub_sections(round) != reader->stub_sections)
		return true;
	return changed ? ++reader->changes >= changes_per_thunks
		       : ++reader->quiet >= reader->quiet_wanted;
}

static bool is_same_thunk(const struct precode_name *a, const struct precode_name *b)
{
	return a->precode.address == b->precode.address &&
	       a->precode.size_bytes == b->precode.size_bytes && a->name_bytes == b->name_bytes;
}

static bool are_same_thunks(const struct precode_names *a, const struct precode_names *b)
{
	if (a->count != b->count || a->names.size_bytes != b->names.size_bytes ||
	    (a->names.size_bytes && memcmp(a->names.data, b->names.data, a->names.size_bytes) != 0))
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!is_same_thunk(&a->items[i], &b->items[i]))
			return false;
	return true;
}

/* *changed stays as it is when they are unchanged. */
static struct sym_error *read_thunks(struct jit_reader *reader, const struct jit_tools *tools,
				     const struct jit_scan *round, bool *changed)
{
	struct precode_names thunks;
	struct sym_error *error =
		precode_names_read(tools, &reader->precode_layout, round, &thunks);

	if (error)
		return error;
	if (!are_same_thunks(&thunks, &reader->thunks)) {
		*changed = true;
		reader->quiet_wanted = shortest_quiet;
	} else if (reader->quiet_wanted < longest_quiet) {
		reader->quiet_wanted *= 2;
	}
	precode_names_deinit(&reader->thunks);
	reader->thunks = thunks;
	reader->stub_sections = count_stub_sections(round);
	reader->changes = reader->quiet = 0;
	return NULL;
}

static struct sym_error *read_round(struct jit_reader *reader, uint32_t flags,
				    struct jit_reading **ret)
{
	const struct jit_tools tools = {
		.memory = reader->memory,
		.layout = &reader->layout,
		.has_tiers = reader->has_tiers,
		.modules = reader->modules,
		.types = reader->types,
		.methods = reader->methods,
	};
	struct jit_scan round;
	bool changed;
	struct sym_error *error =
		jit_scan_read(&tools, reader->has_known ? &reader->known : NULL, &round, &changed);

	if (error)
		return error;
	if (flags & JIT_READ_PRECODES && reader->has_precodes &&
	    thunks_are_due(reader, &round, changed))
		error = read_thunks(reader, &tools, &round, &changed);
	if (!error && reader->has_auxiliary && !reader->functions.items)
		error = auxiliary_symbols_read(reader->memory, &reader->auxiliary_layout,
					       &reader->functions);
	if (!error && (changed || flags & JIT_READ_UNCHANGED))
		error = make_reading(reader, &round, flags, ret);
	if (error) {
		jit_scan_deinit(&round);
		return error;
	}
	/* It is kept for the next reading. */
	jit_scan_deinit(&reader->known);
	reader->known = round;
	reader->has_known = true;
	return NULL;
}

struct sym_error *jit_reader_read(struct jit_reader *reader, uint32_t flags,
				  struct jit_reading **ret)
{
	struct remote_memory_cost before = *remote_memory_cost(reader->memory), after;
	struct jit_reading *reading = NULL;
	struct sym_error *error = read_round(reader, flags, &reading);

	if (error)
		return error;
	*ret = reading;
	if (!reading)
		return NULL;
	after = *remote_memory_cost(reader->memory);
	reading->cost = (struct remote_memory_cost){
		.calls = after.calls - before.calls,
		.bytes = after.bytes - before.bytes,
		.unreadable_pages = after.unreadable_pages - before.unreadable_pages,
	};
	return NULL;
}
