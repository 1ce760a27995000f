/* SPDX-License-Identifier: MIT */
/*
 * How the base is found.
 *
 * 1. Each executable line and each segment that fits it give a candidate base.
 * 2. Every line votes for the candidates that explain it.
 * 3. Each executable line chooses its candidate with most votes. Two with equal votes choose none:
 *    a wrong base would give wrong names.
 * 4. The chosen bases are the placements. Each line belongs to the placement with most lines that
 *    explains it.
 */
#include "libsym/image/placement.h"

#include <stdlib.h>

enum {
	PAGE_BYTES = 4096,
	/*
	 * Bases that are tried for one file. A file is mapped a few times; only hostile segments
	 * fit more bases.
	 */
	MAX_CANDIDATES = 64
};

struct candidate {
	uint64_t base;
	size_t votes;
};

struct search {
	const struct object_file *object;
	uint64_t image_offset;
	const struct sym_mapping *mappings;
	const uint32_t *lines;
	size_t line_count;
	struct candidate candidates[MAX_CANDIDATES];
	size_t candidate_count;
};

bool placement_base(const struct sym_mapping *line, uint64_t image_offset,
		    const struct object_segment *segment, uint64_t *ret)
{
	uint64_t offset = image_offset + segment->offset;
	uint64_t page = offset & ~(uint64_t)(PAGE_BYTES - 1);

	if (!segment->size_bytes || line->offset < page ||
	    line->offset >= offset + segment->size_bytes)
		return false;
	*ret = line->start_address + (offset - line->offset) - segment->position;
	return true;
}

static bool placement_explains(const struct search *search, uint64_t base,
			       const struct sym_mapping *line)
{
	uint64_t found;

	for (size_t i = 0; i < search->object->segment_count; i++)
		if (placement_base(line, search->image_offset, &search->object->segments[i],
				   &found) &&
		    found == base)
			return true;
	return false;
}

/* True when the first page of the image's headers is mapped where the base puts it. */
static bool has_headers(const struct search *search, uint64_t base)
{
	const uint64_t mask = ~(uint64_t)(PAGE_BYTES - 1);

	for (size_t i = 0; i < search->line_count; i++) {
		const struct sym_mapping *line = &search->mappings[search->lines[i]];

		if (line->offset == (search->image_offset & mask) &&
		    line->start_address == (base & mask))
			return true;
	}
	return false;
}

static void add_candidate(struct search *search, uint64_t base)
{
	struct candidate *candidate;

	if (search->image_offset && !has_headers(search, base))
		return;

	for (size_t i = 0; i < search->candidate_count; i++)
		if (search->candidates[i].base == base)
			return;
	if (search->candidate_count == MAX_CANDIDATES)
		return;
	candidate = &search->candidates[search->candidate_count++];
	*candidate = (struct candidate){ .base = base };
	for (size_t i = 0; i < search->line_count; i++)
		candidate->votes +=
			placement_explains(search, base, &search->mappings[search->lines[i]]);
}

static void collect_candidates(struct search *search)
{
	for (size_t i = 0; i < search->line_count; i++) {
		const struct sym_mapping *line = &search->mappings[search->lines[i]];

		if (!(line->protection & SYM_EXECUTE))
			continue;
		for (size_t j = 0; j < search->object->segment_count; j++) {
			const struct object_segment *segment = &search->object->segments[j];
			uint64_t base;

			if (segment->executable &&
			    placement_base(line, search->image_offset, segment, &base))
				add_candidate(search, base);
		}
	}
}

/*
 * The base with most votes among those that explain the line. False when there is none, or two are
 * equal.
 */
static bool best_for_line(const struct search *search, const struct sym_mapping *line,
			  uint64_t *base_ret)
{
	size_t most = 0;
	bool tied = false;

	for (size_t i = 0; i < search->candidate_count; i++) {
		const struct candidate *candidate = &search->candidates[i];

		if (candidate->votes < most || !placement_explains(search, candidate->base, line))
			continue;
		tied = candidate->votes == most;
		most = candidate->votes;
		*base_ret = candidate->base;
	}
	return most && !tied;
}

static uint32_t placement_of_base(struct placements *placements, uint64_t base, uint64_t address)
{
	for (size_t i = 0; i < placements->count; i++)
		if (placements->items[i].base == base)
			return (uint32_t)i;
	placements->items[placements->count] =
		(struct placement){ .base = base, .first_address = address };
	return (uint32_t)placements->count++;
}

static int by_first_address(const void *left, const void *right)
{
	const struct placement *a = left, *b = right;

	return a->first_address < b->first_address ? -1 : a->first_address > b->first_address;
}

/*
 * Only bases chosen by an executable line are placements. The other lines are then assigned to
 * them.
 */
static void place_lines(const struct search *search, struct placements *ret)
{
	uint64_t base = 0;

	for (size_t i = 0; i < search->line_count; i++) {
		const struct sym_mapping *line = &search->mappings[search->lines[i]];

		if (!(line->protection & SYM_EXECUTE))
			continue;
		if (best_for_line(search, line, &base))
			placement_of_base(ret, base, line->start_address);
		else
			ret->unexplained_code_lines++;
	}
	for (size_t i = 0; i < ret->count; i++)
		for (size_t j = search->line_count; j-- > 0;)
			if (placement_explains(search, ret->items[i].base,
					       &search->mappings[search->lines[j]])) {
				ret->items[i].line_count++;
				ret->items[i].first_address =
					search->mappings[search->lines[j]].start_address;
			}
	qsort(ret->items, ret->count, sizeof(*ret->items), by_first_address);
	for (size_t i = 0; i < search->line_count; i++) {
		const struct sym_mapping *line = &search->mappings[search->lines[i]];
		size_t most = 0;

		ret->of_line[i] = PLACEMENT_NONE;
		for (size_t j = 0; j < ret->count; j++)
			if (ret->items[j].line_count > most &&
			    placement_explains(search, ret->items[j].base, line)) {
				most = ret->items[j].line_count;
				ret->of_line[i] = (uint32_t)j;
			}
	}
}

struct sym_error *placement_find(const struct object_file *object, uint64_t image_offset,
				 const struct sym_mapping *mappings, const uint32_t *lines,
				 size_t line_count, struct placements *ret)
{
	struct search search = { .object = object,
				 .image_offset = image_offset,
				 .mappings = mappings,
				 .lines = lines,
				 .line_count = line_count };
	struct placements placements = { 0 };

	collect_candidates(&search);
	placements.items = calloc(MAX_CANDIDATES, sizeof(*placements.items));
	placements.of_line = calloc(line_count ? line_count : 1, sizeof(*placements.of_line));
	if (!placements.items || !placements.of_line) {
		placements_deinit(&placements);
		return &sym_error_no_memory;
	}
	place_lines(&search, &placements);
	*ret = placements;
	return NULL;
}

void placements_deinit(struct placements *placements)
{
	free(placements->items);
	free(placements->of_line);
	*placements = (struct placements){ 0 };
}
