/* SPDX-License-Identifier: MIT */
/*
 * Collecting symbols and freezing them: sort by start, cut overlaps so that
 * the later addition owns the shared bytes, lay the pieces out.
 *
 * Maps of runtimes are mostly ascending and disjoint, and then nothing is
 * sorted or swept; otherwise a radix sort over the bytes in which the starts
 * differ, and a sweep with a heap of the symbols that cover the position.
 */
#include "libsym/index_layout.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/limits.h"

/* A symbol as it was added; its place in the array is its order. */
struct item {
	uint64_t start;
	uint64_t size_bytes;
	uint32_t name_offset;
	uint32_t value;
};

/* What is sorted: a start and whose it is. */
struct key {
	uint64_t start;
	uint32_t order;
	uint32_t reserved;
};

struct index_builder {
	struct item *items;
	size_t count, capacity;
	struct buf names;
	uint32_t last_name_offset;
	size_t last_name_bytes;
	struct sym_error *failure;
	bool ascending; /* every start is at or above the end of the one before, every size > 0 */
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
	if (builder->count && name_bytes == builder->last_name_bytes &&
	    !memcmp(builder->names.data + builder->last_name_offset, name, name_bytes))
		return true;
	builder->last_name_offset = (uint32_t)builder->names.size_bytes;
	builder->last_name_bytes = name_bytes;
	buf_append(&builder->names, name, name_bytes);
	if (buf_append_char(&builder->names, '\0'))
		return true;
	builder->failure = sym_error_from_buf(&builder->names, "names of an index");
	return false;
}

void index_builder_add(struct index_builder *builder, uint64_t start, uint64_t size_bytes,
		       const char *name, size_t name_bytes, uint32_t value)
{
	const struct item *last;
	uint64_t end;

	if (builder->failure || (builder->count == builder->capacity && !grow(builder)))
		return;
	if (__builtin_add_overflow(start, size_bytes, &end)) {
		builder->failure = sym_error_create(SYM_ERROR_ARGUMENT, "symbol end overflows");
		return;
	}
	if (!add_name(builder, name, name_bytes))
		return;
	last = builder->count ? &builder->items[builder->count - 1] : NULL;
	if (!size_bytes || (last && start < last->start + last->size_bytes))
		builder->ascending = false;
	builder->items[builder->count++] = (struct item){
		.start = start,
		.size_bytes = size_bytes,
		.name_offset = builder->last_name_offset,
		.value = value,
	};
}

/* ---- sorting ---- */

enum {
	RADIX_BITS = 11,
	RADIX_SIZE = 1 << RADIX_BITS
};

/* One stable pass over the digit at `shift`. */
static void radix_pass(const struct key *from, struct key *to, size_t count, unsigned int shift)
{
	size_t places[RADIX_SIZE] = { 0 };
	size_t i, sum = 0;

	for (i = 0; i < count; i++)
		places[from[i].start >> shift & (RADIX_SIZE - 1)]++;
	for (i = 0; i < RADIX_SIZE; i++) {
		size_t here = places[i];

		places[i] = sum;
		sum += here;
	}
	for (i = 0; i < count; i++)
		to[places[from[i].start >> shift & (RADIX_SIZE - 1)]++] = from[i];
}

