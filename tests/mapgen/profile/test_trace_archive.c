/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mapgen/profile/trace_archive.h"
#include "mapgen/record/recording_file.h"

static FILE *file_of(const char *text)
{
	FILE *file = tmpfile();

	cr_assert(file != NULL);
	fputs(text, file);
	return file;
}

/* A recording with two streams of events, as `about` lists them. */
static struct sym_error *write_and_read(json_t *about, struct trace_archive *ret)
{
	const struct recorded_stream streams[] = { { RECORDING_EVENTS, file_of("first") },
						   { "events-8.nettrace", file_of("second") } };
	struct buf empty;
	struct recording_parts parts = { .perf_data = file_of("samples"),
					 .symbols = &empty,
					 .stacks = &empty,
					 .about = about,
					 .streams = streams,
					 .stream_count = 2 };
	FILE *archive = tmpfile();
	struct sym_error *error;

	buf_init(&empty, 16);
	cr_assert(recording_file_write(archive, &parts) == NULL);
	cr_assert(eq(int, fflush(archive), 0));
	error = trace_archive_read(fileno(archive), ret);
	fclose(archive);
	fclose(parts.perf_data);
	fclose(streams[0].file);
	fclose(streams[1].file);
	buf_deinit(&empty);
	json_decref(about);
	return error;
}

static void expect_content(int fd, const char *expected)
{
	char text[16] = "";

	cr_assert(gt(int, (int)pread(fd, text, sizeof(text) - 1, 0), 0));
	cr_expect(eq(str, text, (char *)expected));
}

Test(trace_archive, gives_each_stream_of_events_with_its_process)
{
	struct trace_archive archive;

	cr_assert(write_and_read(json_pack("{s:i, s:[{s:s, s:i}, {s:s, s:i}]}", "format", 1,
					   "event_streams", "member", RECORDING_EVENTS, "pid", 7,
					   "member", "events-8.nettrace", "pid", 8),
				 &archive) == NULL);
	cr_assert(eq(sz, archive.stream_count, 2));
	cr_expect(eq(i32, archive.streams[0].pid, 7));
	cr_expect(eq(i32, archive.streams[1].pid, 8));
	expect_content(archive.streams[0].fd, "first");
	expect_content(archive.streams[1].fd, "second");
	expect_content(archive.perf_data_fd, "samples");
	trace_archive_deinit(&archive);
}

Test(trace_archive, reads_a_recording_without_events)
{
	struct trace_archive archive;

	cr_assert(write_and_read(json_pack("{s:i}", "format", 1), &archive) == NULL);
	cr_expect(eq(sz, archive.stream_count, 0));
	trace_archive_deinit(&archive);
}

Test(trace_archive, refuses_a_stream_that_is_not_there)
{
	struct trace_archive archive;
	struct sym_error *error =
		write_and_read(json_pack("{s:i, s:[{s:s, s:i}]}", "format", 1, "event_streams",
					 "member", "events-9.nettrace", "pid", 9),
			       &archive);

	cr_assert(error != NULL);
	sym_error_destroy(error);
	error = write_and_read(
		json_pack("{s:i, s:[{s:i}]}", "format", 1, "event_streams", "pid", 9), &archive);
	cr_assert(error != NULL);
	cr_expect(eq(int, (int)sym_error_code(error), SYM_ERROR_FORMAT));
	sym_error_destroy(error);
}
