/* SPDX-License-Identifier: MIT */
/*
 * Opens what report and flame read: a recording (NAME.trace.zip), a perf.data of any perf, a
 * nettrace file of a runtime, or folded text; from a file, or from a pipe.
 */
#ifndef MAPGEN_PROFILE_PROFILE_OPEN_H
#define MAPGEN_PROFILE_PROFILE_OPEN_H

#include "mapgen/profile/profile.h"

struct options;
struct symbolize_client;

struct profile_open_opts {
	const struct options *options;      /* for names of a plain perf.data; recorded_names.h */
	struct symbolize_client *symbolize; /* for native names; NULL: none */
	bool keeps_samples, keeps_spans;
	bool lines; /* look up source lines for a plain perf.data; a recording has them anyway */
	double from_s, to_s;     /* of the recording; to_s 0: to its end */
	const char *event_lines; /* regular expression: events to be kept one by one; NULL: none */
};

/* `path`: "-" is standard input. Errors: NOT_FOUND, PERMISSION, FORMAT, UNSUPPORTED, LIMIT, IO,
 * NO_MEMORY. */
struct sym_error *profile_open(const char *path, const struct profile_open_opts *opts,
			       struct profile **ret) __attribute__((warn_unused_result));

#endif
