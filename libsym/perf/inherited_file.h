/* SPDX-License-Identifier: MIT */
/*
 * Perf maps and jitdumps inherited across fork(), of live processes.
 *
 * A JIT with shared code memory opens its file, then forks (php-fpm).
 * All children write to the one file, whose name has the number of the first process.
 * An address in it means the same in all of them only in memory that they share.
 * So the file is used only for memory that the process shares with the first of its ancestors that
 * has the file.
 */
#ifndef LIBSYM_PERF_INHERITED_FILE_H
#define LIBSYM_PERF_INHERITED_FILE_H

#include "libsym/base/address_ranges.h"
#include "libsym/error.h"
#include "libsym/perf/perfmap_location.h"
#include "libsym/process/address_space.h"
#include "libsym/process/process.h"

/*
 * Finds memory that is the same, at the same addresses, in the process and in the first ancestor
 * for which `has` is true.
 * Errors: NOT_FOUND when there is no such ancestor or no such memory; those of address_space_read()
 * and of `has`.
 */
typedef struct sym_error *inherited_file_has(const struct process *ancestor, const void *context,
					     bool *ret);
struct sym_error *
inherited_file_find_shared(const struct process *process, const struct address_space *space,
			   inherited_file_has *has, const void *context, struct address_ranges *ret)
	__attribute__((warn_unused_result));

/* An inherited perf map, and the memory for which it is used. */
struct inherited_file_map {
	struct perfmap_file file; /* fd is -1 when there is none */
	struct address_ranges shared;
};

/*
 * `place`: of the process.
 * Finding none is not an error. `why` then explains why an existing one is not used.
 */
struct sym_error *inherited_file_find_map(const struct process *process,
					  const struct address_space *space,
					  const struct perfmap_location *place, struct buf *why,
					  struct inherited_file_map *ret)
	__attribute__((warn_unused_result));
void inherited_file_map_deinit(struct inherited_file_map *map);

#endif
