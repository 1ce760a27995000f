/* SPDX-License-Identifier: MIT */
/* Shared by the race programs. */
#ifndef TESTS_RACES_RACE_H
#define TESTS_RACES_RACE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "libsym/libsym.h"

/* Ends the program with the message of an error. */
static inline void must(struct sym_error *error)
{
	if (!error)
		return;
	fprintf(stderr, "%s\n", sym_error_message(error));
	abort();
}

/* The next number of a fixed pseudo-random sequence; one state per thread. */
static inline uint32_t noise(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

#endif
