/* SPDX-License-Identifier: MIT */
/*
 * The two ends that perf_data.c copies between: an input whose next bytes can be read before they
 * are consumed, and an output that counts. Each has one buffer of fixed size. Knows nothing of
 * perf.data.
 */
#ifndef MAPGEN_PERFDATA_PERF_STREAM_H
#define MAPGEN_PERFDATA_PERF_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* Fits into a second-level cache; a record has at most 64 KiB and always fits. */
	PERF_STREAM_BYTES = 512 << 10
};

struct perf_input {
	int fd;
	uint8_t *data; /* PERF_STREAM_BYTES */
	size_t begin;  /* of the bytes in the buffer */
	size_t end;
	uint64_t offset; /* of data[begin] in the input */
	int failure;     /* errno of the first failure; sticks */
	bool ended;
};

/* False when out of memory. */
bool perf_input_init(struct perf_input *input, int fd);
void perf_input_deinit(struct perf_input *input);

static inline const uint8_t *perf_input_bytes(const struct perf_input *input)
{
	return input->data + input->begin;
}

static inline size_t perf_input_available(const struct perf_input *input)
{
	return input->end - input->begin;
}

static inline void perf_input_take(struct perf_input *input, size_t count)
{
	input->begin += count;
	input->offset += count;
}

/* Makes sure that `count` bytes (at most PERF_STREAM_BYTES) are in the buffer; false at the end of
 * the input and after a failure. */
bool perf_input_need(struct perf_input *input, size_t count);

struct perf_output {
	int fd;          /* -1: only counts */
	uint64_t offset; /* of the next byte */
	int failure;     /* errno of the first failure; sticks */
};

void perf_output_append(struct perf_output *output, const void *bytes, size_t count);

/* Copies `count` bytes, or as many as there are. */
bool perf_stream_copy(struct perf_input *input, struct perf_output *output, uint64_t count);

#endif
