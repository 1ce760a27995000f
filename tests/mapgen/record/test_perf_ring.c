/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <linux/perf_event.h>
#include <string.h>

#include "mapgen/cli/temporary_file.h"
#include "mapgen/record/perf_ring.h"

/* A sample with the layout of perf_writer.c: header, id, ip, pid and tid, time. */
struct sample {
	struct perf_event_header header;
	uint64_t id, ip, thread, time;
};

/* Another record: its fields, then TID, TIME, CPU, IDENTIFIER. */
struct other {
	struct perf_event_header header;
	uint64_t field, thread, time, cpu, id;
};

static void put_sample(struct perf_ring *ring, uint64_t time)
{
	const struct sample sample = { { PERF_RECORD_SAMPLE, 0, sizeof(sample) }, 1, 2, 3, time };

	cr_assert(perf_ring_put(ring, &sample, sizeof(sample)));
}

static void put_other(struct perf_ring *ring, uint32_t type, uint64_t time)
{
	const struct other other = { { type, 0, sizeof(other) }, 1, 2, time, 3, 4 };

	cr_assert(perf_ring_put(ring, &other, sizeof(other)));
}

/* Counts of records by type in what the ring writes. */
static void count_types(struct perf_ring *ring, uint64_t from_ns, size_t *counts, size_t types)
{
	FILE *file = tmpfile();
	struct perf_event_header header;
	uint64_t bytes, at = 0;

	memset(counts, 0, types * sizeof(*counts));
	cr_assert(perf_ring_write(ring, from_ns, file, &bytes));
	cr_assert_eq((uint64_t)ftello(file), bytes);
	rewind(file);
	for (; at < bytes; at += header.size) {
		cr_assert_eq(fseeko(file, (off_t)at, SEEK_SET), 0);
		cr_assert_eq(fread(&header, sizeof(header), 1, file), 1);
		cr_assert_lt(header.type, types);
		counts[header.type]++;
	}
	fclose(file);
}

Test(perf_ring, keeps_samples_since_a_time_and_processes_of_all_times)
{
	struct perf_ring ring;
	size_t counts[128];

	cr_assert_null(perf_ring_init(&ring, 1000));
	put_other(&ring, PERF_RECORD_COMM, 0);
	for (uint64_t time = 1; time <= 10000; time += 10) {
		put_sample(&ring, time);
		put_other(&ring, PERF_RECORD_SWITCH, time);
	}
	put_other(&ring, PERF_RECORD_MMAP2, 500);
	count_types(&ring, 9001, counts, 128);
	cr_expect_eq(counts[PERF_RECORD_SAMPLE], 100);
	cr_expect_eq(counts[PERF_RECORD_SWITCH], 100);
	cr_expect_eq(counts[PERF_RECORD_COMM], 1);
	cr_expect_eq(counts[PERF_RECORD_MMAP2], 1);
	perf_ring_deinit(&ring);
}

Test(perf_ring, keeps_everything_that_is_shorter_than_it)
{
	struct perf_ring ring;
	size_t counts[128];

	cr_assert_null(perf_ring_init(&ring, 1000000));
	for (uint64_t time = 1; time <= 1000; time++)
		put_sample(&ring, time);
	count_types(&ring, 0, counts, 128);
	cr_expect_eq(counts[PERF_RECORD_SAMPLE], 1000);
	perf_ring_deinit(&ring);
}

/* The files have what two spans have, however long it takes. */
Test(perf_ring, stays_small_while_time_goes_on)
{
	struct perf_ring ring;

	cr_assert_null(perf_ring_init(&ring, 1000));
	for (uint64_t time = 1; time <= 100000; time++)
		put_sample(&ring, time);
	for (int i = 0; i < 2; i++)
		cr_expect_leq(ftello(ring.segments[i]), (off_t)(1002 * sizeof(struct sample)));
	perf_ring_deinit(&ring);
}
