/* SPDX-License-Identifier: MIT */
/*
 * A profile from the stream of a runtime (nettrace), alone or beside the samples of a recording:
 * what its events add up to (event_report.h), and one event of the profile for each view, whose
 * stacks end with what the view is about: the type, the exception, the lock, the method.
 */
#ifndef MAPGEN_PROFILE_EVENT_PROFILE_H
#define MAPGEN_PROFILE_EVENT_PROFILE_H

#include <regex.h>

#include "mapgen/profile/address_names.h"
#include "mapgen/profile/event_report.h"
#include "mapgen/profile/profile.h"

struct event_profile_opts {
	const struct address_names *names; /* NULL: the stream names its methods itself */
	struct event_match *match;         /* samples of probes; NULL: there are none */
	int32_t pid;                       /* of the host; 0: as the stream says */
	const char *runtime;               /* ".NET 10.0.12"; NULL: that of the profile */
	/* The thread id of the host; NULL: as the stream says. */
	int32_t (*host_tid)(void *context, int32_t pid, int32_t tid);
	void *host_tid_context;
	double from_s, to_s;       /* of the recording; to_s 0: to its end */
	const regex_t *line_regex; /* events of these names are kept one by one; NULL: none */
};

/* Reads a whole stream. Errors: FORMAT, UNSUPPORTED, LIMIT, IO, NO_MEMORY. */
struct sym_error *event_profile_read(struct profile *profile, int fd,
				     const struct event_profile_opts *opts)
	__attribute__((warn_unused_result));

#endif
