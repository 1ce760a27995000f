/* SPDX-License-Identifier: MIT */
/*
 * Telling the processor what will be read soon. The address may be any: nothing
 * is read from it. A function that does nothing else has no effect in the eyes
 * of GCC, which drops the calls of it and with them the prefetch: hence the empty
 * instruction.
 */
#ifndef LIBSYM_BASE_PREFETCH_H
#define LIBSYM_BASE_PREFETCH_H

static inline __attribute__((always_inline)) void prefetch(const void *address)
{
	__builtin_prefetch(address);
	__asm__ volatile("" : : "r"(address));
}

#endif
