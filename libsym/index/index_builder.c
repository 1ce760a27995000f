/* SPDX-License-Identifier: MIT */
/*
 * Collects symbols and freezes them. Symbols are put in ascending order. Where some overlap, the
 * one added last gets the shared bytes. Symbols that were
 * added in ascending order without overlaps become the index as they are.
 *
 *   A  |-----------------|            added first
 *   B          |-----|                added second
 *   C                        |---|    overlaps nothing
 *
 *   A1 |-------|  B |-----|  A2 |--|  C |---|
 *
 * Symbols of a runtime rarely overlap, so most symbols are one piece. Symbols connected by overlaps
 * form a cluster (write_together()). A sweep over the cluster keeps the symbols that cover the
 * current position in a heap, with the latest on top.
 */
#include <stdlib.h>
#include <string.h>

#include "libsym/base/grow.h"
#include "libsym/base/huge_memory.h"
#include "libsym/budget_api.h"
#include "libsym/index/index_layout.h"
#include "libsym/index/index_sort.h"
#include "libsym/limits.h"

struct index_builder {
	struct index_rows rows; /* symbols, in the order in which they were added */
	uint64_t end;           /* of the last one */
	bool is_unsorted; /* one starts in front of the end of one before it, or has no size */
	struct string_pool *names; /* NULL in a builder of numbers */
	const char *last_name;     /* NULL at first */
	uint32_t last_name_offset;
	size_t last_name_bytes;
	struct sym_error *failure;
	struct budget_account *account; /* NULL: none */
	const char *path;
	uint64_t charged_bytes;
	uint64_t pending_bytes; /* not charged yet */
};

enum {
	/* Memory for a symbol while it is collected and laid out. */
	SYMBOL_BYTES = 48,
	CHARGE_STEP_BYTES = 1 << 16
};

void index_builder_charge(struct index_builder *builder, struct budget_account *account,
			  const char *path)
{
	builder->account = account;
	builder->path = path;
}

/* Returns false, with `failure` set, if the budget is exceeded. */
static bool charge_builder(struct index_builder *builder, uint64_t bytes)
{
	builder->pending_bytes += bytes;
	if (builder->pending_bytes < CHARGE_STEP_BYTES)
		return true;
	builder->failure = budget_check_time(builder->account, builder->path);
	if (!builder->failure)
		builder->failure =
			budget_charge(builder->account, builder->pending_bytes, builder->path);
	if (builder->failure)
		return false;
	builder->charged_bytes += builder->pending_bytes;
	builder->pending_bytes = 0;
	return true;
}

struct sym_error *index_builder_create_numbered(struct index_builder **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? NULL : &sym_error_no_memory;
}

struct sym_error *index_builder_create(struct index_builder **ret)
{
	struct string_pool *names = string_pool_create();
	struct sym_error *error = names ? index_builder_create_numbered(ret) : &sym_error_no_memory;

	if (error)
		string_pool_destroy(names);
	else
		(*ret)->names = names;
	return error;
}

void index_builder_destroy(struct index_builder *builder)
{
	if (!builder)
		return;
	index_rows_deinit(&builder->rows);
	string_pool_destroy(builder->names);
	budget_release(builder->account, builder->charged_bytes);
	sym_error_destroy(builder->failure);
	free(builder);
}

bool index_builder_has_failed(const struct index_builder *builder)
{
	return builder->failure;
}

bool index_builder_is_empty(const struct index_builder *builder)
{
	return !builder->rows.count && !builder->failure;
}

void index_builder_reserve(struct index_builder *builder, size_t symbols, size_t name_bytes)
{
	if (builder->rows.items || builder->failure)
		return;
	if (symbols > LIMIT_INDEX_SYMBOLS)
		symbols = LIMIT_INDEX_SYMBOLS;
	/* Only advice: without it, memory grows step by step. */
	builder->rows.items = huge_memory_allocate(symbols * sizeof(*builder->rows.items));
	builder->rows.capacity = builder->rows.items ? symbols : 0;
	if (builder->names)
		string_pool_reserve(builder->names, name_bytes);
}

/* Consecutive symbols often share their name (parts of one function). */
static bool is_last_name(const struct index_builder *builder, const char *name, size_t name_bytes)
{
	return builder->last_name && name_bytes == builder->last_name_bytes &&
	       !memcmp(builder->last_name, name, name_bytes);
}

