/* SPDX-License-Identifier: MIT */
/* The two looks at a runtime's code, and what is believed of them. */
#include "libsym/clr/jit_reader.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/clr/code_heap.h"
#include "libsym/clr/contract_locate.h"
#include "libsym/clr/method_desc.h"
#include "libsym/clr/precode.h"
#include "libsym/limits.h"

const char jit_stub_name[] = "[runtime stub]";

struct jit_reader {
	struct remote_memory *memory;
	struct layout layout;
	struct layout_tiers tier_layout;
	bool has_tiers;
	struct layout_precodes precode_layout;
	bool has_precodes;
	struct modules *modules;
	struct types *types;
	struct methods *methods;
};

/* What one look says of one block. */
struct look {
	struct code_method method;
	uint32_t stub_kind;
	uint32_t name_bytes;
	size_t name_offset; /* into the names of its round */
	const char *tier;
	enum {
		LOOK_PENDING,
		LOOK_UNNAMED,
		LOOK_NAMED,
		LOOK_STUB,
		LOOK_GONE, /* freed before the second look */
	} state;
	bool has_header; /* method is filled in */
	bool is_volatile;
};

struct round {
	struct code_map map;
	struct look *looks; /* as many as there are blocks in the map */
	struct buf names;
};

static void round_deinit(struct round *round)
{
	code_map_deinit(&round->map);
	free(round->looks);
	buf_deinit(&round->names);
}

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
	error = load_layouts(reader, runtime_base);
	if (!error)
		error = modules_create(memory, &reader->layout, &reader->modules);
	if (!error)
		error = types_create(memory, &reader->layout, reader->modules, &reader->types);
	if (!error)
		error = methods_create(memory, &reader->layout, reader->modules, reader->types,
				       &reader->methods);
	if (error) {
		reader->memory = NULL; /* stays the caller's */
		return error;
	}
	*ret = STEAL(reader);
	return NULL;
}

void jit_reader_close(struct jit_reader *reader)
{
	if (!reader)
		return;
	methods_destroy(reader->methods);
	types_destroy(reader->types);
	modules_destroy(reader->modules);
	remote_memory_close(reader->memory);
	free(reader);
}

/* ---- one look ----------------------------------------------------------------- */

static void look_at_name(struct jit_reader *reader, struct round *round,
			 const struct code_section *section, struct look *look)
{
	enum method_outcome outcome;

	if (!look->name_bytes) {
		size_t offset = round->names.size_bytes;

		outcome = methods_write_name(reader->methods, look->method.method_desc,
					     &round->names, &look->is_volatile);
		look->is_volatile |= (section->flags & CODE_SECTION_COLLECTIBLE) != 0;
		if (outcome == METHOD_BAD)
			look->state = LOOK_UNNAMED;
		if (outcome != METHOD_NAMED)
			return;
		look->name_offset = offset;
		look->name_bytes = (uint32_t)(round->names.size_bytes - offset);
		buf_append_char(&round->names, '\0');
		if (methods_last_was_dynamic(reader->methods)) {
			look->state = LOOK_NAMED; /* compiled once, fully */
			look->tier = "Optimized";
			return;
		}
	}
	if (reader->has_tiers &&
	    methods_read_tier(reader->methods, &reader->tier_layout, look->method.method_desc,
			      look->method.start_address, &look->tier) == METHOD_PENDING)
		return;
	look->state = LOOK_NAMED;
}

static void look_at(struct jit_reader *reader, struct round *round, size_t index)
{
	const struct code_block *block = &round->map.blocks[index];
	const struct code_section *section = &round->map.sections[block->section];
	struct look *look = &round->looks[index];

	if (!look->has_header) {
		look->is_volatile = (section->flags & CODE_SECTION_COLLECTIBLE) != 0;
		switch (code_block_read(reader->memory, &reader->layout, &round->map, block,
					&look->method, &look->stub_kind)) {
		case CODE_BLOCK_PENDING:
			return;
		case CODE_BLOCK_STUB:
			look->state = LOOK_STUB;
			return;
		case CODE_BLOCK_BAD:
			look->state = LOOK_UNNAMED;
			return;
		case CODE_BLOCK_METHOD:
			look->has_header = true;
		}
	}
	look_at_name(reader, round, section, look);
}

static struct sym_error *round_error(struct jit_reader *reader, const struct round *round)
{
	if (round->names.failure != BUF_OK)
		return sym_error_from_buf(&round->names, "names of jitted methods");
	return types_error(reader->types);
}

