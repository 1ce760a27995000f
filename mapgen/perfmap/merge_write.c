/* SPDX-License-Identifier: MIT */
/*
 * Where and how the lines of a merge are written.
 *
 *   merge_find_perf_map()      the perf map of the process, and what the runtime is writing now
 *   merge_at_location()        opens the place, with the rights of the process
 *   merge_write_append()       the runtime is writing there: missing lines, behind its own
 *   merge_write_replace()      otherwise: the whole map, sorted, renamed over the old one
 *   merge_write_elsewhere()    --output
 *
 * replace_instead() falls back from the first to the second when nothing can be appended.
 */
#include "mapgen/perfmap/merge_write.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libsym/base/foreign_file.h"
#include "libsym/base/path.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/monotonic.h"
#include "mapgen/cli/target.h"
#include "mapgen/perfmap/joined_lines.h"
#include "mapgen/perfmap/running_tools.h"
#include "mapgen/perfmap/runtime_map.h"

const uint32_t merge_symbols_flags = SYM_SYMBOLS_PRECOMPILED | SYM_SYMBOLS_PERF_MAP |
				     SYM_SYMBOLS_RUNTIME | SYM_SYMBOLS_UNNAMED |
				     SYM_SYMBOLS_IN_CODE;

void merge_note(struct merge *merge, const char *format, ...)
{
	char *text AUTO_FREE = NULL;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0) {
		text = NULL;
		return;
	}
	message("%s", text);
	json_array_append_new(merge->notes, json_output_text(text));
}

/* Problems of the library while it read images for the list. */
void merge_add_troubles(struct merge *merge)
{
	size_t count = sym_snapshot_image_count(merge->snapshot);

	for (size_t i = 0; i < count; i++) {
		const struct sym_image *image = sym_snapshot_image_at(merge->snapshot, i);
		const char *trouble = sym_image_problem(image);

		if (trouble && target_is_of_interest(merge->snapshot, i) &&
		    !failures_have(&merge->failures, sym_image_path(image)))
			failures_add(&merge->failures, sym_image_path(image),
				     message_format("%s", trouble));
	}
}

/* All its methods are in an ELF file; the message says whether that has names. */
static void say_aot(struct merge *merge, struct sym_image *program)
{
	char *naming = target_aot_naming(program);

	if (sym_image_symbol_file(program)) {
		merge_note(merge, "NativeAOT: the methods are in an ELF file, %s",
			   naming ? naming : "out of memory");
		free(naming);
	} else {
		failures_add(&merge->failures, sym_image_path(program), naming);
	}
}

const char merge_jit_subject[] = "jitted code";

static void add_jit_failure(struct merge *merge, const char *map)
{
	char *reasons AUTO_FREE = target_code_reasons(merge->jit);

	failures_add(&merge->failures, merge_jit_subject,
		     reasons ? message_format("no names: %s%s", map, reasons) : NULL);
}

/* Where names of jitted code came from, and whether there are any. */
bool merge_add_jit_trouble(struct merge *merge)
{
	struct sym_image *program = target_aot_program(merge->snapshot);
	bool unwanted =
		merge->options->jit == SYM_JIT_NONE || merge->options->jit == SYM_JIT_PERF_MAP;
	struct sym_error *error = sym_snapshot_jit(merge->snapshot, &merge->jit);
	const struct sym_jit_info *jit = merge->jit;

	if (!message_error(error))
		return false;
	if (program) {
		say_aot(merge, program);
		return true;
	}
	if (jit->method == SYM_JIT_RUNDOWN)
		merge_note(merge, "the runtime was asked over its diagnostics socket to list its "
				  "methods; --jit=perfmap does without");
	if (jit->method != SYM_JIT_NONE || unwanted)
		return true;
	if (!merge->counts.runtime && merge->info->writer_fd < 0)
		add_jit_failure(merge, "the runtime writes no perf map; ");
	else if (merge->options->jit != SYM_JIT_AUTO)
		add_jit_failure(merge, "");
	return true;
}

static bool merge_write_render(const struct merge *merge, char **text_ret, size_t *size_bytes_ret)
{
	struct sym_error *error =
		sym_symbols_format(merge->symbols, 0, sym_symbols_count(merge->symbols),
				   SYM_MAP_PERF, merge->write_flags, text_ret, size_bytes_ret);

	return message_error(error);
}

/* bpftrace up to 0.23 reads and sorts the whole map for each address: with 68 MB it prints nothing
 * in minutes, and loses stacks. */
static const uint64_t large_map_bytes = 4 << 20;

