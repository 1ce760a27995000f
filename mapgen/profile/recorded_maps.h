/* SPDX-License-Identifier: MIT */
/*
 * The mappings of user processes that a perf.data tells of, those that are executable and those of
 * files with room for a build-id, and how such a record is changed in place so that perf looks
 * elsewhere for names. Knows MMAP and MMAP2 records; not what is mapped, nor where names come from.
 *
 *   MMAP (1)   0 header, 8 u32 pid, 12 tid, 16 u64 start, 24 length, 32 offset in the file, 40 name
 *   MMAP2 (10) as above to 40, then u32 major, minor, u64 inode, generation, or, if bit 14 of misc
 *              is set, u8 size of the build-id, 3 zeroes, 20 bytes of it; 64 u32 protection,
 *              68 u32 flags, 72 name
 * The name is padded with zeroes to a multiple of 8; what follows it is left alone.
 * (include/uapi/linux/perf_event.h)
 */
#ifndef MAPGEN_PROFILE_RECORDED_MAPS_H
#define MAPGEN_PROFILE_RECORDED_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/address_ranges.h"
#include "mapgen/profile/perf_data.h"

enum {
	BUILD_ID_BYTES = 20
};

/* What becomes of a record. */
enum recorded_fix {
	RECORDED_AS_IT_IS = 0,
	RECORDED_BUILD_ID,  /* gets a build-id */
	RECORDED_ADDRESSES, /* the same, and its offsets become addresses of the process */
	RECORDED_ANONYMOUS, /* becomes anonymous memory: perf asks the perf map of the process */
};

struct recorded_mapping {
	uint64_t record_offset; /* in the output of its part */
	uint32_t part;          /* index of the file in a directory; 0 for one file */
	uint16_t record_bytes;
	/* Of what was mapped when perf began: written by perf, not the kernel, and without a time,
	 * so it counts from before all that has one. The kernel's have a thread behind the name. */
	bool is_first_sight;
	bool is_data;  /* not executable; recorded for call chains by DWARF, or when asked for */
	bool has_room; /* for a build-id: MMAP2 */
	bool has_build_id; /* device and inode are unknown then */
	uint8_t build_id_start[4];
	int32_t pid;
	uint32_t device_major, device_minor;
	uint64_t inode;
	uint64_t start_address;
	uint64_t end_address;
	uint64_t shown_start_address, shown_end_address; /* what a record that is changed gets */
	uint64_t offset;                                 /* into the mapped file */
	const char *name;                                /* lives as long as the table */
	enum recorded_fix fix;
	uint32_t standin; /* of the fixes with a build-id; as the caller counts */
};

struct recorded_name;

struct recorded_maps {
	struct recorded_mapping *items; /* in the order of the file; by process after _sort() */
	size_t count;
	size_t capacity;
	struct recorded_name *names;
	uint32_t part; /* of what is read next */
};

void recorded_maps_deinit(struct recorded_maps *maps);

/* Types to ask perf_data_copy() for, and what to hand it as `take`; context: struct recorded_maps.
 */
#define RECORDED_MAPS_TYPES (1ull << PERF_RECORD_MMAP | 1ull << PERF_RECORD_MMAP2)
char *recorded_maps_take(void *context, const struct perf_record *record);

/* By process, within it code before data and both in the order of the file. */
void recorded_maps_sort(struct recorded_maps *maps);

/*
 * Shows a mapping of a process with as much of `ranges` as it reaches, without those that are
 * marked in `reached`, and marks these there. What lies between goes to the record: each takes its
 * place from those before it, so it may be nothing that `items`, the mappings of that process in
 * the order of the file, have before it, and nothing of `others`. A record that is not of first
 * sight reaches what begins at its end.
 */
void recorded_mapping_reach(const struct recorded_mapping *items, struct recorded_mapping *record,
			    const struct address_ranges *others,
			    const struct address_ranges *ranges, bool *reached);

/*
 * Changes the record at `bytes` (as long as mapping->record_bytes) as mapping->fix says. False
 * when it is not the record that was read.
 */
bool recorded_mapping_change(const struct recorded_mapping *mapping,
			     const uint8_t build_id[BUILD_ID_BYTES], uint8_t *bytes);

#endif
