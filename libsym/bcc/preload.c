/* SPDX-License-Identifier: MIT */
/*
 * libsym-bcc-preload.so, for LD_PRELOAD: makes a program use libsym without rebuilding it
 * (`dotnet-mapgen bcc`).
 *
 * A program linked to libbcc finds our functions of the same names first.
 * BCC's Python tools open libbcc.so.0 and use dlsym() on its handle, which no order of libraries
 * changes. So this file defines dlsym().
 *
 * Only look-ups of libbcc's own cache functions are changed; all others go to the C library.
 * For RTLD_NEXT and RTLD_DEFAULT dlsym() finds its caller by the return address. So the real
 * function is jumped to, not called.
 *
 * Programs that the tool starts may need another C library. So this file is removed from the
 * environment as soon as libbcc is loaded.
 * Not before: a shell script or env may start the tool.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/bcc/libsym-bcc.h"

typedef void *find_function(void *handle, const char *name);

struct replacement {
	const char *name;
	void *function;
};

#define REPLACE(name)                                                                              \
	{                                                                                          \
#name, (void *)name                                                                \
	}

static const struct replacement replacements[] = {
	REPLACE(bcc_symcache_new),
	REPLACE(bcc_free_symcache),
	REPLACE(bcc_symbol_free_demangle_name),
	REPLACE(bcc_symcache_resolve),
	REPLACE(bcc_symcache_resolve_no_demangle),
	REPLACE(bcc_symcache_resolve_name),
	REPLACE(bcc_symcache_refresh),
	REPLACE(bcc_buildsymcache_new),
	REPLACE(bcc_free_buildsymcache),
	REPLACE(bcc_buildsymcache_add_module),
	REPLACE(bcc_buildsymcache_resolve),
};

static _Atomic(find_function *) next_dlsym;

SYM_BCC_API void *dlsym(void *handle, const char *name);

/* dlsym moved from libdl to libc in glibc 2.34. Each processor's first version has the old one. */
static find_function *find_dlsym(void)
{
	static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17",
						"GLIBC_2.27", "GLIBC_2.2",   "GLIBC_2.0" };
	find_function *found = atomic_load_explicit(&next_dlsym, memory_order_relaxed);

	for (size_t i = 0; !found && i < sizeof(versions) / sizeof(versions[0]); i++)
		found = (find_function *)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	atomic_store_explicit(&next_dlsym, found, memory_order_relaxed);
	return found;
}

/* Removes `entry` from a list of LD_PRELOAD, in place. */
static void take_out(char *list, const char *entry)
{
	static const char between[] = ": ";
	size_t entry_bytes = strlen(entry);
	char *at = list;

	while (*at) {
		size_t bytes = strcspn(at, between);
		char *next = at + bytes + strspn(at + bytes, between);

		if (bytes == entry_bytes && !memcmp(at, entry, bytes))
			memmove(at, next, strlen(next) + 1);
		else
			at = next;
	}
}

/* The environment is changed in place, because other threads may be reading it. */
static void leave_environment(void)
{
	static atomic_bool was_left;
	char *list = getenv("LD_PRELOAD");
	Dl_info own;

	if (!atomic_exchange(&was_left, true) && list &&
	    dladdr((void *)(uintptr_t)leave_environment, &own) && own.dli_fname)
		take_out(list, own.dli_fname);
}

/* Checks whether the program is linked to libbcc, or to libbcc_bpf, which has the caches too. */
__attribute__((constructor)) static void begin(void)
{
	find_function *next = find_dlsym();

	if (next && next(RTLD_NEXT, "bcc_symcache_new"))
		leave_environment();
}

static void *replacement_of(const char *name)
{
	for (size_t i = 0; i < sizeof(replacements) / sizeof(replacements[0]); i++)
		if (!strcmp(replacements[i].name, name))
			return replacements[i].function;
	return NULL;
}

/* libbcc must have the function too: a program that tests for it gets the right result. */
static void *preload_replace_function(void *handle, const char *name)
{
	find_function *next = find_dlsym();
	void *replacement;

	if (!name || strncmp(name, "bcc_", 4) != 0 || handle == RTLD_NEXT)
		return NULL;
	replacement = replacement_of(name);
	if (!replacement || !next || !next(handle, name))
		return NULL;
	leave_environment();
	return replacement;
}

/* A counter of coverage behind the last call would make it a call, not a jump. */
__attribute__((no_profile_instrument_function, optimize("O2", "optimize-sibling-calls"))) void *
dlsym(void *handle, const char *name)
{
	void *replaced = preload_replace_function(handle, name);
	find_function *next;

	if (replaced)
		return replaced;
	next = find_dlsym();
	if (!next)
		return NULL;
	return next(handle, name); /* a jump */
}
