/* SPDX-License-Identifier: MIT */
/*
 * The methods that a runtime reports over EventPipe: an initial rundown, then load and unload
 * events.
 *
 * It decides which report supersedes which. Events arrive out of order, because each thread sends
 * its own:
 *
 *	time        1         2           3
 *	thread A    load M    unload M
 *	thread B                          load N at the same address
 *	arrival     load N, load M, unload M
 *
 * A change is applied only where nothing newer was reported for the same addresses.
 * An unload ends every method that shares bytes with its range; of two loads that share bytes the
 * newer one wins.
 * The transport is in rundown_follow.h.
 */
#ifndef LIBSYM_CLR_REPORTED_METHODS_H
#define LIBSYM_CLR_REPORTED_METHODS_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/base/address_ranges.h"
#include "libsym/base/buf.h"
#include "libsym/base/hash.h"
#include "libsym/clr/diagnostics/rundown.h"
#include "libsym/clr/write_barrier.h"
#include "libsym/error.h"
#include "libsym/format/dotnet/metadata.h"

/*
 * Finds the metadata of an assembly by the path that the runtime reports; NULL when it is not
 * available. The result must stay valid during the call that asked for it.
 */
struct runtime_assemblies {
	void *context;
	const struct metadata *(*find)(void *context, const char *path);
};

struct reported_method {
	uint64_t start_address;
	uint32_t size_bytes;
	uint32_t name_bytes;
	size_t name_offset; /* in `names` */
	uint64_t time;      /* of the report, by the runtime's clock */
	const char *tier;   /* static or NULL */
};

/* Code that was unloaded. */
struct unload_event {
	uint64_t start_address, end_address, time;
};

struct reported_module {
	uint64_t id;
	uint64_t time;
	char *path;
	UT_hash_handle hh;
};

struct reported_methods {
	struct reported_method *items; /* of two that share bytes the later one wins */
	size_t count, capacity;
	struct reported_module *modules; /* the loaded ones, by id */
	struct buf names;
	size_t unnamed_count;
	uint64_t newest_time;      /* of all reports */
	struct unload_event *ends; /* the last reported ones */
	size_t end_count;
	/* Not reported by the runtime. */
	struct write_barrier barrier;
	struct address_ranges stubs;
};

void reported_methods_init(struct reported_methods *reported);
void reported_methods_deinit(struct reported_methods *reported);

/* Adds jitted and dynamic methods of a whole rundown. Errors: NO_MEMORY, LIMIT. */
struct sym_error *reported_methods_begin(struct reported_methods *reported,
					 const struct rundown *rundown,
					 const struct runtime_assemblies *assemblies)
	__attribute__((warn_unused_result));

/*
 * Adds the methods of `before` where no method is reported now.
 * A rundown lacks the former bodies of edited methods (hot reload), in which a thread may still
 * run.
 * Unloads since then must have been applied to `before`, or be applied to `reported` later.
 * Errors: NO_MEMORY, LIMIT.
 */
struct sym_error *reported_methods_keep(struct reported_methods *reported,
					const struct reported_methods *before)
	__attribute__((warn_unused_result));

/*
 * Applies loads and unloads in the order of their times.
 * A change older than another report of the same address is skipped.
 * *changed_ret: something has changed.
 */
struct sym_error *reported_methods_apply(struct reported_methods *reported,
					 const struct rundown *changes,
					 const struct runtime_assemblies *assemblies,
					 bool *changed_ret) __attribute__((warn_unused_result));

#endif