void merge_say_large_map(struct merge *merge)
{
	if (merge->map_bytes >= large_map_bytes)
		merge_note(merge,
			   "bpftrace (up to 0.23) reads all %" PRIu64 " MB of the map for each "
			   "address and loses stacks: start it with BPFTRACE_CACHE_USER_SYMBOLS=1",
			   merge->map_bytes >> 20);
}

void merge_done(struct merge *merge, const char *action, const char *path, size_t lines)
{
	struct stat status;

	merge->map_bytes =
		foreign_file_examine(-1, path, 0, NULL, &status) ? 0 : (uint64_t)status.st_size;
	merge->action = action;
	merge->path = strdup(path);
	merge->written_lines = lines;
}

/* ---- elsewhere ---------------------------------------------------------- */

static bool print_map(struct merge *merge)
{
	char *text AUTO_FREE = NULL;
	size_t size_bytes;

	if (!merge_write_render(merge, &text, &size_bytes))
		return false;
	fwrite(text, 1, size_bytes, stdout);
	merge_done(merge, "written", "-", sym_symbols_count(merge->symbols));
	return true;
}

static bool merge_write_put(struct merge *merge, const struct map_location *location,
			    const struct map_owner *owner, const char *action)
{
	char *text AUTO_FREE = NULL;
	size_t size_bytes;
	struct sym_error *failure;
	bool written;

	if (!merge_write_render(merge, &text, &size_bytes))
		return false;
	failure = perfmap_file_replace(location, owner, text, size_bytes, &written);
	if (failure)
		return message_error(failure);
	if (written)
		merge_done(merge, action, location->path, sym_symbols_count(merge->symbols));
	else
		merge_done(merge, "unchanged", location->path, 0);
	return true;
}

bool merge_write_elsewhere(struct merge *merge)
{
	struct map_location location = { .directory_fd = -1 };
	struct map_owner owner = { .set = false };
	const char *path = merge->options->output;
	struct rights rights;
	struct sym_error *failure;
	bool written;

	if (!strcmp(path, "-"))
		return print_map(merge);
	/* A process chooses what is mounted below its root. */
	failure =
		map_location_open(path, NULL,
				  map_location_is_in_process(path)
					  ? target_rights(merge->snapshot, merge->options, &rights)
					  : NULL,
				  &location);
	if (!failure && map_location_file_type(&location))
		failure = sym_error_create(SYM_ERROR_IO, "%s is %s: not written", path,
					   map_location_file_type(&location));
	written = failure ? message_error(failure)
			  : merge_write_put(merge, &location, &owner, "written");
	map_location_close(&location);
	return written;
}

/* ---- in the place where tools look -------------------------------------- */

static bool merge_write_replace(struct merge *merge, const struct map_location *location)
{
	const struct sym_process_info *process = sym_snapshot_process(merge->snapshot);
	const struct sym_perf_map_info *info = merge->info;
	struct map_owner owner = { .set = true, .uid = process->uid, .gid = process->gid };
	const char *file_type = map_location_file_type(location);

	if (map_location_may_hold(location, info)) {
		struct sym_error *failure = perfmap_file_keep(location, info);

		if (failure)
			return message_error(failure);
		merge_note(merge,
			   "the runtime goes on writing to its own file, now %s.runtime; "
			   "merge again for what it adds, merge --undo puts it back",
			   location->path);
	}
	if (!merge_write_put(merge, location, &owner, "replaced"))
		return false;
	if (file_type)
		merge_note(merge, "%s was %s: not used, and replaced", location->path, file_type);
	else if (info->rejected_path && !strcmp(info->rejected_path, location->path))
		merge_note(merge, "%s was not used, and replaced: it %s", location->path,
			   info->rejected_reason);
	return true;
}

/* Two that append at once would both write the missing lines, which does no harm. Everybody who may
 * read the file may hold the lock, so it is waited for at most 2 s. */
static void lock_map(const struct runtime_map *map)
{
	static const struct timespec step = { .tv_nsec = 50 * 1000 * 1000 };
	static const double most_s = 2;
	double end_s = monotonic_seconds() + most_s;

	while (flock(map->read_fd, LOCK_EX | LOCK_NB) && monotonic_seconds() < end_s)
		nanosleep(&step, NULL);
}

