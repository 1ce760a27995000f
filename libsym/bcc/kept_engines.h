/* SPDX-License-Identifier: MIT */
/*
 * Live engines whose cache was freed, for the next cache of the same process. bpftrace 0.17 makes
 * and frees a cache for every single address (its BPFTRACE_CACHE_USER_SYMBOLS is off where
 * addresses are randomised), of one process after the other; an engine that is thrown away between
 * two of them means that the process is looked at, and its runtime asked, once more. Knows which
 * one to throw away for want of room: the one that is made again most cheaply.
 */
#ifndef LIBSYM_BCC_KEPT_ENGINES_H
#define LIBSYM_BCC_KEPT_ENGINES_H

#include "libsym/bcc/symcache.h"

/* One of this process that still holds, the caller's from now on; or NULL. */
void *kept_engines_take(int pid, const struct bcc_symbol_option *option,
			const struct bcc_settings *settings);
/* Takes `engine` over. */
void kept_engines_put(void *engine, int pid, const struct bcc_symbol_option *option);
void kept_engines_drop(void);

#endif
