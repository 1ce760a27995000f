/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a stream of a runtime (versions 4 to 6): all views of its events end, and their rows
 * add up to what the profile has.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mapgen/cli/options.h"
#include "mapgen/profile/event_report.h"
#include "mapgen/profile/profile_open.h"
#include "mapgen/view/event_view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const size_t largest_input = 1 << 20;

static void expect(bool condition)
{
	if (!condition)
		abort();
}

static void check_rows(const struct view *view, const json_t *rows)
{
	json_int_t count = 0;
	const json_t *row;
	size_t index;

	if (view->kind != VIEW_EXCEPTIONS || view->event == UINT32_MAX)
		return;
	json_array_foreach(rows, index, row) count +=
		json_integer_value(json_object_get(row, "count"));
	expect((uint64_t)count == view->profile->events[view->event].count);
}

static void write_views(const struct profile *profile, FILE *nowhere)
{
	struct view view = { .profile = profile, .input = "input", .top = 20 };

	for (int kind = VIEW_GC; kind < VIEW_KINDS; kind++) {
		json_t *summary, *rows;
		struct sym_error *error;

		view.kind = (enum view_kind)kind;
		view.event = view_find_event(profile, view.kind);
		error = event_view_make(&view, &summary, &rows);
		if (!error) {
			check_rows(&view, rows);
			json_decref(summary);
			json_decref(rows);
		}
		sym_error_destroy(error);
		sym_error_destroy(text_view_write(&view, nowhere));
		sym_error_destroy(json_view_write(&view, nowhere));
		sym_error_destroy(csv_view_write(&view, nowhere));
		sym_error_destroy(folded_view_write(&view, nowhere));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct options options = { .root = "/nonexistent" };
	const struct profile_open_opts opts = { .options = &options, .event_lines = "." };
	struct profile *profile = NULL;
	struct sym_error *error;
	FILE *nowhere;
	char path[32];
	int fd;

	if (size > largest_input || size < 8 || memcmp(data, "Nettrace", 8) != 0)
		return 0;
	fd = memfd_create("input", 0);
	nowhere = fopen("/dev/null", "w");
	expect(fd >= 0 && nowhere && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	error = profile_open(path, &opts, &profile);
	if (!error) {
		write_views(profile, nowhere);
		profile_destroy(profile);
	}
	sym_error_destroy(error);
	fclose(nowhere);
	close(fd);
	return 0;
}
