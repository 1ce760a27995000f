/* SPDX-License-Identifier: MIT */
/*
 * The mappings of user processes in a perf.data: executable ones, and those of files whose record
 * has room for a build-id. Such a record can be changed in place, so that perf looks elsewhere for
 * names. Handles MMAP and MMAP2 records, but not the mapped files or the names.
 *
 *   MMAP (1)   0 header, 8 u32 pid, 12 tid, 16 u64 start, 24 length, 32 offset in the file, 40 name
 *   MMAP2 (10) as above to 40, then u32 major, minor, u64 inode, generation, or, if bit 14 of misc
 *              is set, u8 size of the build-id, 3 zeroes, 20 bytes of it; 64 u32 protection,
 *              68 u32 flags, 72 name
 * The name is padded with zeroes to a multiple of 8; what follows it is left alone.
 * (include/uapi/linux/perf_event.h)
 */
#ifndef MAPGEN_PERFDATA_RECORDED_MAPS_H
#define MAPGEN_PERFDATA_RECORDED_MAPS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/address_ranges.h"
#include "libsym/base/text_set.h"
#include "mapgen/perfdata/perf_data.h"

enum {
	BUILD_ID_BYTES = 20
};

/* The fix of a record. */
enum recorded_fix {
	RECORDED_AS_IT_IS = 0,
	RECORDED_BUILD_ID,  /* gets a build-id */
	RECORDED_ADDRESSES, /* gets a build-id, and its offsets become addresses of the process */
	RECORDED_ANONYMOUS, /* becomes anonymous memory, so that perf reads the perf map */
};

struct recorded_mapping {
	uint64_t record_offset; /* place in the output of its part */
	uint64_t time_ns;       /* when it was mapped, if the reader sets it; 0: at the beginning */
	uint32_t part;          /* number of the file in a directory; 0 for one file */
	uint16_t record_bytes;
	/* A mapping that existed when perf began: perf wrote it, not the kernel, without a time, so
	 * it counts from the beginning. Records of the kernel have a thread behind the name. */
	bool is_first_sight;
	bool is_added;     /* in no record: recorded_mapping_write() makes one */
	bool is_data;      /* not executable; recorded for call chains by DWARF, or on request */
	bool has_room;     /* for a build-id: MMAP2 */
	bool has_build_id; /* device and inode are then unknown */
	uint8_t build_id_start[4];
	int32_t pid;
	uint32_t device_major, device_minor;
	uint64_t inode;
	uint64_t start_address;
	uint64_t end_address;
	uint64_t shown_start_address, shown_end_address; /* what the changed record gets */
	uint64_t offset;                                 /* offset in the mapped file */
	const char *name;                                /* lives as long as the table */
	enum recorded_fix fix;
	uint32_t standin; /* of fixes with a build-id; as the caller counts */
};

struct recorded_maps {
	struct recorded_mapping *items; /* in file order; by process after recorded_maps_sort() */
	size_t count;
	size_t capacity;
	struct text_set names;
	uint32_t part; /* of what is read next */
};

void recorded_maps_deinit(struct recorded_maps *maps);

/* Record types for perf_data_copy(), and its callback; context: struct recorded_maps. */
#define RECORDED_MAPS_TYPES (1ull << PERF_RECORD_MMAP | 1ull << PERF_RECORD_MMAP2)
struct sym_error *recorded_maps_take(void *context, const struct perf_record *record);

/* Sorts by process; code before data, both in file order. */
void recorded_maps_sort(struct recorded_maps *maps);

/*
 * Extends a mapping of a process over as much of `ranges` as it can reach, except those marked in
 * `reached`, and marks them there. The memory between is covered too. perf cuts each record out of
 * the records before it, so this memory may be in no earlier one of `items` (the mappings of that
 * process in file order) and in none of `others`. A record that was written later reaches only what
 * begins at its end.
 */
void recorded_mapping_reach(const struct recorded_mapping *items, struct recorded_mapping *record,
			    const struct address_ranges *others,
			    const struct address_ranges *ranges, bool *reached);

/*
 * Adds a mapping that is in no record, as perf would have recorded it at the beginning. Name and
 * addresses are the caller's; call recorded_maps_sort() afterwards. False when out of memory.
 */
bool recorded_maps_add(struct recorded_maps *maps, const struct recorded_mapping *mapping);

enum {
	RECORDED_MAPPING_BYTES = 72 + PATH_MAX + 64
};

/* Writes the MMAP2 record of an added mapping, with its fix, to `bytes` of RECORDED_MAPPING_BYTES.
 * Returns its length, 0 for a name that is too long. */
size_t recorded_mapping_write(const struct recorded_mapping *mapping,
			      const uint8_t build_id[BUILD_ID_BYTES], uint8_t *bytes);

/*
 * Changes the record at `bytes` (mapping->record_bytes long) as mapping->fix says. False when it is
 * not the record that was read.
 */
bool recorded_mapping_change(const struct recorded_mapping *mapping,
			     const uint8_t build_id[BUILD_ID_BYTES], uint8_t *bytes);

#endif
