/* SPDX-License-Identifier: MIT */
/*
 * What is inside a cache of BCC's: an engine that answers. There are three: the
 * live one over libsym, the strict one that answers as libbcc does, and the
 * kernel's. An engine is called by one thread at a time; symcache.c sees to that,
 * and to demangling. It knows BCC's structs, not its handles.
 */
#ifndef LIBSYM_BCC_SYMCACHE_H
#define LIBSYM_BCC_SYMCACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/bcc/libsym-bcc.h"

struct bcc_settings;

struct engine_ops {
	/* 0, or -1; `sym` comes zeroed. demangle_name may be set to the readable form of a name,
	 * which lives as long as `name`; it is not what the caller gets. */
	int (*resolve)(void *engine, uint64_t address, struct bcc_symbol *sym);
	int (*resolve_name)(void *engine, const char *module, const char *name, uint64_t *ret);
	void (*refresh)(void *engine);
	/* May another symcache of the same process take the engine over, which would be made with
	 * `settings`? NULL: never. */
	bool (*still_good)(void *engine, const struct bcc_settings *settings);
	/* More than 1, and the more the dearer it is to make anew; 0 for one that is too old to be
	 * used again. With still_good. */
	uint64_t (*worth_ms)(const void *engine);
	/* At the end of the program: what it has counted. NULL: nothing. */
	void (*report)(void *engine);
	void (*destroy)(void *engine);
};

extern const struct engine_ops live_engine_ops, strict_engine_ops, kernel_engine_ops;

/* Each NULL without memory. `option` is not NULL. */
void *live_engine_create(int pid, const struct bcc_symbol_option *option,
			 const struct bcc_settings *settings);
void *strict_engine_create(int pid, const struct bcc_symbol_option *option);
void *kernel_engine_create(bool strict);

#endif
