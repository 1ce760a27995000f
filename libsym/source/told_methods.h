/* SPDX-License-Identifier: MIT */
/*
 * Methods that a runtime tells of itself, by rundown first and then one by one: what has code now,
 * with names that were made once. Knows what takes the place of what; not how the runtime was
 * asked.
 */
#ifndef LIBSYM_SOURCE_TOLD_METHODS_H
#define LIBSYM_SOURCE_TOLD_METHODS_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/base/address_ranges.h"
#include "libsym/base/buf.h"
#include "libsym/base/hash.h"
#include "libsym/clr/rundown.h"
#include "libsym/clr/write_barrier.h"
#include "libsym/error.h"
#include "libsym/format/metadata.h"

/* How a rundown reaches the metadata of an assembly, by its path as the runtime tells it; NULL when
 * it is not to be had. What is returned must stay valid during the call it was asked for in. */
struct runtime_assemblies {
	void *context;
	const struct metadata *(*find)(void *context, const char *path);
};

struct told_method {
	uint64_t start_address;
	uint32_t size_bytes;
	uint32_t name_bytes;
	size_t name_offset; /* into `names` */
	uint64_t time;      /* when it was told of, by the runtime's clock */
	const char *tier;   /* static or NULL */
};

/* Code that was unloaded. */
struct told_end {
	uint64_t start_address, end_address, time;
};

struct told_module {
	uint64_t id;
	uint64_t time;
	char *path;
	UT_hash_handle hh;
};

struct told_methods {
	struct told_method *items; /* of two that share bytes the later one holds */
	size_t count, capacity;
	struct told_module *modules; /* that are loaded, by id */
	struct buf names;
	size_t unnamed_count;
	uint64_t newest_time;  /* of all that was told */
	struct told_end *ends; /* that were told of at last */
	size_t end_count;
	/* Of these the runtime does not tell. */
	struct write_barrier barrier;
	struct address_ranges stubs;
};

void told_methods_init(struct told_methods *told);
void told_methods_deinit(struct told_methods *told);

/* Jitted and dynamic methods of a whole rundown. Errors: NO_MEMORY, LIMIT. */
struct sym_error *told_methods_begin(struct told_methods *told, const struct rundown *rundown,
				     const struct runtime_assemblies *assemblies)
	__attribute__((warn_unused_result));

/* What was told before, where nothing is told by now: a list has no former bodies of methods that
 * hot reload has edited, in which a thread may still be. What was unloaded since must have been
 * applied to `before`, or be applied to `told` later. Errors: NO_MEMORY, LIMIT. */
struct sym_error *told_methods_keep(struct told_methods *told, const struct told_methods *before)
	__attribute__((warn_unused_result));

/* What was loaded and unloaded since, in the order of its times. What comes later than something
 * newer of the same place is passed over. *changed_ret: that made a difference. */
struct sym_error *told_methods_apply(struct told_methods *told, const struct rundown *changes,
				     const struct runtime_assemblies *assemblies, bool *changed_ret)
	__attribute__((warn_unused_result));

#endif
