/* SPDX-License-Identifier: MIT */
/*
 * Collecting symbols and freezing them: put them in order, cut overlaps so that
 * the later addition owns the shared bytes, hand the pieces on to be laid out.
 *
 * Symbols of a runtime hardly ever overlap, so they are laid out in ascending
 * order as if they did not; only when one does are all of them swept, with a
 * heap of the symbols that cover the position.
 */
#include <stdlib.h>
#include <string.h>

#include "libsym/base/huge_memory.h"
#include "libsym/index_layout.h"
#include "libsym/index_sort.h"
#include "libsym/limits.h"

/* A symbol as it was added; its place in the array is its order. */
struct item {
	uint64_t start;
	uint64_t size_bytes;
	struct index_detail detail;
};

struct index_builder {
	struct item *items;
	size_t count, capacity;
	struct buf names;
	uint32_t last_name_offset;
	size_t last_name_bytes;
	struct sym_error *failure;
	bool ascending; /* no start is below the one before */
};

struct sym_error *index_builder_create(struct index_builder **ret)
{
	struct index_builder *builder = calloc(1, sizeof(*builder));

	if (!builder)
		return &sym_error_no_memory;
	buf_init(&builder->names, LIMIT_INDEX_NAME_BYTES);
	builder->ascending = true;
	*ret = builder;
	return NULL;
}

void index_builder_destroy(struct index_builder *builder)
{
	if (!builder)
		return;
	free(builder->items);
	buf_deinit(&builder->names);
	sym_error_destroy(builder->failure);
	free(builder);
}

size_t index_builder_count(const struct index_builder *builder)
{
	return builder->count;
}

void index_builder_reserve(struct index_builder *builder, size_t symbols, size_t name_bytes)
{
	if (builder->count || builder->names.size_bytes || builder->failure)
		return;
	if (symbols > LIMIT_INDEX_SYMBOLS)
		symbols = LIMIT_INDEX_SYMBOLS;
	if (name_bytes > LIMIT_INDEX_NAME_BYTES)
		name_bytes = LIMIT_INDEX_NAME_BYTES;
	free(builder->items);
	buf_deinit(&builder->names);
	/* Without this memory the arrays grow step by step, from nothing. */
	builder->items = huge_memory_allocate(symbols * sizeof(*builder->items));
	builder->capacity = builder->items ? symbols : 0;
	builder->names.data = huge_memory_allocate(name_bytes);
	builder->names.capacity_bytes = builder->names.data ? name_bytes : 0;
}

static bool grow(struct index_builder *builder)
{
	size_t capacity = builder->capacity ? builder->capacity * 2 : 64;
	struct item *items;

	if (builder->count >= LIMIT_INDEX_SYMBOLS) {
		builder->failure = sym_error_create(SYM_ERROR_LIMIT, "more than %zu symbols",
						    LIMIT_INDEX_SYMBOLS);
		return false;
	}
	items = realloc(builder->items, capacity * sizeof(*items));
	if (!items) {
		builder->failure = &sym_error_no_memory;
		return false;
	}
	builder->items = items;
	builder->capacity = capacity;
	return true;
}

/* Symbols that follow one another often share their name (parts of one function). */
static bool add_name(struct index_builder *builder, const char *name, size_t name_bytes)
{
	struct buf *names = &builder->names;
	char *room;

	if (builder->count && name_bytes == builder->last_name_bytes &&
	    !memcmp(names->data + builder->last_name_offset, name, name_bytes))
		return true;
	room = names->capacity_bytes - names->size_bytes > name_bytes
		       ? names->data + names->size_bytes
		       : buf_reserve(names, name_bytes + 1);
	if (!room) {
		builder->failure = sym_error_from_buf(names, "names of an index");
		return false;
	}
	memcpy(room, name, name_bytes);
	room[name_bytes] = '\0';
	builder->last_name_offset = (uint32_t)names->size_bytes;
	builder->last_name_bytes = name_bytes;
	names->size_bytes += name_bytes + 1;
	return true;
}

