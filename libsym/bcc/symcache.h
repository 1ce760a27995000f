/* SPDX-License-Identifier: MIT */
/*
 * An engine behind a cache of BCC. There are two: the live one uses libsym, and one is for the
 * kernel.
 * symcache.c calls an engine from one thread at a time, and demangles names.
 * Engines know BCC's structs, not its handles.
 */
#ifndef LIBSYM_BCC_SYMCACHE_H
#define LIBSYM_BCC_SYMCACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/bcc/libsym-bcc.h"

struct bcc_settings;

struct engine_ops {
	/*
	 * Returns 0 or -1; `sym` is zero before.
	 * demangle_name may be set to a readable form that lives as long as `name`. The caller gets
	 * a copy.
	 */
	int (*resolve)(void *engine, uint64_t address, struct bcc_symbol *sym);
	int (*resolve_name)(void *engine, const char *module, const char *name, uint64_t *ret);
	void (*refresh)(void *engine); /* NULL: it is always up to date */
	/*
	 * Returns whether another symcache of the same process, with `settings`, may use the
	 * engine. NULL: never.
	 */
	bool (*still_good)(void *engine, const struct bcc_settings *settings);
	/*
	 * The cost of making it again, above 1; 0 when it is too old to be used again. Only with
	 * still_good.
	 */
	uint64_t (*worth_ms)(const void *engine);
	/* Adds its counts to the report, at exit. NULL: nothing. */
	void (*report)(void *engine);
	void (*destroy)(void *engine);
};

extern const struct engine_ops live_engine_ops, kernel_engine_ops;

/* Each returns NULL when out of memory. `option` is not NULL. */
void *live_engine_create(int pid, const struct bcc_symbol_option *option,
			 const struct bcc_settings *settings);
void *kernel_engine_create(void);

#endif