static bool append_to(struct merge *merge, const struct map_location *location,
		      const struct runtime_map *map)
{
	struct sym_symbols *present GUARDED(symbols) = NULL;
	struct merge_missing missing = { 0 };
	struct address_table hidden = { 0 };
	char *text AUTO_FREE = NULL;
	struct sym_error *failure;
	struct sym_error *error;

	lock_map(map);
	error = sym_perf_map_read(map->read_fd, &present, NULL);
	if (!error && joined_lines_find(map->read_fd, &hidden))
		error = merge_lines_missing(merge->symbols, present, &hidden, merge->write_flags,
					    &missing);
	address_table_deinit(&hidden);
	if (!message_error(error))
		return false;
	text = missing.text;
	if (!text)
		return message_error(&sym_error_no_memory);
	if (map->made_append)
		merge_note(merge,
			   "set O_APPEND on the runtime's own descriptor of %s, so that its lines "
			   "follow "
			   "ours",
			   location->path);
	failure = missing.lines ? runtime_map_append(map, text, missing.size_bytes) : NULL;
	if (failure)
		return message_error(failure);
	/* The runtime's own lines stay here. Methods that it reported but did not write count as
	 * its lines from now on. */
	merge->counts.runtime = sym_symbols_count(present) - missing.covered + missing.told;
	merge_done(merge, missing.lines ? "appended" : "unchanged", location->path, missing.lines);
	return true;
}

/* Nothing can be appended to the map, because of `error`. */
static bool replace_instead(struct merge *merge, const struct map_location *location,
			    struct sym_error *error)
{
	if (merge->options->mode == MERGE_MODE_APPEND)
		return message_error(error);
	merge_note(merge, "%s: the map is replaced instead", sym_error_message(error));
	sym_error_destroy(error);
	return merge_write_replace(merge, location);
}

static bool merge_write_append(struct merge *merge, const struct map_location *location)
{
	const struct sym_process_info *process = sym_snapshot_process(merge->snapshot);
	struct runtime_map map = { -1, -1, false, NULL };
	struct rights rights;
	struct sym_error *error;
	bool appended;

	if (runtime_map_comes_in_blocks(process->runtime_version))
		return replace_instead(
			merge, location,
			sym_error_create(SYM_ERROR_UNSUPPORTED,
					 ".NET %s writes its map in blocks that end within a line, "
					 "so appended lines would cut it",
					 process->runtime_version));
	error = runtime_map_open(process->pid, merge->info,
				 target_rights(merge->snapshot, merge->options, &rights), &map);
	if (error)
		return sym_error_code(error) == SYM_ERROR_PERMISSION
			       ? replace_instead(merge, location, error)
			       : message_error(error);
	appended =
		runtime_map_ends_in_half_a_line(&map)
			? replace_instead(
				  merge, location,
				  sym_error_create(
					  SYM_ERROR_IO,
					  "%s ends within a line, so appended lines would cut it",
					  location->path))
			: append_to(merge, location, &map);
	runtime_map_close(&map);
	return appended;
}

static struct sym_error *why_not_append(const struct merge *merge,
					const struct map_location *location)
{
	const struct sym_perf_map_info *info = merge->info;

	if (info->writer_fd < 0)
		return sym_error_create(
			SYM_ERROR_IO,
			"process %d is writing no perf map; --mode=replace creates one",
			sym_snapshot_process(merge->snapshot)->pid);
	return sym_error_create(SYM_ERROR_IO, "%s is not the file that the runtime is writing%s%s",
				location->path, info->path ? "; that is " : "",
				info->path ? info->path : "");
}

/* Both paths may be mounts of one directory. */
static bool is_file(const struct stat *file, const char *path)
{
	struct stat other;

	return !foreign_file_examine(-1, path, 0, NULL, &other) && path_is_same_file(file, &other);
}

/* perf and BCC look inside the container first. */
void merge_say_what_hides(struct merge *merge)
{
	const struct sym_perf_map_info *info = merge->info;
	struct map_location inside = { .directory_fd = -1 };
	struct sym_error *failure AUTO_ERROR = NULL;
	struct rights rights;
	struct stat there;

	if (merge->options->in_target || !strcmp(info->host_path, info->target_path))
		return;
	failure =
		map_location_open(info->target_path, merge->options->root,
				  target_rights(merge->snapshot, merge->options, &rights), &inside);
	if (failure)
		return;
	if (!fstatat(inside.directory_fd, inside.name, &there, AT_SYMLINK_NOFOLLOW) &&
	    !is_file(&there, info->host_path))
		merge_note(merge,
			   "%s, inside the container, hides %s from perf and BCC; "
			   "--in-target updates that one",
			   info->target_path, info->host_path);
	map_location_close(&inside);
}

