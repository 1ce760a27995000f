/* SPDX-License-Identifier: MIT */
#include "mapgen/record/perf_ring.h"

#include <linux/perf_event.h>
#include <string.h>
#include <unistd.h>

#include "libsym/error.h"
#include "mapgen/cli/temporary_file.h"

enum {
	/* perf_writer.c: samples begin with header, id, ip, pid and tid; others end with TIME, CPU,
	 * IDENTIFIER. */
	SAMPLE_TIME_OFFSET = 32,
	TIME_FROM_END = 24,
	RECORD_FINISHED_ROUND = 68,
};

struct sym_error *perf_ring_init(struct perf_ring *ring, uint64_t span_ns)
{
	struct sym_error *error;

	*ring = (struct perf_ring){ .span_ns = span_ns };
	error = temporary_file_stream(&ring->kept);
	for (size_t i = 0; !error && i < 2; i++)
		error = temporary_file_stream(&ring->segments[i]);
	if (error)
		perf_ring_deinit(ring);
	return error;
}

void perf_ring_deinit(struct perf_ring *ring)
{
	FILE *const files[] = { ring->kept, ring->segments[0], ring->segments[1] };

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (files[i])
			fclose(files[i]);
	*ring = (struct perf_ring){ 0 };
}

static bool is_of_all_times(uint32_t type)
{
	switch (type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_NAMESPACES:
	case PERF_RECORD_KSYMBOL:
	case PERF_RECORD_BPF_EVENT:
		return true;
	default:
		return false;
	}
}

/* 0: it has none. */
static uint64_t time_of(const struct perf_event_header *header, size_t size_bytes)
{
	const uint8_t *bytes = (const uint8_t *)header;
	uint64_t time = 0;

	if (header->type == PERF_RECORD_SAMPLE && size_bytes >= SAMPLE_TIME_OFFSET + 8)
		memcpy(&time, bytes + SAMPLE_TIME_OFFSET, sizeof(time));
	else if (header->type != RECORD_FINISHED_ROUND && size_bytes >= 8 + TIME_FROM_END)
		memcpy(&time, bytes + size_bytes - TIME_FROM_END, sizeof(time));
	return time;
}

static bool rotate(struct perf_ring *ring, uint64_t time_ns)
{
	FILE *file;

	ring->active = !ring->active;
	ring->begin_ns = time_ns;
	file = ring->segments[ring->active];
	return !fseeko(file, 0, SEEK_SET) && !ftruncate(fileno(file), 0);
}

bool perf_ring_put(struct perf_ring *ring, const void *record, size_t size_bytes)
{
	const struct perf_event_header *header = record;
	FILE *file = ring->kept;

	if (!is_of_all_times(header->type)) {
		uint64_t time_ns = time_of(header, size_bytes);

		if (!ring->begin_ns)
			ring->begin_ns = time_ns;
		if (time_ns > ring->begin_ns + ring->span_ns && !rotate(ring, time_ns))
			return false;
		file = ring->segments[ring->active];
	}
	return fwrite(record, 1, size_bytes, file) == size_bytes;
}

static bool copy_since(FILE *from, uint64_t from_ns, FILE *to, uint64_t *bytes)
{
	_Alignas(8) uint8_t record[UINT16_MAX + 1];
	struct perf_event_header header;

	if (fflush(from) || fseeko(from, 0, SEEK_SET))
		return false;
	while (fread(&header, sizeof(header), 1, from) == 1) {
		size_t rest = header.size - sizeof(header);
		uint64_t time_ns;

		memcpy(record, &header, sizeof(header));
		if (header.size < sizeof(header) ||
		    fread(record + sizeof(header), 1, rest, from) != rest)
			return !ferror(from);
		time_ns = time_of((const struct perf_event_header *)record, header.size);
		if (time_ns && time_ns < from_ns)
			continue;
		if (fwrite(record, 1, header.size, to) != header.size)
			return false;
		*bytes += header.size;
	}
	return !ferror(from);
}

bool perf_ring_write(struct perf_ring *ring, uint64_t from_ns, FILE *file, uint64_t *bytes_ret)
{
	const struct perf_event_header round = { .type = RECORD_FINISHED_ROUND,
						 .size = sizeof(round) };

	*bytes_ret = sizeof(round);
	return copy_since(ring->kept, 0, file, bytes_ret) &&
	       fwrite(&round, sizeof(round), 1, file) == 1 &&
	       copy_since(ring->segments[!ring->active], from_ns, file, bytes_ret) &&
	       copy_since(ring->segments[ring->active], from_ns, file, bytes_ret);
}
