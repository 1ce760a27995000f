/* SPDX-License-Identifier: MIT */
#include "mapgen/perfdata/recorded_maps.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libsym/base/grow.h"
#include "libsym/base/reader.h"
#include "mapgen/cli/message.h"

enum {
	MISC_MODE = 7,
	MISC_MODE_USER = 2,
	MISC_DATA = 1 << 13, /* MMAP: not executable */
	MISC_BUILD_ID = 1 << 14,
	MISC_AT = 4,
	START_AT = 16,
	LENGTH_AT = 24,
	FILE_OFFSET_AT = 32,
	BUILD_ID_AT = 40,
	MMAP_NAME_AT = 40,
	MMAP2_NAME_AT = 72,
	MOST_MAPPINGS = 1 << 24
};

/* Names that perf takes for memory of no file; and a name of the same length that it does not. */
static const char anonymous_name[] = "//anon";
static const char jitted_name[] = "/[jit]";

void recorded_maps_deinit(struct recorded_maps *maps)
{
	text_set_deinit(&maps->names);
	free(maps->items);
	*maps = (struct recorded_maps){ 0 };
}

static struct recorded_mapping *recorded_maps_append(struct recorded_maps *maps)
{
	if (maps->count == MOST_MAPPINGS ||
	    !grow_items((void **)&maps->items, &maps->capacity, maps->count, sizeof(*maps->items)))
		return NULL;
	return &maps->items[maps->count++];
}

/* Room for the name in the record: padded to 8 with its terminator. */
static size_t name_room(size_t length)
{
	return (length + 8) & ~(size_t)7;
}

/* Fills in everything but the name; false for a mapping of no user process. */
static bool recorded_maps_decode(const struct perf_record *record, struct reader *reader,
				 struct recorded_mapping *ret)
{
	uint64_t size_bytes;

	if ((record->misc & MISC_MODE) != MISC_MODE_USER)
		return false;
	reader_skip(reader, 8);
	ret->pid = (int32_t)reader_u32(reader);
	reader_skip(reader, 4);
	ret->start_address = reader_u64(reader);
	size_bytes = reader_u64(reader);
	ret->end_address = ret->start_address + size_bytes;
	ret->shown_start_address = ret->start_address;
	ret->shown_end_address = ret->end_address;
	ret->offset = reader_u64(reader);
	if (ret->end_address <= ret->start_address || ret->pid <= 0)
		return false;
	if (record->type == PERF_RECORD_MMAP)
		return reader_ok(reader) && !(record->misc & MISC_DATA);
	ret->has_room = true;
	ret->has_build_id = record->misc & MISC_BUILD_ID;
	if (ret->has_build_id && reader->size_bytes >= BUILD_ID_AT + 8)
		memcpy(ret->build_id_start, reader->data + BUILD_ID_AT + 4,
		       sizeof(ret->build_id_start));
	ret->device_major = reader_u32(reader);
	ret->device_minor = reader_u32(reader);
	ret->inode = reader_u64(reader);
	reader_seek(reader, MMAP2_NAME_AT - 8);
	ret->is_data = !(reader_u32(reader) & PROT_EXEC);
	return reader_ok(reader);
}

/* Whether there are bytes from `at` on, all of them zero. */
static bool is_zeros(const struct perf_record *record, size_t at)
{
	size_t i = at;

	while (i < record->size_bytes && !record->bytes[i])
		i++;
	return at < record->size_bytes && i == record->size_bytes;
}

struct sym_error *recorded_maps_take(void *context, const struct perf_record *record)
{
	struct recorded_maps *maps = context;
	struct reader reader = reader_over(record->bytes, record->size_bytes);
	struct recorded_mapping mapping = {
		.record_offset = record->offset,
		.record_bytes = record->size_bytes,
		.part = maps->part,
	};
	struct recorded_mapping *kept;
	size_t name_at, length;
	const char *name;

