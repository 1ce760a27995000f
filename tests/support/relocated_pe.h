/* SPDX-License-Identifier: MIT */
/* A PE file with the same layout in memory and in the file: headers, a page of pointers, a page
 * with the table of their positions. */
#ifndef TESTS_SUPPORT_RELOCATED_PE_H
#define TESTS_SUPPORT_RELOCATED_PE_H

#include <stddef.h>
#include <stdint.h>

enum {
	RELOCATED_PE_PAGE = 4096,
	RELOCATED_PE_BYTES = 3 * RELOCATED_PE_PAGE,
	RELOCATED_PE_POINTERS = 8,
	RELOCATED_PE_FIRST = 16, /* offset into the page of the first pointer */
	RELOCATED_PE_DIRECTORY =
		0x80 + 24 + 112 + 5 * 8, /* offset of the data directory of the table */
};

extern const uint64_t relocated_pe_base; /* the preferred one */

/* `first` is the value of the first pointer, relative to the base; the others follow. */
void relocated_pe_build(uint8_t file[RELOCATED_PE_BYTES], uint64_t first);

/* Writes the low `size_bytes` of a value. */
void relocated_pe_put(uint8_t *file, size_t offset, uint64_t value, size_t size_bytes);

#endif
