/* SPDX-License-Identifier: MIT */
/*
 * Decides why a thread waits: for a lock, the network, the disk. A table of functions of .NET, libc
 * and the kernel says so. Where several functions of a stack are in it, the lowest number holds.
 */
#ifndef MAPGEN_PROFILE_WAIT_CAUSE_H
#define MAPGEN_PROFILE_WAIT_CAUSE_H

#include <stdint.h>

enum {
	WAIT_CAUSE_UNKNOWN = 254,
};

/* The number of the cause that a function's name stands for, or WAIT_CAUSE_UNKNOWN. */
uint8_t wait_cause_find(const char *function);

/* The lowest number whose text is the same. */
uint8_t wait_cause_first_of_its_text(uint8_t cause);

/* Static; "" for WAIT_CAUSE_UNKNOWN. */
const char *wait_cause_text(uint8_t cause);

#endif
