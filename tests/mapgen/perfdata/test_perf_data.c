/* SPDX-License-Identifier: MIT */
/* perf.data copied and changed; the test makes every byte. */
#include <criterion/criterion.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "libsym/error.h"
#include "mapgen/perfdata/recorded_maps.h"
#include "mapgen/perfdata/sampled_pages.h"
#include "tests/support/byte_writer.h"

static struct buf input;
static struct recorded_maps maps;
static struct perf_data_result result;
static uint8_t *output;
static size_t output_bytes;

static void set_up(void)
{
	buf_init(&input, 64 << 20);
}

static void tear_down(void)
{
	buf_deinit(&input);
	recorded_maps_deinit(&maps);
	free(result.cut);
	free(output);
}

TestSuite(perf_data, .init = set_up, .fini = tear_down);

static struct sym_error *copy_as(bool is_part)
{
	int input_fd = memfd_create("input", 0), output_fd = memfd_create("output", 0);
	struct perf_data_job job = {
		.input_fd = input_fd,
		.output_fd = output_fd,
		.path = "a.data",
		.is_part = is_part,
		.wanted_types = RECORDED_MAPS_TYPES,
		.take = recorded_maps_take,
		.context = &maps,
	};
	struct sym_error *failure;

	cr_assert_eq(write(input_fd, input.data, input.size_bytes), (ssize_t)input.size_bytes);
	lseek(input_fd, 0, SEEK_SET);
	failure = perf_data_copy(&job, &result);
	output_bytes = (size_t)lseek(output_fd, 0, SEEK_END);
	output = malloc(output_bytes + 1);
	cr_assert_eq(pread(output_fd, output, output_bytes, 0), (ssize_t)output_bytes);
	close(input_fd);
	close(output_fd);
	return failure;
}

static void copy_whole(void)
{
	struct sym_error *failure = copy_as(false);

	cr_assert_null(failure, "%s", failure ? sym_error_message(failure) : "");
	cr_expect_null(result.cut, "%s", result.cut);
}

static void expect_same_bytes(void)
{
	cr_assert_eq(output_bytes, input.size_bytes);
	cr_expect_arr_eq(output, input.data, output_bytes);
}

enum {
	DATA_AT = 104,
	NAME_AT = 72,
	TRAILER_BYTES = 16
};

/* The header of a file; end_file() sets its data size and features. */
static void begin_file(void)
{
	buf_append_string(&input, "PERFILE2");
	put_u64(&input, DATA_AT);
	put_u64(&input, 144);
	put_u64(&input, DATA_AT);
	put_u64(&input, 0);
	put_u64(&input, DATA_AT);
	put_zeros(&input, DATA_AT - 48);
}

static void end_data(void)
{
	patch_u32(&input, 48, (uint32_t)(input.size_bytes - DATA_AT));
}

static void begin_pipe(void)
{
	buf_append_string(&input, "PERFILE2");
	put_u64(&input, 16);
}

static void put_record(uint32_t type, uint16_t misc, size_t size_bytes)
{
	put_u32(&input, type);
	put_u16(&input, misc);
	put_u16(&input, (uint16_t)size_bytes);
}

static void put_mmap2(int32_t pid, uint64_t start, const char *name, uint16_t misc,
		      uint32_t protection)
{
	size_t room = (strlen(name) + 8) & ~(size_t)7, at = input.size_bytes;

	put_record(PERF_RECORD_MMAP2, misc, NAME_AT + room + TRAILER_BYTES);
	put_u32(&input, (uint32_t)pid);
	put_u32(&input, (uint32_t)pid);
	put_u64(&input, start);
	put_u64(&input, 0x2000);
	put_u64(&input, 0x3000);
	put_u32(&input, 8);
	put_u32(&input, 1);
	put_u64(&input, 4711);
	put_u64(&input, 0);
	put_u32(&input, protection);
	put_u32(&input, 2);
	buf_append_string(&input, name);
	put_zeros(&input, at + NAME_AT + room - input.size_bytes);
	for (int i = 0; i < TRAILER_BYTES; i++)
		put_u8(&input, 0xee);
}

