/* SPDX-License-Identifier: MIT */
/*
 * The part of a profile that a view shows: entries of one event, of the threads that were asked
 * for, and of their stacks what lies above or below a function.
 */
#ifndef MAPGEN_VIEW_SELECTION_H
#define MAPGEN_VIEW_SELECTION_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mapgen/profile/profile.h"

struct selection_opts {
	const char *thread;     /* regular expression of names, or a thread id; NULL: all threads */
	const char *callers_of; /* regular expression of functions; NULL: whole stacks */
	const char *callees_of;
	bool shows_idle; /* threads parked in the pool too */
};

struct selected {
	const uint32_t *frames; /* outermost first */
	uint32_t frame_count;
	uint32_t thread, stack;
	uint64_t count, weight, longest;
};

struct selection {
	const struct profile *profile;
	uint32_t event;
	struct selected *items;
	size_t count;
	uint64_t total_count, total_weight;
	size_t thread_count; /* of the items */
	/* Parked threads that were left out. */
	size_t hidden_threads;
	uint64_t hidden_weight;
};

/* Errors: ARGUMENT for a bad regular expression, NO_MEMORY. */
struct sym_error *selection_make(const struct profile *profile, uint32_t event,
				 const struct selection_opts *opts, struct selection *ret)
	__attribute__((warn_unused_result));
void selection_deinit(struct selection *selection);

#endif
