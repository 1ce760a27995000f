/* SPDX-License-Identifier: MIT */
/*
 * How names end that have a tier, for perfmap_tier.c and perfmap_usual.c. The last bytes of a name
 * tell which few of the words it can be, so that no branch asks which one it is.
 */
#ifndef LIBSYM_FORMAT_PERFMAP_ENDINGS_H
#define LIBSYM_FORMAT_PERFMAP_ENDINGS_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "libsym/format/perfmap_tier.h"

enum {
	PERFMAP_ENDING_BYTES = 32,    /* those of the longest word, its brackets, and some more */
	PERFMAP_ENDING_KEY_BYTES = 8, /* those of the shortest word and its brackets */
	PERFMAP_ENDING_KEY_BITS = 4
};

struct perfmap_ending {
	char text[PERFMAP_ENDING_BYTES];
	uint64_t name_bytes; /* so many of them belong to the name */
};

/* By the number of the tier; that of none is any. */
extern const struct perfmap_ending perfmap_endings[PERFMAP_TIERS];

/* Which of them a name can have by its key, and at last none. */
extern const uint8_t perfmap_endings_of_key[1 << PERFMAP_ENDING_KEY_BITS][4];

/* Of the last bytes of a name. The factor was found by trying; test_perfmap_tier.c has every word.
 */
static inline const uint8_t *perfmap_endings_to_try(const char *text)
{
	uint64_t last;

	memcpy(&last, text + PERFMAP_ENDING_BYTES - PERFMAP_ENDING_KEY_BYTES, sizeof(last));
	return perfmap_endings_of_key[le64toh(last) * 0xf9270f4eb8b333a9 >>
				      (64 - PERFMAP_ENDING_KEY_BITS)];
}

#endif
