/* SPDX-License-Identifier: MIT */
/*
 * Collecting symbols and freezing them: they come in ascending order out of
 * their areas; where some overlap, the shared bytes go to the one that was added
 * last; the pieces are handed on to be laid out.
 *
 * Symbols of a runtime hardly ever overlap, so mostly a symbol is a piece. Those
 * that hang together by overlaps are gathered and swept by themselves, with a
 * heap of the symbols that cover the position.
 */
#include <stdlib.h>
#include <string.h>

#include "libsym/base/grow.h"
#include "libsym/index_areas.h"
#include "libsym/index_layout.h"
#include "libsym/limits.h"

struct index_builder {
	struct index_areas areas;
	struct index_names *names; /* NULL for numbers */
	const char *last_name;     /* NULL at first */
	uint32_t last_name_offset;
	size_t last_name_bytes;
	struct sym_error *failure;
};

struct sym_error *index_builder_create_numbered(struct index_builder **ret)
{
	struct index_builder *builder = calloc(1, sizeof(*builder));

	if (builder && index_areas_init(&builder->areas)) {
		*ret = builder;
		return NULL;
	}
	index_builder_destroy(builder);
	return &sym_error_no_memory;
}

struct sym_error *index_builder_create(struct index_builder **ret)
{
	struct index_names *names = index_names_create();
	struct sym_error *error = names ? index_builder_create_numbered(ret) : &sym_error_no_memory;

	if (error)
		index_names_destroy(names);
	else
		(*ret)->names = names;
	return error;
}

void index_builder_destroy(struct index_builder *builder)
{
	if (!builder)
		return;
	index_areas_deinit(&builder->areas);
	index_names_destroy(builder->names);
	sym_error_destroy(builder->failure);
	free(builder);
}

bool index_builder_is_empty(const struct index_builder *builder)
{
	return !builder->areas.count && !builder->failure;
}

void index_builder_reserve(struct index_builder *builder, size_t symbols, size_t name_bytes)
{
	if (builder->areas.count || builder->failure)
		return;
	if (symbols > LIMIT_INDEX_SYMBOLS)
		symbols = LIMIT_INDEX_SYMBOLS;
	/* Without this memory things grow step by step, from nothing. */
	index_areas_reserve(&builder->areas, symbols);
	if (builder->names)
		index_names_reserve(builder->names, name_bytes);
}

/* Symbols that follow one another often share their name (parts of one function). */
static inline bool is_last_name(const struct index_builder *builder, const char *name,
				size_t name_bytes)
{
	return builder->last_name && name_bytes == builder->last_name_bytes &&
	       (!name_bytes || name[name_bytes - 1] == builder->last_name[name_bytes - 1]) &&
	       !memcmp(builder->last_name, name, name_bytes);
}

static inline bool add_name(struct index_builder *builder, const char *name, size_t name_bytes)
{
	enum index_names_outcome outcome;

	if (is_last_name(builder, name, name_bytes))
		return true;
	outcome = index_names_add(builder->names, name, name_bytes, &builder->last_name_offset);
	if (outcome == INDEX_NAMES_FULL)
		builder->failure =
			sym_error_create(SYM_ERROR_LIMIT, "names of an index: more than %zu bytes",
					 LIMIT_INDEX_NAME_BYTES);
	if (outcome != INDEX_NAMES_ADDED)
		return false;
	builder->last_name = index_names_at(builder->names, builder->last_name_offset);
	builder->last_name_bytes = name_bytes;
	return true;
}

static __attribute__((noinline, cold)) void fail(struct index_builder *builder, uint64_t start,
						 uint64_t size_bytes)
{
	if (builder->failure)
		return;
	if (start + size_bytes < start)
		builder->failure = sym_error_create(SYM_ERROR_ARGUMENT, "symbol end overflows");
	else if (builder->areas.count >= LIMIT_INDEX_SYMBOLS)
		builder->failure = sym_error_create(SYM_ERROR_LIMIT, "more than %zu symbols",
						    LIMIT_INDEX_SYMBOLS);
	else if (index_areas_are_full(&builder->areas))
		builder->failure =
			sym_error_create(SYM_ERROR_LIMIT, "symbols in more than %zu times 64 KiB",
					 LIMIT_INDEX_AREAS);
	else
		builder->failure = &sym_error_no_memory;
}

