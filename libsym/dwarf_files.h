/* SPDX-License-Identifier: MIT */
/*
 * Files that hold DWARF, before libdw sees them. What promises more than it can have, or more
 * than is bearable, is hidden from it; other files that one refers to by a path of its own choice
 * are opened only where they are regular files: libdw (0.188) would wait for a FIFO for ever, and
 * to open a device has consequences.
 */
#ifndef LIBSYM_DWARF_FILES_H
#define LIBSYM_DWARF_FILES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/libsym.h"

/*
 * Hides packed sections that lie, and those that bring what all promise above
 * LIMIT_DEBUG_FILES_BYTES; `promised_bytes` counts on from file to file. False when something
 * cannot be hidden.
 */
bool dwarf_files_guard(Elf *elf, uint64_t *promised_bytes, bool *has_debug_info_ret);

/*
 * libdw hands out what begins in a section of text, and reads it itself, without looking whether
 * it ends there (0.188). What has no end becomes empty, and so no name: libelf reads files that we
 * opened to memory of its own. False where there are no sections.
 */
bool dwarf_files_end_texts(Elf *elf);

/* The same of one section; NULL is accepted. */
void dwarf_files_end_text(Elf_Data *data);

/*
 * The bytes of .debug_NAME or .zdebug_NAME, unpacked; libelf's, as long as `elf` lives. NULL
 * where there is none, or it cannot be unpacked. To be called after dwarf_files_guard().
 */
Elf_Data *dwarf_files_section(Elf *elf, const char *name);

/* A part of the same. `has_packed`: the file had sections that are packed, so that all of this one
 * is read; else no more than the part. NULL also where it has no such part. */
void *dwarf_files_extent(Elf *elf, const char *name, uint64_t offset, uint64_t size_bytes,
			 bool has_packed);

/* The path of an open file, and of one that it names, which is beside it where it is relative; in
 * `ret`, which is empty. NULL where it has none. */
const char *dwarf_files_own_path(int fd, struct buf *ret);
const char *dwarf_files_path_beside(int fd, const char *name, struct buf *ret);

/* The file with strings and entries that several files share (dwz's, .gnu_debugaltlink). */
struct dwarf_alternate {
	int fd;
	Elf *elf;     /* NULL: there is none */
	Dwarf *dwarf; /* for dwarf_setalt() */
};

/* Who is asked for files that are not here. */
struct dwarf_fetch {
	sym_fetch_fn *fetch; /* NULL: nobody */
	void *context;
	const char *image_path;
};

/*
 * The one with the build-id that `elf` asks for. Where there is none the section is hidden, so that
 * libdw does not look for it: names are missing then. `fd` is that of the file, beside
 * which it may be. False when the section cannot be hidden.
 */
bool dwarf_alternate_open(Elf *elf, int fd, const struct dwarf_fetch *fetch,
			  uint64_t *promised_bytes, struct dwarf_alternate *ret);

/* After dwarf_end() of what uses it; accepts zero. */
void dwarf_alternate_close(struct dwarf_alternate *alternate);

#endif
