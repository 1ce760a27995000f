/* SPDX-License-Identifier: MIT */
/*
 * Keeps live engines whose cache was freed, for the next cache of the same process.
 * bpftrace 0.17 makes and frees a cache for every single address, of one process after another
 * (BPFTRACE_CACHE_USER_SYMBOLS is off with address randomisation).
 * Without the pool each of them would read the process and ask its runtime again.
 * When it is full, the engine that is cheapest to make again goes.
 */
#ifndef LIBSYM_BCC_ENGINE_POOL_H
#define LIBSYM_BCC_ENGINE_POOL_H

#include "libsym/bcc/symcache.h"

/* A usable engine of this process, owned by the caller from now on; NULL: none. */
void *engine_pool_take(int pid, const struct bcc_symbol_option *option,
		       const struct bcc_settings *settings);
/* Takes ownership of `engine`. */
void engine_pool_put(void *engine, int pid, const struct bcc_symbol_option *option);
void engine_pool_drop(void);

#endif
