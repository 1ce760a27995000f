/* SPDX-License-Identifier: MIT */
/*
 * The index of a DWARF package (.dwp): which bytes of each section belong to one unit. DWARF 5,
 * section 7.3.5.3. Version 2 is GNU's earlier format, which numbers sections differently.
 *
 *   version  4 bytes, in DWARF 5 the upper two are padding
 *   columns, units, slots  4 bytes each
 *   ids      8 bytes a slot: a hash table, its number of slots is a power of two
 *   rows     4 bytes a slot: from 1 on; 0: the slot is empty
 *   kinds    4 bytes a column
 *   offsets  4 bytes a column, row by row
 *   sizes    4 bytes a column, row by row
 */
#ifndef LIBSYM_FORMAT_ELF_DWARF_PACKAGE_H
#define LIBSYM_FORMAT_ELF_DWARF_PACKAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dwarf_package_part {
	DWARF_PACKAGE_INFO,
	DWARF_PACKAGE_ABBREV,
	DWARF_PACKAGE_STR_OFFSETS,
	DWARF_PACKAGE_RNGLISTS,
	DWARF_PACKAGE_PARTS
};

/* A unit's part of a section of the package. */
struct dwarf_package_extent {
	uint32_t offset;
	uint32_t size_bytes; /* 0: the unit has no such part */
};

/* Finds the parts of the unit with this id. Returns false if the index does not contain it or is
 * truncated. */
bool dwarf_package_find(const void *index, size_t size_bytes, uint64_t unit_id,
			struct dwarf_package_extent ret[DWARF_PACKAGE_PARTS]);

#endif
