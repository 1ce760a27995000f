/* SPDX-License-Identifier: MIT */
/*
 * Checks that an opened file still has the content that the process has mapped.
 *
 * The device and inode were checked when it was opened.
 * A file that was last changed before the process began is unchanged.
 * For another PE file the relocated pointers must equal those in memory (relocation_check.h); for
 * another ELF file the beginning must.
 * When memory cannot be read, a changed PE file is rejected.
 */
#ifndef LIBSYM_IMAGE_MAPPED_FILE_CHECK_H
#define LIBSYM_IMAGE_MAPPED_FILE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/file/object_file.h"
#include "libsym/image/mapped_file.h"
#include "libsym/process/process.h"

/*
 * True when the file may have been written to since the process began. False for a recorded
 * process: its files are copies.
 */
bool mapped_file_check_may_have_changed(const struct process *process,
					const struct object_file *object);

/*
 * NULL: nothing contradicts the file.
 * STALE: the content differs, or the process has ended and the file cannot be checked.
 * Other errors: the file could not be read.
 *
 * `load_base`: UINT64_MAX for an image that is mapped only as it is in its file.
 * `group`: the mappings of the file, and when they were read.
 */
struct sym_error *mapped_file_check(const struct process *process, const struct object_file *object,
				    uint64_t load_base, const struct mapped_file *group)
	__attribute__((warn_unused_result));

#endif