/* Looks at all blocks of a round that are marked pending, until none is. */
static struct sym_error *look_at_all(struct jit_reader *reader, struct round *round)
{
	struct sym_error *error = NULL;
	bool again = true;

	for (unsigned int i = 0; !error && again; i++) {
		if (i == LIMIT_REMOTE_ROUNDS)
			return sym_error_create(SYM_ERROR_LIMIT,
						"the runtime's structures have no end");
		for (size_t at = 0; at < round->map.block_count; at++)
			if (round->looks[at].state == LOOK_PENDING)
				look_at(reader, round, at);
		error = round_error(reader, round);
		if (!error)
			error = remote_memory_fetch(reader->memory, &again);
	}
	return error;
}

/* Begins a round with nothing kept that could have changed. */
static struct sym_error *round_init(struct jit_reader *reader, struct round *round)
{
	struct sym_error *error;

	*round = (struct round){ 0 };
	buf_init(&round->names, LIMIT_INDEX_NAME_BYTES);
	remote_memory_forget(reader->memory);
	types_forget(reader->types);
	modules_forget_volatile(reader->modules);
	error = code_map_read(reader->memory, &reader->layout, &round->map);
	if (error)
		return error;
	round->looks = calloc(round->map.block_count + 1, sizeof(*round->looks));
	return round->looks ? NULL : &sym_error_no_memory;
}

/* ---- the second look ------------------------------------------------------------ */

static bool same(const struct round *a, const struct look *left, const struct round *b,
		 const struct look *right)
{
	return left->state == LOOK_NAMED && right->state == LOOK_NAMED &&
	       left->method.method_desc == right->method.method_desc &&
	       left->method.size_bytes == right->method.size_bytes &&
	       left->name_bytes == right->name_bytes &&
	       !memcmp(a->names.data + left->name_offset, b->names.data + right->name_offset,
		       left->name_bytes);
}

/* Finds the block of the second round for each of the first that needs it; both are sorted. Others
 * are not looked at. */
static size_t mark_second(const struct round *first, struct round *second, size_t *partners)
{
	size_t at = 0, wanted = 0;

	for (size_t i = 0; i < second->map.block_count; i++)
		second->looks[i].state = LOOK_UNNAMED;
	for (size_t i = 0; i < first->map.block_count; i++) {
		const struct look *look = &first->looks[i];
		uint64_t start = first->map.blocks[i].start_address;

		partners[i] = SIZE_MAX;
		if (look->state == LOOK_STUB || (look->state == LOOK_NAMED && !look->is_volatile))
			continue;
		while (at < second->map.block_count && second->map.blocks[at].start_address < start)
			at++;
		if (at == second->map.block_count || second->map.blocks[at].start_address != start)
			continue;
		second->looks[at].state = LOOK_PENDING;
		partners[i] = at;
		wanted++;
	}
	return wanted;
}

static void settle(struct round *first, struct round *second, const size_t *partners)
{
	for (size_t i = 0; i < first->map.block_count; i++) {
		struct look *look = &first->looks[i];
		struct look *again = partners[i] == SIZE_MAX ? NULL : &second->looks[partners[i]];
		bool good;

		if (look->state == LOOK_STUB || (look->state == LOOK_NAMED && !look->is_volatile))
			continue;
		if (!again) {
			look->state = LOOK_GONE;
			continue;
		}
		if (look->state == LOOK_NAMED) {
			good = same(first, look, second, again);
		} else {
			/* A page of the first round may have been older than a pointer to it. */
			good = again->state == LOOK_NAMED && !again->is_volatile;
			if (good)
				*look = *again;
			if (good) {
				look->name_offset = first->names.size_bytes;
				buf_append(&first->names, second->names.data + again->name_offset,
					   again->name_bytes);
				buf_append_char(&first->names, '\0');
			}
		}
		if (!good)
			look->state = LOOK_UNNAMED;
	}
}

static struct sym_error *look_again(struct jit_reader *reader, struct round *first)
{
	AUTO_FREE size_t *partners = calloc(first->map.block_count + 1, sizeof(*partners));
	struct round second;
	struct sym_error *error;

	if (!partners)
		return &sym_error_no_memory;
	error = round_init(reader, &second);
	if (!error && mark_second(first, &second, partners))
		error = look_at_all(reader, &second);
	if (!error)
		settle(first, &second, partners);
	round_deinit(&second);
	return error;
}

