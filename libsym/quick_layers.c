/* SPDX-License-Identifier: MIT */
#include "libsym/quick_layers.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/huge_memory.h"

enum {
	FEWEST_CELL_BITS = 12,
	MOST_CELLS = 1 << 17,
	NEAR_BYTES = 1 << 16 /* stretches so close to each other are one */
};

_Static_assert(INDEX_EXTENT_BYTES == 1 << FEWEST_CELL_BITS, "an extent begins with a cell");

/* ---- where something came later ------------------------------------------------------------- */

/* At or behind the beginning of the last one. */
static void append(struct quick_stretches *stretches, const struct index_extent *extent)
{
	struct index_extent *last =
		stretches->count ? &stretches->items[stretches->count - 1] : NULL;

	if (!last || (extent->first > last->last && extent->first - last->last > NEAR_BYTES))
		stretches->items[stretches->count++] = *extent;
	else if (extent->last > last->last)
		last->last = extent->last;
}

static bool add_level(struct quick_stretches *stretches, const struct index_level *level)
{
	struct quick_stretches joined = { .count = 0 };
	size_t i = 0, j = 0;

	joined.items = reallocarray(NULL, stretches->count + level->extent_count + 1,
				    sizeof(*joined.items));
	if (!joined.items)
		return false;
	while (i < stretches->count || j < level->extent_count)
		if (j == level->extent_count ||
		    (i < stretches->count && stretches->items[i].first <= level->extents[j].first))
			append(&joined, &stretches->items[i++]);
		else
			append(&joined, &level->extents[j++]);
	free(stretches->items);
	*stretches = joined;
	return true;
}

bool quick_stretches_init(struct quick_stretches *stretches, const struct index_view *view)
{
	*stretches = (struct quick_stretches){ 0 };
	for (size_t i = 1; i < view->count; i++)
		if (!add_level(stretches, view->levels[i]))
			return false;
	return true;
}

void quick_stretches_deinit(struct quick_stretches *stretches)
{
	free(stretches->items);
}

/* ---- cells ------------------------------------------------------------------------------------
 */

struct layering {
	struct quick_range *ranges; /* all of them; those with cells have `size_bytes` 0 */
	size_t count;
	unsigned int cell_bits;
	struct buf parts;
	/* Of the region that is being laid over the others: */
	const struct index_region *region;
	size_t next_range; /* the first that does not end in front of the extent */
	size_t first_part; /* of it */
	uint16_t *
		over; /* by the number of what lies below: the part that leads to it; 0: none yet */
};

static size_t part_count(const struct layering *layering)
{
	return layering->parts.size_bytes / sizeof(struct quick_part);
}

static size_t cells_of(const struct quick_range *range, unsigned int cell_bits)
{
	return range->size_bytes ? 0 : (range->base >> cell_bits) + 1;
}

static size_t count_cells(const struct layering *layering)
{
	size_t cells = 0;

	for (size_t i = 0; i < layering->count; i++)
		cells += cells_of(&layering->ranges[i], layering->cell_bits);
	return cells;
}

static bool put_over(struct layering *layering, uint16_t *cell)
{
	const struct index_region *region = layering->region;
	size_t number = part_count(layering);

	if (*cell >= layering->first_part)
		return true; /* it is there already */
	if (layering->over[*cell]) {
		*cell = layering->over[*cell];
		return true;
	}
	if (number > UINT16_MAX || !buf_append(&layering->parts,
					       &(struct quick_part){
						       .base = region->base,
						       .span_bytes = region->span_bytes,
						       .reach_bytes = region->reach_bytes,
						       .bucket_rate = region->bucket_rate,
						       .leaves = region->leaves,
						       .buckets = region->buckets,
						       .next = *cell,
					       },
					       sizeof(struct quick_part)))
		return false;
	layering->over[*cell] = (uint16_t)number;
	*cell = (uint16_t)number;
	return true;
}

