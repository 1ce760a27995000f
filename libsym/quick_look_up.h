/* SPDX-License-Identifier: MIT */
/*
 * The ordinary look-up: an address in memory of jitted code, whose perf map has an ordinary line
 * for it or none. It has few instructions, takes no lock and counts nobody: while one waits
 * for memory the processor goes on with the next. What is not ordinary is left to the resolver.
 */
#ifndef LIBSYM_QUICK_LOOK_UP_H
#define LIBSYM_QUICK_LOOK_UP_H

#include <stdatomic.h>

#include "libsym/index_levels.h"
#include "libsym/index_search.h"
#include "libsym/result.h"
#include "libsym/snapshot.h"
#include "libsym/source/perfmap_first.h"

/* Where the index has lines and executable memory of no image is mapped. */
struct quick_range {
	uint64_t start, size_bytes;
	const char *path;
	/* Of the region in which all of it lies. */
	uint64_t base, bucket_rate;
	const struct index_leaf *leaves;
	const struct index_bucket *buckets;
	/*
	 * NULL, or it has what came later: one a cell, numbers of parts. Then `size_bytes` is 0, so
	 * that the ordinary way leaves it alone, and `base` says how many bytes there are.
	 */
	const uint16_t *cells;
};

_Static_assert(sizeof(struct quick_range) == 64, "a cache line");

/* A region of one level, and the number of the part that is to be asked where it has nothing: of
 * the same level or an older one. 0: there is no more. */
struct quick_part {
	uint64_t base, span_bytes, reach_bytes, bucket_rate; /* as of the region */
	const struct index_leaf *leaves;
	const struct index_bucket *buckets;
	uint64_t next;
	uint64_t reserved;
};

_Static_assert(sizeof(struct quick_part) == 64, "a cache line");

/* No code of the index: there is no name. */
#define QUICK_MISS INDEX_VALUES

/* Does not change. */
struct quick_look_up {
	const struct perfmap_names *names;
	/* In which range an address is if it is in any, but for a few: see address_slots.h. */
	unsigned int slot_shift;
	uint32_t slot_mask;
	bool asks_others;             /* about an address of which the map has no line */
	struct quick_look_up *before; /* for its owner */
	/* Of what came later: quick_layers.h. NULL: there is nothing. */
	struct quick_part *parts;
	uint16_t *cells;
	unsigned int cell_bits; /* a cell has 1 << cell_bits bytes */
	/* Of the codes of the index. */
	const char *tiers[INDEX_VALUES + 1];
	uint8_t kinds[INDEX_VALUES + 1];    /* enum sym_symbol_kind */
	uint16_t slots[ADDRESS_SLOTS_MOST]; /* numbers of ranges */
	uint32_t group;                     /* as of quick_look_up_create() */
	size_t range_count;
	struct quick_range ranges[]; /* ascending; behind them one of nothing */
};

/*
 * Over the executable memory of the snapshot that is of no image: what has no group of images, of
 * this group, and what somebody has asked for already. `view` is one of the map, which may have
 * grown. The map, the view, the snapshot and what it handed out must outlive it. NULL for want of
 * memory, or when it would be too large.
 */
struct quick_look_up *quick_look_up_create(const struct sym_snapshot *snapshot, uint32_t group,
					   const struct perfmap_first *map,
					   const struct index_view *view, bool asks_others);
/* And those before it. */
void quick_look_up_destroy(struct quick_look_up *quick);

/* Is there one that knows memory of this group? */
static inline bool quick_look_up_knows(const struct quick_look_up *quick, uint32_t group)
{
	return quick && (group == SNAPSHOT_NO_GROUP || group == quick->group);
}

/* Where the line of an address is if there is one. */
struct quick_place {
	const struct index_leaf *leaf;
	const char *path; /* of the memory */
	uint32_t distance;
};

struct quick_found {
	bool hit; /* nothing else counts otherwise */
	uint8_t code;
	const char *name;
	uint32_t offset_bytes, size_bytes;
};

static inline struct index_region quick_region(const struct quick_range *range)
{
	return (struct index_region){ .bucket_rate = range->bucket_rate,
				      .leaves = range->leaves,
				      .buckets = range->buckets };
}

/* For quick_place_of(), which found `range`: in one that has no slot there, where something came
 * later, or where leaves crowd. */
bool quick_place_apart(const struct quick_look_up *quick, const struct quick_range *range,
		       uint64_t address, struct quick_place *ret);

/* The same, for later: begins to bring what it reads first. */
static inline void quick_approach(const struct quick_range *range, uint64_t address)
{
	const struct index_region region = quick_region(range);

	if (address - range->start < range->size_bytes)
		__builtin_prefetch(
			index_bucket_of(&region, index_place(&region, address - range->base)));
}

/* The one that has the slot. */
static inline const struct quick_range *quick_range_of(const struct quick_look_up *quick,
						       uint64_t address)
{
	size_t slot = address >> quick->slot_shift & quick->slot_mask;

	return &quick->ranges[quick->slots[slot]];
}

/* False: it takes more than this. */
static inline __attribute__((always_inline)) bool
quick_place_of(const struct quick_look_up *quick, uint64_t address, struct quick_place *ret)
{
	const struct quick_range *range = quick_range_of(quick, address);
	const struct index_region region = quick_region(range);
	uint64_t distance = address - range->base;

	ret->leaf = NULL;
	if (__builtin_expect(address - range->start < range->size_bytes, 1))
		ret->leaf = index_leaf_within(&region, distance);
	if (__builtin_expect(!ret->leaf, 0))
		return quick_place_apart(quick, range, address, ret);
	ret->path = range->path;
	ret->distance = (uint32_t)distance;
	return true;
}

