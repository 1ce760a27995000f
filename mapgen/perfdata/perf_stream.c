/* SPDX-License-Identifier: MIT */
#include "mapgen/perfdata/perf_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/path.h"

bool perf_input_init(struct perf_input *input, int fd)
{
	*input = (struct perf_input){ .fd = fd, .data = malloc(PERF_STREAM_BYTES) };
	return input->data != NULL;
}

void perf_input_deinit(struct perf_input *input)
{
	free(input->data);
}

static void read_more(struct perf_input *input)
{
	ssize_t got = read(input->fd, input->data + input->end, PERF_STREAM_BYTES - input->end);

	if (got > 0)
		input->end += (size_t)got;
	else if (!got)
		input->ended = true;
	else if (errno != EINTR)
		input->failure = errno;
}

bool perf_input_need(struct perf_input *input, size_t count)
{
	if (perf_input_available(input) >= count)
		return true;
	if (input->begin) {
		memmove(input->data, input->data + input->begin, perf_input_available(input));
		input->end -= input->begin;
		input->begin = 0;
	}
	while (perf_input_available(input) < count && !input->ended && !input->failure)
		read_more(input);
	return perf_input_available(input) >= count;
}

bool perf_output_init(struct perf_output *output, int fd)
{
	*output = (struct perf_output){ .fd = fd, .data = malloc(PERF_STREAM_BYTES) };
	return output->data != NULL;
}

void perf_output_deinit(struct perf_output *output)
{
	free(output->data);
}

static void write_out(struct perf_output *output, const void *bytes, size_t count)
{
	int failure;

	if (output->fd < 0 || output->failure || !count)
		return;
	failure = path_write_all(output->fd, bytes, count);
	if (failure)
		output->failure = -failure;
}

void perf_output_flush(struct perf_output *output)
{
	write_out(output, output->data, output->size_bytes);
	output->size_bytes = 0;
}

void perf_output_append(struct perf_output *output, const void *bytes, size_t count)
{
	output->offset += count;
	if (output->fd < 0)
		return;
	if (count > PERF_STREAM_BYTES - output->size_bytes)
		perf_output_flush(output);
	/* Large pieces are common in data that is not compressed; they are not copied here. */
	if (count >= PERF_STREAM_BYTES / 4 && !output->size_bytes) {
		write_out(output, bytes, count);
		return;
	}
	memcpy(output->data + output->size_bytes, bytes, count);
	output->size_bytes += count;
}
