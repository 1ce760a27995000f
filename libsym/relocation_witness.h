/* SPDX-License-Identifier: MIT */
/*
 * Is a PE file that was written to since the process began still the one that
 * is mapped? Pages of a mapped file that nobody wrote to in memory are those of
 * the file, so after a change in place they always agree with it: headers and
 * code bear no witness. The pages with pointers do: the loader relocated them, so
 * the process has copies of its own. Each pointer of an unchanged file is
 * there with the difference of the bases added, unless the runtime has bound it.
 * Truncating the file throws the copies away, and pointers appear as the new
 * file has them, not relocated. Knows nothing of what the pointers are for.
 */
#ifndef LIBSYM_RELOCATION_WITNESS_H
#define LIBSYM_RELOCATION_WITNESS_H

#include <stdint.h>

#include "libsym/error.h"
#include "libsym/image.h"
#include "libsym/process.h"

/*
 * NULL: the pointers agree, or there are none to compare. STALE: they do not.
 * PERMISSION: the memory may not be read. NO_MEMORY.
 */
struct sym_error *relocation_witness_ask(const struct process *process, const struct image *image,
					 uint64_t load_base) __attribute__((warn_unused_result));

#endif
