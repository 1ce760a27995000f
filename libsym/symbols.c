/* SPDX-License-Identifier: MIT */
#include "libsym/symbols.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/huge_memory.h"
#include "libsym/index.h"
#include "libsym/limits.h"

enum {
	FIRST_BLOCK_BYTES = 4096,
	LARGEST_BLOCK_BYTES = 4 << 20,
	FIRST_CAPACITY = 64
};

struct name_block {
	struct name_block *next;
	char bytes[];
};

void name_pool_deinit(struct name_pool *pool)
{
	while (pool->blocks) {
		struct name_block *next = pool->blocks->next;

		free(pool->blocks);
		pool->blocks = next;
	}
	*pool = (struct name_pool){ 0 };
}

void name_pool_absorb(struct name_pool *pool, struct name_pool *other)
{
	struct name_block *last = other->blocks;

	if (!last)
		return;
	while (last->next)
		last = last->next;
	if (pool->blocks) {
		/* Behind our newest block, which goes on being filled. */
		last->next = pool->blocks->next;
		pool->blocks->next = other->blocks;
	} else {
		*pool = *other;
	}
	*other = (struct name_pool){ 0 };
}

static bool add_block(struct name_pool *pool, size_t least_bytes)
{
	size_t bytes = pool->block_bytes ? pool->block_bytes * 2 : FIRST_BLOCK_BYTES;
	struct name_block *block;

	if (bytes > LARGEST_BLOCK_BYTES)
		bytes = LARGEST_BLOCK_BYTES;
	if (bytes < least_bytes)
		bytes = least_bytes;
	if (bytes > SIZE_MAX - sizeof(*block))
		return false;
	block = huge_memory_allocate(sizeof(*block) + bytes);
	if (!block)
		return false;
	block->next = pool->blocks;
	pool->blocks = block;
	pool->block_bytes = bytes;
	pool->used_bytes = 0;
	return true;
}

const char *name_pool_add(struct name_pool *pool, const char *name, size_t name_bytes)
{
	char *room;

	if (name_bytes >= SIZE_MAX / 2)
		return NULL;
	if ((!pool->blocks || name_bytes + 1 > pool->block_bytes - pool->used_bytes) &&
	    !add_block(pool, name_bytes + 1))
		return NULL;
	room = pool->blocks->bytes + pool->used_bytes;
	memcpy(room, name, name_bytes);
	room[name_bytes] = '\0';
	pool->used_bytes += name_bytes + 1;
	return room;
}

void symbols_builder_init(struct symbols_builder *builder)
{
	*builder = (struct symbols_builder){ 0 };
}

static void deinit_list(struct sym_symbols *list)
{
	free(list->items);
	name_pool_deinit(&list->names);
	while (list->kept_count) {
		const struct symbols_kept *kept = &list->kept[--list->kept_count];

		kept->end(kept->object);
	}
}

void symbols_builder_keep(struct symbols_builder *builder, void *object, void (*end)(void *object))
{
	builder->list.kept[builder->list.kept_count++] = (struct symbols_kept){ object, end };
}

void symbols_builder_deinit(struct symbols_builder *builder)
{
	deinit_list(&builder->list);
	sym_error_destroy(builder->failure);
	*builder = (struct symbols_builder){ 0 };
}

static bool enlarge(struct symbols_builder *builder, size_t capacity)
{
	struct sym_symbol *items = reallocarray(builder->list.items, capacity, sizeof(*items));

	if (!items)
		return false;
	huge_memory_advise(items, capacity * sizeof(*items));
	builder->list.items = items;
	builder->capacity = capacity;
	return true;
}

static size_t next_capacity(const struct symbols_builder *builder)
{
	size_t capacity = builder->capacity ? builder->capacity * 2 : FIRST_CAPACITY;

	return capacity < LIMIT_INDEX_SYMBOLS ? capacity : LIMIT_INDEX_SYMBOLS;
}

void symbols_builder_expect(struct symbols_builder *builder, size_t count)
{
	size_t capacity = next_capacity(builder);

	if (builder->failure || count > LIMIT_INDEX_SYMBOLS - builder->list.count ||
	    builder->list.count + count <= builder->capacity)
		return;
	if (capacity < builder->list.count + count)
		capacity = builder->list.count + count;
	(void)enlarge(builder, capacity);
}

static bool make_room(struct symbols_builder *builder)
{
	if (builder->failure)
		return false;
	if (builder->list.count < builder->capacity)
		return true;
	if (builder->list.count >= LIMIT_INDEX_SYMBOLS) {
		builder->failure = sym_error_create(SYM_ERROR_LIMIT,
						    "more than %zu symbols (LIMIT_INDEX_SYMBOLS)",
						    LIMIT_INDEX_SYMBOLS);
		return false;
	}
	if (!enlarge(builder, next_capacity(builder)))
		builder->failure = &sym_error_no_memory;
	return !builder->failure;
}

void symbols_builder_add_borrowed(struct symbols_builder *builder, const struct sym_symbol *symbol)
{
	if (make_room(builder))
		builder->list.items[builder->list.count++] = *symbol;
}

void symbols_builder_add(struct symbols_builder *builder, const struct sym_symbol *symbol,
			 const char *name, size_t name_bytes)
{
	struct sym_symbol named = *symbol;

	if (builder->failure)
		return;
	named.name = name_pool_add(&builder->list.names, name, name_bytes);
	if (!named.name) {
		builder->failure = &sym_error_no_memory;
		return;
	}
	symbols_builder_add_borrowed(builder, &named);
}

static int compare(const void *left, const void *right)
{
	const struct sym_symbol *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->size_bytes != b->size_bytes)
		return a->size_bytes < b->size_bytes ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void sort(struct sym_symbols *list)
{
	/* Most lists come sorted: one image is listed after the other, each in order. */
	for (size_t i = 1; i < list->count; i++)
		if (compare(&list->items[i - 1], &list->items[i]) > 0) {
			qsort(list->items, list->count, sizeof(*list->items), compare);
			return;
		}
}

static struct sym_error *take_failure(struct symbols_builder *builder)
{
	struct sym_error *failure = builder->failure;

	builder->failure = NULL;
	return failure;
}

struct sym_error *symbols_freeze(struct symbols_builder *builder, struct sym_symbols **ret)
{
	struct sym_symbols *list;

	if (builder->failure)
		return take_failure(builder);
	list = malloc(sizeof(*list));
	if (!list)
		return &sym_error_no_memory;
	*list = builder->list;
	builder->list = (struct sym_symbols){ 0 };
	builder->capacity = 0;
	sort(list);
	*ret = list;
	return NULL;
}

/* The pieces that are left of each symbol; an index settles them, the names stay where they are. */
static struct sym_error *cut(const struct sym_symbols *list, struct index **ret)
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
		return take_failure(builder);
	error = cut(&builder->list, &pieces);
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
	free(atomic_load(&symbols->table));
	deinit_list(symbols);
	free(symbols);
}
