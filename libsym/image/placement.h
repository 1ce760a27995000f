/* SPDX-License-Identifier: MIT */
/*
 * Where in a process an image is, computed from its segments and the lines of maps that name its
 * file.
 *
 * The kernel's ELF loader and the PE loader of every .NET runtime follow one rule.
 * Let the image begin at byte B of its file (0 unless it is part of a bundle), and let a line start
 * at `start` and contain the file from `pgoff`.
 * Then a segment s fits the line if page_down(B + s.offset) <= pgoff < B + s.offset + s.size, and
 *
 *     base = start + (B + s.offset - pgoff) - s.position
 *
 * Segments may share a page of the file, so one line can fit several. The base that explains most
 * lines is the right one.
 * Parts of a bundle share pages with their neighbours, whose lines they fit as well. So a base of a
 * part counts only where its headers are mapped.
 * A file mapped at several bases has several placements.
 * A file without an executable line has none.
 * No bytes are read.
 */
#ifndef LIBSYM_IMAGE_PLACEMENT_H
#define LIBSYM_IMAGE_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/file/object_file.h"

struct placement {
	uint64_t base;
	size_t line_count;      /* lines that the base explains */
	uint64_t first_address; /* of the lowest line */
};

struct placements {
	struct placement *items; /* ascending by first_address */
	size_t count;
	/* Placement of each line: index into items, or PLACEMENT_NONE. */
	uint32_t *of_line;
	size_t unexplained_code_lines; /* executable lines without a placement */
};

#define PLACEMENT_NONE UINT32_MAX

/* The base of an image that begins at `image_offset`, if the line contains this segment. */
bool placement_base(const struct sym_mapping *line, uint64_t image_offset,
		    const struct object_segment *segment, uint64_t *ret);

/*
 * `lines` are all lines of one file. `image_offset` is B.
 * Having no placement is not an error. Errors: NO_MEMORY.
 */
struct sym_error *placement_find(const struct object_file *object, uint64_t image_offset,
				 const struct sym_mapping *mappings, const uint32_t *lines,
				 size_t line_count, struct placements *ret)
	__attribute__((warn_unused_result));
void placements_deinit(struct placements *placements);

#endif