void index_builder_add(struct index_builder *builder, uint64_t start, uint64_t size_bytes,
		       const char *name, size_t name_bytes, uint32_t value)
{
	uint64_t end;

	if (builder->failure || (builder->count == builder->capacity && !grow(builder)))
		return;
	if (__builtin_add_overflow(start, size_bytes, &end)) {
		builder->failure = sym_error_create(SYM_ERROR_ARGUMENT, "symbol end overflows");
		return;
	}
	if (!add_name(builder, name, name_bytes))
		return;
	if (builder->count && start < builder->items[builder->count - 1].start)
		builder->ascending = false;
	builder->items[builder->count++] = (struct item){
		.start = start,
		.size_bytes = size_bytes,
		.detail = { .name_offset = builder->last_name_offset, .value = value },
	};
}

/* ---- cutting overlaps ---- */

/* A disjoint piece of the symbol that was added as the `order`-th. */
struct piece {
	uint64_t start;
	uint64_t size_bytes;
	uint32_t order;
	uint32_t reserved;
};

struct pieces {
	struct piece *items;
	size_t count;
};

/* The symbols that cover the position of the sweep, as a heap with the latest on top. */
struct active {
	uint32_t *orders;
	size_t count;
};

static void active_push(struct active *active, uint32_t order)
{
	size_t at = active->count++;

	while (at && active->orders[(at - 1) / 2] < order) {
		active->orders[at] = active->orders[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	active->orders[at] = order;
}

static void active_pop(struct active *active)
{
	uint32_t last = active->orders[--active->count];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < active->count) {
		if (child + 1 < active->count && active->orders[child + 1] > active->orders[child])
			child++;
		if (active->orders[child] < last)
			break;
		active->orders[at] = active->orders[child];
		at = child;
	}
	active->orders[at] = last;
}

static void emit(struct pieces *pieces, uint32_t order, uint64_t start, uint64_t end)
{
	struct piece *last = pieces->count ? &pieces->items[pieces->count - 1] : NULL;

	if (last && last->order == order && last->start + last->size_bytes == start)
		last->size_bytes = end - last->start;
	else
		pieces->items[pieces->count++] =
			(struct piece){ .start = start, .size_bytes = end - start, .order = order };
}

static uint64_t end_of(const struct item *item)
{
	return item->start + item->size_bytes;
}

/*
 * Sized symbols to disjoint pieces. There are at most 2n - 1 of them, because a
 * piece begins only where a symbol begins or ends.
 */
static void sweep(const struct index_builder *builder, const uint32_t *orders,
		  struct active *active, struct pieces *pieces)
{
	const struct item *items = builder->items;
	size_t count = builder->count, next = 0;
	uint64_t position = 0;

	while (next < count || active->count) {
		uint64_t end;

		if (!active->count && items[orders[next]].start > position)
			position = items[orders[next]].start;
		for (; next < count && items[orders[next]].start <= position; next++)
			if (items[orders[next]].size_bytes)
				active_push(active, orders[next]);
		while (active->count && end_of(&items[active->orders[0]]) <= position)
			active_pop(active);
		if (!active->count)
			continue;
		end = end_of(&items[active->orders[0]]);
		if (next < count && items[orders[next]].start < end)
			end = items[orders[next]].start;
		emit(pieces, active->orders[0], position, end);
		position = end;
	}
}

/* Symbols without a size get their own start where no sized symbol has it; the latest of several.
 */
static void add_sizeless(const struct index_builder *builder, const uint32_t *orders,
			 const struct pieces *sized, struct pieces *ret)
{
	size_t next = 0, i;

	for (i = 0; i < builder->count; i++) {
		const struct item *item = &builder->items[orders[i]];
		struct piece *last;

		if (item->size_bytes)
			continue;
		while (next < sized->count && sized->items[next].start <= item->start)
			ret->items[ret->count++] = sized->items[next++];
		last = ret->count ? &ret->items[ret->count - 1] : NULL;
		/* No sum: the last address of all may have a symbol. */
		if (!last || item->start - last->start >= last->size_bytes)
			ret->items[ret->count++] = (struct piece){ .start = item->start,
								   .size_bytes = 1,
								   .order = orders[i] };
		else if (!builder->items[last->order].size_bytes)
			last->order = orders[i];
	}
	while (next < sized->count)
		ret->items[ret->count++] = sized->items[next++];
}

/* ---- laying out ---- */

/* Items so far ahead are fetched while one is written. */
enum {
	FETCH_AHEAD = 12
};

static void forget(struct index *index)
{
	free(index->regions);
	free(index->leaves);
	free(index->details);
	free(index->odd);
	*index = (struct index){ 0 };
}

/* As if there were no overlaps; `orders` is NULL when the items are in order themselves. */
static enum index_written lay_out_items(const struct index_builder *builder, const uint32_t *orders,
					struct index *index)
{
	struct index_writer writer = { .index = index, .capacity = builder->count };
	enum index_written written = INDEX_WRITTEN;
	size_t count = builder->count, i;

	if (!index_writer_begin(&writer))
		return INDEX_NO_MEMORY;
	for (i = 0; i < count && written == INDEX_WRITTEN; i++) {
		const struct item *item = &builder->items[orders ? orders[i] : i];

		if (orders && i + FETCH_AHEAD < count)
			__builtin_prefetch(&builder->items[orders[i + FETCH_AHEAD]]);
		if (!item->size_bytes)
			return INDEX_OVERLAPS;
		written = index_writer_add(&writer, &(struct index_piece){
							    .start = item->start,
							    .size_bytes = item->size_bytes,
							    .symbol_start = item->start,
							    .symbol_size_bytes = item->size_bytes,
							    .detail = item->detail,
						    });
	}
	if (written == INDEX_WRITTEN && !index_writer_end(&writer))
		return INDEX_NO_MEMORY;
	return written;
}

static bool lay_out_pieces(const struct index_builder *builder, const struct pieces *pieces,
			   struct index *index)
{
	struct index_writer writer = { .index = index, .capacity = pieces->count };
	size_t i;

	if (!index_writer_begin(&writer))
		return false;
	for (i = 0; i < pieces->count; i++) {
		const struct piece *piece = &pieces->items[i];
		const struct item *item = &builder->items[piece->order];

		if (index_writer_add(&writer, &(struct index_piece){
						      .start = piece->start,
						      .size_bytes = piece->size_bytes,
						      .symbol_start = item->start,
						      .symbol_size_bytes = item->size_bytes,
						      .detail = item->detail,
					      }) != INDEX_WRITTEN)
			return false;
	}
	return index_writer_end(&writer);
}

static bool lay_out_overlapping(const struct index_builder *builder, const uint32_t *orders,
				struct index *index)
{
	size_t count = builder->count, sizeless = 0, i;
	AUTO_FREE uint32_t *heap = malloc((count + 1) * sizeof(*heap));
	AUTO_FREE struct piece *room = malloc((2 * count + 1) * sizeof(*room));
	AUTO_FREE struct piece *merged = NULL;
	struct pieces pieces = { .items = room };

	if (!heap || !room)
		return false;
	for (i = 0; i < count; i++)
		sizeless += !builder->items[i].size_bytes;
	sweep(builder, orders, &(struct active){ .orders = heap }, &pieces);
	if (sizeless) {
		struct pieces all = { 0 };

		merged = malloc((pieces.count + sizeless) * sizeof(*merged));
		if (!merged)
			return false;
		all.items = merged;
		add_sizeless(builder, orders, &pieces, &all);
		pieces = all;
	}
	return lay_out_pieces(builder, &pieces, index);
}

static bool lay_out(const struct index_builder *builder, struct index *index)
{
	AUTO_FREE uint32_t *orders = NULL;
	enum index_written written;

	if (builder->ascending) {
		written = lay_out_items(builder, NULL, index);
		if (written != INDEX_OVERLAPS)
			return written == INDEX_WRITTEN;
		forget(index);
	}
	orders = index_sort(&builder->items->start, sizeof(*builder->items), builder->count);
	if (!orders)
		return false;
	written = builder->ascending ? INDEX_OVERLAPS : lay_out_items(builder, orders, index);
	if (written != INDEX_OVERLAPS)
		return written == INDEX_WRITTEN;
	forget(index);
	return lay_out_overlapping(builder, orders, index);
}

struct sym_error *index_freeze(struct index_builder *builder, struct index **ret)
{
	AUTO_INDEX struct index *index = calloc(1, sizeof(*index));
	char *names;

	if (builder->failure)
		return STEAL(builder->failure);
	if (!index || !lay_out(builder, index))
		return &sym_error_no_memory;
	names = realloc(builder->names.data, builder->names.size_bytes + 1);
	if (!names)
		return &sym_error_no_memory;
	index->names = names;
	buf_init(&builder->names, LIMIT_INDEX_NAME_BYTES);
	builder->count = 0;
	*ret = STEAL(index);
	return NULL;
}
