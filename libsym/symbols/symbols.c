/* SPDX-License-Identifier: MIT */
/*
 * A builder collects symbols in an array and their names in a name_pool; freezing sorts the array
 * and hands both to a list. For a disjoint list, cut_overlaps() adds the symbols to an index of
 * numbers, which resolves overlaps; each piece becomes a symbol with the name of its owner.
 *
 * Memory is charged to the budget in steps of CHARGE_STEP_BYTES, because a symbol is small. The
 * list remembers what was charged to which account and releases it at the end.
 */
#include "libsym/symbols/symbols.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/ascending.h"
#include "libsym/base/grow.h"
#include "libsym/budget_api.h"
#include "libsym/index/index.h"
#include "libsym/limits.h"

void symbols_builder_init(struct symbols_builder *builder)
{
	*builder = (struct symbols_builder){ 0 };
}

/* ---- the budget ------------------------------------------------------------------ */

enum {
	/* Memory per symbol: while a list is made disjoint there are two copies of it, and its
	 * piece. */
	SYMBOL_BYTES = 2 * sizeof(struct sym_symbol) + 64,
	CHARGE_STEP_BYTES = 1 << 16
};

/* Returns false, with `failure` set, if the budget is exceeded. */
static bool charge_pending(struct symbols_builder *builder)
{
	struct symbols_charge *charge = builder->list.charges;

	builder->failure = budget_check_time(builder->account, builder->path);
	if (!builder->failure)
		builder->failure =
			budget_charge(builder->account, builder->pending_bytes, builder->path);
	if (builder->failure)
		return false;
	if (charge->account && charge->account != builder->account)
		charge++;
	charge->account = builder->account;
	charge->bytes += builder->pending_bytes;
	builder->pending_bytes = 0;
	return true;
}

static bool charge_bytes(struct symbols_builder *builder, uint64_t bytes)
{
	builder->pending_bytes += bytes;
	return builder->pending_bytes < CHARGE_STEP_BYTES || charge_pending(builder);
}

void symbols_builder_charge(struct symbols_builder *builder, struct budget_account *account,
			    const char *path)
{
	if (builder->account == account) {
		builder->path = path;
		return;
	}
	if (builder->account && builder->pending_bytes && !builder->failure)
		(void)charge_pending(builder);
	builder->pending_bytes = 0;
	builder->account = account;
	builder->path = path;
}

void symbols_builder_absorb_names(struct symbols_builder *builder, struct sym_symbols *other)
{
	name_pool_absorb(&builder->list.names, &other->names);
	for (size_t i = 0; i < SYMBOLS_CHARGES; i++) {
		struct symbols_charge *charge = builder->list.charges;

		if (!other->charges[i].account)
			continue;
		if (charge->account && charge->account != other->charges[i].account)
			charge++;
		charge->account = other->charges[i].account;
		charge->bytes += other->charges[i].bytes;
		other->charges[i] = (struct symbols_charge){ 0 };
	}
}

static void release_charges(struct sym_symbols *list)
{
	for (size_t i = 0; i < SYMBOLS_CHARGES; i++)
		budget_release(list->charges[i].account, list->charges[i].bytes);
}

static void deinit_list(struct sym_symbols *list)
{
	release_charges(list);
	free(list->items);
	name_pool_deinit(&list->names);
	while (list->owned_count) {
		const struct symbols_owned *owned = &list->owned[--list->owned_count];

		owned->end(owned->object);
	}
}

void symbols_builder_adopt(struct symbols_builder *builder, void *object, void (*end)(void *object))
{
	builder->list.owned[builder->list.owned_count++] = (struct symbols_owned){ object, end };
}

void symbols_builder_deinit(struct symbols_builder *builder)
{
	deinit_list(&builder->list);
	sym_error_destroy(builder->failure);
	*builder = (struct symbols_builder){ 0 };
}

