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
	struct index_entry piece;    /* its name is of no interest */
	uint8_t codes[INDEX_VALUES]; /* those of the joined index; INDEX_VALUES: it has none left */
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

static void begin(struct walk *walk, const struct index *index, struct index *joined)
{
	*walk = (struct walk){ .index = index };
	for (unsigned int i = 0; i < index->value_count; i++)
		walk->codes[i] = (uint8_t)index_code_of(joined, index->values[i]);
	enter_region(walk, index->regions);
	advance(walk);
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

/* Is it as it lies in its leaf? */
static inline bool is_untouched(const struct walk *walk)
{
	const struct index_leaf *leaf = walk->leaf;
	unsigned int slot = walk->slot - 1;

	return leaf->sizes[slot] != INDEX_ODD && walk->piece.size_bytes == leaf->sizes[slot] &&
	       walk->piece.start == walk->region->base + (uint64_t)leaf->keys[slot];
}

#define NO_PIECES SIZE_MAX

/* Where the next piece is copied to. */
struct target {
	struct index_leaf *leaf;
	unsigned int slot;
	uint64_t leaf_start, base;
};

static inline struct target target_of(const struct index_writer *writer)
{
	return (struct target){ writer->leaf, writer->slot, writer->leaf_start, writer->base };
}

/*
 * Copies the piece of `walk` and those that follow in its region, as long as they are whole symbols
 * that end before `limit`. How many; if there is one, the walk is behind the last one then, and on
 * none. NO_PIECES when there is no memory.
 */
static size_t copy_pieces(struct index_writer *writer, struct walk *walk, uint64_t limit)
{
	const struct index_leaf *from = walk->leaf;
	uint64_t base = walk->region->base;
	unsigned int slot = walk->slot - 1;
	size_t left = walk->end - walk->next + 1, count = 0;
	struct target to = target_of(writer);

	for (; count < left; count++, slot++) {
		uint64_t start;
		uint16_t size_bytes;
		uint8_t code;

		if (slot == INDEX_LEAF) {
			from++;
			slot = 0;
		}
		start = base + (uint64_t)from->keys[slot];
		size_bytes = from->sizes[slot];
		code = walk->codes[from->codes[slot]];
		if (size_bytes == INDEX_ODD || code == INDEX_VALUES || start >= limit ||
		    limit - start < size_bytes)
			break;
		if (!to.leaf || to.slot == INDEX_LEAF ||
		    start - to.leaf_start >= INDEX_NEAR_BYTES) {
			writer->slot = to.slot;
			if (!index_writer_place(writer, start))
				return NO_PIECES;
			to = target_of(writer);
		}
		to.leaf->keys[to.slot] = (int32_t)(start - to.base);
		to.leaf->sizes[to.slot] = size_bytes;
		to.leaf->codes[to.slot] = code;
		to.leaf->numbers[to.slot++] = from->numbers[slot];
		writer->last_size_bytes = size_bytes;
		writer->index->count++;
	}
	writer->slot = to.slot;
	if (count) {
		walk->leaf = from;
		walk->slot = slot;
		walk->next += count - 1;
	}
	return count;
}

/* Writes at least the piece that comes next, and moves on. */
static bool write_some(struct index_writer *writer, struct walk *walk, uint64_t limit)
{
	size_t copied = is_untouched(walk) ? copy_pieces(writer, walk, limit) : 0;

	if (copied == NO_PIECES || (!copied && !write_next(writer, &walk->piece)))
		return false;
	advance(walk);
	return true;
}

/* Writes the pieces of `walk` that end before another's begins: runs are long, because each heap
 * grows upwards. */
static bool write_run(struct join *join, struct walk *walk, const struct walk *second)
{
	uint64_t limit = second ? second->piece.start : UINT64_MAX;

	do {
		if (!write_some(&join->writer, walk, limit))
			return false;
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
	/* The codes of the newest stay. */
	for (size_t i = count; i-- > 0;) {
		begin(&walks[i], indexes[i], index);
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