static void put_sample(uint64_t address, size_t payload_bytes)
{
	put_record(PERF_RECORD_SAMPLE, 2, 8 + payload_bytes);
	put_u64(&input, address);
	put_zeros(&input, payload_bytes - 8);
}

/* ---- normal ------------------------------------------------------------------------- */

Test(perf_data, copies_a_file_byte_for_byte_and_tells_its_mappings)
{
	begin_file();
	put_mmap2(7, 0x7f0000001000, "/usr/lib/a.dll", 2, 5);
	put_sample(0x1234, 64);
	put_mmap2(6, 0x7f000000b000, "/usr/lib/data", 2, 3);
	put_mmap2(6, 0x7f000000d000, "[heap]", 2, 3);
	put_mmap2(6, 0x7f0000009000, "/memfd:doublemapper (deleted)", 2, 5);
	put_mmap2(0, 0xffffffff81000000, "[kernel.kallsyms]_text", 1, 5);
	end_data();
	buf_append_string(&input, "what is behind the data");
	copy_whole();
	expect_same_bytes();
	cr_expect_eq(result.shape, PERF_DATA_FILE);
	cr_expect_eq(result.record_count, 6);
	recorded_maps_sort(&maps);
	cr_assert_eq(maps.count, 3);
	cr_expect_str_eq(maps.items[0].name, "/memfd:doublemapper (deleted)");
	cr_expect_not(maps.items[0].is_data);
	cr_expect_str_eq(maps.items[1].name, "/usr/lib/data");
	cr_expect(maps.items[1].is_data);
	cr_expect_eq(maps.items[2].start_address, 0x7f0000001000);
	cr_expect_eq(maps.items[2].end_address, 0x7f0000003000);
	cr_expect_eq(maps.items[2].offset, 0x3000);
	cr_expect_eq(maps.items[2].inode, 4711);
	cr_expect_eq(maps.items[2].record_offset, DATA_AT);
}

Test(perf_data, passes_what_follows_records_in_a_pipe)
{
	begin_pipe();
	put_record(PERF_RECORD_HEADER_TRACING_DATA, 0, 16);
	put_u64(&input, 5);
	put_zeros(&input, 8); /* 5 bytes, padded; they would be an impossible record */
	put_record(PERF_RECORD_AUXTRACE, 0, 24);
	put_u64(&input, 12);
	put_u64(&input, 0);
	put_zeros(&input, 12);
	put_mmap2(7, 0x1000, "/a.dll", 2, 5);
	put_record(5000, 0, 8); /* of an unknown type */
	copy_whole();
	expect_same_bytes();
	cr_expect_eq(result.shape, PERF_DATA_PIPE);
	cr_expect_eq(maps.count, 1);
}

Test(perf_data, follows_records_across_every_border_of_its_buffer)
{
	size_t count = 0;

	begin_file();
	while (input.size_bytes < 3 << 20) {
		put_sample(0x1000, 8 + 8 * (count % 37));
		put_mmap2(7, 0x1000 * ++count, "/a.dll", 2, 5);
	}
	put_record(PERF_RECORD_SAMPLE, 2, 65528);
	put_zeros(&input, 65520);
	put_mmap2(7, 0x1000 * ++count, "/b.dll", 2, 5);
	end_data();
	copy_whole();
	expect_same_bytes();
	cr_expect_eq(maps.count, count);
	for (size_t i = 0; i < maps.count; i++)
		cr_assert_eq(maps.items[i].start_address, 0x1000 * (i + 1));
}

