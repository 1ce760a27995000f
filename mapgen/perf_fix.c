/* SPDX-License-Identifier: MIT */
/*
 * The command perf-fix: a perf.data of which stock perf shows managed names. Only
 * MMAP2 records change, in place: mapped assemblies and code heaps get a build-id under
 * which perf finds a stand-in with their names. Copies first and decides then, so that
 * data of any size is read once; what came from a pipe is kept until it has ended.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "mapgen/buildid_dir.h"
#include "mapgen/command.h"
#include "mapgen/message.h"
#include "mapgen/name_plan.h"
#include "mapgen/perf_fix_report.h"
#include "mapgen/perf_output.h"
#include "mapgen/profile/perf_data.h"
#include "mapgen/profile/recorded_hits.h"
#include "mapgen/profile/recorded_maps.h"
#include "mapgen/undo_record.h"

struct fixing {
	const struct options *options;
	const char *input;
	char *output;
	char *cache;
	char *undo_path; /* NULL for none */
	struct perf_place place;
	struct recorded_maps maps;
	struct recorded_hits hits;
	struct name_plan plan;
	struct undo_record undo;
	struct perf_fix_report report;
};

static bool fail(char *reason)
{
	message("%s", reason ? reason : "out of memory");
	free(reason);
	return false;
}

/* ---- reading ----------------------------------------------------------------------------- */

static char *take(void *context, const struct perf_record *record)
{
	struct fixing *fixing = context;

	if (record->type != PERF_RECORD_SAMPLE)
		return recorded_maps_take(&fixing->maps, record);
	recorded_hits_add(&fixing->hits, record);
	return NULL;
}

static bool copy_part(struct fixing *fixing, uint32_t number)
{
	struct perf_part *part = &fixing->place.parts[number];
	char *path AUTO_FREE =
		fixing->place.is_directory
			? message_format("%s/%s", fixing->place.input_path, part->name)
			: strdup(fixing->place.input_path);
	struct perf_data_result result;
	struct perf_data_job job = {
		.input_fd = part->input_fd,
		.output_fd = part->output_fd,
		.path = path,
		.is_part = !part->is_main,
		.wanted_types = RECORDED_MAPS_TYPES | 1ull << PERF_RECORD_SAMPLE,
		.take = take,
		.context = fixing,
	};
	char *failure;

	if (!path)
		return fail(NULL);
	fixing->maps.part = number;
	failure = perf_data_copy(&job, &result);
	if (failure)
		return fail(failure);
	fixing->report.records += result.record_count;
	fixing->report.was_compressed |= result.was_compressed;
	if (!result.cut)
		return true;
	if (result.was_compressed && fixing->place.replaces_input) {
		/* No way leads back to what cannot be read now. */
		fail(message_format("%s: nothing was changed; --output takes what can be read",
				    result.cut));
		free(result.cut);
		return false;
	}
	failures_add(&fixing->report.failures, "", result.cut);
	return true;
}

static bool copy_all(struct fixing *fixing)
{
	if (fixing->place.is_directory && !fixing->place.part_count)
		return fail(message_format("%s: a directory without perf's data",
					   fixing->place.input_path));
	for (uint32_t i = 0; i < fixing->place.part_count; i++)
		if (!copy_part(fixing, i))
			return false;
	recorded_maps_sort(&fixing->maps);
	recorded_hits_settle(&fixing->hits, &fixing->maps);
	return true;
}

/* ---- changing ---------------------------------------------------------------------------- */

static bool change(struct fixing *fixing, const struct recorded_mapping *mapping)
{
	const struct perf_part *part = &fixing->place.parts[mapping->part];
	const uint8_t *id = mapping->fix == RECORDED_ANONYMOUS
				    ? NULL
				    : fixing->plan.standins[mapping->standin].id;
	uint8_t old_bytes[UINT16_MAX], new_bytes[UINT16_MAX];
	size_t count = mapping->record_bytes;
	int failure = path_read_at(part->output_fd, old_bytes, count, mapping->record_offset);

	if (failure)
		return fail(message_format("cannot read what was written: %s", strerror(-failure)));
	memcpy(new_bytes, old_bytes, count);
	if (!recorded_mapping_change(mapping, id, new_bytes))
		return fail(message_format("a record is not the one that was read"));
	if (!memcmp(new_bytes, old_bytes, count))
		return true; /* an earlier perf-fix gave it the same name */
	if (pwrite(part->output_fd, new_bytes, count, (off_t)mapping->record_offset) !=
	    (ssize_t)count)
		return fail(message_format("cannot write: %s", strerror(errno)));
	undo_record_add(&fixing->undo, part->name, mapping->record_offset, old_bytes, new_bytes,
			count);
	fixing->report.changed++;
	return true;
}

