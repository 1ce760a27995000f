/* SPDX-License-Identifier: MIT */
/*
 * Where a process maps the files that perf script prints in parentheses: "(/memfd:doublemapper
 * (deleted))" stands beside a number that is an offset into that file or an address, depending on
 * the version of perf.
 */
#ifndef MAPGEN_LIVE_MAPPED_OFFSETS_H
#define MAPGEN_LIVE_MAPPED_OFFSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sym_mapping;
struct sym_snapshot;

struct mapped_offsets {
	const struct sym_mapping **mappings; /* executable, with a path; by path, then offset */
	size_t count;
	/* The range of mappings of the last image. */
	size_t first, last;
};

/* Borrows from the snapshot. False: out of memory. */
bool mapped_offsets_init(struct mapped_offsets *places, const struct sym_snapshot *snapshot);
void mapped_offsets_deinit(struct mapped_offsets *places);

/* The meanings that a number beside an image can have. */
enum offset_kind {
	OFFSET_KIND_NOTHING = 0, /* the image is not mapped, or the number is not inside it */
	OFFSET_KIND_ADDRESS = 1,
	OFFSET_KIND_OFFSET = 2,
	/* In a large program at a low address (Go: 0x400000) nearly all numbers can be both. */
	OFFSET_KIND_EITHER = OFFSET_KIND_ADDRESS | OFFSET_KIND_OFFSET,
};

/* `*address_ret`: the address, if the number can be an offset. */
enum offset_kind mapped_offsets_find(struct mapped_offsets *places, const char *image,
				     size_t image_bytes, uint64_t value, uint64_t *address_ret);

/* True for the names that perf prints for memory of no file; addresses stand beside them. */
bool names_memory(const char *image, size_t image_bytes);

#endif