static bool add_name(struct index_builder *builder, const char *name, size_t name_bytes)
{
	if (is_last_name(builder, name, name_bytes))
		return true;
	builder->failure =
		string_pool_add(builder->names, name, name_bytes, &builder->last_name_offset);
	if (builder->failure || (builder->account && !charge_builder(builder, name_bytes + 1)))
		return false;
	builder->last_name = string_pool_at(builder->names, builder->last_name_offset);
	builder->last_name_bytes = name_bytes;
	return true;
}

/* Returns false, with `failure` set, if the symbol may not be added. */
static bool may_add(struct index_builder *builder, uint64_t start, uint64_t size_bytes)
{
	if (builder->failure)
		return false;
	if (start + size_bytes < start)
		builder->failure = sym_error_create(SYM_ERROR_ARGUMENT, "symbol end overflows");
	else if (builder->rows.count >= LIMIT_INDEX_SYMBOLS)
		builder->failure = sym_error_create(SYM_ERROR_LIMIT, "more than %zu symbols",
						    LIMIT_INDEX_SYMBOLS);
	return !builder->failure && (!builder->account || charge_builder(builder, SYMBOL_BYTES));
}

static void add_piece(struct index_builder *builder, const struct index_piece *piece)
{
	if (!index_rows_add(&builder->rows, piece)) {
		builder->failure = &sym_error_no_memory;
		return;
	}
	if (piece->start < builder->end || !piece->size_bytes)
		builder->is_unsorted = true;
	builder->end = piece->start + piece->size_bytes;
}

static void add_symbol(struct index_builder *builder, uint64_t start, uint64_t size_bytes,
		       uint32_t number, uint32_t value)
{
	add_piece(builder,
		  &(struct index_piece){ start, size_bytes, start, size_bytes, number, value });
}

void index_builder_add(struct index_builder *builder, uint64_t start, uint64_t size_bytes,
		       const char *name, size_t name_bytes, uint32_t value)
{
	if (may_add(builder, start, size_bytes) && add_name(builder, name, name_bytes))
		add_symbol(builder, start, size_bytes, builder->last_name_offset, value);
}

void index_builder_add_number(struct index_builder *builder, uint64_t start, uint64_t size_bytes,
			      uint32_t number, uint32_t value)
{
	if (may_add(builder, start, size_bytes))
		add_symbol(builder, start, size_bytes, number, value);
}

void index_builder_add_pieces(struct index_builder *builder, const struct index *index)
{
	for (size_t i = 0; i < index->rows.count && !builder->failure; i++) {
		struct index_piece piece = index_rows_at(&index->rows, i);

		/* A symbol without a size is a piece of one byte that yields to all with a size. */
		if (!piece.symbol_size_bytes)
			piece.size_bytes = 0;
		if (may_add(builder, piece.start, piece.size_bytes))
			add_piece(builder, &piece);
	}
}

/* ---- overlaps ---- */

struct member {
	struct index_piece symbol;
	uint32_t turn; /* in which it was added */
};

/* Symbols connected by overlaps, ascending; equal starts in the order in which they were added. */
struct cluster {
	struct member *items;
	size_t count, capacity;
	uint64_t last; /* the last position that one of them covers */
	/* Buffers for the sweep, sized by `capacity`. */
	const struct member **heap;
	struct piece *pieces, *merged;
	size_t room;
};

/* A piece of a symbol of the cluster. */
struct piece {
	uint64_t start;
	uint64_t size_bytes;
	const struct member *owner;
};

struct pieces {
	struct piece *items;
	size_t count;
};

struct freezing {
	const struct index_rows *from;
	const uint32_t *order; /* of `from`, ascending; equal starts in the order of adding */
	size_t next;
	struct cluster cluster;
	struct index_rows *to;
};

/* The symbols that cover the position of the sweep, as a heap with the latest on top. */
struct active {
	const struct member **owners;
	size_t count;
};

static void active_push(struct active *active, const struct member *owner)
{
	size_t at = active->count++;

	for (; at && active->owners[(at - 1) / 2]->turn < owner->turn; at = (at - 1) / 2)
		active->owners[at] = active->owners[(at - 1) / 2];
	active->owners[at] = owner;
}