static bool add_one(struct index_builder *builder, const struct numbered_range *range)
{
	if (range->start + range->size_bytes >= range->start &&
	    builder->areas.count < LIMIT_INDEX_SYMBOLS && index_areas_add(&builder->areas, range))
		return true;
	fail(builder, range->start, range->size_bytes);
	return false;
}

void index_builder_add(struct index_builder *builder, uint64_t start, uint64_t size_bytes,
		       const char *name, size_t name_bytes, uint32_t value)
{
	if (builder->failure || start + size_bytes < start ||
	    builder->areas.count >= LIMIT_INDEX_SYMBOLS || !add_name(builder, name, name_bytes))
		fail(builder, start, size_bytes);
	else
		add_one(builder, &(struct numbered_range){ start, size_bytes,
							   builder->last_name_offset, value });
}

void index_builder_add_numbers(struct index_builder *builder, const struct numbered_range *ranges,
			       size_t count)
{
	while (!builder->failure && count) {
		size_t left = LIMIT_INDEX_SYMBOLS - builder->areas.count, added;

		added = index_areas_add_some(&builder->areas, ranges, count < left ? count : left);
		if (added < count && add_one(builder, &ranges[added]))
			added++;
		ranges += added;
		count -= added;
	}
}

void index_builder_add_number(struct index_builder *builder, uint64_t start, uint64_t size_bytes,
			      uint32_t number, uint32_t value)
{
	index_builder_add_numbers(builder,
				  &(struct numbered_range){ start, size_bytes, number, value }, 1);
}

/* ---- what overlaps ---- */

/* Symbols that hang together by overlaps, ascending; equal starts in the order of addition. */
struct cluster {
	struct index_symbol *items;
	size_t count, capacity;
	uint64_t last; /* the last position that one of them covers */
	/* For the sweep, as large as `capacity` asks for. */
	uint32_t *heap;
	struct piece *pieces, *merged;
	size_t room;
};

/* A disjoint piece of a symbol of the cluster. */
struct piece {
	uint64_t start;
	uint64_t size_bytes;
	size_t owner;
};

struct pieces {
	struct piece *items;
	size_t count;
};

struct freezing {
	struct cluster cluster;
	struct index_writer writer;
	bool failed; /* for want of memory */
};

/* The symbols that cover the position of the sweep, as a heap with the latest on top. */
struct active {
	const struct index_symbol *items;
	uint32_t *owners;
	size_t count;
};

static uint32_t order_at(const struct active *active, size_t at)
{
	return active->items[active->owners[at]].order;
}

