/* SPDX-License-Identifier: MIT */
/*
 * What a process goes on with that it did not begin: a jit that compiles into
 * shared memory opens its perf map or jitdump, and forks (php-fpm). All of its
 * children write to the one file, which has the number of the first. Their
 * addresses mean the same in all of them only where it is the same memory: that
 * which the process shares with the first of its ancestors that has the file. Nothing
 * else in the file is believed.
 *
 * Of live processes only.
 */
#ifndef LIBSYM_FORKED_H
#define LIBSYM_FORKED_H

#include "libsym/address_space.h"
#include "libsym/base/address_ranges.h"
#include "libsym/error.h"
#include "libsym/perf_map_place.h"
#include "libsym/process.h"

/*
 * The memory of the process that is the same at the same addresses in the first of those ancestors
 * that have, by `has`, what it goes on with. NOT_FOUND: none has it, or there is no such memory.
 * Other errors: as of address_space_read() and `has`.
 */
typedef struct sym_error *forked_has(const struct process *ancestor, const void *context,
				     bool *ret);
struct sym_error *forked_find_shared(const struct process *process,
				     const struct address_space *space, forked_has *has,
				     const void *context, struct address_ranges *ret)
	__attribute__((warn_unused_result));

/* A perf map that was begun by another, and what of it holds. */
struct forked_map {
	struct perf_map_file file; /* fd is -1 when there is none */
	struct address_ranges shared;
};

/* `place`: of the process. Finding none is no error; `why` says then what is wrong with one that is
 * there. */
struct sym_error *forked_find_map(const struct process *process, const struct address_space *space,
				  const struct perf_map_place *place, struct buf *why,
				  struct forked_map *ret) __attribute__((warn_unused_result));
void forked_map_deinit(struct forked_map *map);

#endif
