/* SPDX-License-Identifier: MIT */
/* A range of addresses with a number that stands for its name, on its way from a reader to an
 * index. */
#ifndef LIBSYM_BASE_NUMBERED_RANGE_H
#define LIBSYM_BASE_NUMBERED_RANGE_H

#include <stdint.h>

struct numbered_range {
	uint64_t start, size_bytes;
	uint32_t number;
	uint32_t value; /* whatever belongs to it */
};

#endif
