/* SPDX-License-Identifier: MIT */
/* Records that are inserted before others; the test makes every byte. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/error.h"
#include "mapgen/perfdata/perf_insert.h"
#include "mapgen/perfdata/recorded_maps.h"
#include "mapgen/perfdata/sampled_pages.h"
#include "tests/support/byte_writer.h"

enum {
	HEADER_BYTES = 104,
	ATTRIBUTE_BYTES = 16,
	DATA_AT = HEADER_BYTES + ATTRIBUTE_BYTES,
	RECORD_BYTES = 16,
	FEATURE = 3, /* any but trace data */
	ADDED_BYTES = 24
};

static const uint8_t added[ADDED_BYTES] = { 10, 0, 0, 0, 2, 0, ADDED_BYTES, 0, 1, 2, 3, 4 };

static struct buf input;
static uint8_t *output;
static size_t output_bytes;

static void put_record(uint32_t type, uint64_t payload)
{
	put_u32(&input, type);
	put_u16(&input, 0);
	put_u16(&input, RECORD_BYTES);
	put_u64(&input, payload);
}

/* Two records, and the sections of two features behind their table. */
static void write_file(unsigned int second_feature)
{
	buf_init(&input, 1 << 20);
	buf_append_string(&input, "PERFILE2");
	put_u64(&input, HEADER_BYTES);
	put_u64(&input, ATTRIBUTE_BYTES);
	put_u64(&input, HEADER_BYTES);
	put_u64(&input, ATTRIBUTE_BYTES);
	put_u64(&input, DATA_AT);
	put_u64(&input, 2 * RECORD_BYTES);
	put_zeros(&input, HEADER_BYTES - 56);
	patch_u32(&input, 72, 1u << FEATURE | 1u << second_feature);
	put_zeros(&input, ATTRIBUTE_BYTES);
	put_record(9, 0x1111);
	put_record(9, 0x2222);
	for (int i = 0; i < 2; i++) {
		put_u64(&input, DATA_AT + 2 * RECORD_BYTES + 32 + 8 * (uint64_t)i);
		put_u64(&input, 8);
	}
	buf_append_string(&input, "feature1feature2");
}

static struct sym_error *insert(enum perf_data_shape shape, uint64_t *at)
{
	int fd = memfd_create("output", 0);
	struct sym_error *failure;

	cr_assert_eq(write(fd, input.data, input.size_bytes), (ssize_t)input.size_bytes);
	failure = perf_insert(fd, shape, added, sizeof(added), at);
	output_bytes = (size_t)lseek(fd, 0, SEEK_END);
	output = malloc(output_bytes + 1);
	cr_assert_eq(pread(fd, output, output_bytes, 0), (ssize_t)output_bytes);
	close(fd);
	return failure;
}

static void end(void)
{
	free(output);
	buf_deinit(&input);
}

static uint64_t u64_at(size_t offset)
{
	uint64_t value = 0;

	for (size_t i = 0; i < 8; i++)
		value |= (uint64_t)output[offset + i] << 8 * i;
	return value;
}

Test(perf_insert, a_file_has_the_records_first_and_all_else_behind_them)
{
	uint64_t at = 0, table = DATA_AT + ADDED_BYTES + 2 * RECORD_BYTES;
	struct sym_error *failure;

	write_file(5);
	failure = insert(PERF_DATA_FILE, &at);
	cr_assert_null(failure, "%s", failure ? sym_error_message(failure) : "");
	cr_assert_eq(output_bytes, input.size_bytes + ADDED_BYTES);
	cr_expect_eq(at, DATA_AT);
	cr_expect_eq(u64_at(48), 2 * RECORD_BYTES + ADDED_BYTES);
	cr_expect_arr_eq(output + DATA_AT, added, ADDED_BYTES);
	cr_expect_arr_eq(output + DATA_AT + ADDED_BYTES, input.data + DATA_AT, 2 * RECORD_BYTES);
	for (size_t i = 0; i < 2; i++) {
		uint64_t section = u64_at(table + 16 * i);

		cr_expect_eq(u64_at(table + 16 * i + 8), 8);
		cr_expect_arr_eq(output + section, i ? "feature2" : "feature1", 8);
	}
	end();
}

Test(perf_insert, a_pipe_has_them_behind_what_describes_the_events)
{
	uint64_t at = 0;
	struct sym_error *failure;

	buf_init(&input, 1 << 20);
	buf_append_string(&input, "PERFILE2");
	put_u64(&input, 16);
	put_record(64, 1);
	put_record(9, 0x1111);
	failure = insert(PERF_DATA_PIPE, &at);
	cr_assert_null(failure, "%s", failure ? sym_error_message(failure) : "");
	cr_expect_eq(at, 16 + RECORD_BYTES);
	cr_expect_arr_eq(output, input.data, 16 + RECORD_BYTES);
	cr_expect_arr_eq(output + at, added, ADDED_BYTES);
	cr_expect_arr_eq(output + at + ADDED_BYTES, input.data + at, RECORD_BYTES);
	end();
}

static const char *trouble(enum perf_data_shape shape)
{
	int fd = memfd_create("output", 0);
	const char *reason;

	cr_assert_eq(write(fd, input.data, input.size_bytes), (ssize_t)input.size_bytes);
	reason = perf_insert_trouble(fd, shape);
	close(fd);
	buf_deinit(&input);
	return reason;
}