	if (!recorded_maps_decode(record, &reader, &mapping))
		return NULL;
	name_at = mapping.has_room ? MMAP2_NAME_AT : MMAP_NAME_AT;
	reader_seek(&reader, name_at);
	name = reader_string(&reader);
	if (!name)
		return NULL; /* the record contradicts itself; perf decides what it means */
	if (mapping.is_data && *name != '/')
		return NULL;
	length = strlen(name);
	if (name_room(length) > record->size_bytes - name_at)
		return NULL;
	mapping.is_first_sight = is_zeros(record, name_at + name_room(length));
	mapping.name = text_set_add(&maps->names, name, length);
	kept = mapping.name ? recorded_maps_append(maps) : NULL;
	if (!kept)
		return &sym_error_no_memory;
	*kept = mapping;
	return NULL;
}

static int by_process(const void *left, const void *right)
{
	const struct recorded_mapping *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->is_data != b->is_data)
		return a->is_data - b->is_data;
	if (a->part != b->part)
		return a->part < b->part ? -1 : 1;
	return a->record_offset < b->record_offset ? -1 : a->record_offset > b->record_offset;
}

void recorded_maps_sort(struct recorded_maps *maps)
{
	if (maps->count)
		qsort(maps->items, maps->count, sizeof(*maps->items), by_process);
}

static void keep_away(const struct recorded_mapping *record, uint64_t start, uint64_t end,
		      struct address_range *room)
{
	if (start < record->start_address && end > room->start)
		room->start = end;
	if (end > record->end_address && start < room->end)
		room->end = start;
}

static struct address_range room_about(const struct recorded_mapping *items,
				       const struct recorded_mapping *record,
				       const struct address_ranges *others)
{
	struct address_range room = { 0, UINT64_MAX };

	for (const struct recorded_mapping *before = items; before < record; before++)
		if (before->is_first_sight)
			keep_away(record, before->start_address, before->end_address, &room);
	for (size_t i = 0; i < others->count; i++)
		keep_away(record, others->items[i].start, others->items[i].end, &room);
	return room;
}

void recorded_mapping_reach(const struct recorded_mapping *items, struct recorded_mapping *record,
			    const struct address_ranges *others,
			    const struct address_ranges *ranges, bool *reached)
{
	struct address_range room = { 0 };

	if (record->is_first_sight)
		room = room_about(items, record, others);
	for (size_t i = 0; i < ranges->count; i++) {
		const struct address_range *range = &ranges->items[i];

		if (reached[i] || (range->start != record->end_address &&
				   (range->start < room.start || range->end > room.end)))
			continue;
		if (range->start < record->shown_start_address)
			record->shown_start_address = range->start;
		if (range->end > record->shown_end_address)
			record->shown_end_address = range->end;
		reached[i] = true;
	}
}

/* The longest name fits, because there is room for at least 8 bytes. */
static void put_name(uint8_t *room, size_t old_length, const char *name)
{
	memset(room, 0, name_room(old_length));
	memcpy(room, name, strlen(name));
}

static bool is_anonymous_to_perf(const char *name)
{
	return !strcmp(name, anonymous_name) || !strncmp(name, "/dev/zero", 9) ||
	       !strncmp(name, "/anon_hugepage", 14) || !strncmp(name, "[stack", 6) ||
	       !strncmp(name, "/SYSV", 5) || !strcmp(name, "[heap]");
}

