/* SPDX-License-Identifier: MIT */
/*
 * The parts become an archive without a name, which is opened as any other.
 *
 * PerfView takes every sample for use of the CPU, so waits are left out of its text.
 */
#include "mapgen/command/recording_profile.h"

#include <errno.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/error.h"
#include "mapgen/cli/temporary_file.h"
#include "mapgen/profile/profile_open.h"
#include "mapgen/view/view.h"

DEFINE_GUARD(profile, struct profile *, profile_destroy)

static struct sym_error *finish_writing(FILE *file)
{
	return fflush(file) || ferror(file) || fseeko(file, 0, SEEK_SET)
		       ? sym_error_create(SYM_ERROR_IO, "cannot write a temporary file: %s",
					  strerror(errno))
		       : NULL;
}

struct sym_error *recording_profile_open(const struct options *options,
					 const struct recording_parts *parts, bool keeps_samples,
					 struct profile **ret)
{
	const struct profile_open_opts opts = { .options = options,
						.keeps_samples = keeps_samples };
	FILE *archive GUARDED(file) = NULL;
	struct sym_error *error = temporary_file_stream(&archive);
	char path[64];

	if (!error)
		error = recording_file_write(archive, parts);
	if (!error)
		error = finish_writing(archive);
	if (error)
		return error;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(archive));
	return profile_open(path, &opts, ret);
}

struct sym_error *recording_profile_print(const struct options *options,
					  const struct recording_parts *parts, FILE **ret)
{
	struct profile *profile GUARDED(profile) = NULL;
	FILE *text GUARDED(file) = NULL;
	struct sym_error *error = recording_profile_open(options, parts, true, &profile);
	struct view view = { .profile = profile, .kind = VIEW_CPU, .names = FRAME_NAMES_FULL };

	if (!error)
		error = temporary_file_stream(&text);
	if (error)
		return error;
	view.event = view_find_event(profile, VIEW_CPU);
	error = perf_script_view_write(&view, text);
	if (!error)
		error = finish_writing(text);
	if (!error)
		*ret = STEAL(text);
	return error;
}
