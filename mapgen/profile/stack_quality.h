/* SPDX-License-Identifier: MIT */
/*
 * Is a stack whole, and what of a profile has names: what `check` counts, and what views say at
 * their end.
 */
#ifndef MAPGEN_PROFILE_STACK_QUALITY_H
#define MAPGEN_PROFILE_STACK_QUALITY_H

#include "mapgen/profile/profile.h"

/* Entries that end early, or have a frame without a name, for one reason in one image. */
struct quality_cause {
	const char *image; /* path; "" for memory of no file */
	const char *reason;
	enum frame_kind kind;
	uint64_t count; /* of samples whose stack ends so, or of frames in samples */
};

struct stack_quality {
	uint64_t samples, whole_samples, guessed_samples;
	uint64_t frames[FRAME_KINDS], named_frames[FRAME_KINDS]; /* in samples */
	struct quality_cause *cut, *unnamed;                     /* most first */
	size_t cut_count, cut_capacity, unnamed_count, unnamed_capacity;
};

/* Measures the entries of one event; UINT32_MAX: of all events. Errors: NO_MEMORY. */
struct sym_error *stack_quality_measure(const struct profile *profile, uint32_t event,
					struct stack_quality *ret)
	__attribute__((warn_unused_result));
void stack_quality_deinit(struct stack_quality *quality);

#endif