/* Is it sure of an address that is not in an ordinary piece that there is no name? */
static inline bool quick_is_miss(const struct quick_look_up *quick, const struct index_spot *spot)
{
	return spot->size_bytes != INDEX_ODD && !quick->asks_others;
}

/* False: its name is to be brought. */
static inline __attribute__((always_inline)) bool quick_describe(const struct quick_look_up *quick,
								 const struct index_spot *spot,
								 struct quick_found *ret)
{
	ret->code = spot->leaf->codes[spot->slot];
	ret->name = perfmap_names_here(quick->names, spot->leaf->numbers[spot->slot]);
	ret->offset_bytes = spot->offset_bytes;
	ret->size_bytes = spot->size_bytes;
	return __builtin_expect(ret->name != NULL, 1);
}

/* The compiler shall not join two stores to one: to bring the parts together takes longer. */
#define QUICK_APART() atomic_signal_fence(memory_order_seq_cst)

static inline uint8_t quick_code(const struct quick_found *found)
{
	return found->code | (uint8_t)((uint64_t)found->hit - 1);
}

static inline enum sym_symbol_kind quick_kind(const struct quick_look_up *quick,
					      const struct quick_found *found)
{
	return (enum sym_symbol_kind)quick->kinds[quick_code(found)];
}

/* The first line of an answer. */
static inline __attribute__((always_inline)) void quick_write(const struct quick_look_up *quick,
							      uint64_t address, const char *path,
							      const struct quick_found *found,
							      struct sym_answer *answer)
{
	uint64_t hit = -(uint64_t)found->hit;

	answer->address = address;
	answer->status = (enum sym_status)(SYM_NO_MATCH & ~hit);
	answer->source = (enum sym_source_kind)(SYM_SOURCE_PERF_MAP & hit);
	QUICK_APART();
	answer->name = (const char *)((uintptr_t)found->name & hit);
	QUICK_APART();
	answer->tier = quick->tiers[quick_code(found)];
	QUICK_APART();
	answer->offset_bytes = found->offset_bytes & hit;
	QUICK_APART();
	answer->size_bytes = found->size_bytes & hit;
	QUICK_APART();
	answer->image = NULL;
	QUICK_APART();
	answer->image_path = path;
}

/* Writes an answer: its first line, and its kind. */
static inline __attribute__((always_inline)) void
quick_answer(const struct quick_look_up *quick, uint64_t address, const char *path,
	     const struct quick_found *found, struct sym_result *result, size_t number)
{
	quick_write(quick, address, path, found,
		    result_plain(result, number, quick_kind(quick, found)));
}

/* One address by itself. False: it has no name, or it takes more than this. */
static inline __attribute__((always_inline)) bool
quick_find(const struct quick_look_up *quick, uint64_t address, struct quick_place *place,
	   struct index_spot *spot, struct quick_found *ret)
{
	if (!quick_place_of(quick, address, place)) {
		spot->size_bytes = INDEX_ODD;
		return false;
	}
	index_find_in_leaf(place->leaf, place->distance, spot);
	if (spot->offset_bytes >= spot->size_bytes)
		return false;
	ret->hit = quick_describe(quick, spot, ret);
	if (__builtin_expect(!ret->hit, 0))
		spot->size_bytes = INDEX_ODD;
	return ret->hit;
}

/*
 * The same where nothing is in the way: all that is foretold comes true then, and nothing is
 * called, so that nothing has to be kept in memory. What is done with a line once it is there waits
 * for it in the processor, and there is little room to wait. False: ask quick_resolve() or
 * quick_find().
 */
static inline __attribute__((always_inline)) bool
quick_find_usual(const struct quick_look_up *quick, uint64_t address, const char **path_ret,
		 struct quick_found *ret)
{
	const struct quick_range *range = quick_range_of(quick, address);
	const struct index_region region = quick_region(range);
	struct index_spot spot;

	if (__builtin_expect(address - range->start >= range->size_bytes, 0) ||
	    !index_hits_within(&region, address - range->base, &spot))
		return false;
	*path_ret = range->path;
	ret->hit = true;
	return quick_describe(quick, &spot, ret);
}

/* Answers one address, whether it has a name or surely none. False: it takes more than this. */
bool quick_resolve(const struct quick_look_up *quick, uint64_t address, struct sym_result *result);

enum {
	QUICK_LANES = 16 /* addresses that are looked up side by side */
};

/*
 * Many addresses, in groups. A look-up waits for memory twice: for the bucket and for the leaf.
 * Each group is one wait ahead of the group before it.
 */
struct quick_batch {
	const struct quick_look_up *quick;
	const uint64_t *addresses;
	size_t count; /* all of them */
	struct sym_result *result;
	size_t done;                               /* how many have been answered */
	struct quick_place places[2][QUICK_LANES]; /* without a leaf: it takes more than this */
};

void quick_batch_begin(struct quick_batch *batch);

/* Answers the next group; returns how many of it take more than this: their numbers are in `rest`.
 */
size_t quick_batch_turn(struct quick_batch *batch, size_t rest[QUICK_LANES]);

#endif