static void active_push(struct active *active, uint32_t owner)
{
	size_t at = active->count++;

	while (at && order_at(active, (at - 1) / 2) < active->items[owner].order) {
		active->owners[at] = active->owners[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	active->owners[at] = owner;
}

static void active_pop(struct active *active)
{
	uint32_t last = active->owners[--active->count];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < active->count) {
		if (child + 1 < active->count &&
		    order_at(active, child + 1) > order_at(active, child))
			child++;
		if (order_at(active, child) < active->items[last].order)
			break;
		active->owners[at] = active->owners[child];
		at = child;
	}
	active->owners[at] = last;
}

static void emit(struct pieces *pieces, size_t owner, uint64_t start, uint64_t end)
{
	struct piece *last = pieces->count ? &pieces->items[pieces->count - 1] : NULL;

	if (last && last->owner == owner && last->start + last->size_bytes == start)
		last->size_bytes = end - last->start;
	else
		pieces->items[pieces->count++] =
			(struct piece){ .start = start, .size_bytes = end - start, .owner = owner };
}

static uint64_t end_of(const struct index_symbol *symbol)
{
	return symbol->start + symbol->size_bytes;
}

/* The last position that a symbol covers; its own start if it has no size. */
static inline uint64_t last_of(const struct index_symbol *symbol)
{
	return symbol->start + (symbol->size_bytes ? symbol->size_bytes - 1 : 0);
}

/*
 * Sized symbols to disjoint pieces. There are at most 2n - 1 of them, because a
 * piece begins only where a symbol begins or ends.
 */
static void sweep(const struct cluster *cluster, struct pieces *pieces)
{
	const struct index_symbol *items = cluster->items;
	struct active active = { .items = items, .owners = cluster->heap };
	size_t count = cluster->count, next = 0;
	uint64_t position = 0;

	while (next < count || active.count) {
		uint64_t end;

		if (!active.count && items[next].start > position)
			position = items[next].start;
		for (; next < count && items[next].start <= position; next++)
			if (items[next].size_bytes)
				active_push(&active, (uint32_t)next);
		while (active.count && end_of(&items[active.owners[0]]) <= position)
			active_pop(&active);
		if (!active.count)
			continue;
		end = end_of(&items[active.owners[0]]);
		if (next < count && items[next].start < end)
			end = items[next].start;
		emit(pieces, active.owners[0], position, end);
		position = end;
	}
}

/* Symbols without a size get their own start where no sized symbol has it; the latest of several.
 */
static void add_sizeless(const struct cluster *cluster, const struct pieces *sized,
			 struct pieces *ret)
{
	size_t next = 0, i;

	for (i = 0; i < cluster->count; i++) {
		const struct index_symbol *item = &cluster->items[i];
		struct piece *last;

		if (item->size_bytes)
			continue;
		while (next < sized->count && sized->items[next].start <= item->start)
			ret->items[ret->count++] = sized->items[next++];
		last = ret->count ? &ret->items[ret->count - 1] : NULL;
		/* No sum: the last address of all may have a symbol. */
		if (!last || item->start - last->start >= last->size_bytes)
			ret->items[ret->count++] =
				(struct piece){ .start = item->start, .size_bytes = 1, .owner = i };
		else if (!cluster->items[last->owner].size_bytes)
			last->owner = i;
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

static bool write_piece(struct freezing *freezing, const struct index_symbol *symbol,
			uint64_t start, uint64_t size_bytes)
{
	return index_writer_add(&freezing->writer, &(struct index_piece){
							   .start = start,
							   .size_bytes = size_bytes,
							   .symbol_start = symbol->start,
							   .symbol_size_bytes = symbol->size_bytes,
							   .detail = { .number = symbol->number,
								       .value = symbol->value },
						   });
}

static inline bool write_alone(struct freezing *freezing, const struct index_symbol *symbol)
{
	if (!symbol->size_bytes)
		return write_piece(freezing, symbol, symbol->start, 1);
	return index_writer_add_whole(
		&freezing->writer, symbol->start, symbol->size_bytes,
		(struct index_detail){ .number = symbol->number, .value = symbol->value });
}

static bool write_cluster(struct freezing *freezing)
{
	struct cluster *cluster = &freezing->cluster;
	struct pieces pieces, all = { 0 };
	size_t i;

	if (freezing->failed || !make_room(cluster))
		return false;
	pieces = (struct pieces){ .items = cluster->pieces };
	all.items = cluster->merged;
	sweep(cluster, &pieces);
	add_sizeless(cluster, &pieces, &all);
	for (i = 0; i < all.count; i++)
		if (!write_piece(freezing, &cluster->items[all.items[i].owner], all.items[i].start,
				 all.items[i].size_bytes))
			return false;
	return true;
}

/* Of two that start at one place, the later one in `symbol`: is nothing left of the one before? */
static bool hides(const struct index_symbol *symbol, const struct index_symbol *before)
{
	return symbol->start == before->start && symbol->size_bytes >= before->size_bytes;
}

static bool add_to_cluster(struct cluster *cluster, const struct index_symbol *symbol)
{
	if (cluster->count && hides(symbol, &cluster->items[cluster->count - 1]))
		cluster->count--;
	if (!grow_items((void **)&cluster->items, &cluster->capacity, cluster->count,
			sizeof(*cluster->items)))
		return false;
	cluster->items[cluster->count++] = *symbol;
	return true;
}

/* `first` and those from `next` on that hang together with it are in the cluster then, and `next`
 * is the one behind; false: there is none. */
static bool gather(struct freezing *freezing, struct index_cursor *cursor,
		   const struct index_symbol *first, struct index_symbol *next)
{
	struct cluster *cluster = &freezing->cluster;
	bool more = true;

	cluster->count = 0;
	cluster->last = last_of(first);
	freezing->failed |= !add_to_cluster(cluster, first);
	for (; more && next->start <= cluster->last && !freezing->failed;
	     more = index_cursor_next(cursor, next)) {
		uint64_t last = last_of(next);

		if (last > cluster->last)
			cluster->last = last;
		freezing->failed |= !add_to_cluster(cluster, next);
	}
	return more;
}

/* What write_alone() does, for items of an area that simply go on in their leaves: from `item` on,
 * as long as there is one behind it that does not begin within it. Returns how many. */
static size_t write_leaves(struct index_writer *writer, uint64_t base,
			   const struct index_item *item, const struct index_item *end)
{
	const struct index_item *first = item;
	struct index_leaf *leaf = writer->leaf;
	/* None of the area lies farther behind. */
	const uint32_t area = (uint32_t)(base - writer->base);
	unsigned int slot = writer->slot;

	if (!leaf || base + ((1u << INDEX_AREA_SHIFT) - 1) - writer->leaf_start >= INDEX_NEAR_BYTES)
		return 0;
	for (; item + 1 < end; item++) {
		uint8_t code = writer->codes[item->value % INDEX_CODES];
		uint16_t gap = (uint16_t)(item[1].low - item->low);

		/* A size of 0 becomes the largest one; the largest one may stand for more. */
		if ((uint16_t)(item->size - 1) >= gap || item->size == INDEX_ITEM_LARGE ||
		    writer->index->values[code] != item->value)
			break;
		if (slot == INDEX_LEAF) {
			leaf = index_writer_next_leaf(writer, area + item->low);
			if (!leaf)
				break;
			slot = 0;
		}
		index_leaf_put(leaf, slot++, area + item->low, item->size, code, item->number);
	}
	if (item > first) {
		writer->slot = slot;
		writer->last_size_bytes = item[-1].size;
		writer->index->count += (size_t)(item - first);
	}
	return (size_t)(item - first);
}

/* Writes of those that follow in the same area, `symbol` the first, what needs no more than that;
 * `symbol` is the one with which to go on. */
static void write_area(struct freezing *freezing, struct index_cursor *cursor,
		       struct index_symbol *symbol)
{
	size_t count = write_leaves(&freezing->writer, cursor->base, cursor->next - 1, cursor->end);

	if (count) {
		cursor->next += count;
		index_cursor_read(cursor, cursor->next - 1, symbol);
	}
}

static bool lay_out_all(struct freezing *freezing, struct index_cursor *cursor)
{
	struct index_symbol symbol, next;
	bool more = index_cursor_next(cursor, &symbol);

	if (!index_writer_begin(&freezing->writer))
		return false;
	for (; more; symbol = next) {
		write_area(freezing, cursor, &symbol);
		more = index_cursor_next(cursor, &next);
		if (more && hides(&next, &symbol))
			continue;
		if (!more || next.start > last_of(&symbol)) {
			if (!write_alone(freezing, &symbol))
				return false;
			continue;
		}
		more = gather(freezing, cursor, &symbol, &next);
		if (!write_cluster(freezing))
			return false;
	}
	return index_writer_end(&freezing->writer);
}

static bool lay_out(struct index_areas *areas, struct index *index)
{
	struct freezing freezing = { .writer = { .index = index, .capacity = areas->count } };
	struct index_cursor cursor;
	bool done = index_cursor_begin(&cursor, areas) && lay_out_all(&freezing, &cursor);

	index_cursor_end(&cursor);
	cluster_deinit(&freezing.cluster);
	return done;
}

struct sym_error *index_freeze(struct index_builder *builder, struct index **ret)
{
	AUTO_INDEX struct index *index = calloc(1, sizeof(*index));

	if (builder->failure)
		return STEAL(builder->failure);
	if (!index || !lay_out(&builder->areas, index))
		return &sym_error_no_memory;
	if (builder->names)
		index_names_trim(builder->names);
	index->names = STEAL(builder->names);
	index_areas_deinit(&builder->areas);
	*ret = STEAL(index);
	return NULL;
}
