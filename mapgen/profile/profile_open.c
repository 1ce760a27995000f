/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/profile_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/error.h"
#include "mapgen/cli/temporary_file.h"
#include "mapgen/perfdata/perf_directory.h"
#include "mapgen/profile/event_profile.h"
#include "mapgen/profile/folded_profile.h"
#include "mapgen/profile/frozen_names.h"
#include "mapgen/profile/perf_profile.h"
#include "mapgen/profile/recorded_names.h"
#include "mapgen/profile/trace_archive.h"

struct input {
	int fd; /* stands at its beginning */
	const char *path;
	int64_t written_s; /* when the recording was written, since 1970 */
	bool in_parts;     /* perf_directory.h */
};

enum {
	MAGIC_BYTES = 8,
};

DEFINE_GUARD(profile, struct profile *, profile_destroy)
DEFINE_GUARD(recorded_names, struct recorded_names *, recorded_names_close)
DEFINE_GUARD(frozen_names, struct frozen_names *, frozen_names_close)
DEFINE_GUARD(event_match, struct event_match *, event_match_destroy)

/* ---- events of a runtime --------------------------------------------------------------------- */

static struct sym_error *read_events(struct profile *profile, int fd,
				     struct event_profile_opts *event_opts,
				     const struct profile_open_opts *opts)
{
	struct sym_error *error;
	regex_t regex;

	event_opts->from_s = opts->from_s;
	event_opts->to_s = opts->to_s;
	if (!opts->event_lines)
		return event_profile_read(profile, fd, event_opts);
	if (regcomp(&regex, opts->event_lines, REG_EXTENDED | REG_NOSUB))
		return sym_error_create(SYM_ERROR_ARGUMENT, "'%s' is no regular expression",
					opts->event_lines);
	event_opts->line_regex = &regex;
	error = event_profile_read(profile, fd, event_opts);
	regfree(&regex);
	return error;
}

/* ---- a recording ----------------------------------------------------------------------------- */

static uint64_t number_of(const json_t *about, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(about, key));

	return value > 0 ? (uint64_t)value : 0;
}

static bool keep_text(const json_t *about, const char *key, char **ret)
{
	const char *text = json_string_value(json_object_get(about, key));

	*ret = text ? strdup(text) : NULL;
	return !text || *ret;
}

/* A .NET process is called "dotnet" by the kernel. */
static struct sym_error *name_process(struct profile *profile)
{
	for (size_t i = 0; profile->title && i < profile->threads.process_count; i++) {
		struct profile_process *process = &profile->threads.processes[i];
		char *name;

		if (process->pid != profile->pid)
			continue;
		name = strdup(profile->title);
		if (!name)
			return &sym_error_no_memory;
		free(process->name);
		process->name = name;
	}
	return NULL;
}

static struct sym_error *take_about(struct profile *profile, const json_t *about)
{
	const json_t *pids = json_object_get(about, "pids");
	const json_t *losses = json_object_get(about, "losses");

	if (json_array_size(pids) == 1)
		profile->pid = (int32_t)json_integer_value(json_array_get(pids, 0));
	profile->losses.unknown_processes = number_of(losses, "unknown_processes");
	return keep_text(about, "title", &profile->title) &&
			       keep_text(about, "runtime", &profile->runtime)
		       ? NULL
		       : &sym_error_no_memory;
}

static bool was_unwound(const json_t *about)
{
	const char *unwind = json_string_value(json_object_get(about, "unwind"));

	return !unwind || strcmp(unwind, "fp") != 0;
}

