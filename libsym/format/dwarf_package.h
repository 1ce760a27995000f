/* SPDX-License-Identifier: MIT */
/*
 * The index of a DWARF package (.dwp): which bytes of each of its sections are of one unit. DWARF 5
 * section 7.3.5.3; version 2 is GNU's, which came before it and counts sections otherwise.
 *
 *   version  4 bytes, in DWARF 5 the upper two are padding
 *   columns, units, slots  4 bytes each
 *   ids      8 bytes a slot: a hash table, its number of slots is a power of two
 *   rows     4 bytes a slot: from 1 on; 0: the slot is empty
 *   kinds    4 bytes a column
 *   offsets  4 bytes a column, row by row
 *   sizes    the same
 */
#ifndef LIBSYM_FORMAT_DWARF_PACKAGE_H
#define LIBSYM_FORMAT_DWARF_PACKAGE_H

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

/* Of the section that holds this part of all units. */
struct dwarf_package_extent {
	uint32_t offset;
	uint32_t size_bytes; /* 0: the unit has none */
};

/* Where the parts of the unit with this id are; false when the index does not know it, or is cut.
 */
bool dwarf_package_find(const void *index, size_t size_bytes, uint64_t unit_id,
			struct dwarf_package_extent ret[DWARF_PACKAGE_PARTS]);

#endif
