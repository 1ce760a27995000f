/* SPDX-License-Identifier: MIT */
/*
 * What is mapped into one process, as of one moment: the lines of its maps in
 * ascending order, and the mapped files with their lines. Knows no file format:
 * which lines of a file make one image (a PE file can be mapped twice) is for
 * those to say who can read it, and they write image_index.
 *
 * Costs O(n log n) for n lines: a runtime with W^X has thousands of lines of
 * /memfd:doublemapper.
 */
#ifndef LIBSYM_ADDRESS_SPACE_H
#define LIBSYM_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/error.h"
#include "libsym/format/maps.h"
#include "libsym/process.h"

/* All lines of one (device, inode, path), deleted or not. */
struct mapped_file {
	const char *path; /* as sym_mapping.path; belongs to the address space */
	uint64_t inode;
	uint32_t device_major;
	uint32_t device_minor;
	bool deleted;
	bool executable; /* a line of it may be executed */
	/*
	 * The kernel's own memory under the name of a file (/memfd:, /SYSV, /dev/zero,
	 * //anon, /anon_hugepage, /dev/...): never to be opened. A memfd that was loaded as
	 * a program or library is not meant.
	 */
	bool memory;
	const uint32_t *mapping_indexes; /* ascending, so also by address */
	size_t mapping_count;
	/* Lines of memory in the middle of them that may show the file (remapped_code.h); 0 until
	 * somebody sets it. */
	size_t remapped_count;
};

struct address_space {
	struct sym_mapping *mappings; /* ascending, disjoint; image_index is UINT32_MAX until
					 somebody sets it */
	size_t mapping_count;
	struct mapped_file *files; /* whatever has a path that begins with '/', by first mapping */
	size_t file_count;
	uint64_t bad_lines; /* malformed, or not behind the line before */
	int64_t read_ns; /* when they were read, in ns since 1970; INT64_MAX for a recorded one */
	/* private */
	uint64_t *starts; /* of mappings, side by side for those who look them up */
	uint32_t *mapping_indexes;
	char *text;
};

/*
 * Reads maps of the process. PERMISSION when it may not be looked at; STALE
 * when it ended or called exec() in the middle. A kernel thread has no mappings;
 * that is no error.
 */
struct sym_error *address_space_read(const struct process *process, struct address_space **ret)
	__attribute__((warn_unused_result));

/*
 * The same for who looks again: *ret is NULL when the text of maps is still that of
 * `before`. `text`, empty at first and the caller's, gets the text: the `before` of the next
 * time, once the caller has taken up what *ret says.
 */
struct sym_error *address_space_read_changed(const struct process *process,
					     const struct buf *before, struct buf *text,
					     struct address_space **ret)
	__attribute__((warn_unused_result));

/* The same from the text of a maps file. */
struct sym_error *address_space_parse(const char *text, size_t size_bytes,
				      struct address_space **ret)
	__attribute__((warn_unused_result));

/* The same of lines that somebody else has found; they are copied. */
struct sym_error *address_space_of_lines(const struct maps_line *lines, size_t count,
					 struct address_space **ret)
	__attribute__((warn_unused_result));

/*
 * Of a live process only what is mapped around some addresses, as maps_near.h says. *ret is
 * NULL when that cannot be had, and for whatever reason: address_space_read() tells.
 */
struct sym_error *address_space_read_near(const struct process *process, const uint64_t *addresses,
					  size_t count, struct address_space **ret)
	__attribute__((warn_unused_result));

void address_space_destroy(struct address_space *space);

#define ADDRESS_SPACE_NONE SIZE_MAX

/* Index of the mapping that covers `address`, or ADDRESS_SPACE_NONE. */
size_t address_space_find(const struct address_space *space, uint64_t address);

/* Are the same addresses executable? */
bool address_space_has_same_code(const struct address_space *a, const struct address_space *b);

DEFINE_GUARD(address_space, struct address_space *, address_space_destroy)
#define AUTO_ADDRESS_SPACE GUARDED(address_space)

#endif