static bool change_all(struct fixing *fixing)
{
	for (size_t i = 0; i < fixing->maps.count; i++)
		if (fixing->maps.items[i].fix != RECORDED_AS_IT_IS &&
		    !change(fixing, &fixing->maps.items[i]))
			return false;
	return true;
}

/* Does the data that was read still have what the line says an earlier perf-fix wrote? */
static bool still_has(const struct fixing *fixing, const struct undo_line *line)
{
	uint8_t bytes[UINT16_MAX];

	for (size_t i = 0; i < fixing->place.part_count; i++) {
		const struct perf_part *part = &fixing->place.parts[i];

		if (!strcmp(part->name, line->part) && line->count <= sizeof(bytes))
			return !path_read_at(part->input_fd, bytes, line->count, line->offset) &&
			       !memcmp(bytes, line->new_bytes, line->count);
	}
	return false;
}

struct earlier_undo {
	const struct fixing *fixing;
	struct undo_record kept;
	bool is_of_this; /* no line fits data that was recorded over it since */
};

static char *keep_line(void *context, const struct undo_line *line)
{
	struct earlier_undo *earlier = context;

	earlier->is_of_this |= still_has(earlier->fixing, line);
	undo_record_add(&earlier->kept, line->part, line->offset, line->old_bytes, line->new_bytes,
			line->count);
	return NULL;
}

/* What an earlier perf-fix changed in this place can still be put back. */
static bool keep_earlier_undo(struct fixing *fixing)
{
	struct earlier_undo earlier = { .fixing = fixing };
	char *path AUTO_FREE = NULL;
	char *failure = NULL;

	if (!fixing->place.replaces_input)
		return true;
	path = fixing->place.is_directory ? message_format("%s/undo", fixing->place.output_path)
					  : strdup(fixing->undo_path);
	if (!path)
		return fail(NULL);
	if (access(path, F_OK))
		return true;
	undo_record_init(&earlier.kept);
	failure = undo_record_read(path, keep_line, &earlier);
	if (!failure && earlier.is_of_this)
		undo_record_append(&fixing->undo, &earlier.kept);
	undo_record_deinit(&earlier.kept);
	return failure ? fail(failure) : true;
}

static bool write_undo(struct fixing *fixing)
{
	const struct stat *status = &fixing->place.input_status;
	char *failure;

	if (!fixing->undo_path)
		return true;
	if (!keep_earlier_undo(fixing))
		return false;
	/* It says where what was mapped, as the data does. */
	failure = undo_record_write(&fixing->undo, fixing->undo_path,
				    S_ISREG(status->st_mode) ? status->st_mode & 0666 : 0600);
	if (failure)
		return fail(failure);
	return true;
}

/* ---- the command ----------------------------------------------------------------------------- */

static bool is_pipe(const char *path)
{
	return !strcmp(path, "-");
}

static char *output_for(const struct options *options, const char *input)
{
	if (options->in_place)
		return strdup(input);
	if (options->output)
		return strdup(options->output);
	return is_pipe(input) ? strdup("-") : message_format("%s.fixed", input);
}

/* 0 to go on, else the exit code; what is wrong has been said. */
static int check_usage(const struct options *options)
{
	const char *input = options->operand_count ? options->operands[0] : NULL;

	if (options->operand_count != 1) {
		message(input ? "one file at a time"
			      : "no file; see dotnet-mapgen perf-fix --help");
		return EXIT_USAGE;
	}
	if (options->in_place && options->output) {
		message("--in-place and --output exclude each other");
		return EXIT_USAGE;
	}
	if (options->undo && (options->output || options->pid)) {
		message("--undo puts back all of PERF.DATA, without --output and --pid");
		return EXIT_USAGE;
	}
	if (is_pipe(input) && (options->in_place || options->undo)) {
		message("a pipe has no place to %s",
			options->undo ? "put anything back in" : "be changed in");
		return EXIT_USAGE;
	}
	return 0;
}

