/* SPDX-License-Identifier: MIT */
/*
 * Calls of the C library that failed because memory or descriptors ran out or a disk could not be
 * read. Such a failure is never an answer: something may be missing in the result.
 */
#ifndef MAPGEN_CLI_FAILED_CALLS_H
#define MAPGEN_CLI_FAILED_CALLS_H

#include <stddef.h>

struct failed_calls {
	size_t count;
	const char *name; /* of the first failed call */
	int errno_value;  /* name of the function of that call */
};

struct failed_calls failed_calls_get(void);

#endif