static bool needs_second_look(const struct round *round)
{
	for (size_t i = 0; i < round->map.block_count; i++) {
		const struct look *look = &round->looks[i];

		if (look->state == LOOK_UNNAMED || (look->state == LOOK_NAMED && look->is_volatile))
			return true;
	}
	return false;
}

/* ---- precodes ------------------------------------------------------------------- */

/* A precode or a page of them, its name in the names of the first round. */
struct thunk {
	struct precode precode;
	size_t name_offset;
	uint32_t name_bytes; /* 0: none */
	bool done;
};

struct thunks {
	struct thunk *items;
	size_t count;
};

/* Methods with code, by MethodDesc: only for those is a recyclable MethodDesc known to be alive. */
struct living {
	uint64_t method_desc;
	const struct look *look;
};

static int compare_living(const void *a, const void *b)
{
	const struct living *left = a, *right = b;

	return left->method_desc < right->method_desc ? -1 : left->method_desc > right->method_desc;
}

static struct living *list_living(const struct round *round, size_t *count_ret)
{
	struct living *living = calloc(round->map.block_count + 1, sizeof(*living));
	size_t count = 0;

	for (size_t i = 0; living && i < round->map.block_count; i++)
		if (round->looks[i].state == LOOK_NAMED)
			living[count++] = (struct living){ round->looks[i].method.method_desc,
							   &round->looks[i] };
	if (count)
		qsort(living, count, sizeof(*living), compare_living);
	*count_ret = count;
	return living;
}

static void set_thunk_name(struct thunk *thunk, struct buf *names, size_t offset)
{
	thunk->name_offset = offset;
	thunk->name_bytes = (uint32_t)(names->size_bytes - offset);
	thunk->done = true;
	buf_append_char(names, '\0');
}

static const char precode_prefix[] = "[precode] ";

static void name_thunk(struct jit_reader *reader, struct round *round, struct thunk *thunk,
		       const struct living *living, size_t living_count)
{
	struct living key = { .method_desc = thunk->precode.method_desc };
	const struct living *found =
		living_count ? bsearch(&key, living, living_count, sizeof(key), compare_living)
			     : NULL;
	size_t offset = round->names.size_bytes;
	enum method_outcome outcome = METHOD_NAMED;
	bool is_volatile = false;

	buf_append_string(&round->names, precode_prefix);
	if (found) {
		/* The buffer may move while it grows: room first, then the address. */
		if (buf_reserve(&round->names, found->look->name_bytes))
			buf_append(&round->names, round->names.data + found->look->name_offset,
				   found->look->name_bytes);
	} else {
		outcome = methods_write_name(reader->methods, key.method_desc, &round->names,
					     &is_volatile);
	}
	if (outcome == METHOD_NAMED && !is_volatile) {
		set_thunk_name(thunk, &round->names, offset);
		return;
	}
	buf_truncate(&round->names, offset);
	thunk->done = outcome != METHOD_PENDING;
}

static struct sym_error *name_thunks(struct jit_reader *reader, struct round *round,
				     struct thunks *thunks)
{
	size_t living_count;
	struct living *living AUTO_FREE = list_living(round, &living_count);
	struct sym_error *error = living ? NULL : &sym_error_no_memory;

	for (bool again = true; !error && again;) {
		for (size_t i = 0; i < thunks->count; i++)
			if (!thunks->items[i].done)
				name_thunk(reader, round, &thunks->items[i], living, living_count);
		error = round_error(reader, round);
		if (!error)
			error = remote_memory_fetch(reader->memory, &again);
	}
	return error;
}

static struct sym_error *read_thunks(struct jit_reader *reader, struct round *round,
				     struct thunks *ret)
{
	struct precodes precodes;
	struct sym_error *error =
		precodes_read(reader->memory, &reader->precode_layout, &round->map, &precodes);

	if (error)
		return error;
	ret->items = calloc(precodes.count + 1, sizeof(*ret->items));
	ret->count = ret->items ? precodes.count : 0;
	for (size_t i = 0; i < ret->count; i++) {
		ret->items[i].precode = precodes.items[i];
		ret->items[i].done = !precodes.items[i].method_desc;
	}
	precodes_deinit(&precodes);
	return ret->items ? name_thunks(reader, round, ret) : &sym_error_no_memory;
}

/* ---- the result ------------------------------------------------------------------ */

struct result {
	struct jit_reading reading;
	char *names;
};

