/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#include "mapgen/record/perf_writer.h"

/* linux/perf_event.h: id, lost, then the fields of every record, with the id last. */
struct lost_record {
	struct perf_event_header header;
	uint64_t id, lost;
	uint32_t pid, tid;
	uint64_t time_ns, cpu, identifier;
};

Test(perf_writer, gives_losses_of_probes_an_id_that_the_file_has)
{
	const struct lost_record lost = {
		.header = { .type = PERF_RECORD_LOST, .size = sizeof(lost) },
		.id = 77,
		.lost = 5,
		.time_ns = 1000,
		.identifier = 77,
	};
	struct lost_record written;
	struct perf_writer writer;
	FILE *file = tmpfile();

	cr_assert(ne(ptr, file, NULL));
	perf_writer_begin(&writer, file, false);
	perf_writer_put_of_probe(&writer, &lost.header);
	cr_assert(eq(int, fseek(file, -(long)sizeof(written), SEEK_END), 0));
	cr_assert(eq(sz, fread(&written, sizeof(written), 1, file), 1));
	cr_expect(eq(u64, written.identifier, perf_writer_probe_id(0)));
	cr_expect(eq(u64, written.lost, 5));
	cr_expect(eq(u64, written.time_ns, 1000));
	cr_expect(eq(u64, writer.data_bytes, sizeof(lost)));
	fclose(file);
}
