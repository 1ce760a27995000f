/* SPDX-License-Identifier: MIT */
/*
 * The command perf-fix: rewrites a perf.data so that stock perf shows names of managed code.
 *
 * Only MMAP2 records change, in place: mapped assemblies and code heaps get a build-id, under which
 * perf finds a symbol file with their names. The data is copied first and decided on afterwards, so
 * data of any size is read once; data from a pipe is kept until the pipe ends. When samples lie
 * outside of all recorded mappings, mappings of the live process are inserted before the other
 * records (unrecorded_maps.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/message.h"
#include "mapgen/perfdata/fixup_plan.h"
#include "mapgen/perfdata/fixup_report.h"
#include "mapgen/perfdata/perf_data.h"
#include "mapgen/perfdata/perf_files.h"
#include "mapgen/perfdata/perf_insert.h"
#include "mapgen/perfdata/recorded_maps.h"
#include "mapgen/perfdata/sampled_pages.h"
#include "mapgen/perfdata/undo_record.h"
#include "mapgen/perfdata/unrecorded_maps.h"
#include "mapgen/symfile/buildid_cache.h"

struct fixing {
	const struct options *options;
	const char *input;
	char *output;
	char *cache;
	char *undo_path; /* NULL: none */
	struct perf_place place;
	struct recorded_maps maps;
	struct sampled_pages hits;
	struct unrecorded_maps unrecorded;
	enum perf_data_shape shape;
	struct fixup_plan plan;
	struct undo_record undo;
	struct perf_fix_report report;
};

/* ---- reading ----------------------------------------------------------------------------- */

static struct sym_error *perf_fix_read_record(void *context, const struct perf_record *record)
{
	struct fixing *fixing = context;

