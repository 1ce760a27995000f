/* SPDX-License-Identifier: MIT */
/*
 * The two ends that perf_data.c copies between: an input of which the next
 * bytes can be looked at before they are taken, and an output that counts.
 * Both keep one buffer of fixed size. Knows nothing of perf.data.
 */
#ifndef MAPGEN_PROFILE_PERF_STREAM_H
#define MAPGEN_PROFILE_PERF_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* Fits into a second-level cache; a record, of at most 64 KiB, is always whole in it. */
	PERF_STREAM_BYTES = 512 << 10
};

struct perf_input {
	int fd;
	uint8_t *data; /* PERF_STREAM_BYTES */
	size_t begin;  /* of the bytes that are there */
	size_t end;
	uint64_t offset; /* of data[begin] in the input */
	int failure;     /* errno of the first failure; sticks */
	bool ended;
};

/* False when there is no memory. */
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

/* Sees to it that `count` (at most PERF_STREAM_BYTES) bytes are there; false at the end of the
 * input, or when it failed. */
bool perf_input_need(struct perf_input *input, size_t count);

struct perf_output {
	int fd;        /* -1: only counts */
	uint8_t *data; /* PERF_STREAM_BYTES */
	size_t size_bytes;
	uint64_t offset; /* of the next byte */
	int failure;
};

bool perf_output_init(struct perf_output *output, int fd);
void perf_output_deinit(struct perf_output *output);

void perf_output_append(struct perf_output *output, const void *bytes, size_t count);
/* Brings what was appended into the file. */
void perf_output_flush(struct perf_output *output);

#endif
