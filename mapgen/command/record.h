/* SPDX-License-Identifier: MIT */
/* A recording that only serves to be looked at once: what flame and top show. Both are in record.c.
 */
#ifndef MAPGEN_COMMAND_RECORD_H
#define MAPGEN_COMMAND_RECORD_H

#include <stdbool.h>

#include "mapgen/cli/options.h"
#include "mapgen/profile/profile.h"

/*
 * Records what `options` say, into files without a name (temporary_file.h). Returns an exit code; a
 * message says why it failed.
 */
int record_profile(const struct options *options, struct profile **ret);

struct record_pictures {
	double seconds; /* of each picture; the last one may be of a shorter time */
	/* False ends the recording. */
	bool (*show)(void *context, const struct profile *profile);
	/* Called several times a second in between. */
	void (*step)(void *context);
	void *context;
};

/*
 * Records as record_profile() does, without an end, and calls `show` with each picture. Returns an
 * exit code; a message says why it failed.
 */
int record_pictures(const struct options *options, const struct record_pictures *pictures);

#endif