void jit_reading_destroy(struct jit_reading *reading)
{
	struct result *result = (struct result *)reading;

	if (!result)
		return;
	free(result->reading.symbols);
	free(result->reading.heaps);
	free(result->names);
	free(result);
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
	const char *name = code_stub_name(look->stub_kind);

	reading->symbols[reading->symbol_count++] = (struct jit_symbol){
		.start_address = block->start_address,
		.size_bytes = block->limit_address - block->start_address,
		.name = name,
		.name_bytes = (uint32_t)strlen(name),
		.kind = SYM_SYMBOL_STUB,
	};
}

/* A method must not reach into the next one; a block that does is one that was read while it
 * changed. */
static bool fits(const struct code_block *block, const struct look *look)
{
	return look->method.size_bytes <= block->limit_address - block->start_address;
}

static void add_pages(struct jit_reading *reading, const struct thunks *thunks)
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

static void add_precodes(struct jit_reading *reading, const struct thunks *thunks,
			 const char *names)
{
	for (size_t i = 0; i < thunks->count; i++) {
		const struct thunk *thunk = &thunks->items[i];

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

/* Adds methods and stub blocks; false when too much of what cannot change contradicts itself. */
static bool add_blocks(struct result *result, const struct round *round, uint32_t flags,
		       size_t *ordinary_ret, size_t *bad_ret)
{
	size_t ordinary = 0, bad = 0;

	for (size_t i = 0; i < round->map.block_count; i++) {
		const struct look *look = &round->looks[i];
		bool named = look->state == LOOK_NAMED && fits(&round->map.blocks[i], look);

		if (look->state == LOOK_STUB && flags & JIT_READ_STUBS)
			add_stub(&result->reading, &round->map.blocks[i], look);
		if (look->state == LOOK_STUB || look->state == LOOK_GONE)
			continue;
		if (named)
			add_method(&result->reading, look, result->names);
		else
			result->reading.unnamed_count++;
		if (look->is_volatile) {
			result->reading.unnamed_dynamic_count += !named;
		} else {
			ordinary++;
			bad += !named;
		}
	}
	*ordinary_ret = ordinary;
	*bad_ret = bad;
	return bad <= ordinary / 20;
}

static struct sym_error *make_result(struct round *round, const struct thunks *thunks,
				     uint32_t flags, struct result **ret)
{
	struct result *result = calloc(1, sizeof(*result));
	size_t ordinary, bad;

	if (!result)
		return &sym_error_no_memory;
	result->reading.symbols = calloc(round->map.block_count + thunks->count + 1,
					 sizeof(*result->reading.symbols));
	result->reading.heaps =
		calloc(round->map.section_count + 1, sizeof(*result->reading.heaps));
	result->names = buf_steal(&round->names, NULL);
	if (!result->reading.symbols || !result->reading.heaps || !result->names) {
		jit_reading_destroy(&result->reading);
		return &sym_error_no_memory;
	}
	add_heaps(&result->reading, &round->map);
	add_pages(&result->reading, thunks);
	if (!add_blocks(result, round, flags, &ordinary, &bad)) {
		jit_reading_destroy(&result->reading);
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"%zu of %zu methods of the runtime contradict its data "
					"contract: none is believed",
					bad, ordinary);
	}
	add_precodes(&result->reading, thunks, result->names);
	*ret = result;
	return NULL;
}

struct sym_error *jit_reader_read(struct jit_reader *reader, uint32_t flags,
				  struct jit_reading **ret)
{
	struct remote_memory_cost before = *remote_memory_cost(reader->memory), after;
	struct thunks thunks = { 0 };
	struct result *result = NULL;
	struct round first;
	struct sym_error *error = round_init(reader, &first);

	if (!error)
		error = look_at_all(reader, &first);
	if (!error && needs_second_look(&first))
		error = look_again(reader, &first);
	if (!error && flags & JIT_READ_PRECODES && reader->has_precodes)
		error = read_thunks(reader, &first, &thunks);
	if (!error)
		error = make_result(&first, &thunks, flags, &result);
	round_deinit(&first);
	free(thunks.items);
	if (error)
		return error;
	after = *remote_memory_cost(reader->memory);
	result->reading.cost = (struct remote_memory_cost){
		.calls = after.calls - before.calls,
		.bytes = after.bytes - before.bytes,
		.unreadable_pages = after.unreadable_pages - before.unreadable_pages,
	};
	*ret = &result->reading;
	return NULL;
}