/* Compresses the bytes behind `from` into records of at most `piece` bytes. */
static void compress_from(size_t from, size_t piece, uint32_t type)
{
	size_t room = ZSTD_compressBound(input.size_bytes - from), packed;
	uint8_t *bytes = malloc(room);

	packed = ZSTD_compress(bytes, room, input.data + from, input.size_bytes - from, 1);
	cr_assert(!ZSTD_isError(packed));
	buf_truncate(&input, from);
	for (size_t at = 0; at < packed; at += piece) {
		size_t count = packed - at < piece ? packed - at : piece;

		if (type == PERF_RECORD_COMPRESSED) {
			put_record(type, 0, 8 + count);
			buf_append(&input, bytes + at, count);
		} else {
			put_record(type, 0, 16 + ((count + 7) & ~(size_t)7));
			put_u64(&input, count);
			buf_append(&input, bytes + at, count);
			put_zeros(&input, -count & 7);
		}
	}
	free(bytes);
}

/* Feature sections 3 (host name) and 27 (compression), each of 8 bytes. */
static void put_features(void)
{
	uint64_t at = input.size_bytes + 32;

	patch_u32(&input, 72, 1u << 3 | 1u << 27);
	put_u64(&input, at);
	put_u64(&input, 8);
	put_u64(&input, at + 8);
	put_u64(&input, 8);
	buf_append(&input, "hostname", 8);
	buf_append(&input, "zstd....", 8);
}

static uint64_t at_u64(size_t position)
{
	uint64_t value;

	cr_assert(position + 8 <= output_bytes);
	memcpy(&value, output + position, 8);
	return value;
}

static void expect_expanded(uint32_t type, size_t piece)
{
	struct buf plain;
	size_t data_bytes;

	begin_file();
	for (uint64_t i = 1; i < 400; i++) {
		put_mmap2(7, 0x1000 * i, "/a.dll", 2, 5);
		put_sample(i, 256);
	}
	data_bytes = input.size_bytes - DATA_AT;
	buf_init(&plain, 1 << 20);
	buf_append(&plain, input.data + DATA_AT, data_bytes);
	compress_from(DATA_AT, piece, type);
	end_data();
	put_features();
	copy_whole();
	cr_expect(result.was_compressed);
	cr_expect_eq(maps.count, 399);
	cr_assert_eq(at_u64(48), data_bytes);
	cr_expect_arr_eq(output + DATA_AT, plain.data, data_bytes);
	cr_expect_eq(at_u64(72), 1u << 3, "feature 27 is still there");
	cr_assert_eq(at_u64(DATA_AT + data_bytes), DATA_AT + data_bytes + 16);
	cr_expect_arr_eq(output + DATA_AT + data_bytes + 16, "hostname", 8);
	buf_deinit(&plain);
}

Test(perf_data, expands_compressed_records_and_moves_the_features)
{
	expect_expanded(PERF_RECORD_COMPRESSED, 61);
}

Test(perf_data, expands_the_second_form_of_compressed_records)
{
	expect_expanded(PERF_RECORD_COMPRESSED2, 1000);
}

/* PERF_RECORD_MISC_CPUMODE: kernel, user, hypervisor, guest kernel, guest user. */
Test(perf_data, tells_mappings_of_user_processes_only)
{
	begin_file();
	for (uint16_t mode = 1; mode <= 5; mode++)
		put_mmap2(4711, 0x1000u * mode, "/a/b", mode, PROT_EXEC);
	end_data();
	copy_whole();
	cr_assert_eq(maps.count, 1, "%zu", maps.count);
	cr_expect_eq(maps.items[0].start_address, 0x2000);
}

Test(perf_data, knows_by_what_stands_behind_the_name_what_was_mapped_when_perf_began)
{
	begin_pipe();
	put_mmap2(7, 0x1000, "/a", 2, 5);
	put_mmap2(7, 0x5000, "/b", 2, 5);
	memset(input.data + input.size_bytes - TRAILER_BYTES, 0, TRAILER_BYTES);
	copy_whole();
	cr_assert_eq(maps.count, 2);
	cr_expect_not(maps.items[0].is_first_sight);
	cr_expect(maps.items[1].is_first_sight);
}

/* ---- changing ------------------------------------------------------------------------- */

