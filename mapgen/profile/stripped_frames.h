/* SPDX-License-Identifier: MIT */
/*
 * Frames of stripped native images, of which only the bounds were known when a profile was read. A
 * server may know their names (symbolize_client.h); it is asked once, at the end.
 */
#ifndef MAPGEN_PROFILE_STRIPPED_FRAMES_H
#define MAPGEN_PROFILE_STRIPPED_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/libsym.h"
#include "mapgen/profile/frame_table.h"

struct symbolize_client;

struct stripped_frame {
	uint32_t frame;
	struct sym_identity identity;
	uint64_t vaddr, size_bytes;
};

struct stripped_frames {
	struct stripped_frame *frames;
	size_t count, capacity;
};

/* Notes the frame of an answer in an image; nothing when servers know no such image. Errors:
 * NO_MEMORY. */
struct sym_error *stripped_frames_add(struct stripped_frames *stripped, struct sym_image *image,
				      const struct sym_answer *answer, uint32_t frame)
	__attribute__((warn_unused_result));

/* Asks, and gives the frames their names. Errors: NO_MEMORY. */
struct sym_error *stripped_frames_name(const struct stripped_frames *stripped,
				       struct symbolize_client *client, struct frame_table *frames)
	__attribute__((warn_unused_result));

void stripped_frames_deinit(struct stripped_frames *stripped);

#endif