	if (record->type == PERF_RECORD_SAMPLE)
		sampled_pages_add(&fixing->hits, record);
	else if (1ull << record->type & UNRECORDED_TYPES)
		unrecorded_maps_note(&fixing->unrecorded, record);
	else
		return recorded_maps_take(&fixing->maps, record);
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
		.wanted_types = RECORDED_MAPS_TYPES | UNRECORDED_TYPES | 1ull << PERF_RECORD_SAMPLE,
		.take = perf_fix_read_record,
		.context = fixing,
	};
	struct sym_error *failure;

	if (!path)
		return message_error(&sym_error_no_memory);
	fixing->maps.part = number;
	failure = perf_data_copy(&job, &result);
	if (failure)
		return message_error(failure);
	fixing->shape = result.shape;
	fixing->report.records += result.record_count;
	fixing->report.was_compressed |= result.was_compressed;
	if (!result.cut)
		return true;
	if (result.was_compressed && fixing->place.replaces_input) {
		/* A record that cannot be read now could not be restored later. */
		message_error(sym_error_create(
			SYM_ERROR_IO,
			"%s: nothing was changed; --output writes the records that can be read",
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
		return message_error(sym_error_create(SYM_ERROR_IO,
						      "%s: a directory without perf.data",
						      fixing->place.input_path));
	for (uint32_t i = 0; i < fixing->place.part_count; i++)
		if (!copy_part(fixing, i))
			return false;
	recorded_maps_sort(&fixing->maps);
	sampled_pages_settle(&fixing->hits, &fixing->maps);
	return true;
}

/* ---- changing ---------------------------------------------------------------------------- */

static bool perf_fix_change_record(struct fixing *fixing, const struct recorded_mapping *mapping)
{
	const struct perf_part *part = &fixing->place.parts[mapping->part];
	const uint8_t *id = mapping->fix == RECORDED_ANONYMOUS
				    ? NULL
				    : fixing->plan.symfiles[mapping->standin].id;
	uint8_t old_bytes[UINT16_MAX], new_bytes[UINT16_MAX];
	size_t count = mapping->record_bytes;
	int failure = path_read_at(part->output_fd, old_bytes, count, mapping->record_offset);

	if (failure)
		return message_error(sym_error_create(
			SYM_ERROR_IO, "cannot read the output back: %s", strerror(-failure)));
	memcpy(new_bytes, old_bytes, count);
	if (!recorded_mapping_change(mapping, id, new_bytes))
		return message_error(sym_error_create(
			SYM_ERROR_IO, "a record that was to be copied is another in the output"));
	if (!memcmp(new_bytes, old_bytes, count))
		return true; /* an earlier perf-fix used the same name */
	if (pwrite(part->output_fd, new_bytes, count, (off_t)mapping->record_offset) !=
	    (ssize_t)count)
		return message_error(
			sym_error_create(SYM_ERROR_IO, "cannot write: %s", strerror(errno)));
	undo_record_add(&fixing->undo, part->name, mapping->record_offset, old_bytes, new_bytes,
			count);
	fixing->report.changed++;
	return true;
}

/* The missing records, one after the other. */
static struct sym_error *write_added(const struct fixing *fixing, struct buf *records)
{
	for (size_t i = 0; i < fixing->maps.count; i++) {
		const struct recorded_mapping *mapping = &fixing->maps.items[i];
		const uint8_t *id =
			mapping->fix == RECORDED_BUILD_ID || mapping->fix == RECORDED_ADDRESSES
				? fixing->plan.symfiles[mapping->standin].id
				: NULL;
		uint8_t bytes[RECORDED_MAPPING_BYTES];
		size_t count = mapping->is_added ? recorded_mapping_write(mapping, id, bytes) : 0;

		if (!buf_append(records, bytes, count))
			return records->failure == BUF_TOO_BIG
				       ? sym_error_create(
						 SYM_ERROR_IO,
						 "the missing mappings have more than %zu bytes",
						 records->max_bytes)
				       : &sym_error_no_memory;
	}
	return NULL;
}

/* Called before records are changed, because they move. */
static bool insert_added(struct fixing *fixing)
{
	struct buf records;
	uint64_t at = 0;
	struct sym_error *failure;

	if (!fixing->unrecorded.added)
		return true;
	buf_init(&records, INT32_MAX);
	failure = write_added(fixing, &records);
	if (!failure)
		failure = perf_insert(fixing->place.parts[0].output_fd, fixing->shape, records.data,
				      records.size_bytes, &at);
	for (size_t i = 0; !failure && i < fixing->maps.count; i++)
		if (!fixing->maps.items[i].is_added && fixing->maps.items[i].record_offset >= at)
			fixing->maps.items[i].record_offset += records.size_bytes;
	buf_deinit(&records);
	return message_error(failure);
}

static bool change_all(struct fixing *fixing)
{
	for (size_t i = 0; i < fixing->maps.count; i++)
		if (!fixing->maps.items[i].is_added &&
		    fixing->maps.items[i].fix != RECORDED_AS_IT_IS &&
		    !perf_fix_change_record(fixing, &fixing->maps.items[i]))
			return false;
	return true;
}

/* Whether the data still has what an earlier perf-fix wrote, by its line in the undo file. */
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
	bool is_of_this; /* no line fits, because the file was recorded again */
};

static struct sym_error *keep_line(void *context, const struct undo_line *line)
{
	struct earlier_undo *earlier = context;

	earlier->is_of_this |= still_has(earlier->fixing, line);
	undo_record_add(&earlier->kept, line->part, line->offset, line->old_bytes, line->new_bytes,
			line->count);
	return NULL;
}

/* Keeps the lines of an earlier perf-fix, so that its changes can still be undone. */
static bool keep_earlier_undo(struct fixing *fixing)
{
	struct earlier_undo earlier = { .fixing = fixing };
	char *path AUTO_FREE = NULL;
	struct sym_error *failure = NULL;

	if (!fixing->place.replaces_input)
		return true;
	path = fixing->place.is_directory ? message_format("%s/undo", fixing->place.output_path)
					  : strdup(fixing->undo_path);
	if (!path)
		return message_error(&sym_error_no_memory);
	if (access(path, F_OK))
		return true;
	undo_record_init(&earlier.kept);
	failure = undo_record_read(path, keep_line, &earlier);
	if (!failure && earlier.is_of_this)
		undo_record_append(&fixing->undo, &earlier.kept);
	undo_record_deinit(&earlier.kept);
	return message_error(failure);
}

static bool write_undo(struct fixing *fixing)
{
	const struct stat *status = &fixing->place.input_status;
	struct sym_error *failure;

	if (!fixing->undo_path)
		return true;
	if (!keep_earlier_undo(fixing))
		return false;
	/* It has addresses of the process, as the data has, so it gets the same mode. */
	failure = undo_record_write(&fixing->undo, fixing->undo_path,
				    S_ISREG(status->st_mode) ? status->st_mode & 0666 : 0600);
	return message_error(failure);
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

/* 0 to go on, else the exit code, after a message. */
static int check_usage(const struct options *options)
{
	const char *input = options->operand_count ? options->operands[0] : NULL;
	int32_t pid;

	if (options->operand_count != 1) {
		message(input ? "perf-fix takes one file; see dotnet-mapgen perf-fix --help"
			      : "perf-fix needs a file; see dotnet-mapgen perf-fix --help");
		return EXIT_USAGE;
	}
	if (options_read_pid(input, &pid) && access(input, F_OK)) {
		message("perf-fix takes a file that perf record wrote; %s is a PID (record -p %s "
			"records it)",
			input, input);
		return EXIT_USAGE;
	}
	if (options->in_place && options->output) {
		message("--in-place does not go with --output");
		return EXIT_USAGE;
	}
	if (options->undo && (options->output || options->pid)) {
		message("--undo restores all of PERF.DATA; it does not go with --output and --pid");
		return EXIT_USAGE;
	}
	if (is_pipe(input) && (options->in_place || options->undo)) {
		message("--%s needs a file, not a pipe", options->undo ? "undo" : "in-place");
		return EXIT_USAGE;
	}
	return 0;
}

static bool open_all(struct fixing *fixing)
{
	const struct options *options = fixing->options;
	struct sym_error *failure;

	fixing->output = output_for(options, fixing->input);
	fixing->cache = buildid_dir_path(options->buildid_dir);
	if (!fixing->output || !fixing->cache)
		return message_error(&sym_error_no_memory);
	if (is_pipe(fixing->output) && isatty(STDOUT_FILENO))
		return message_error(sym_error_create(
			SYM_ERROR_IO, "cannot write perf.data to a terminal: give --output"));
	failure = perf_place_open(&fixing->place, fixing->input, fixing->output);
	if (failure)
		return message_error(failure);
	if (fixing->place.is_directory)
		fixing->undo_path = message_format("%s/undo", fixing->place.directory);
	else if (!is_pipe(fixing->output))
		fixing->undo_path = message_format("%s.undo", fixing->place.output_path);
	return fixing->undo_path || is_pipe(fixing->output) ? true
							    : message_error(&sym_error_no_memory);
}

/* NULL, or why no mapping is added; static. */
static const char *adding_trouble(const struct fixing *fixing)
{
	/* --undo puts back all. */
	if (fixing->place.replaces_input)
		return "--output adds what a live process has mapped there";
	if (fixing->place.is_directory)
		return "a directory of perf's gets no more records";
	return perf_insert_trouble(fixing->place.parts[0].output_fd, fixing->shape);
}

static bool make_plan(struct fixing *fixing)
{
	const struct stat *status = &fixing->place.input_status;

	fixing->plan.options = fixing->options;
	fixing->plan.cache = fixing->cache;
	fixing->plan.hits = &fixing->hits;
	fixing->plan.anonymous = fixing->options->via == PERF_FIX_VIA_PERFMAP;
	/* perf writes to its file until the recording ends, so a copy may be younger, but not
	 * older. */
	fixing->plan.recorded_until = S_ISREG(status->st_mode) ? status->st_mtim.tv_sec : INT64_MAX;
	fixing->report.adding_trouble = adding_trouble(fixing);
	if (!fixing->report.adding_trouble &&
	    !unrecorded_maps_add(&fixing->unrecorded, fixing->options, &fixing->hits,
				 fixing->plan.recorded_until, &fixing->maps))
		return message_error(&sym_error_no_memory);
	return fixup_plan_make(&fixing->plan, &fixing->maps) &&
	       (unrecorded_maps_count(&fixing->unrecorded, fixing->options, &fixing->hits,
				      &fixing->maps) ||
		message_error(&sym_error_no_memory));
}

/* The undo record of an earlier run is better than a copy of the input. */
static bool has_subject(const struct fixing *fixing)
{
	const struct options *options = fixing->options;

	if (!options->pid || fixing->plan.process_count || fixing->unrecorded.added ||
	    is_pipe(fixing->output))
		return true;
	perf_fix_report_no_code(options);
	return message_error(sym_error_create(SYM_ERROR_IO, "nothing was written"));
}

static bool perf_fix_write(struct fixing *fixing)
{
	struct sym_error *failure;

	if (!open_all(fixing) || !copy_all(fixing) || !make_plan(fixing) || !has_subject(fixing) ||
	    !insert_added(fixing) || !change_all(fixing))
		return false;
	if (fixing->place.replaces_input && !fixing->undo.count && !fixing->report.was_compressed)
		return true; /* unchanged */
	if (!write_undo(fixing))
		return false;
	failure = perf_place_commit(&fixing->place);
	if (!failure)
		return true;
	if (fixing->undo_path && !fixing->place.is_directory && !fixing->place.replaces_input)
		unlink(fixing->undo_path);
	return message_error(failure);
}

/* Writes perf maps for the processes whose mappings became anonymous. */
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
		options.perfmap_dirs = (struct text_list){ 0 };
		merged &= merge_run(&options) == EXIT_DONE;
	}
	return merged;
}

static int perf_fix_execute(struct fixing *fixing)
{
	int exit_code;

	if (!perf_fix_write(fixing))
		return EXIT_FAILED;
	fixing->report.plan = &fixing->plan;
	fixing->report.unrecorded = &fixing->unrecorded;
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
	exit_code = perf_fix_execute(&fixing);
	undo_record_deinit(&fixing.undo);
	fixup_plan_deinit(&fixing.plan);
	recorded_maps_deinit(&fixing.maps);
	sampled_pages_deinit(&fixing.hits);
	unrecorded_maps_deinit(&fixing.unrecorded);
	perf_place_deinit(&fixing.place);
	failures_deinit(&fixing.report.failures);
	free(fixing.undo_path);
	free(fixing.output);
	free(fixing.cache);
	return exit_code;
}
