/* SPDX-License-Identifier: MIT */
#include "mapgen/perfdata/perf_insert.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/base/reader.h"
#include "mapgen/cli/message.h"

enum {
	PIPE_HEADER_BYTES = 16,
	RECORD_HEADER_BYTES = 8,
	SECTION_BYTES = 16,
	DATA_BYTES_AT = 48,
	FEATURE_BITS = 64 * PERF_FEATURE_WORDS,
	FIRST_OF_PERF = 64, /* types from here on are perf's, not the kernel's */
	STEP_BYTES = 1 << 20
};

static uint64_t get_u64(const uint8_t *bytes)
{
	struct reader reader = reader_over(bytes, 8);

	return reader_u64(&reader);
}

static bool write_at(int fd, const void *bytes, size_t count, uint64_t offset)
{
	return pwrite(fd, bytes, count, (off_t)offset) == (ssize_t)count;
}

/* Moves all bytes from `from` on, the last ones first. */
static bool move_rest(int fd, uint64_t from, uint64_t end, uint64_t distance)
{
	uint8_t *room AUTO_FREE = malloc(STEP_BYTES);

	while (room && end > from) {
		size_t step = end - from < STEP_BYTES ? (size_t)(end - from) : STEP_BYTES;

		end -= step;
		if (path_read_at(fd, room, step, end) || !write_at(fd, room, step, end + distance))
			return false;
	}
	return room;
}

/* Moves the sections that the table behind the data lists; the table itself has moved already. */
static bool move_sections(int fd, const struct perf_file_header *header, uint64_t table,
			  uint64_t from, uint64_t distance)
{
	for (unsigned int bit = 0; bit < FEATURE_BITS; bit++) {
		uint8_t section[SECTION_BYTES];

		if (!perf_file_has_feature(header, bit))
			continue;
		if (path_read_at(fd, section, sizeof(section), table))
			return false;
		if (get_u64(section) >= from)
			perf_data_put_u64(section, get_u64(section) + distance);
		if (!write_at(fd, section, sizeof(section), table))
			return false;
		table += SECTION_BYTES;
	}
	return true;
}

/* Where the first record of the kernel is; false: there is none. */
static bool first_of_kernel(int fd, uint64_t end, uint64_t *ret)
{
	uint64_t offset = PIPE_HEADER_BYTES;
	uint8_t head[RECORD_HEADER_BYTES];

	while (offset < end && !path_read_at(fd, head, sizeof(head), offset)) {
		struct reader reader = reader_over(head, sizeof(head));
		uint32_t type = reader_u32(&reader);
		uint16_t size_bytes;

		reader_skip(&reader, 2);
		size_bytes = reader_u16(&reader);
		/* These records have bytes behind them that are no records. */
		if (type == PERF_RECORD_HEADER_TRACING_DATA || type == PERF_RECORD_AUXTRACE ||
		    size_bytes < RECORD_HEADER_BYTES)
			return false;
		*ret = offset;
		if (type < FIRST_OF_PERF)
			return true;
		offset += size_bytes;
	}
	return false;
}

static uint64_t end_of_file(int fd)
{
	struct stat status;

	return fstat(fd, &status) ? 0 : (uint64_t)status.st_size;
}

const char *perf_insert_trouble(int fd, enum perf_data_shape shape)
{
	uint64_t end = end_of_file(fd), at;
	uint8_t bytes[PERF_FILE_HEADER_BYTES];
	struct perf_file_header header;

	if (shape == PERF_DATA_PIPE)
		return first_of_kernel(fd, end, &at)
			       ? NULL
			       : "there is no place for more records in what came from the pipe";
	if (shape != PERF_DATA_FILE || path_read_at(fd, bytes, sizeof(bytes), 0))
		return "there is no place for more records";
	header = perf_file_header_read(bytes);
	if (perf_file_has_feature(&header, PERF_FEATURE_AUXTRACE))
		return "the data has a trace, which says where it lies and so cannot move";
	if (!header.data_bytes || header.attributes_offset >= header.data_offset ||
	    header.data_offset > end || header.data_bytes > end - header.data_offset)
		return "the recording did not end, or its sections lie in an order that is not "
		       "known";
	return NULL;
}

bool perf_insert_room(int fd, bool at_end, uint64_t count, uint64_t *at_ret)
{
	uint8_t bytes[PERF_FILE_HEADER_BYTES];
	struct perf_file_header header;
	uint64_t data_end;

	if (path_read_at(fd, bytes, sizeof(bytes), 0))
		return false;
	header = perf_file_header_read(bytes);
	data_end = header.data_offset + header.data_bytes;
	*at_ret = at_end ? data_end : header.data_offset;
	perf_data_put_u64(bytes + DATA_BYTES_AT, header.data_bytes + count);
	return move_rest(fd, *at_ret, end_of_file(fd), count) &&
	       move_sections(fd, &header, data_end + count, *at_ret, count) &&
	       write_at(fd, bytes, sizeof(bytes), 0);
}

struct sym_error *perf_insert(int fd, enum perf_data_shape shape, const void *bytes, size_t count,
			      uint64_t *at_ret)
{
	bool done;

	if (shape == PERF_DATA_FILE)
		done = perf_insert_room(fd, false, count, at_ret) &&
		       write_at(fd, bytes, count, *at_ret);
	else
		done = first_of_kernel(fd, end_of_file(fd), at_ret) &&
		       move_rest(fd, *at_ret, end_of_file(fd), count) &&
		       write_at(fd, bytes, count, *at_ret);
	return done ? NULL
		    : sym_error_create(SYM_ERROR_IO, "cannot insert records into the output");
}