static struct sym_error *read_streams(struct profile *profile, const struct trace_archive *archive,
				      const struct address_names *names, struct event_match *match,
				      const struct profile_open_opts *opts)
{
	const json_t *about = json_array_get(json_object_get(archive->about, "event_streams"), 0);
	struct sym_error *error = NULL;

	/* A program that was started had no runtime yet. */
	if (!profile->runtime && archive->stream_count == 1 &&
	    !keep_text(about, "runtime", &profile->runtime))
		return &sym_error_no_memory;
	for (size_t i = 0; !error && i < archive->stream_count; i++) {
		struct event_profile_opts event_opts = { .names = names,
							 .match = match,
							 .pid = archive->streams[i].pid,
							 .runtime = archive->streams[i].runtime,
							 .host_tid = frozen_names_host_tid,
							 .host_tid_context = names->context };

		error = read_events(profile, archive->streams[i].fd, &event_opts, opts);
	}
	if (error || !profile->report)
		return error;
	profile->report->match = event_match_counts(match);
	/* Each stream has the number of all processes. */
	profile->report->thinned_stacks = number_of(about, "thinned_stacks");
	return NULL;
}

static struct sym_error *read_archive(struct profile *profile, struct trace_archive *archive,
				      const char *path, const struct profile_open_opts *opts)
{
	struct frozen_names *frozen GUARDED(frozen_names) = NULL;
	struct event_match *match GUARDED(event_match) = NULL;
	struct address_names names = { .frame = frozen_names_frame, .epoch = frozen_names_epoch };
	struct stack_notes notes = { 0 };
	struct perf_profile_opts perf_opts = {
		.names = &names,
		.notes = was_unwound(archive->about) ? &notes : NULL,
		.from_s = opts->from_s,
		.to_s = opts->to_s,
		.begin_ns = number_of(archive->about, "begin_ns"),
		.end_ns = number_of(archive->about, "end_ns"),
	};
	struct sym_error *error =
		frozen_names_open(archive->symbols, archive->symbols_bytes, &frozen);

	if (error)
		return error;
	archive->symbols = NULL; /* the names have it now */
	names.context = frozen;
	if (opts->symbolize)
		frozen_names_symbolize(frozen, opts->symbolize);
	error = event_match_create(&match);
	if (error)
		return error;
	perf_opts.match = archive->stream_count ? match : NULL;
	error = stack_notes_read(&notes, archive->stacks, archive->stacks_bytes);
	if (!error)
		error = perf_profile_read(profile, archive->perf_data_fd, path, &perf_opts);
	profile->losses.bad_name_lines = frozen_names_bad_lines(frozen) + notes.bad_lines;
	stack_notes_deinit(&notes);
	/* The meaning of events depends on the version of the runtime. */
	if (!error)
		error = take_about(profile, archive->about);
	if (!error)
		error = read_streams(profile, archive, &names, match, opts);
	return error ? error : name_process(profile);
}

static struct sym_error *open_archive(struct profile *profile, int fd, const char *path,
				      const struct profile_open_opts *opts)
{
	struct trace_archive archive;
	struct sym_error *error = trace_archive_read(fd, &archive);

	if (error)
		return error;
	error = read_archive(profile, &archive, path, opts);
	trace_archive_deinit(&archive);
	return error;
}

/* ---- a plain perf.data ----------------------------------------------------------------------- */

static struct sym_error *open_perf_data(struct profile *profile, const struct input *input,
					const struct profile_open_opts *opts)
{
	struct recorded_names *recorded GUARDED(recorded_names) = NULL;
	struct perf_profile_opts perf_opts = { .from_s = opts->from_s,
					       .to_s = opts->to_s,
					       .in_parts = input->in_parts };
	struct address_names names;
	struct sym_error *error = recorded_names_open(input->fd, input->path, opts->options,
						      input->written_s, opts->lines, &recorded);

	if (error)
		return error;
	if (lseek(input->fd, 0, SEEK_SET))
		return sym_error_create(SYM_ERROR_IO, "lseek: %s", strerror(errno));
	names = recorded_names_interface(recorded);
	perf_opts.names = &names;
	error = perf_profile_read(profile, input->fd, input->path, &perf_opts);
	if (!error && opts->symbolize)
		error = recorded_names_symbolize(recorded, opts->symbolize, profile->frames);
	profile->losses.places_without_line =
		recorded_names_lineless(recorded, &profile->losses.line_reason);
	return error;
}

/* ---- a stream of a runtime ------------------------------------------------------------------- */

