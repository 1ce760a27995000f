/* SPDX-License-Identifier: MIT */
/*
 * perf.data, read once from front to back and written again on the way: a file,
 * what perf writes into a pipe, or one part of a directory. Everything is
 * copied as it is, records of unknown types too; only compressed records are
 * replaced by what is in them, and the header and the feature sections are put
 * right then. Needs the same memory for a file of any size.
 *
 * Knows the frame of records and what lies between them; not what a record
 * means. The caller sees the records that it asks for, with their place in the
 * output, and may change them there afterwards as long as no size changes.
 *
 * Layout: tools/perf/Documentation/perf.data-file-format.txt; all fields are
 * little-endian here.
 *
 *   file    104 header: 0 "PERFILE2", 8 u64 size, 16 u64 size of an attribute, then
 *           {u64 offset, u64 size} of attributes (24), data (40), event types (56), 72 u64
 * features[4]; records lie in `data`; behind it one {offset, size} for each feature bit pipe    16
 * header: 0 "PERFILE2", 8 u64 size = 16; records follow to the end part    no header; records to
 * the end record  0 u32 type, 4 u16 misc, 6 u16 size with these 8 bytes
 */
#ifndef MAPGEN_PROFILE_PERF_DATA_H
#define MAPGEN_PROFILE_PERF_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum perf_record_type {
	PERF_RECORD_MMAP = 1,
	PERF_RECORD_COMM = 3,
	PERF_RECORD_EXIT = 4,
	PERF_RECORD_FORK = 7,
	PERF_RECORD_SAMPLE = 9,
	PERF_RECORD_MMAP2 = 10,
	PERF_RECORD_HEADER_TRACING_DATA = 66, /* in a pipe bytes follow that are no records */
	PERF_RECORD_AUXTRACE = 71,            /* bytes follow that are no records */
	PERF_RECORD_HEADER_FEATURE = 80,
	PERF_RECORD_COMPRESSED = 81,
	PERF_RECORD_COMPRESSED2 = 83, /* Linux 6.16: u64 size of the content at 8, padded to 8 */
};

enum perf_feature {
	PERF_FEATURE_AUXTRACE = 18,
	PERF_FEATURE_COMPRESSED = 27,
};

enum perf_data_shape {
	PERF_DATA_FILE,
	PERF_DATA_PIPE,
	PERF_DATA_PART,
};

struct perf_record {
	uint32_t type;
	uint16_t misc;
	uint16_t size_bytes;  /* all of it */
	uint64_t offset;      /* where it is in the output */
	const uint8_t *bytes; /* borrowed, for the time of the call */
};

struct perf_data_job {
	int input_fd;     /* read from where it stands; need not be a file */
	int output_fd;    /* a file, empty, open for reading and writing; -1: nothing is written */
	const char *path; /* of the input, for messages */
	bool is_part;
	uint64_t wanted_types; /* a bit for each type below 64 */
	/* NULL to go on, else heap text: why not. */
	char *(*take)(void *context, const struct perf_record *record);
	void *context;
};

struct perf_data_result {
	enum perf_data_shape shape;
	bool was_compressed;
	uint64_t record_count;
	uint64_t output_bytes;
	/*
	 * NULL when the records could be followed to their end, else heap text: where and why not.
	 * What is behind that place was copied as it is, or left out where the data was compressed.
	 */
	char *cut;
};

/* NULL on success, else heap text: why not. `ret` is to be ended with free(ret->cut) on success. */
char *perf_data_copy(const struct perf_data_job *job, struct perf_data_result *ret);

#endif