/* In all cells that have a byte of the extent. */
static bool put_over_extent(struct layering *layering, const struct index_extent *extent)
{
	for (size_t i = layering->next_range; i < layering->count; i++) {
		const struct quick_range *range = &layering->ranges[i];
		uint64_t bytes = range->size_bytes ? range->size_bytes : range->base;
		uint64_t last_byte = range->start + (bytes - 1), first, last;

		if (last_byte < extent->first)
			layering->next_range = i + 1;
		if (range->size_bytes || last_byte < extent->first)
			continue;
		if (range->start > extent->last)
			break;
		first = extent->first > range->start ? extent->first - range->start : 0;
		last = (extent->last < last_byte ? extent->last : last_byte) - range->start;
		for (size_t cell = first >> layering->cell_bits;
		     cell <= last >> layering->cell_bits; cell++)
			if (!put_over(layering, (uint16_t *)&range->cells[cell]))
				return false;
	}
	return true;
}

/* The part of `extent` that lies in the region. */
static bool clip(const struct index_region *region, struct index_extent *extent)
{
	uint64_t last = region->base + (region->reach_bytes - 1);

	if (extent->first < region->base)
		extent->first = region->base;
	if (extent->last > last)
		extent->last = last;
	return extent->first <= extent->last;
}

static bool put_over_region(struct layering *layering, const struct index_level *level,
			    const struct index_region *region)
{
	uint16_t *over AUTO_FREE = calloc(part_count(layering), sizeof(*over));

	if (!over)
		return false;
	layering->region = region;
	layering->over = over;
	layering->next_range = 0;
	layering->first_part = part_count(layering);
	for (size_t i = 0; i < level->extent_count; i++) {
		struct index_extent extent = level->extents[i];

		if (clip(region, &extent) && !put_over_extent(layering, &extent))
			return false;
	}
	if (!level->extent_count) {
		/* Of the lowest level. */
		struct index_extent all = { 0, UINT64_MAX };

		return !clip(region, &all) || put_over_extent(layering, &all);
	}
	return true;
}

static bool put_over_levels(struct layering *layering, const struct index_view *view)
{
	if (!buf_append(&layering->parts, &(struct quick_part){ 0 }, sizeof(struct quick_part)))
		return false;
	for (size_t i = 0; i < view->count; i++) {
		const struct index *index = view->levels[i]->index;

		for (size_t j = 0; j < index->region_count; j++)
			if (!put_over_region(layering, view->levels[i], &index->regions[j]))
				return false;
	}
	return true;
}

static bool make_parts(struct quick_look_up *quick, struct layering *layering,
		       const struct index_view *view)
{
	bool done = put_over_levels(layering, view);

	if (done)
		quick->parts = huge_memory_allocate(layering->parts.size_bytes);
	if (quick->parts)
		memcpy(quick->parts, layering->parts.data, layering->parts.size_bytes);
	return quick->parts != NULL;
}

bool quick_layers_make(struct quick_look_up *quick, struct quick_range *ranges, size_t count,
		       const struct index_view *view)
{
	struct layering layering = { .ranges = ranges,
				     .count = count,
				     .cell_bits = FEWEST_CELL_BITS };
	size_t cells;
	bool done;

	while ((cells = count_cells(&layering)) > MOST_CELLS)
		layering.cell_bits++;
	quick->cell_bits = layering.cell_bits;
	quick->cells = calloc(cells + 1, sizeof(*quick->cells));
	if (!quick->cells)
		return false;
	for (size_t i = cells = 0; i < count; i++) {
		if (!ranges[i].size_bytes)
			ranges[i].cells = quick->cells + cells;
		cells += cells_of(&ranges[i], layering.cell_bits);
	}
	buf_init(&layering.parts, SIZE_MAX);
	done = make_parts(quick, &layering, view);
	buf_deinit(&layering.parts);
	return done;
}
