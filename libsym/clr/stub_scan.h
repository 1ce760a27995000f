/* SPDX-License-Identifier: MIT */
/*
 * Stubs of the runtime between methods, found in the memory of the process, for a runtime that does
 * not report them.
 * It knows where stubs can be; runtime_stub.h recognises them.
 */
#ifndef LIBSYM_CLR_STUB_SCAN_H
#define LIBSYM_CLR_STUB_SCAN_H

#include "libsym/base/address_ranges.h"
#include "libsym/clr/write_barrier.h"
#include "libsym/error.h"
#include "libsym/process/address_space.h"
#include "libsym/process/process.h"

/*
 * With W^X (the default from .NET 7 on) all code of the runtime is in a memory file that only the
 * runtime maps. Without it, it is in anonymous memory, whose owner is unknown.
 */
bool stub_scan_is_of_runtime(const struct sym_mapping *mapping);

/*
 * True when a code heap starts there.
 * For unwinders each heap has a jump at its start, to a function of the runtime at the path
 * `runtime`.
 * A heap whose methods were all unloaded stays mapped; what is left in it is not a stub.
 */
bool stub_scan_is_code_heap(const struct process *process, const struct address_space *space,
			    const struct sym_mapping *mapping, const char *runtime);

/* Adds nothing when the barrier is not found. The barrier never moves. */
void stub_scan_find_barrier(const struct process *process, const struct address_space *space,
			    struct write_barrier *ret);

/* `ret` is zero at first. Unreadable memory has no stubs. Errors: NO_MEMORY. */
struct sym_error *stub_scan_find(const struct process *process, const struct address_space *space,
				 struct address_ranges *ret) __attribute__((warn_unused_result));

#endif