static const uint8_t *changed(enum recorded_fix fix, uint8_t *room)
{
	static const uint8_t id[BUILD_ID_BYTES] = "dnmg0123456789abcde";
	struct recorded_mapping mapping = maps.items[0];

	mapping.fix = fix;
	memcpy(room, output + mapping.record_offset, mapping.record_bytes);
	cr_assert(recorded_mapping_change(&mapping, id, room));
	return room;
}

Test(perf_data, a_build_id_changes_its_own_bytes_only)
{
	uint8_t record[256];
	const uint8_t *was;

	begin_pipe();
	put_mmap2(7, 0x7f0000001000, "/usr/lib/a.dll", 2, 5);
	copy_whole();
	was = output + 16;
	changed(RECORDED_BUILD_ID, record);
	cr_expect_arr_eq(record, was, 4);
	cr_expect_eq(record[5], 0x40);
	cr_expect_arr_eq(record + 6, was + 6, 34);
	cr_expect_eq(record[40], 20);
	cr_expect_arr_eq(record + 44, "dnmg0123456789abcde", 20);
	cr_expect_arr_eq(record + 64, was + 64, 16 + 8 + TRAILER_BYTES);
}

Test(perf_data, code_memory_gets_addresses_for_offsets_and_a_name_that_is_a_file)
{
	uint8_t record[256];
	uint64_t offset;

	begin_pipe();
	put_mmap2(7, 0x7f0000001000, "//anon", 2, 7);
	copy_whole();
	changed(RECORDED_ADDRESSES, record);
	memcpy(&offset, record + 32, 8);
	cr_expect_eq(offset, 0x7f0000001000);
	cr_expect_str_eq((const char *)record + NAME_AT, "/[jit]");
	cr_expect_eq(record[NAME_AT + 8], 0xee, "what follows the name was touched");
}

Test(perf_data, a_mapping_that_is_shown_with_more_than_was_recorded_gets_start_length_and_offset)
{
	static const uint8_t id[BUILD_ID_BYTES] = "dnmg0123456789abcde";
	uint64_t words[3]; /* start, length, offset */
	uint8_t record[256];

	begin_pipe();
	put_mmap2(7, 0x7f0000001000, "/memfd:doublemapper (deleted)", 2, 5);
	copy_whole();
	maps.items[0].fix = RECORDED_ADDRESSES;
	maps.items[0].shown_start_address = 0x7effffff0000;
	maps.items[0].shown_end_address = 0x7f0000009000;
	memcpy(record, output + maps.items[0].record_offset, maps.items[0].record_bytes);
	cr_assert(recorded_mapping_change(&maps.items[0], id, record));
	memcpy(words, record + 16, sizeof(words));
	cr_expect_eq(words[0], 0x7effffff0000);
	cr_expect_eq(words[1], 0x19000);
	cr_expect_eq(words[2], 0x7effffff0000);
}

Test(perf_data, anonymous_memory_fits_into_the_room_of_the_shortest_name)
{
	uint8_t record[256];

	begin_pipe();
	put_mmap2(7, 0x1000, "/a", 2, 5);
	copy_whole();
	changed(RECORDED_ANONYMOUS, record);
	cr_expect_str_eq((const char *)record + NAME_AT, "//anon");
	cr_expect_eq(record[NAME_AT + 8], 0xee);
}

Test(perf_data, tells_pages_that_samples_lie_in)
{
	struct sampled_pages hits = { 0 };
	uint8_t bytes[24] = { 0 };
	struct perf_record sample = { .type = PERF_RECORD_SAMPLE,
				      .size_bytes = 24,
				      .bytes = bytes };

	for (uint64_t i = 0; i < 5000; i++) {
		uint64_t address = 0x7f0000000000 + i * 0x2000 + 0x123;

		memcpy(bytes + 8, &address, 8);
		sampled_pages_add(&hits, &sample);
	}
	sampled_pages_settle(&hits, &(struct recorded_maps){ 0 });
	cr_expect(sampled_pages_in(&hits, 0x7f0000000000, 0x7f0000001000));
	cr_expect(!sampled_pages_in(&hits, 0x7f0000001000, 0x7f0000002000));
	cr_expect(sampled_pages_in(&hits, 0x7f0000001000, 0x7f0000002001));
	cr_expect(!sampled_pages_in(&hits, 0x1000, 0x20000));
	sampled_pages_deinit(&hits);
}

