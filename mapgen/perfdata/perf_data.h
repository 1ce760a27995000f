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
#ifndef MAPGEN_PERFDATA_PERF_DATA_H
#define MAPGEN_PERFDATA_PERF_DATA_H

#include <endian.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Records that perf writes itself; the kernel's are PERF_RECORD_* of linux/perf_event.h. */
enum perf_user_record_type {
	PERF_RECORD_HEADER_ATTR = 64,
	PERF_RECORD_HEADER_TRACING_DATA = 66, /* in a pipe: bytes that are no records follow */
	PERF_RECORD_FINISHED_ROUND = 68,
	PERF_RECORD_AUXTRACE = 71, /* bytes that are no records follow */
	PERF_RECORD_EVENT_UPDATE = 78,
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

enum {
	PERF_FILE_HEADER_BYTES = 104,
	PERF_FEATURE_WORDS = 4
};

struct perf_file_header {
	uint64_t header_bytes, attribute_bytes; /* of one */
	uint64_t attributes_offset, attributes_bytes;
	uint64_t data_offset, data_bytes;
	uint64_t features[PERF_FEATURE_WORDS];
};

struct perf_file_header perf_file_header_read(const uint8_t bytes[PERF_FILE_HEADER_BYTES]);

static inline bool perf_file_has_feature(const struct perf_file_header *header,
					 unsigned int feature)
{
	return header->features[feature / 64] >> feature % 64 & 1;
}

/* Writes a field. */
static inline void perf_data_put_u64(uint8_t *bytes, uint64_t value)
{
	value = htole64(value);
	memcpy(bytes, &value, sizeof(value));
}

struct perf_record {
	uint32_t type;
	uint16_t misc;
	uint16_t size_bytes;  /* the whole record */
	uint64_t offset;      /* place in the output */
	const uint8_t *bytes; /* borrowed during the call */
};

struct perf_data_job {
	int input_fd;     /* read from its position; may be a pipe */
	int output_fd;    /* an empty file, open for reading and writing; -1: nothing is written */
	const char *path; /* name of the input for messages */
	bool is_part;
	uint64_t wanted_types; /* a bit for each type below 64 */
	bool wants_user_types; /* as well as all types of perf itself, except those with bytes
				  behind them */
	/* NULL to continue, else the error that perf_data_copy() returns. */
	struct sym_error *(*take)(void *context, const struct perf_record *record);
	void *context;
};

struct perf_data_result {
	enum perf_data_shape shape;
	bool was_compressed;
	uint64_t record_count;
	uint64_t output_bytes;
	/*
	 * NULL when all records were read, else heap text: where and why reading stopped. What lies
	 * behind that place was copied unchanged, or left out if the data was compressed.
	 */
	char *cut;
};

/* On success the caller frees ret->cut. */
struct sym_error *perf_data_copy(const struct perf_data_job *job, struct perf_data_result *ret);

#endif
