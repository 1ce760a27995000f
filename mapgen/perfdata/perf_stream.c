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

void perf_output_append(struct perf_output *output, const void *bytes, size_t count)
{
	output->offset += count;
	if (output->fd >= 0 && !output->failure)
		output->failure = -path_write_all(output->fd, bytes, count);
}

bool perf_stream_copy(struct perf_input *input, struct perf_output *output, uint64_t count)
{
	while (count && perf_input_need(input, 1)) {
		size_t piece = perf_input_available(input);

		if (piece > count)
			piece = (size_t)count;
		perf_output_append(output, perf_input_bytes(input), piece);
		perf_input_take(input, piece);
		count -= piece;
	}
	return !count;
}