/* `identified`: the id of the event stands before the address. */
static void count_samples(bool identified)
{
	struct recorded_mapping mapping = { .start_address = 0x7f0000000000,
					    .end_address = 0x7f0000100000 };
	const struct recorded_maps one = { .items = &mapping, .count = 1 };
	struct sampled_pages hits = { 0 };
	/* The id of an event may be as large as an address. */
	uint64_t words[4] = { 0, 0x7f1234567890, 0, 0x7f00000012345678 };
	const struct perf_record sample = { .type = PERF_RECORD_SAMPLE,
					    .size_bytes = sizeof(words),
					    .bytes = (const uint8_t *)words };

	for (uint64_t i = 0; i < 1000; i++) {
		words[identified ? 2 : 1] =
			i % 10 ? mapping.start_address + i % 7 * 0x1000 : 0xffffffff81000000;
		sampled_pages_add(&hits, &sample);
	}
	cr_expect_eq(sampled_pages_count(&hits, 0, UINT64_MAX), 0, "not settled");
	sampled_pages_settle(&hits, &one);
	cr_expect_eq(sampled_pages_count(&hits, 0x7f0000000000, 0x7f0000100000), 900);
	cr_expect_eq(sampled_pages_count(&hits, 0x7f0000001000, 0x7f0000001001), 129);
	cr_expect_eq(sampled_pages_count(&hits, 0x7f0000001001, 0x7f0000002000), 0);
	cr_expect_eq(sampled_pages_count(&hits, 0x7f0000002000, 0x7f0000001000), 0);
	sampled_pages_deinit(&hits);
}

Test(perf_data, keeps_an_address_once_however_many_samples_lie_there)
{
	struct recorded_mapping mapping = { .start_address = 0x7f0000000000,
					    .end_address = 0x7f0001000000 };
	const struct recorded_maps one = { .items = &mapping, .count = 1 };
	struct sampled_pages hits = { 0 };
	uint64_t words[3] = { 0 };
	const struct perf_record sample = { .type = PERF_RECORD_SAMPLE,
					    .size_bytes = sizeof(words),
					    .bytes = (const uint8_t *)words };

	for (uint64_t i = 0; i < 100000; i++) {
		words[1] = mapping.start_address + i % 3000 * 16;
		words[2] = (uint64_t)7 << 32 | (7 + i % 2);
		sampled_pages_add(&hits, &sample);
	}
	cr_expect_eq(hits.places[0].table.count, 3000);
	cr_expect_eq(hits.places[1].table.count, 2);
	sampled_pages_settle(&hits, &one);
	cr_expect_eq(sampled_pages_count(&hits, 0, UINT64_MAX), 100000);
	cr_expect_eq(sampled_pages_count(&hits, mapping.start_address, mapping.start_address + 17),
		     68, "100,000 is 33 times 3,000, and 1,000");
	sampled_pages_deinit(&hits);
}

Test(perf_data, counts_samples_wherever_their_address_stands)
{
	count_samples(false);
	count_samples(true);
}

/* ---- malformed ------------------------------------------------------------------------- */

Test(perf_data, refuses_what_is_none)
{
	struct sym_error *failure;

	buf_append_string(&input, "#!/bin/sh\necho no perf.data\n");
	failure = copy_as(false);
	cr_expect(failure && strstr(sym_error_message(failure), "not a perf.data"), "%s",
		  failure ? sym_error_message(failure) : "");
	sym_error_destroy(failure);
}

Test(perf_data, refuses_the_other_byte_order)
{
	struct sym_error *failure;

	buf_append_string(&input, "2ELIFREP");
	put_zeros(&input, 200);
	failure = copy_as(false);
	cr_expect(failure && strstr(sym_error_message(failure), "big-endian"), "%s",
		  failure ? sym_error_message(failure) : "");
	sym_error_destroy(failure);
}

