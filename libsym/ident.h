/* SPDX-License-Identifier: MIT */
/*
 * Is an opened file still what the process has mapped? That it is the same file
 * (device, inode) was made sure when it was opened. It may have been written to
 * since: a file that was last changed before the process began cannot have
 * been. Of any other PE file the relocated pointers must be those that the
 * process has in memory (relocation_witness.h), of an ELF file the beginning;
 * where memory may not be read, a PE file that was written to is not believed.
 */
#ifndef LIBSYM_IDENT_H
#define LIBSYM_IDENT_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/image.h"
#include "libsym/image_group.h"
#include "libsym/process.h"

/* True when the file may have been written to since the process began. False for a recorded
 * process: its files are copies. */
bool ident_may_have_changed(const struct process *process, const struct image *image);

/*
 * NULL: nothing speaks against it. STALE: another content, or a process that has ended and cannot
 * bear witness any more. Other errors: the file could not be read.
 *
 * `load_base`: UINT64_MAX for an image that is only shown as it lies in its file.
 * `group`: the mappings of the file, and when they were.
 */
struct sym_error *ident_check(const struct process *process, const struct image *image,
			      uint64_t load_base, const struct image_group *group)
	__attribute__((warn_unused_result));

#endif