static bool make_room(struct symbols_builder *builder)
{
	if (builder->failure)
		return false;
	if (builder->list.count >= LIMIT_INDEX_SYMBOLS)
		builder->failure = sym_error_create(SYM_ERROR_LIMIT,
						    "more than %zu symbols (LIMIT_INDEX_SYMBOLS)",
						    LIMIT_INDEX_SYMBOLS);
	else if (!grow_items((void **)&builder->list.items, &builder->capacity, builder->list.count,
			     sizeof(*builder->list.items)))
		builder->failure = &sym_error_no_memory;
	return !builder->failure;
}

void symbols_builder_add_borrowed(struct symbols_builder *builder, const struct sym_symbol *symbol)
{
	if (builder->account && !builder->failure && !charge_bytes(builder, SYMBOL_BYTES))
		return;
	if (make_room(builder))
		builder->list.items[builder->list.count++] = *symbol;
}

void symbols_builder_add(struct symbols_builder *builder, const struct sym_symbol *symbol,
			 const char *name, size_t name_bytes)
{
	struct sym_symbol named = *symbol;

	if (builder->failure || (builder->account && !charge_bytes(builder, name_bytes + 1)))
		return;
	named.name = name_pool_add(&builder->list.names, name, name_bytes);
	if (!named.name) {
		builder->failure = &sym_error_no_memory;
		return;
	}
	symbols_builder_add_borrowed(builder, &named);
}

static int compare_symbols(const void *left, const void *right)
{
	const struct sym_symbol *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->size_bytes != b->size_bytes)
		return a->size_bytes < b->size_bytes ? -1 : 1;
	return strcmp(a->name, b->name);
}

static struct sym_error *steal_failure(struct symbols_builder *builder)
{
	struct sym_error *failure = builder->failure;

	builder->failure = NULL;
	return failure;
}

struct sym_error *symbols_freeze(struct symbols_builder *builder, struct sym_symbols **ret)
{
	struct sym_symbols *list;

	if (builder->failure)
		return steal_failure(builder);
	list = malloc(sizeof(*list));
	if (!list)
		return &sym_error_no_memory;
	*list = builder->list;
	builder->list = (struct sym_symbols){ 0 };
	builder->capacity = 0;
	/* Images are listed one after the other, mostly each in order. */
	ascending_sort_by(list->items, list->count, sizeof(*list->items), compare_symbols);
	*ret = list;
	return NULL;
}

/* The pieces that remain of each symbol. An index resolves the overlaps; names are not copied. */
static struct sym_error *cut_overlaps(const struct sym_symbols *list, struct index **ret)
{
	struct index_builder *pieces AUTO_INDEX_BUILDER = NULL;
	struct sym_error *error = index_builder_create_numbered(&pieces);

	if (error)
		return error;
	for (size_t i = 0; i < list->count; i++)
		index_builder_add_number(pieces, list->items[i].start, list->items[i].size_bytes,
					 (uint32_t)i, 0);
	return index_freeze(pieces, ret);
}

struct sym_error *symbols_freeze_disjoint(struct symbols_builder *builder, struct sym_symbols **ret)
{
	struct index *pieces AUTO_INDEX = NULL;
	struct sym_symbol *items;
	struct sym_error *error;
	size_t count = 0;

	if (builder->failure)
		return steal_failure(builder);
	error = cut_overlaps(&builder->list, &pieces);
	if (error)
		return error;
	items = calloc(index_count(pieces) + 1, sizeof(*items));
	if (!items)
		return &sym_error_no_memory;
	for (size_t i = 0; i < index_count(pieces); i++) {
		struct index_entry piece;

		index_at(pieces, i, &piece);
		items[count] = builder->list.items[piece.number];
		items[count].start = piece.start;
		items[count++].size_bytes = piece.size_bytes;
	}
	free(builder->list.items);
	builder->list.items = items;
	builder->list.count = builder->capacity = count;
	return symbols_freeze(builder, ret);
}

size_t sym_symbols_count(const struct sym_symbols *symbols)
{
	return symbols->count;
}

const struct sym_symbol *sym_symbols_at(const struct sym_symbols *symbols, size_t index)
{
	return index < symbols->count ? &symbols->items[index] : NULL;
}

void sym_symbols_destroy(struct sym_symbols *symbols)
{
	if (!symbols)
		return;
	deinit_list(symbols);
	free(symbols);
}