static void active_pop(struct active *active)
{
	const struct member *last = active->owners[--active->count];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < active->count) {
		if (child + 1 < active->count &&
		    active->owners[child + 1]->turn > active->owners[child]->turn)
			child++;
		if (active->owners[child]->turn < last->turn)
			break;
		active->owners[at] = active->owners[child];
		at = child;
	}
	active->owners[at] = last;
}

static void emit_piece(struct pieces *pieces, const struct member *owner, uint64_t start,
		       uint64_t end)
{
	struct piece *last = pieces->count ? &pieces->items[pieces->count - 1] : NULL;

	if (last && last->owner == owner && last->start + last->size_bytes == start)
		last->size_bytes = end - last->start;
	else
		pieces->items[pieces->count++] =
			(struct piece){ .start = start, .size_bytes = end - start, .owner = owner };
}

static uint64_t end_of(const struct member *member)
{
	return member->symbol.start + member->symbol.size_bytes;
}

/* The last position that a symbol covers; its start if it has no size. */
static uint64_t last_of(const struct index_piece *symbol)
{
	return symbol->start + (symbol->size_bytes ? symbol->size_bytes - 1 : 0);
}

/* Splits symbols with a size into disjoint pieces. There are at most 2n - 1, because a piece starts
 * only where a symbol starts or ends. */
static void sweep_cluster(const struct cluster *cluster, struct pieces *pieces)
{
	const struct member *items = cluster->items;
	struct active active = { .owners = cluster->heap };
	size_t count = cluster->count, next = 0;
	uint64_t position = 0;

	while (next < count || active.count) {
		uint64_t end;

		if (!active.count && items[next].symbol.start > position)
			position = items[next].symbol.start;
		for (; next < count && items[next].symbol.start <= position; next++)
			if (items[next].symbol.size_bytes)
				active_push(&active, &items[next]);
		while (active.count && end_of(active.owners[0]) <= position)
			active_pop(&active);
		if (!active.count)
			continue;
		end = end_of(active.owners[0]);
		if (next < count && items[next].symbol.start < end)
			end = items[next].symbol.start;
		emit_piece(pieces, active.owners[0], position, end);
		position = end;
	}
}

/* A symbol without a size gets its start if no sized symbol covers it. If several start there, the
 * latest gets it. */
static void add_sizeless(const struct cluster *cluster, const struct pieces *sized,
			 struct pieces *ret)
{
	size_t next = 0, i;

	for (i = 0; i < cluster->count; i++) {
		const struct member *item = &cluster->items[i];
		uint64_t start = item->symbol.start;
		struct piece *last;

		if (item->symbol.size_bytes)
			continue;
		while (next < sized->count && sized->items[next].start <= start)
			ret->items[ret->count++] = sized->items[next++];
		last = ret->count ? &ret->items[ret->count - 1] : NULL;
		/* Avoids a sum, which could overflow: a symbol can cover the last address. */
		if (!last || start - last->start >= last->size_bytes)
			ret->items[ret->count++] = (struct piece){ start, 1, item };
		else if (!last->owner->symbol.size_bytes)
			last->owner = item;
	}
	while (next < sized->count)
		ret->items[ret->count++] = sized->items[next++];
}

static bool make_room(struct cluster *cluster)
{
	if (cluster->room >= cluster->count)
		return true;
	free(cluster->heap);
	free(cluster->pieces);
	free(cluster->merged);
	cluster->room = cluster->capacity;
	cluster->heap = malloc(cluster->room * sizeof(*cluster->heap));
	cluster->pieces = malloc(2 * cluster->room * sizeof(*cluster->pieces));
	cluster->merged = malloc(3 * cluster->room * sizeof(*cluster->merged));
	return cluster->heap && cluster->pieces && cluster->merged;
}

static void cluster_deinit(struct cluster *cluster)
{
	free(cluster->items);
	free(cluster->heap);
	free(cluster->pieces);
	free(cluster->merged);
}

