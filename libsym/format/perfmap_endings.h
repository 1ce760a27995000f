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
	_Alignas(64) char text[PERFMAP_ENDING_BYTES];
	const struct perfmap_ending *other; /* that may have the key too; at last that of none */
	uint64_t tier_bytes;
	uint32_t tier_mask; /* a bit for each byte of the text that belongs to the tier */
	uint32_t number;    /* of the tier; 0: none, which any text ends with */
};

/* By key. */
extern const struct perfmap_ending perfmap_endings[1 << PERFMAP_ENDING_KEY_BITS];

/* The likeliest for the last bytes of a name. The factor was found by trying; test_perfmap_tier.c
 * has every word. */
static inline const struct perfmap_ending *perfmap_ending_to_try(const char *end)
{
	uint64_t last;

	memcpy(&last, end - PERFMAP_ENDING_KEY_BYTES, sizeof(last));
	return &perfmap_endings[le64toh(last) * 0xf9270f4eb8b333a9 >>
				(64 - PERFMAP_ENDING_KEY_BITS)];
}

#endif