/* It would end before its beginning, so it has no record. */
Test(perf_data, refuses_data_whose_end_wraps)
{
	struct sym_error *failure;

	begin_file();
	put_mmap2(7, 0x1000, "/a.dll", 2, 5);
	end_data();
	patch_u32(&input, 48, UINT32_MAX - 8);
	patch_u32(&input, 52, UINT32_MAX);
	failure = copy_as(false);
	cr_assert_not_null(failure);
	cr_expect(strstr(sym_error_message(failure), "contradicts itself"), "%s",
		  failure ? sym_error_message(failure) : "");
	sym_error_destroy(failure);
}

Test(perf_data, loses_nothing_behind_a_record_without_a_size)
{
	struct sym_error *failure;

	begin_file();
	put_mmap2(7, 0x1000, "/a.dll", 2, 5);
	put_record(PERF_RECORD_MMAP2, 2, 0);
	put_mmap2(7, 0x3000, "/b.dll", 2, 5);
	end_data();
	failure = copy_as(false);
	cr_assert_null(failure);
	expect_same_bytes();
	cr_expect(result.cut && strstr(result.cut, "impossible size"), "%s", result.cut);
	cr_expect_eq(maps.count, 1);
}

Test(perf_data, a_name_that_does_not_end_is_no_name)
{
	begin_pipe();
	put_record(PERF_RECORD_MMAP2, 2, NAME_AT + 16);
	put_u32(&input, 7);
	put_u32(&input, 7);
	put_u64(&input, 0x1000);
	put_u64(&input, 0x1000);
	put_zeros(&input, 32);
	put_u32(&input, 5);
	put_u32(&input, 2);
	for (int i = 0; i < 16; i++)
		put_u8(&input, 'n');
	copy_whole();
	expect_same_bytes();
	cr_expect_eq(maps.count, 0);
}

Test(perf_data, a_bomb_ends_early_and_is_said)
{
	struct sym_error *failure;

	begin_pipe();
	put_zeros(&input, 0);
	for (int i = 0; i < 3; i++) {
		size_t from = input.size_bytes;

		put_record(PERF_RECORD_SAMPLE, 2, 65528);
		put_zeros(&input, 65520);
		while (input.size_bytes - from < 20 << 20) {
			put_record(PERF_RECORD_SAMPLE, 2, 65528);
			put_zeros(&input, 65520);
		}
		compress_from(from, 60000, PERF_RECORD_COMPRESSED);
	}
	failure = copy_as(false);
	cr_assert_null(failure, "%s", failure ? sym_error_message(failure) : "");
	cr_expect(output_bytes < 300 << 20);
}

Test(perf_data, a_compressed_record_of_junk_is_said)
{
	struct sym_error *failure;

	begin_pipe();
	put_record(PERF_RECORD_COMPRESSED, 0, 40);
	for (int i = 0; i < 32; i++)
		put_u8(&input, 'x');
	failure = copy_as(false);
	cr_assert_null(failure);
	cr_expect(result.cut && strstr(result.cut, "damaged"), "%s", result.cut);
}

Test(perf_data, takes_a_file_cut_anywhere)
{
	size_t whole;

	begin_file();
	put_mmap2(7, 0x1000, "/a.dll", 2, 5);
	put_sample(1, 64);
	end_data();
	whole = input.size_bytes;
	for (size_t size = 0; size < whole; size++) {
		struct sym_error *failure;

		buf_truncate(&input, size);
		failure = copy_as(false);
		cr_expect(failure ? size < DATA_AT : output_bytes == size, "%zu bytes", size);
		cr_expect(failure || size == whole || result.cut || size == DATA_AT, "%zu bytes",
			  size);
		sym_error_destroy(failure);
		free(output);
		output = NULL;
		free(result.cut);
		result.cut = NULL;
		recorded_maps_deinit(&maps);
	}
}