static bool open_all(struct fixing *fixing)
{
	const struct options *options = fixing->options;
	char *failure;

	fixing->output = output_for(options, fixing->input);
	fixing->cache = buildid_dir_path(options->buildid_dir);
	if (!fixing->output || !fixing->cache)
		return fail(NULL);
	if (is_pipe(fixing->output) && isatty(STDOUT_FILENO))
		return fail(message_format("perf.data is not for terminals: give --output"));
	failure = perf_place_open(&fixing->place, fixing->input, fixing->output);
	if (failure)
		return fail(failure);
	if (fixing->place.is_directory)
		fixing->undo_path = message_format("%s/undo", fixing->place.directory);
	else if (!is_pipe(fixing->output))
		fixing->undo_path = message_format("%s.undo", fixing->place.output_path);
	return fixing->undo_path || is_pipe(fixing->output) ? true : fail(NULL);
}

static bool make_plan(struct fixing *fixing)
{
	const struct stat *status = &fixing->place.input_status;

	fixing->plan.options = fixing->options;
	fixing->plan.cache = fixing->cache;
	fixing->plan.hits = &fixing->hits;
	fixing->plan.anonymous = fixing->options->mode == PERF_FIX_ANON;
	/* perf writes to its file until the recording ends; a copy may be younger, not older. */
	fixing->plan.recorded_until = S_ISREG(status->st_mode) ? status->st_mtim.tv_sec : INT64_MAX;
	return name_plan_make(&fixing->plan, &fixing->maps);
}

/* What there is of an earlier run is better than a copy of the input. */
static bool has_subject(const struct fixing *fixing)
{
	const struct options *options = fixing->options;

	if (!options->pid || fixing->plan.process_count || is_pipe(fixing->output))
		return true;
	perf_fix_report_no_code(options);
	return fail(message_format("nothing was written"));
}

static bool fix(struct fixing *fixing)
{
	char *failure;

	if (!open_all(fixing) || !copy_all(fixing) || !make_plan(fixing) || !has_subject(fixing) ||
	    !change_all(fixing))
		return false;
	if (fixing->place.replaces_input && !fixing->undo.count && !fixing->report.was_compressed)
		return true; /* as it was */
	if (!write_undo(fixing))
		return false;
	failure = perf_place_commit(&fixing->place);
	if (!failure)
		return true;
	if (fixing->undo_path && !fixing->place.is_directory && !fixing->place.replaces_input)
		unlink(fixing->undo_path);
	return fail(failure);
}

/* perf maps for the processes whose mappings became anonymous. */
static bool merge_maps(const struct fixing *fixing)
{
	bool merged = true;

	for (size_t i = 0; i < fixing->plan.process_count; i++) {
		struct options options = *fixing->options;

		if (!fixing->plan.anonymous || !fixing->plan.processes[i].lives)
			continue;
		options.pid = fixing->plan.processes[i].pid;
		options.mode = MERGE_MODE_DEFAULT;
		options.output = NULL;
		options.operand_count = 0;
		options.undo = options.json = false;
		options.on_behalf = true;
		options.map_dirs = (struct text_list){ 0 };
		merged &= merge_run(&options) == EXIT_DONE;
	}
	return merged;
}

static int run(struct fixing *fixing)
{
	int exit_code;

	if (!fix(fixing))
		return EXIT_FAILED;
	fixing->report.plan = &fixing->plan;
	fixing->report.cache = fixing->cache;
	fixing->report.output = fixing->output;
	exit_code = perf_fix_report_print(&fixing->report, fixing->options,
					  is_pipe(fixing->output) ? stderr : stdout);
	return merge_maps(fixing) ? exit_code : EXIT_PARTLY;
}

int perf_fix_run(const struct options *options)
{
	struct fixing fixing = { .options = options, .place = PERF_PLACE_NONE };
	int exit_code = check_usage(options);

	if (exit_code)
		return exit_code;
	fixing.input = options->operands[0];
	if (options->undo)
		return perf_undo(fixing.input, options);
	undo_record_init(&fixing.undo);
	exit_code = run(&fixing);
	undo_record_deinit(&fixing.undo);
	name_plan_deinit(&fixing.plan);
	recorded_maps_deinit(&fixing.maps);
	recorded_hits_deinit(&fixing.hits);
	perf_place_deinit(&fixing.place);
	failures_deinit(&fixing.report.failures);
	free(fixing.undo_path);
	free(fixing.output);
	free(fixing.cache);
	return exit_code;
}
