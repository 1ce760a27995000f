/* SPDX-License-Identifier: MIT */
/*
 * Lines of perf maps as nearly all are: numbers of at most 16 and 8 digits, one space behind each,
 * an address of user space, a name of printable ASCII, no carriage return. A map of a million lines
 * is read at the speed of this, in some 90 instructions a line; there is only a way for x86-64 with
 * AVX2. (Vectors of 512 bits were tried: what is left waits for memory.)
 *
 * Where lines end is found first, in 4 KiB of text at a time: nothing that is then done for a line
 * waits for the one before, and no branch asks how long it is.
 */
#ifndef LIBSYM_FORMAT_PERFMAP_USUAL_H
#define LIBSYM_FORMAT_PERFMAP_USUAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/numbered_range.h"

enum {
	PERFMAP_USUAL_SCANNED = 4096, /* bytes at a time */
	PERFMAP_USUAL_AT_ONCE = 2     /* offsets are written, of which the last may not count */
};

struct perfmap_usual {
	/* private */
	const char *begin, *end;
	uint32_t first_number;
	/* What has been scanned last, and where in it there is a newline or a byte that is not
	 * usual: those from `next` on are ahead. */
	const char *scanned_from, *scanned_to;
	uint32_t next, count;
	uint16_t odd[PERFMAP_USUAL_SCANNED + PERFMAP_USUAL_AT_ONCE];
};

bool perfmap_usual_works(void);

/* The text must stay while lines of it are taken. Its bytes have numbers, from `first_number` on.
 */
void perfmap_usual_init(struct perfmap_usual *usual, const char *text, size_t size_bytes,
			uint32_t first_number);

/*
 * Where perfmap_usual_works(): takes such lines from *next up to the first that is none or lies so
 * near the end that it may have to be read otherwise; how many, at most `count`. The number of a
 * range is that of the first byte of its name, its value the number of the tier with which the name
 * ends, and PERFMAP_STUB_BIT; `ends` are the numbers of the newlines. A name that begins with '['
 * has a tier.
 */
size_t perfmap_usual_take(struct perfmap_usual *usual, const char **next,
			  struct numbered_range *ranges, uint32_t *ends, size_t count);

#endif
