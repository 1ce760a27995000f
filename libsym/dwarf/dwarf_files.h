/* SPDX-License-Identifier: MIT */
/*
 * Prepares files with DWARF for libdw. Sections that declare more than is possible or affordable
 * are hidden from it. Files that the DWARF refers to by path are opened only if they are regular:
 * libdw (0.188) would wait for a FIFO forever, and opening a device has side effects.
 */
#ifndef LIBSYM_DWARF_DWARF_FILES_H
#define LIBSYM_DWARF_DWARF_FILES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "libsym/base/budget.h"
#include "libsym/base/buf.h"
#include "libsym/libsym.h"

/*
 * The section bytes that libdw will have, of an object and of all files that its DWARF refers to.
 */
struct dwarf_charge {
	uint64_t bytes;
	struct budget_account *account; /* that of the object; NULL: none */
	const char *path;               /* of the object */
};

/*
 * Charges `bytes`. Returns false and charges nothing above LIMIT_DEBUG_FILES_BYTES or the budget.
 */
bool dwarf_files_charge(struct dwarf_charge *charge, uint64_t bytes)
	__attribute__((warn_unused_result));
void dwarf_files_release(struct dwarf_charge *charge, uint64_t bytes);

/*
 * Hides compressed sections with impossible sizes, and sections that would exceed
 * LIMIT_DEBUG_FILES_BYTES or the budget. `charge` continues from file to file. Returns false if a
 * section cannot be hidden.
 */
bool dwarf_files_guard(Elf *elf, struct dwarf_charge *charge, bool *has_debug_info_ret);

/*
 * Overwrites unterminated strings with NULs: libdw (0.188) returns and reads strings without
 * checking that they end inside their section. libelf reads files that we opened into its own
 * memory, so the file is not changed. Returns false if there are no sections.
 */
bool dwarf_files_end_texts(Elf *elf);

/* Does the same for one section; accepts NULL. */
void dwarf_files_end_text(Elf_Data *data);

/* The bytes of .debug_NAME or .zdebug_NAME, decompressed; owned by libelf, valid as long as `elf`.
 * NULL if there is none or it cannot be decompressed. Call after dwarf_files_guard(). */
Elf_Data *dwarf_files_section(Elf *elf, const char *name);

/* A part of a section. If the file had compressed sections (`has_packed`), the whole section is
 * read, else only the part. Also NULL if the section has no such part. */
void *dwarf_files_extent(Elf *elf, const char *name, uint64_t offset, uint64_t size_bytes,
			 bool has_packed);

/* The path of an open file, and the path of a file that it refers to; a relative one is beside it.
 * `ret` is empty at first and owns the path. NULL if there is none. */
const char *dwarf_files_own_path(int fd, struct buf *ret);
const char *dwarf_files_path_beside(int fd, const char *name, struct buf *ret);

/* The file with strings and entries that several files share (made by dwz; .gnu_debugaltlink). */
struct dwarf_alternate {
	int fd;
	Elf *elf;     /* NULL: there is none */
	Dwarf *dwarf; /* for dwarf_setalt() */
};

/* Opens files that the DWARF names, and fetches files that are not on this machine. */
struct dwarf_fetch {
	/* The rights of the process that has the file mapped; NULL: the caller's own. They
	 * outlive what was opened. */
	const struct rights *rights;
	sym_fetch_fn *fetch; /* NULL: nothing is fetched */
	void *context;
	const char *image_path;
};

/*
 * Opens the file with the build-id that `elf` refers to. If there is none, the section is hidden,
 * so that libdw does not search for it; names are then missing. `fd` is that of the file, beside
 * which it may lie. Returns false if the section cannot be hidden.
 */
bool dwarf_alternate_open(Elf *elf, int fd, const struct dwarf_fetch *fetch,
			  struct dwarf_charge *charge, struct dwarf_alternate *ret);

/* Call after dwarf_end() of its user. Accepts a zeroed struct. */
void dwarf_alternate_close(struct dwarf_alternate *alternate);

#endif
