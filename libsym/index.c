/* SPDX-License-Identifier: MIT */
#include "libsym/index.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/limits.h"

/* A symbol as it was added. `order` is its place in the sequence of additions. */
struct item {
	uint64_t start;
	uint64_t size_bytes;
	uint32_t name_offset;
	uint32_t name_bytes;
	uint32_t value;
	uint32_t order;
};

struct index_builder {
	struct item *items;
	size_t count, capacity;
	struct buf names;
	struct sym_error *failure;
	bool sorted; /* so far every start was >= the one before */
};

/* A disjoint piece of a symbol. */
struct piece {
	uint64_t start;
	uint64_t size_bytes;
	uint64_t symbol_start;
	uint64_t symbol_size_bytes;
	uint32_t name_offset;
	uint32_t name_bytes;
	uint32_t value;
	uint32_t order;
};

struct index {
	struct piece *pieces;
	size_t count;
	char *names;
};

struct sym_error *index_builder_create(struct index_builder **ret)
{
	struct index_builder *builder = calloc(1, sizeof(*builder));

	if (!builder)
		return &sym_error_no_memory;
	buf_init(&builder->names, LIMIT_INDEX_NAME_BYTES);
	builder->sorted = true;
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

	if (builder->count < builder->capacity)
		return true;
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

void index_builder_add(struct index_builder *builder, uint64_t start, uint64_t size_bytes,
		       const char *name, size_t name_bytes, uint32_t value)
{
	size_t name_offset = builder->names.size_bytes;
	uint64_t end;

	if (builder->failure || !grow(builder))
		return;
	if (__builtin_add_overflow(start, size_bytes, &end)) {
		builder->failure = sym_error_create(SYM_ERROR_ARGUMENT, "symbol end overflows");
		return;
	}
	buf_append(&builder->names, name, name_bytes);
	if (!buf_append_char(&builder->names, '\0')) {
		builder->failure = sym_error_from_buf(&builder->names, "names of an index");
		return;
	}
	if (builder->count && start < builder->items[builder->count - 1].start)
		builder->sorted = false;
	builder->items[builder->count] = (struct item){
		.start = start,
		.size_bytes = size_bytes,
		.name_offset = (uint32_t)name_offset,
		.name_bytes = (uint32_t)name_bytes,
		.value = value,
		.order = (uint32_t)builder->count,
	};
	builder->count++;
}

static int compare_items(const void *left, const void *right)
{
	const struct item *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* The symbols that cover the position of the sweep, as a heap with the latest on top. */
struct active {
	const struct item **items;
	size_t count;
};

static void active_push(struct active *active, const struct item *item)
{
	size_t at = active->count++;

	while (at && active->items[(at - 1) / 2]->order < item->order) {
		active->items[at] = active->items[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	active->items[at] = item;
}

static void active_pop(struct active *active)
{
	const struct item *last = active->items[--active->count];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < active->count) {
		if (child + 1 < active->count &&
		    active->items[child + 1]->order > active->items[child]->order)
			child++;
		if (active->items[child]->order < last->order)
			break;
		active->items[at] = active->items[child];
		at = child;
	}
	active->items[at] = last;
}

static void emit(struct index *index, const struct item *item, uint64_t start, uint64_t end)
{
	struct piece *last = index->count ? &index->pieces[index->count - 1] : NULL;

	if (last && last->order == item->order && last->start + last->size_bytes == start) {
		last->size_bytes = end - last->start;
		return;
	}
	index->pieces[index->count++] = (struct piece){
		.start = start,
		.size_bytes = end - start,
		.symbol_start = item->start,
		.symbol_size_bytes = item->size_bytes,
		.name_offset = item->name_offset,
		.name_bytes = item->name_bytes,
		.value = item->value,
		.order = item->order,
	};
}

/* Sized symbols to disjoint pieces. There are at most 2n - 1 of them: each start and each end opens
 * one. */
static void sweep(struct index *index, const struct item *items, size_t count,
		  struct active *active)
{
	uint64_t position = 0;
	size_t next = 0;

	while (next < count || active->count) {
		const struct item *top;
		uint64_t end;

		if (!active->count && items[next].start > position)
			position = items[next].start;
		for (; next < count && items[next].start <= position; next++)
			if (items[next].size_bytes)
				active_push(active, &items[next]);
		while (active->count &&
		       active->items[0]->start + active->items[0]->size_bytes <= position)
			active_pop(active);
		if (!active->count)
			continue;
		top = active->items[0];
		end = top->start + top->size_bytes;
		if (next < count && items[next].start < end)
			end = items[next].start;
		emit(index, top, position, end);
		position = end;
	}
}

/* Symbols without a size get their own start address where no sized symbol has it; the latest of
 * several. */
static void add_sizeless(struct index *index, const struct item *items, size_t count,
			 struct piece *room)
{
	size_t sized = 0, total = 0, i;

	for (i = 0; i < count; i++) {
		if (items[i].size_bytes)
			continue;
		if (i + 1 < count && items[i + 1].start == items[i].start &&
		    !items[i + 1].size_bytes)
			continue;
		while (sized < index->count && index->pieces[sized].start <= items[i].start)
			room[total++] = index->pieces[sized++];
		if (total && room[total - 1].start + room[total - 1].size_bytes > items[i].start)
			continue;
		room[total++] = (struct piece){
			.start = items[i].start,
			.size_bytes = 1,
			.symbol_start = items[i].start,
			.name_offset = items[i].name_offset,
			.name_bytes = items[i].name_bytes,
			.value = items[i].value,
			.order = items[i].order,
		};
	}
	while (sized < index->count)
		room[total++] = index->pieces[sized++];
	memcpy(index->pieces, room, total * sizeof(*room));
	index->count = total;
}

struct sym_error *index_freeze(struct index_builder *builder, struct index **ret)
{
	AUTO_INDEX struct index *index = calloc(1, sizeof(*index));
	size_t count = builder->count, sizeless = 0, i;
	AUTO_FREE const struct item **heap = malloc((count + 1) * sizeof(*heap));
	AUTO_FREE struct piece *room = NULL;

	if (builder->failure) {
		struct sym_error *failure = builder->failure;

		builder->failure = NULL;
		return failure;
	}
	if (!index || !heap)
		return &sym_error_no_memory;
	index->pieces = malloc((3 * count + 1) * sizeof(*index->pieces));
	if (!index->pieces)
		return &sym_error_no_memory;
	if (!builder->sorted)
		qsort(builder->items, count, sizeof(*builder->items), compare_items);
	sweep(index, builder->items, count, &(struct active){ .items = heap });
	for (i = 0; i < count; i++)
		sizeless += !builder->items[i].size_bytes;
	if (sizeless) {
		room = malloc((index->count + sizeless) * sizeof(*room));
		if (!room)
			return &sym_error_no_memory;
		add_sizeless(index, builder->items, count, room);
	}
	index->names = STEAL(builder->names.data);
	buf_init(&builder->names, LIMIT_INDEX_NAME_BYTES);
	builder->count = 0;
	*ret = STEAL(index);
	return NULL;
}

void index_destroy(struct index *index)
{
	if (!index)
		return;
	free(index->pieces);
	free(index->names);
	free(index);
}

size_t index_count(const struct index *index)
{
	return index->count;
}

void index_at(const struct index *index, size_t i, struct index_entry *ret)
{
	const struct piece *piece = &index->pieces[i];

	*ret = (struct index_entry){
		.start = piece->start,
		.size_bytes = piece->size_bytes,
		.symbol_start = piece->symbol_start,
		.symbol_size_bytes = piece->symbol_size_bytes,
		.name = index->names + piece->name_offset,
		.name_bytes = piece->name_bytes,
		.value = piece->value,
	};
}

size_t index_find(const struct index *index, uint64_t position)
{
	size_t low = 0, high = index->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (index->pieces[middle].start <= position)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || position - index->pieces[low - 1].start >= index->pieces[low - 1].size_bytes)
		return INDEX_NONE;
	return low - 1;
}

void index_find_batch(const struct index *index, const uint64_t *positions, size_t count,
		      size_t *ret)
{
	size_t i;

	for (i = 0; i < count; i++)
		ret[i] = index_find(index, positions[i]);
}
