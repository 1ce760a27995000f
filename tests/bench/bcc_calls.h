/* SPDX-License-Identifier: MIT */
/* The functions of libbcc, or of a library with the same functions, as the benchmarks call them. */
#ifndef TESTS_BENCH_BCC_CALLS_H
#define TESTS_BENCH_BCC_CALLS_H

#include <dlfcn.h>
#include <stdbool.h>

#include "libsym/bcc/libsym-bcc.h"

struct bcc_calls {
	void *(*cache_new)(int pid, struct bcc_symbol_option *options);
	int (*resolve)(void *cache, uint64_t address, struct bcc_symbol *ret);
	void (*cache_free)(void *cache, int pid);
	int (*each)(const char *path, int (*call)(const char *, uint64_t, uint64_t, void *),
		    void *context);
};

static const char bcc_library[] = "libbcc.so.0";

/* Returns false if there is no such library or it lacks a function. The library stays loaded. */
static inline bool bcc_calls_open(struct bcc_calls *calls, const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	*calls = (struct bcc_calls){ 0 };
	if (!handle)
		return false;
	*(void **)&calls->cache_new = dlsym(handle, "bcc_symcache_new");
	*(void **)&calls->resolve = dlsym(handle, "bcc_symcache_resolve_no_demangle");
	*(void **)&calls->cache_free = dlsym(handle, "bcc_free_symcache");
	*(void **)&calls->each = dlsym(handle, "bcc_perf_map_foreach_sym");
	return calls->cache_new && calls->resolve && calls->cache_free && calls->each;
}

#endif