bool recorded_mapping_change(const struct recorded_mapping *mapping,
			     const uint8_t build_id[BUILD_ID_BYTES], uint8_t *bytes)
{
	size_t name_at = mapping->has_room ? MMAP2_NAME_AT : MMAP_NAME_AT;
	size_t length = strlen(mapping->name);
	struct reader reader = reader_over(bytes, mapping->record_bytes);

	reader_skip(&reader, START_AT);
	if (reader_u64(&reader) != mapping->start_address ||
	    mapping->record_bytes < name_at + length + 1 ||
	    memcmp(bytes + name_at, mapping->name, length + 1))
		return false;
	perf_data_put_u64(bytes + START_AT, mapping->shown_start_address);
	perf_data_put_u64(bytes + LENGTH_AT,
			  mapping->shown_end_address - mapping->shown_start_address);
	if (mapping->fix == RECORDED_ANONYMOUS) {
		put_name(bytes + name_at, length, anonymous_name);
		return true;
	}
	if (!mapping->has_room)
		return false;
	bytes[MISC_AT + 1] |= MISC_BUILD_ID >> 8;
	memset(bytes + BUILD_ID_AT, 0, 4);
	bytes[BUILD_ID_AT] = BUILD_ID_BYTES;
	memcpy(bytes + BUILD_ID_AT + 4, build_id, BUILD_ID_BYTES);
	if (mapping->fix == RECORDED_ADDRESSES) {
		perf_data_put_u64(bytes + FILE_OFFSET_AT, mapping->shown_start_address);
		/* For memory without a file perf would read the perf map. */
		if (is_anonymous_to_perf(mapping->name))
			put_name(bytes + name_at, length, jitted_name);
	}
	return true;
}

/* ---- records that are missing ----------------------------------------------------------- */

enum {
	/* perf reads thread, time, event and processor from the end of a record, as far as the
	 * recording has them (at most 6 words); zeroes are what perf writes for its own records. */
	TRAILER_BYTES = 48,
	PID_AT = 8,
	TID_AT = 12,
	MAJOR_AT = 40,
	MINOR_AT = 44,
	INODE_AT = 48,
	PROTECTION_AT = 64,
	FLAGS_AT = 68
};

bool recorded_maps_add(struct recorded_maps *maps, const struct recorded_mapping *mapping)
{
	const char *name = text_set_add(&maps->names, mapping->name, strlen(mapping->name));
	struct recorded_mapping *kept = name ? recorded_maps_append(maps) : NULL;

	if (!kept)
		return false;
	*kept = *mapping;
	kept->name = name;
	kept->is_added = kept->is_first_sight = kept->has_room = true;
	kept->shown_start_address = kept->start_address;
	kept->shown_end_address = kept->end_address;
	return true;
}

static void put_u32(uint8_t *room, uint32_t value)
{
	for (unsigned int i = 0; i < 4; i++)
		room[i] = (uint8_t)(value >> 8 * i);
}

size_t recorded_mapping_write(const struct recorded_mapping *mapping,
			      const uint8_t build_id[BUILD_ID_BYTES], uint8_t *bytes)
{
	size_t length = strlen(mapping->name);
	size_t count = MMAP2_NAME_AT + name_room(length) + TRAILER_BYTES;
	struct recorded_mapping written = *mapping;

	if (length >= PATH_MAX)
		return 0;
	memset(bytes, 0, count);
	put_u32(bytes, PERF_RECORD_MMAP2);
	put_u32(bytes + MISC_AT, MISC_MODE_USER | (uint32_t)count << 16);
	put_u32(bytes + PID_AT, (uint32_t)mapping->pid);
	put_u32(bytes + TID_AT, (uint32_t)mapping->pid);
	perf_data_put_u64(bytes + START_AT, mapping->start_address);
	perf_data_put_u64(bytes + LENGTH_AT, mapping->end_address - mapping->start_address);
	perf_data_put_u64(bytes + FILE_OFFSET_AT, mapping->offset);
	put_u32(bytes + MAJOR_AT, mapping->device_major);
	put_u32(bytes + MINOR_AT, mapping->device_minor);
	perf_data_put_u64(bytes + INODE_AT, mapping->inode);
	put_u32(bytes + PROTECTION_AT, PROT_READ | PROT_EXEC);
	put_u32(bytes + FLAGS_AT, MAP_PRIVATE);
	memcpy(bytes + MMAP2_NAME_AT, mapping->name, length);
	written.record_bytes = (uint16_t)count;
	if (mapping->fix != RECORDED_AS_IT_IS &&
	    !recorded_mapping_change(&written, build_id, bytes))
		return 0;
	return count;
}
