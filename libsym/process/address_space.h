/* SPDX-License-Identifier: MIT */
/*
 * The mappings of a process at one moment: the lines of maps in ascending order, and the mapped
 * files with their lines.
 * It knows no file format. One file can be several images (a PE file can be mapped twice), so the
 * code that reads the file sets image_index.
 * Costs O(n log n) for n lines: a runtime with W^X has thousands of lines of /memfd:doublemapper.
 */
#ifndef LIBSYM_PROCESS_ADDRESS_SPACE_H
#define LIBSYM_PROCESS_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/error.h"
#include "libsym/format/linux/maps.h"
#include "libsym/process/process.h"

/* All lines of one (device, inode, path), deleted or not. */
struct address_space_file {
	const char *path; /* as sym_mapping.path; belongs to the address space */
	uint64_t inode;
	uint32_t device_major;
	uint32_t device_minor;
	bool deleted;
	bool executable; /* an executable line exists */
	/*
	 * The kernel's own memory under the name of a file (/memfd:, /SYSV, /dev/zero, //anon,
	 * /anon_hugepage, /dev/...). It is never opened.
	 * False for a memfd that was loaded as a program or library.
	 */
	bool memory;
	const uint32_t *mapping_indexes; /* ascending, so also by address */
	size_t mapping_count;
	/*
	 * Anonymous lines between the lines of the file that may contain its code
	 * (hugepage_text.h).
	 * 0 until hugepage_text.c sets it.
	 */
	size_t hugepage_run_count;
};

struct address_space {
	struct sym_mapping *mappings; /* ascending, disjoint; image_index is UINT32_MAX until the
					 images are known */
	size_t mapping_count;
	struct address_space_file *files; /* files whose path begins with '/', by first mapping */
	size_t file_count;
	uint64_t bad_lines; /* malformed, or not above the line before */
	int64_t read_ns; /* time of reading, in ns since 1970; INT64_MAX for a recorded process */
	/* private */
	uint32_t *mapping_indexes;
	char *text;
};

/*
 * Reads the maps of a process.
 * A kernel thread has no mappings, which is not an error.
 * Errors: PERMISSION; STALE when the process ended or called exec() during the call.
 */
struct sym_error *address_space_read(const struct process *process, struct address_space **ret)
	__attribute__((warn_unused_result));

/*
 * Reads the maps again. *ret is NULL when their text equals `before`.
 * `text` receives the new text. It is the caller's, and empty at first.
 * Pass it as `before` next time, after using *ret.
 */
struct sym_error *address_space_read_changed(const struct process *process,
					     const struct buf *before, struct buf *text,
					     struct address_space **ret)
	__attribute__((warn_unused_result));

/* Parses the text of a maps file. */
struct sym_error *address_space_parse(const char *text, size_t size_bytes,
				      struct address_space **ret)
	__attribute__((warn_unused_result));

void address_space_destroy(struct address_space *space);

#define ADDRESS_SPACE_NONE SIZE_MAX

/* Index of the mapping that covers `address`, or ADDRESS_SPACE_NONE. */
size_t address_space_find(const struct address_space *space, uint64_t address);

/* True when the same addresses are executable in both. */
bool address_space_has_same_code(const struct address_space *a, const struct address_space *b);

DEFINE_GUARD(address_space, struct address_space *, address_space_destroy)
#define AUTO_ADDRESS_SPACE GUARDED(address_space)

#endif