/* When the method of --jit found nothing, the present map may have more names. */
static bool knows_less(const struct merge *merge, const struct map_location *location)
{
	uint32_t jit = merge->options->jit;

	return (jit == SYM_JIT_CONTRACT || jit == SYM_JIT_RUNDOWN) && merge->jit &&
	       merge->jit->method == SYM_JIT_NONE && merge->info->path &&
	       !strcmp(merge->info->path, location->path);
}

/* Lines that the runtime writes to a replaced file are read by no tool. */
static bool may_be_written(const struct merge *merge, const struct map_location *location)
{
	struct stat there;

	return merge->info->writer_unknown && merge->options->mode != MERGE_MODE_REPLACE &&
	       !fstatat(location->directory_fd, location->name, &there, AT_SYMLINK_NOFOLLOW);
}

bool merge_write_at(struct merge *merge, const struct map_location *location)
{
	const struct sym_perf_map_info *info = merge->info;
	bool can_append = !merge->options->root && map_location_holds(location, info);

	if (info->writer_unknown == 2)
		return message_error(sym_error_create(
			SYM_ERROR_IO, "cannot find out whether the process is writing %s",
			location->path));
	if (may_be_written(merge, location))
		return message_error(sym_error_create(
			SYM_ERROR_IO,
			"the process may be writing %s: its descriptors cannot be "
			"read without CAP_DAC_READ_SEARCH; --mode=replace replaces "
			"the file nevertheless, --output=FILE writes elsewhere",
			location->path));
	if (merge->options->mode == MERGE_MODE_APPEND && !can_append)
		return message_error(why_not_append(merge, location));
	if (can_append && merge->options->mode != MERGE_MODE_REPLACE)
		return merge_write_append(merge, location);
	if (!knows_less(merge, location))
		return merge_write_replace(merge, location);
	merge_note(merge,
		   "%s stays as it is: it may have names of jitted code, and there are none now",
		   location->path);
	merge_done(merge, "kept", location->path, 0);
	return true;
}

void merge_say_who_must_refresh(struct merge *merge)
{
	struct running_tool tools[16];
	size_t count;

	if (!strcmp(merge->action, "unchanged") || !strcmp(merge->action, "kept") ||
	    merge->options->root)
		return;
	count = running_tools_find(tools, sizeof(tools) / sizeof(tools[0]));
	for (size_t i = 0; i < count; i++)
		merge_note(merge, "%s (process %d) is running: %s", tools[i].comm, tools[i].pid,
			   tools[i].advice);
}

bool merge_find_perf_map(struct merge *merge)
{
	struct sym_error *error = sym_snapshot_perf_map(merge->snapshot, &merge->info);

	return message_error(error);
}

bool merge_at_location(struct merge *merge,
		       bool (*act)(struct merge *, const struct map_location *))
{
	const char *path =
		merge->options->in_target ? merge->info->target_path : merge->info->host_path;
	struct map_location location = { .directory_fd = -1 };
	struct rights rights;
	const struct rights *theirs =
		merge->options->in_target ? target_rights(merge->snapshot, merge->options, &rights)
					  : NULL;
	struct sym_error *failure =
		map_location_open(path, merge->options->root, theirs, &location);
	bool worked = failure ? message_error(failure) : act(merge, &location);

	map_location_close(&location);
	return worked;
}

json_t *merge_jit_json(const struct merge *merge)
{
	static const struct sym_jit_info nothing = { .method = SYM_JIT_NONE };
	const struct sym_jit_info *jit = merge->jit ? merge->jit : &nothing;

	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "way", sym_jit_method_text(jit->method),
			 "methods", (json_int_t)merge->counts.jitted, "unnamed",
			 (json_int_t)jit->unnamed_count, "unnamed_dynamic",
			 (json_int_t)jit->unnamed_dynamic_count, "read_calls",
			 (json_int_t)jit->read_calls, "read_bytes", (json_int_t)jit->read_bytes);
}

bool merge_enable_perf_map(struct merge *merge)
{
	const char *hazard = sym_snapshot_perf_map_known_issue(merge->snapshot);
	struct sym_error *error;

	if (!merge->options->enable_perfmap)
		return true;
	if (!merge_find_perf_map(merge))
		return false;
	if (merge->info->writer_fd >= 0) {
		merge_note(merge, "the runtime writes a perf map already");
		return true;
	}
	if (hazard)
		merge_note(merge, "known of perf maps in this version: %s", hazard);
	error = sym_snapshot_enable_perf_map(merge->snapshot);
	if (!message_error(error))
		return false;
	merge_note(merge, "the runtime writes a perf map from now on, until it ends");
	return merge_find_perf_map(merge);
}
