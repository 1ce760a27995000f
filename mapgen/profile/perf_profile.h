/* SPDX-License-Identifier: MIT */
/*
 * A profile from the records of a perf.data: samples by event, thread and stack; and from SWITCH
 * records how long each thread was away from the processor, charged to the stack of the sample that
 * was taken at the switch.
 */
#ifndef MAPGEN_PROFILE_PERF_PROFILE_H
#define MAPGEN_PROFILE_PERF_PROFILE_H

#include "mapgen/events/event_match.h"
#include "mapgen/profile/address_names.h"
#include "mapgen/profile/profile.h"
#include "mapgen/profile/stack_notes.h"

struct perf_profile_opts {
	const struct address_names *names;
	const struct stack_notes *notes; /* NULL: nothing says whether stacks are whole */
	struct event_match *match;       /* gets samples of probes; NULL: they are samples */
	double from_s, to_s;             /* of the recording; to_s 0: to its end */
	uint64_t begin_ns, end_ns;       /* of the recording; 0: as the records say */
	bool in_parts;                   /* of perf_directory.h: in no order of time */
};

/* Reads a whole perf.data. `path` is for messages. Errors: FORMAT, LIMIT, IO, NO_MEMORY. */
struct sym_error *perf_profile_read(struct profile *profile, int fd, const char *path,
				    const struct perf_profile_opts *opts)
	__attribute__((warn_unused_result));

#endif
