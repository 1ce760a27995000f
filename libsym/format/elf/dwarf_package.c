/* SPDX-License-Identifier: MIT */
#include "libsym/format/elf/dwarf_package.h"

#include <string.h>

#include "libsym/base/reader.h"

enum {
	HEADER_BYTES = 16,
	MOST_COLUMNS = 16 /* 8 kinds exist */
};

struct index {
	struct reader reader;
	uint32_t version;
	uint32_t column_count, unit_count, slot_count;
};

static bool read_header(struct index *index)
{
	/* The upper two bytes are padding. */
	index->version = reader_u32(&index->reader) & UINT16_MAX;
	index->column_count = reader_u32(&index->reader);
	index->unit_count = reader_u32(&index->reader);
	index->slot_count = reader_u32(&index->reader);
	return reader_ok(&index->reader) && (index->version == 2 || index->version == 5) &&
	       index->column_count <= MOST_COLUMNS && index->slot_count &&
	       !(index->slot_count & (index->slot_count - 1));
}

/* Row number of the unit, from 1; 0 if there is none. */
static uint32_t find_row(struct index *index, uint64_t unit_id)
{
	uint32_t mask = index->slot_count - 1;
	uint32_t slot = (uint32_t)unit_id & mask, step = ((uint32_t)(unit_id >> 32) & mask) | 1;
	size_t rows = HEADER_BYTES + (size_t)index->slot_count * 8;

	for (uint32_t i = 0; i < index->slot_count; i++) {
		uint64_t id;
		uint32_t row;

		reader_seek(&index->reader, HEADER_BYTES + (size_t)slot * 8);
		id = reader_u64(&index->reader);
		reader_seek(&index->reader, rows + (size_t)slot * 4);
		row = reader_u32(&index->reader);
		if (!row || id == unit_id)
			return row <= index->unit_count ? row : 0;
		slot = (slot + step) & mask;
	}
	return 0;
}

static enum dwarf_package_part part_of(uint32_t version, uint32_t kind)
{
	switch (kind) {
	case 1:
		return DWARF_PACKAGE_INFO;
	case 3:
		return DWARF_PACKAGE_ABBREV;
	case 6:
		return DWARF_PACKAGE_STR_OFFSETS;
	case 8:
		return version == 5 ? DWARF_PACKAGE_RNGLISTS : DWARF_PACKAGE_PARTS;
	default:
		return DWARF_PACKAGE_PARTS;
	}
}

static uint32_t number_at(struct index *index, size_t position)
{
	reader_seek(&index->reader, position);
	return reader_u32(&index->reader);
}

bool dwarf_package_find(const void *data, size_t size_bytes, uint64_t unit_id,
			struct dwarf_package_extent ret[DWARF_PACKAGE_PARTS])
{
	struct index index = { .reader = reader_over(data, size_bytes) };
	size_t kinds, line_bytes, offsets, sizes;
	uint32_t row;

	memset(ret, 0, DWARF_PACKAGE_PARTS * sizeof(*ret));
	if (!read_header(&index))
		return false;
	row = find_row(&index, unit_id);
	if (!row)
		return false;
	kinds = HEADER_BYTES + (size_t)index.slot_count * 12;
	line_bytes = (size_t)index.column_count * 4;
	offsets = kinds + row * line_bytes;
	sizes = offsets + index.unit_count * line_bytes;
	for (uint32_t i = 0; i < index.column_count; i++) {
		enum dwarf_package_part part =
			part_of(index.version, number_at(&index, kinds + i * 4));

		if (part == DWARF_PACKAGE_PARTS)
			continue;
		ret[part].offset = number_at(&index, offsets + i * 4);
		ret[part].size_bytes = number_at(&index, sizes + i * 4);
	}
	return reader_ok(&index.reader) && ret[DWARF_PACKAGE_INFO].size_bytes;
}