static int compare_keys(const void *left, const void *right)
{
	const struct key *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* Keys by (start, order); `keys` has room for twice `count`. Returns which half holds the result.
 */
static struct key *sort_keys(struct key *keys, size_t count)
{
	struct key *from = keys, *to = keys + count;
	uint64_t differing = 0;
	unsigned int shift;
	size_t i;

	/* A pass costs as much as its table even for few keys. */
	if (count < RADIX_SIZE) {
		qsort(keys, count, sizeof(*keys), compare_keys);
		return keys;
	}
	for (i = 1; i < count; i++)
		differing |= keys[i].start ^ keys[0].start;
	for (shift = 0; shift < 64; shift += RADIX_BITS) {
		struct key *other = from;

		if (!(differing >> shift & (RADIX_SIZE - 1)))
			continue;
		radix_pass(from, to, count, shift);
		from = to;
		to = other;
	}
	return from;
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

/*
 * Sized symbols to disjoint pieces. There are at most 2n - 1 of them, because a
 * piece begins only where a symbol begins or ends.
 */
static void sweep(const struct index_builder *builder, const struct key *keys,
		  struct active *active, struct pieces *pieces)
{
	const struct item *items = builder->items;
	size_t count = builder->count, next = 0;
	uint64_t position = 0;

	while (next < count || active->count) {
		uint64_t end;

		if (!active->count && keys[next].start > position)
			position = keys[next].start;
		for (; next < count && keys[next].start <= position; next++)
			if (items[keys[next].order].size_bytes)
				active_push(active, keys[next].order);
		while (active->count &&
		       items[active->orders[0]].start + items[active->orders[0]].size_bytes <=
			       position)
			active_pop(active);
		if (!active->count)
			continue;
		end = items[active->orders[0]].start + items[active->orders[0]].size_bytes;
		if (next < count && keys[next].start < end)
			end = keys[next].start;
		emit(pieces, active->orders[0], position, end);
		position = end;
	}
}

/* Symbols without a size get their own start where no sized symbol has it; the latest of several.
 */
static void add_sizeless(const struct index_builder *builder, const struct key *keys,
			 const struct pieces *sized, struct pieces *ret)
{
	size_t next = 0, i;

	for (i = 0; i < builder->count; i++) {
		const struct item *item = &builder->items[keys[i].order];
		const struct piece *last;

		if (item->size_bytes)
			continue;
		while (next < sized->count && sized->items[next].start <= item->start)
			ret->items[ret->count++] = sized->items[next++];
		last = ret->count ? &ret->items[ret->count - 1] : NULL;
		if (last && last->start + last->size_bytes > item->start) {
			/* Covered; or a sizeless symbol of the same start, which the later one
			 * replaces. */
			if (!builder->items[last->order].size_bytes)
				ret->items[ret->count - 1].order = keys[i].order;
			continue;
		}
		ret->items[ret->count++] = (struct piece){ .start = item->start,
							   .size_bytes = 1,
							   .order = keys[i].order };
	}
	while (next < sized->count)
		ret->items[ret->count++] = sized->items[next++];
}

/* ---- laying out ---- */

static bool is_odd(const struct piece *piece, const struct item *item)
{
	return piece->start != item->start || piece->size_bytes != item->size_bytes ||
	       piece->size_bytes >= INDEX_ODD;
}

static struct sym_error *lay_out_pieces(const struct index_builder *builder,
					const struct pieces *pieces, struct index *index)
{
	size_t odd = 0, i;

	if (!index_allocate(index, pieces->count))
		return &sym_error_no_memory;
	for (i = 0; i < pieces->count; i++)
		odd += is_odd(&pieces->items[i], &builder->items[pieces->items[i].order]);
	index->odd = malloc((odd + 1) * sizeof(*index->odd));
	if (!index->odd)
		return &sym_error_no_memory;
	for (i = 0; i < pieces->count; i++) {
		const struct piece *piece = &pieces->items[i];
		const struct item *item = &builder->items[piece->order];

		index->starts[i] = piece->start;
		index->sizes[i] = (uint32_t)piece->size_bytes;
		index->name_offsets[i] = item->name_offset;
		index->values[i] = item->value;
		if (!is_odd(piece, item))
			continue;
		index->sizes[i] = INDEX_ODD;
		index->odd[index->odd_count++] =
			(struct index_odd){ .piece = i,
					    .size_bytes = piece->size_bytes,
					    .symbol_start = item->start,
					    .symbol_size_bytes = item->size_bytes };
	}
	return NULL;
}

/* The common case: what was added is ascending and disjoint already. */
static struct sym_error *lay_out_ascending(const struct index_builder *builder, struct index *index)
{
	size_t odd = 0, i;

	if (!index_allocate(index, builder->count))
		return &sym_error_no_memory;
	for (i = 0; i < builder->count; i++)
		odd += builder->items[i].size_bytes >= INDEX_ODD;
	index->odd = malloc((odd + 1) * sizeof(*index->odd));
	if (!index->odd)
		return &sym_error_no_memory;
	for (i = 0; i < builder->count; i++) {
		const struct item *item = &builder->items[i];

		index->starts[i] = item->start;
		index->sizes[i] = (uint32_t)item->size_bytes;
		index->name_offsets[i] = item->name_offset;
		index->values[i] = item->value;
		if (item->size_bytes < INDEX_ODD)
			continue;
		index->sizes[i] = INDEX_ODD;
		index->odd[index->odd_count++] =
			(struct index_odd){ .piece = i,
					    .size_bytes = item->size_bytes,
					    .symbol_start = item->start,
					    .symbol_size_bytes = item->size_bytes };
	}
	return NULL;
}

static struct sym_error *lay_out_overlapping(const struct index_builder *builder,
					     struct index *index)
{
	size_t count = builder->count, sizeless = 0, i;
	AUTO_FREE struct key *keys = malloc((2 * count + 1) * sizeof(*keys));
	AUTO_FREE uint32_t *heap = malloc((count + 1) * sizeof(*heap));
	AUTO_FREE struct piece *room = malloc((2 * count + 1) * sizeof(*room));
	AUTO_FREE struct piece *merged = NULL;
	struct pieces pieces = { .items = room };
	const struct key *sorted;

	if (!keys || !heap || !room)
		return &sym_error_no_memory;
	for (i = 0; i < count; i++) {
		keys[i] = (struct key){ .start = builder->items[i].start, .order = (uint32_t)i };
		sizeless += !builder->items[i].size_bytes;
	}
	sorted = sort_keys(keys, count);
	sweep(builder, sorted, &(struct active){ .orders = heap }, &pieces);
	if (sizeless) {
		struct pieces all = { 0 };

		merged = malloc((pieces.count + sizeless) * sizeof(*merged));
		if (!merged)
			return &sym_error_no_memory;
		all.items = merged;
		add_sizeless(builder, sorted, &pieces, &all);
		pieces = all;
	}
	return lay_out_pieces(builder, &pieces, index);
}

struct sym_error *index_freeze(struct index_builder *builder, struct index **ret)
{
	AUTO_INDEX struct index *index = calloc(1, sizeof(*index));
	struct sym_error *error;
	char *names;

	if (builder->failure) {
		error = builder->failure;
		builder->failure = NULL;
		return error;
	}
	if (!index)
		return &sym_error_no_memory;
	error = builder->ascending ? lay_out_ascending(builder, index)
				   : lay_out_overlapping(builder, index);
	if (!error)
		error = index_build_tree(index);
	if (error)
		return error;
	names = realloc(builder->names.data, builder->names.size_bytes + 1);
	if (!names)
		return &sym_error_no_memory;
	index->names = names;
	buf_init(&builder->names, LIMIT_INDEX_NAME_BYTES);
	builder->count = 0;
	*ret = STEAL(index);
	return NULL;
}
