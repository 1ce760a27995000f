/* SPDX-License-Identifier: MIT */
/*
 * Where in a process an image is: from its segments and the lines of maps that
 * name its file. Knows the one rule by which both the kernel's ELF loader and
 * the PE loader of every .NET runtime place a segment s of an image that begins
 * at byte B of its file (0 unless it is part of a bundle). For a line that
 * begins at `start` and shows the file from `pgoff`:
 *
 *     base = start + (B + s.offset - pgoff) - s.position
 *
 * if page_down(B + s.offset) <= pgoff < B + s.offset + s.size. Segments may
 * share a page of the file, so one line can fit several; the base that explains
 * most lines of the file is the right one. Parts of a bundle share pages with their neighbours,
 * whose lines they fit as well: a base of a part counts only where its headers are mapped.
 * The same file may be mapped at
 * several bases: each is a placement of its own. Views without an executable
 * line place nothing. Reads no bytes.
 */
#ifndef LIBSYM_PLACEMENT_H
#define LIBSYM_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/image.h"

struct placement {
	uint64_t base;
	size_t line_count;      /* lines that the base explains */
	uint64_t first_address; /* of the lowest of them */
};

struct placements {
	struct placement *items; /* ascending by first_address */
	size_t count;
	/* Placement of each line: index into items, or PLACEMENT_NONE for a line that none
	 * explains. */
	uint32_t *of_line;
	size_t unexplained_code_lines; /* executable lines among these */
};

#define PLACEMENT_NONE UINT32_MAX

/* The base of an image that begins at `image_offset`, if the line shows this segment of it. */
bool placement_base(const struct sym_mapping *line, uint64_t image_offset,
		    const struct image_segment *segment, uint64_t *ret);

/*
 * `lines` are all lines of one file. `image_offset` is B. No placement at all is no error.
 * Errors: NO_MEMORY.
 */
struct sym_error *placement_find(const struct image *image, uint64_t image_offset,
				 const struct sym_mapping *mappings, const uint32_t *lines,
				 size_t line_count, struct placements *ret)
	__attribute__((warn_unused_result));
void placements_deinit(struct placements *placements);

#endif
