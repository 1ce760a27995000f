/* SPDX-License-Identifier: MIT */
/*
 * DWARF of one ELF file through libdw: functions, inlined functions, and lines. A compilation unit
 * is read when its first vaddr is looked up. The unit of a vaddr is found by the units' own ranges,
 * because clang omits .debug_aranges. Thread safe: libdw is not, so there is a lock. Strings are
 * valid as long as the object.
 */
#ifndef LIBSYM_DWARF_DWARF_INFO_H
#define LIBSYM_DWARF_DWARF_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/dwarf/dwarf_files.h"
#include "libsym/error.h"
#include "libsym/file/object_file.h"

struct dwarf_info;

/* The longest chain of inlined functions that is returned; compilers stop earlier. */
enum {
	DWARF_INFO_INLINED = 64
};

struct dwarf_line {
	const char *file;
	uint32_t line, column; /* 0: unknown */
};

/* The source position of one vaddr. */
struct dwarf_place {
	struct dwarf_line line; /* file NULL: unknown */
	/* The function, or the part of it; name NULL: unknown. */
	uint64_t start;
	uint64_t size_bytes;
	const char *name;
	const char *linkage_name; /* NULL: equal to name */
	/* Incomplete: memory ran out, or reading it ended the child process. */
	bool is_short;
};

/*
 * *ret is NULL if the file has no DWARF that can be read. `object` is borrowed; `fetch` is used
 * only during the call. `forks`: libdw runs in a child process (dwarf_worker.h). Errors: STALE,
 * NO_MEMORY.
 */
struct sym_error *dwarf_info_open(const struct object_file *object, const struct dwarf_fetch *fetch,
				  bool forks, struct dwarf_info **ret)
	__attribute__((warn_unused_result));
void dwarf_info_close(struct dwarf_info *info);

/* Fills `ret`, and `inlined` (innermost first, at most `inlined_max`) with its number in
 * *inlined_count_ret. Returns false if nothing is known; ret->is_short is valid then, too. */
bool dwarf_info_find(struct dwarf_info *info, uint64_t vaddr, struct dwarf_place *ret,
		     struct sym_inlined *inlined, size_t inlined_max, size_t *inlined_count_ret);

DEFINE_GUARD(dwarf_info, struct dwarf_info *, dwarf_info_close)
#define AUTO_DWARF_INFO GUARDED(dwarf_info)

#endif