static bool write_cluster(struct freezing *freezing)
{
	struct cluster *cluster = &freezing->cluster;
	struct pieces pieces, all = { 0 };

	if (!make_room(cluster))
		return false;
	pieces = (struct pieces){ .items = cluster->pieces };
	all.items = cluster->merged;
	sweep_cluster(cluster, &pieces);
	add_sizeless(cluster, &pieces, &all);
	for (size_t i = 0; i < all.count; i++) {
		struct index_piece piece = all.items[i].owner->symbol;

		piece.start = all.items[i].start;
		piece.size_bytes = all.items[i].size_bytes;
		if (!index_rows_add(freezing->to, &piece))
			return false;
	}
	return true;
}

/* `symbol` was added after `before`. Does it hide all of it? */
static bool hides_entirely(const struct index_piece *symbol, const struct index_piece *before)
{
	return symbol->start == before->start && symbol->size_bytes >= before->size_bytes;
}

static bool add_to_cluster(struct cluster *cluster, const struct index_piece *symbol, uint32_t turn)
{
	uint64_t last = last_of(symbol);

	if (cluster->count && hides_entirely(symbol, &cluster->items[cluster->count - 1].symbol))
		cluster->count--;
	if (!grow_items((void **)&cluster->items, &cluster->capacity, cluster->count,
			sizeof(*cluster->items)))
		return false;
	cluster->items[cluster->count++] = (struct member){ *symbol, turn };
	if (cluster->count == 1 || last > cluster->last)
		cluster->last = last;
	return true;
}

/* ---- in ascending order ---- */

/* The next symbol; false at the end. */
static bool peek(const struct freezing *freezing, struct index_piece *ret)
{
	if (freezing->next == freezing->from->count)
		return false;
	*ret = index_rows_at(freezing->from, freezing->order[freezing->next]);
	return true;
}

/* Writes `first` and all symbols that overlap it, directly or through others. */
static bool write_together(struct freezing *freezing, const struct index_piece *first)
{
	struct cluster *cluster = &freezing->cluster;
	struct index_piece next;

	cluster->count = 0;
	if (!add_to_cluster(cluster, first, freezing->order[freezing->next - 1]))
		return false;
	for (; peek(freezing, &next) && next.start <= cluster->last; freezing->next++)
		if (!add_to_cluster(cluster, &next, freezing->order[freezing->next]))
			return false;
	return write_cluster(freezing);
}

static bool write_all(struct freezing *freezing)
{
	struct index_piece symbol, next;

	while (peek(freezing, &symbol)) {
		bool is_last;

		freezing->next++;
		is_last = !peek(freezing, &next);
		if (is_last || next.start > last_of(&symbol)) {
			symbol.size_bytes += !symbol.size_bytes;
			if (!index_rows_add(freezing->to, &symbol))
				return false;
		} else if (!hides_entirely(&next, &symbol) && !write_together(freezing, &symbol)) {
			return false;
		}
	}
	return true;
}

/* Sorts the rows of the builder, and resolves overlaps. */
static bool write_sorted(const struct index_builder *builder, struct index_rows *ret)
{
	const struct index_rows *rows = &builder->rows;
	uint32_t *order AUTO_FREE =
		index_sort(&rows->items->start, sizeof(*rows->items), rows->count);
	struct freezing freezing = { .from = rows, .order = order, .to = ret };
	bool done;

	ret->items = huge_memory_allocate(rows->count * sizeof(*ret->items));
	if (!order || !ret->items)
		return false;
	ret->capacity = rows->count;
	done = write_all(&freezing);
	cluster_deinit(&freezing.cluster);
	return done;
}

struct sym_error *index_freeze(struct index_builder *builder, struct index **ret)
{
	AUTO_INDEX struct index *index = calloc(1, sizeof(*index));

	if (builder->failure)
		return STEAL(builder->failure);
	if (!index || (builder->is_unsorted && !write_sorted(builder, &index->rows)))
		return &sym_error_no_memory;
	if (!builder->is_unsorted) {
		index->rows = builder->rows;
		builder->rows = (struct index_rows){ 0 };
	}
	if (!index_lay_out(index))
		return &sym_error_no_memory;
	if (builder->names)
		string_pool_trim(builder->names);
	index->names = STEAL(builder->names);
	index->account = builder->account;
	index->charged_bytes = builder->charged_bytes;
	builder->charged_bytes = 0;
	index_rows_deinit(&builder->rows);
	*ret = STEAL(index);
	return NULL;
}
