/* SPDX-License-Identifier: MIT */
/* Arbitrary bytes as perf.data: uncompressed records are copied byte for byte, a record can be
 * changed in place without changing another byte, and the walk ends. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/error.h"
#include "mapgen/perfdata/recorded_maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const size_t largest_input = 1 << 20;

static void expect(bool condition)
{
	if (!condition)
		abort();
}

/* Changes every mapping, and checks that the record was the same before and has the same length
 * after. */
static void change_all(const struct recorded_maps *maps, const uint8_t *output, size_t size)
{
	static const uint8_t id[BUILD_ID_BYTES] = "dnmg";

	for (size_t i = 0; i < maps->count; i++) {
		struct recorded_mapping mapping = maps->items[i];
		uint8_t record[UINT16_MAX];

		expect(mapping.record_offset <= size &&
		       mapping.record_bytes <= size - mapping.record_offset);
		for (int fix = RECORDED_BUILD_ID; fix <= RECORDED_ANONYMOUS; fix++) {
			memcpy(record, output + mapping.record_offset, mapping.record_bytes);
			mapping.fix = fix;
			if (recorded_mapping_change(&mapping, id, record))
				expect(!memcmp(record + 6, output + mapping.record_offset + 6, 26));
		}
	}
}

static void check(const uint8_t *data, size_t size, bool is_part)
{
	int input_fd = memfd_create("input", 0), output_fd = memfd_create("output", 0);
	struct recorded_maps maps = { 0 };
	struct perf_data_result result = { 0 };
	struct perf_data_job job = {
		.input_fd = input_fd,
		.output_fd = output_fd,
		.path = "input",
		.is_part = is_part,
		.wanted_types = RECORDED_MAPS_TYPES,
		.take = recorded_maps_take,
		.context = &maps,
	};
	struct sym_error *failure;

	expect(input_fd >= 0 && output_fd >= 0);
	expect(write(input_fd, data, size) == (ssize_t)size && !lseek(input_fd, 0, SEEK_SET));
	failure = perf_data_copy(&job, &result);
	if (!failure) {
		off_t bytes = lseek(output_fd, 0, SEEK_END);
		uint8_t *output = malloc((size_t)bytes + 1);

		expect(output && pread(output_fd, output, (size_t)bytes, 0) == bytes);
		expect((uint64_t)bytes == result.output_bytes);
		if (!result.was_compressed)
			expect((size_t)bytes == size && (!size || !memcmp(output, data, size)));
		change_all(&maps, output, (size_t)bytes);
		free(output);
		free(result.cut);
	}
	sym_error_destroy(failure);
	recorded_maps_sort(&maps);
	recorded_maps_deinit(&maps);
	close(input_fd);
	close(output_fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > largest_input)
		return 0;
	check(data, size, false);
	check(data, size, true);
	return 0;
}
