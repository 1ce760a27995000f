/* SPDX-License-Identifier: MIT */
/*
 * The write barrier.
 * The runtime copies it to a page of its own and changes it whenever the heap changes.
 * No symbol table has the copy, and only the contract of .NET 11 has its address.
 * It is recognised by its neighbours in the page, which are copied with it and never changed: as
 * found in .NET 8.0 to 11.0 on x86-64, and in 9.0 and 10.0 on ARM64.
 */
#ifndef LIBSYM_CLR_WRITE_BARRIER_H
#define LIBSYM_CLR_WRITE_BARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WRITE_BARRIER_PAGE_BYTES = 4096, /* compared, however large pages are */
	WRITE_BARRIER_FUNCTIONS = 3
};

/* The functions in the page that jitted code calls: on ARM64 the neighbours too. */
struct write_barrier {
	struct write_barrier_function {
		const char *name; /* static */
		uint64_t start_address;
		uint32_t size_bytes;
	} functions[WRITE_BARRIER_FUNCTIONS];
	size_t count; /* 0: not found */
};

/* False when it is another page. */
bool write_barrier_recognise(const uint8_t page[WRITE_BARRIER_PAGE_BYTES], uint64_t address,
			     struct write_barrier *ret);

#endif