Test(perf_insert, what_cannot_move_is_said)
{
	write_file(5);
	cr_expect_null(trouble(PERF_DATA_FILE));
	write_file(PERF_FEATURE_AUXTRACE);
	cr_expect_not_null(trouble(PERF_DATA_FILE), "the index of a trace has places in the file");
	write_file(5);
	patch_u32(&input, 48, 0);
	cr_expect_not_null(trouble(PERF_DATA_FILE), "the recording did not end");
	write_file(5);
	patch_u32(&input, 48, 1 << 20);
	cr_expect_not_null(trouble(PERF_DATA_FILE), "the data is cut");
	buf_init(&input, 1 << 10);
	buf_append_string(&input, "PERFILE2");
	put_u64(&input, 16);
	put_record(64, 1);
	cr_expect_not_null(trouble(PERF_DATA_PIPE), "no record of the kernel");
}

Test(perf_insert, a_mapping_that_was_added_is_read_as_the_one_that_it_was)
{
	static const uint8_t id[BUILD_ID_BYTES] = { 0xaa, 1, 2 };
	struct recorded_maps maps = { 0 }, read = { 0 };
	struct recorded_mapping mapping = { .pid = 4711,
					    .device_major = 8,
					    .device_minor = 1,
					    .inode = 77,
					    .start_address = 0x5000,
					    .end_address = 0x7000,
					    .offset = 0x1000,
					    .name = "/tmp/Zo\xc3\xab/a.dll" };
	uint8_t bytes[RECORDED_MAPPING_BYTES];
	struct perf_record record = { .type = PERF_RECORD_MMAP2, .bytes = bytes };
	size_t size_bytes;

	cr_assert(recorded_maps_add(&maps, &mapping));
	for (int with_id = 0; with_id < 2; with_id++) {
		maps.items[0].fix = with_id ? RECORDED_BUILD_ID : RECORDED_AS_IT_IS;
		size_bytes = recorded_mapping_write(&maps.items[0], id, bytes);
		cr_assert_gt(size_bytes, 0);
		cr_expect_eq(size_bytes % 8, 0);
		cr_expect_eq(bytes[6] | bytes[7] << 8, size_bytes);
		record.size_bytes = (uint16_t)size_bytes;
		record.misc = (uint16_t)(bytes[4] | bytes[5] << 8);
		cr_assert_null(recorded_maps_take(&read, &record));
		cr_assert_eq(read.count, with_id + 1u);
		cr_expect_eq(read.items[with_id].pid, 4711);
		cr_expect_eq(read.items[with_id].start_address, 0x5000);
		cr_expect_eq(read.items[with_id].end_address, 0x7000);
		cr_expect_eq(read.items[with_id].offset, 0x1000);
		cr_expect_str_eq(read.items[with_id].name, mapping.name);
		cr_expect(read.items[with_id].is_first_sight);
		cr_expect_not(read.items[with_id].is_data);
		cr_expect_eq(read.items[with_id].has_build_id, with_id);
	}
	cr_expect_eq(read.items[0].inode, 77);
	cr_expect_eq(read.items[1].build_id_start[0], 0xaa);
	recorded_maps_deinit(&maps);
	recorded_maps_deinit(&read);
}

/* As perf writes them without --sample-identifier, and with it. */
static void add_sample(struct sampled_pages *hits, bool identified, uint64_t address, uint32_t pid)
{
	struct perf_record sample = { .type = PERF_RECORD_SAMPLE };

	buf_init(&input, 1 << 10);
	put_u64(&input, 0);
	if (identified)
		put_u64(&input, 4097);
	put_u64(&input, address);
	put_u32(&input, pid);
	put_u32(&input, pid + 1);
	put_u64(&input, 0x1234567890ab);
	sample.bytes = (const uint8_t *)input.data;
	sample.size_bytes = (uint16_t)input.size_bytes;
	sampled_pages_add(hits, &sample);
	buf_deinit(&input);
}

Test(perf_insert, samples_are_counted_by_process_and_page_where_nothing_was_recorded_as_mapped)
{
	for (int identified = 0; identified < 2; identified++) {
		struct sampled_pages hits = { 0 };
		struct recorded_maps maps = { 0 };
		struct recorded_page *pages;
		size_t count;

		add_sample(&hits, identified, 0x7f1234567890, 4711);
		add_sample(&hits, identified, 0x7f1234567aaa, 4711);
		add_sample(&hits, identified, 0x7f1234567aaa, 12);
		add_sample(&hits, identified, 0x7f1234568000, 4711);
		add_sample(&hits, identified, 0xffffffff81000000, 4711);
		sampled_pages_settle(&hits, &maps);
		pages = sampled_pages_pages(&hits, &count);
		cr_assert_not_null(pages);
		cr_assert_eq(count, 3, "%zu", count);
		cr_expect_eq(pages[0].pid, 12);
		cr_expect_eq(pages[0].samples, 1);
		cr_expect_eq(pages[1].pid, 4711);
		cr_expect_eq(pages[1].address, 0x7f1234567000);
		cr_expect_eq(pages[1].samples, 2);
		cr_expect_eq(pages[2].address, 0x7f1234568000);
		free(pages);
		sampled_pages_deinit(&hits);
	}
}
