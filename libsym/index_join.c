/* SPDX-License-Identifier: MIT */
#include "libsym/index_join.h"

#include <stdlib.h>

#include "libsym/index_layout.h"
#include "libsym/limits.h"

/* The pieces of one index from the first to the last, leaf by leaf. */
struct walk {
	const struct index *index;
	const struct index_region *region; /* of the piece that comes next */
	const struct index_leaf *leaf;
	unsigned int slot;
	size_t next; /* number of the piece behind `piece` */
	size_t end;  /* of the first one behind the region */
	bool is_over;
	struct index_entry piece; /* its name is of no interest */
};

static void enter_region(struct walk *walk, const struct index_region *region)
{
	walk->region = region;
	walk->leaf = region->leaves;
	walk->slot = 0;
	walk->end = region->first_piece + (size_t)region->piece_count;
}

static inline void advance(struct walk *walk)
{
	struct index_entry *piece = &walk->piece;
	const struct index_leaf *leaf;
	unsigned int slot;

	if (walk->next == walk->index->count) {
		walk->is_over = true;
		return;
	}
	if (walk->next == walk->end)
		enter_region(walk, walk->region + 1);
	if (walk->slot == INDEX_LEAF) {
		walk->leaf++;
		walk->slot = 0;
	}
	leaf = walk->leaf;
	slot = walk->slot++;
	if (leaf->sizes[slot] == INDEX_ODD) {
		index_at(walk->index, walk->next++, piece);
		return;
	}
	walk->next++;
	piece->start = piece->symbol_start = walk->region->base + (uint64_t)leaf->keys[slot];
	piece->size_bytes = piece->symbol_size_bytes = leaf->sizes[slot];
	piece->number = leaf->numbers[slot];
	piece->value = walk->index->values[leaf->codes[slot]];
}

static void begin(struct walk *walk, const struct index *index)
{
	*walk = (struct walk){ .index = index };
	enter_region(walk, index->regions);
	advance(walk);
}

/* Values take turns; with the code of the next one at hand index_writer_add_whole() is a few
 * stores. */
static inline void choose_code(struct index_writer *writer, uint32_t value)
{
	const struct index *index = writer->index;

	if (index->values[writer->code] == value)
		return;
	for (unsigned int i = 0; i < index->value_count; i++)
		if (index->values[i] == value)
			writer->code = i;
}

static bool write_piece(struct index_writer *writer, const struct index_entry *piece)
{
	return index_writer_add(
		writer, &(struct index_piece){
				.start = piece->start,
				.size_bytes = piece->size_bytes,
				.symbol_start = piece->symbol_start,
				.symbol_size_bytes = piece->symbol_size_bytes,
				.detail = { .number = piece->number, .value = piece->value },
			});
}

static inline bool write_next(struct index_writer *writer, const struct index_entry *piece)
{
	choose_code(writer, piece->value);
	if (piece->start != piece->symbol_start || piece->size_bytes != piece->symbol_size_bytes)
		return write_piece(writer, piece);
	return index_writer_add_whole(
		writer, piece->start, piece->size_bytes,
		(struct index_detail){ .number = piece->number, .value = piece->value });
}

/* All of them; those that have come to their end are left out. */
struct join {
	struct walk *walks[INDEX_JOIN_MOST]; /* the later is the newer */
	size_t count;
	struct index_writer writer;
};

/* Two pieces that share bytes: the newer has them, but for one without a size. Nobody else's piece
 * starts before both of them do. */
static bool settle(struct walk *older, struct walk *newer, struct index_writer *writer)
{
	struct index_entry *old = &older->piece;
	const struct index_entry *new = &newer->piece;
	uint64_t covered;

	if (!new->symbol_size_bytes && old->symbol_size_bytes) {
		advance(newer);
		return true;
	}
	if (old->start < new->start) {
		struct index_entry front = *old;

		front.size_bytes = new->start - old->start;
		if (!write_piece(writer, &front))
			return false;
		old->size_bytes -= front.size_bytes;
		old->start = new->start;
	}
	covered = new->size_bytes - (old->start - new->start);
	if (old->size_bytes <= covered) {
		advance(older);
	} else {
		old->start += covered;
		old->size_bytes -= covered;
	}
	return true;
}

/* The walk whose piece starts first, and the one that is next. */
static void choose(const struct join *join, struct walk **first_ret, struct walk **second_ret)
{
	struct walk *first = NULL, *second = NULL;

	for (size_t i = 0; i < join->count; i++) {
		struct walk *walk = join->walks[i];

		if (!first || walk->piece.start < first->piece.start) {
			second = first;
			first = walk;
		} else if (!second || walk->piece.start < second->piece.start) {
			second = walk;
		}
	}
	*first_ret = first;
	*second_ret = second;
}

/* Writes the pieces of `walk` that end before another's begins: runs are long, because each heap
 * grows upwards. */
static bool write_run(struct join *join, struct walk *walk, const struct walk *second)
{
	uint64_t limit = second ? second->piece.start : UINT64_MAX;

	do {
		if (!write_next(&join->writer, &walk->piece))
			return false;
		advance(walk);
	} while (!walk->is_over && walk->piece.start < limit &&
		 limit - walk->piece.start >= walk->piece.size_bytes);
	return true;
}

static void leave_out_what_is_over(struct join *join)
{
	size_t kept = 0;

	for (size_t i = 0; i < join->count; i++)
		if (!join->walks[i]->is_over)
			join->walks[kept++] = join->walks[i];
	join->count = kept;
}

static bool join_all(struct join *join)
{
	leave_out_what_is_over(join);
	while (join->count) {
		struct walk *first, *second;
		bool done;

		choose(join, &first, &second);
		if (!second || second->piece.start - first->piece.start >= first->piece.size_bytes)
			done = write_run(join, first, second);
		else if (first < second)
			done = settle(first, second, &join->writer);
		else
			done = settle(second, first, &join->writer);
		if (!done)
			return false;
		leave_out_what_is_over(join);
	}
	return true;
}

static bool lay_out(const struct index *const *indexes, size_t count, struct index *index)
{
	struct walk *walks AUTO_FREE = calloc(count, sizeof(*walks));
	struct join join = { .count = count, .writer = { .index = index } };

	if (!walks)
		return false;
	for (size_t i = 0; i < count; i++) {
		begin(&walks[i], indexes[i]);
		join.walks[i] = &walks[i];
		join.writer.capacity += indexes[i]->count;
	}
	return index_writer_begin(&join.writer) && join_all(&join) &&
	       index_writer_end(&join.writer);
}

struct sym_error *index_join(const struct index *const *indexes, size_t count, struct index **ret)
{
	struct index *index AUTO_INDEX = calloc(1, sizeof(*index));
	size_t pieces = 0;

	for (size_t i = 0; i < count; i++)
		pieces += indexes[i]->count;
	if (pieces > LIMIT_INDEX_SYMBOLS)
		return sym_error_create(SYM_ERROR_LIMIT, "more than %zu symbols",
					LIMIT_INDEX_SYMBOLS);
	if (!index || !lay_out(indexes, count, index))
		return &sym_error_no_memory;
	*ret = STEAL(index);
	return NULL;
}
