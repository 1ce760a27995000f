/* SPDX-License-Identifier: MIT */
/*
 * DWARF of one ELF file through libdw: functions, what was inlined into them, and
 * lines. Each compilation unit is read when the first vaddr asks for it. The
 * unit of a vaddr comes from the units' own ranges, not from .debug_aranges, which
 * clang leaves out. May be used by several threads: libdw may not, so there is
 * a lock. Strings live as long as the object.
 */
#ifndef LIBSYM_DWARF_INFO_H
#define LIBSYM_DWARF_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/dwarf_files.h"
#include "libsym/error.h"
#include "libsym/image.h"

struct dwarf_info;

struct dwarf_line {
	const char *file;
	uint32_t line, column; /* 0: unknown */
};

/* What one vaddr is in. */
struct dwarf_place {
	struct dwarf_line line; /* file NULL: unknown */
	/* The function that the code is of; name NULL: unknown. */
	uint64_t start;
	uint64_t size_bytes;
	const char *name;
	const char *linkage_name; /* NULL: the same */
};

/*
 * *ret is NULL where the file has no DWARF that can be read. `image` is borrowed, `fetch` used
 * during the call only.
 * Errors: STALE, NO_MEMORY.
 */
struct sym_error *dwarf_info_open(const struct image *image, const struct dwarf_fetch *fetch,
				  struct dwarf_info **ret) __attribute__((warn_unused_result));
void dwarf_info_close(struct dwarf_info *info);

/*
 * Fills `ret`, and `inlined` (innermost first, at most `inlined_max`) with its number
 * in *inlined_count_ret. False when there is nothing to say.
 */
bool dwarf_info_find(struct dwarf_info *info, uint64_t vaddr, struct dwarf_place *ret,
		     struct sym_inlined *inlined, size_t inlined_max, size_t *inlined_count_ret);

DEFINE_GUARD(dwarf_info, struct dwarf_info *, dwarf_info_close)
#define AUTO_DWARF_INFO GUARDED(dwarf_info)

#endif
