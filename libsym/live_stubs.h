/* SPDX-License-Identifier: MIT */
/*
 * Code of the runtime between methods, found in the memory of a process whose runtime does not tell
 * of it. Knows where such code can be; what it looks like is in clr/.
 */
#ifndef LIBSYM_LIVE_STUBS_H
#define LIBSYM_LIVE_STUBS_H

#include "libsym/address_space.h"
#include "libsym/base/address_ranges.h"
#include "libsym/clr/write_barrier.h"
#include "libsym/error.h"
#include "libsym/process.h"

/* With W^X (the default from .NET 7 on) all code of the runtime lies in a memory file, whose views
 * are its and nobody else's; without it is anonymous memory, which may be anybody's. */
bool live_is_of_runtime(const struct sym_mapping *mapping);

/*
 * Does a code heap begin there? Each has a jump to a function of the runtime in front, of the path
 * `runtime`, for whoever unwinds. One that the runtime tells of no more (its methods were unloaded)
 * stays mapped, and what is left in it is no stub.
 */
bool live_is_code_heap(const struct process *process, const struct address_space *space,
		       const struct sym_mapping *mapping, const char *runtime);

/* Adds nothing where it is not found. It never moves. */
void live_stubs_find_barrier(const struct process *process, const struct address_space *space,
			     struct write_barrier *ret);

/* `ret` is zeroed at first. What cannot be read has none. Errors: NO_MEMORY. */
struct sym_error *live_stubs_find(const struct process *process, const struct address_space *space,
				  struct address_ranges *ret) __attribute__((warn_unused_result));

#endif