static struct sym_error *open_nettrace(struct profile *profile, int fd,
				       const struct profile_open_opts *opts)
{
	struct event_profile_opts event_opts = { 0 };
	struct sym_error *error = read_events(profile, fd, &event_opts, opts);

	if (!error && profile->threads.process_count == 1)
		profile->pid = profile->threads.processes[0].pid;
	return error ? error : name_process(profile);
}

/* ---- folded text ----------------------------------------------------------------------------- */

static struct sym_error *open_folded(struct profile *profile, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	FILE *file GUARDED(file) = copy >= 0 ? fdopen(copy, "r") : NULL;

	if (file)
		return folded_profile_read(profile, file);
	if (copy >= 0)
		close(copy);
	return sym_error_create(SYM_ERROR_IO, "%s", strerror(errno));
}

/* ---- any ------------------------------------------------------------------------------------- */

/* Copies input that cannot be read twice, such as a pipe. */
static struct sym_error *copy_whole(int fd, int output_fd)
{
	int failure = path_copy_rest(fd, output_fd);

	return failure ? sym_error_create(SYM_ERROR_IO, "cannot be copied: %s", strerror(-failure))
		       : NULL;
}

static struct sym_error *copy_to_temporary(struct input *input, int fd)
{
	int copy AUTO_CLOSE = -1;
	struct sym_error *error = temporary_file_open(&copy);

	if (!error)
		error = input->in_parts ? perf_directory_join(fd, input->path, copy)
					: copy_whole(fd, copy);
	if (!error && lseek(copy, 0, SEEK_SET))
		error = sym_error_create(SYM_ERROR_IO, "%s", strerror(errno));
	if (!error)
		input->fd = steal_fd(&copy);
	return error;
}

static struct sym_error *open_input(const char *path, struct input *input)
{
	bool is_standard = !strcmp(path, "-");
	int fd AUTO_CLOSE = is_standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
					: open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat status;

	*input = (struct input){ .fd = -1, .path = path };
	if (fd < 0 || fstat(fd, &status))
		return sym_error_create(errno == EACCES   ? SYM_ERROR_PERMISSION
					: errno == ENOENT ? SYM_ERROR_NOT_FOUND
							  : SYM_ERROR_IO,
					"%s", strerror(errno));
	input->written_s = S_ISFIFO(status.st_mode) ? time(NULL) : status.st_mtim.tv_sec;
	input->in_parts = S_ISDIR(status.st_mode);
	if (!S_ISREG(status.st_mode) || lseek(fd, 0, SEEK_CUR))
		return copy_to_temporary(input, fd);
	input->fd = steal_fd(&fd);
	return NULL;
}

static struct sym_error *read_input(struct profile *profile, const struct input *input,
				    const struct profile_open_opts *opts)
{
	uint8_t magic[MAGIC_BYTES] = { 0 };

	if (pread(input->fd, magic, sizeof(magic), 0) < 0)
		return sym_error_create(SYM_ERROR_IO, "cannot be read: %s", strerror(errno));
	if (!memcmp(magic, "PK\3\4", 4) || !memcmp(magic, "PK\5\6", 4))
		return open_archive(profile, input->fd, input->path, opts);
	if (!memcmp(magic, "PERFILE2", 8) || !memcmp(magic, "2ELIFREP", 8))
		return open_perf_data(profile, input, opts);
	if (opts->symbolize)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"--symbolize-at needs a recording or a perf.data");
	if (!memcmp(magic, "Nettrace", 8))
		return open_nettrace(profile, input->fd, opts);
	return open_folded(profile, input->fd);
}

struct sym_error *profile_open(const char *path, const struct profile_open_opts *opts,
			       struct profile **ret)
{
	struct profile *profile GUARDED(profile) = NULL;
	struct input input;
	struct sym_error *error = open_input(path, &input);

	if (!error)
		error = profile_create(&profile);
	if (!error) {
		profile->keeps_samples = opts->keeps_samples;
		profile->keeps_spans = opts->keeps_spans;
	}
	if (!error)
		error = read_input(profile, &input, opts);
	if (!error)
		*ret = STEAL(profile);
	if (input.fd >= 0)
		close(input.fd);
	return error;
}
