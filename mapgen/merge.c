/* SPDX-License-Identifier: MIT */
/*
 * The command merge: all symbols of a process into the perf map that other
 * tools read. Decides where and how by the contract of perf maps (append to the
 * runtime's own file, put one in its place, or write elsewhere) and says what was done.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/path.h"
#include "mapgen/command.h"
#include "mapgen/json_output.h"
#include "mapgen/merge_lines.h"
#include "mapgen/message.h"
#include "mapgen/perf_map_file.h"
#include "mapgen/receipt.h"
#include "mapgen/relative_map.h"
#include "mapgen/running_tools.h"
#include "mapgen/runtime_map.h"
#include "mapgen/target.h"

struct merge {
	const struct options *options;
	struct map_maker maker;
	struct text_list map_dirs;
	struct sym_snapshot *snapshot;
	struct sym_symbols *symbols;
	const struct sym_perf_map_info *info;
	const struct sym_jit_info *jit;
	char *cache_trouble; /* why relative maps are not kept */
	bool unsaved;        /* a map could not be kept, and this was said */
	struct failures failures;
	struct merge_counts counts;
	uint32_t write_flags;
	json_t *notes;
	/* What was done. */
	const char *action; /* "appended", "replaced", "written", "unchanged" */
	char *path;
	size_t written_lines;
};

static void note(struct merge *merge, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void note(struct merge *merge, const char *format, ...)
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

/* Says a failure that ends the command; false for the caller to hand on. */
static bool fail(char *reason)
{
	message("%s", reason ? reason : "out of memory");
	free(reason);
	return false;
}

static bool add_dir(struct merge *merge, const char *path)
{
	struct text_list *list = &merge->map_dirs;
	const char **items = reallocarray(list->items, list->count + 2, sizeof(*items));

	if (!items)
		return fail(NULL);
	list->items = items;
	items[list->count++] = path;
	items[list->count] = NULL;
	return true;
}

/*
 * Maps of the cache are made here for other tools and for generate. They are not
 * handed to the library: it names the methods from the image in the time
 * that it takes to check a map against it.
 */
static bool open_places(struct merge *merge)
{
	merge->cache_trouble = map_place_open_cache(&merge->maker.place);
	for (size_t i = 0; i < merge->options->map_dirs.count; i++)
		if (!add_dir(merge, merge->options->map_dirs.items[i]))
			return false;
	return true;
}

/* The map of one image into the cache; what is wrong with the cache is said once. */
static void keep_map(struct merge *merge, struct sym_image *image)
{
	char *path AUTO_FREE = NULL;
	char *reason AUTO_FREE = NULL;

	switch (relative_map_make(&merge->maker, image, &path, &reason)) {
	case MAP_FAILED:
		failures_add(&merge->failures, sym_image_path(image), STEAL(reason));
		break;
	case MAP_UNSAVED:
		if (!merge->unsaved)
			note(merge, "relative maps are not kept: %s",
			     reason ? reason : "out of memory");
		merge->unsaved = true;
		break;
	default:
		break;
	}
}

static void keep_maps(struct merge *merge)
{
	size_t count = sym_snapshot_image_count(merge->snapshot);

	if (merge->cache_trouble) {
		note(merge, "relative maps are not kept: %s", merge->cache_trouble);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		struct sym_image *image = sym_snapshot_image_at(merge->snapshot, i);

		/* Of an image that is in memory only there is no file to know again. */
		if (target_is_assembly(image) && sym_image_content_key(image))
			keep_map(merge, image);
	}
}

static bool is_listed(const struct failures *failures, const char *subject)
{
	for (size_t i = 0; i < failures->count; i++)
		if (!strcmp(failures->items[i].subject, subject))
			return true;
	return false;
}

/* What the library met while it read the images for the list. */
static void add_troubles(struct merge *merge)
{
	size_t count = sym_snapshot_image_count(merge->snapshot);

	for (size_t i = 0; i < count; i++) {
		const struct sym_image *image = sym_snapshot_image_at(merge->snapshot, i);
		const char *trouble = sym_image_trouble(image);

		if (trouble && target_is_assembly(image) &&
		    !is_listed(&merge->failures, sym_image_path(image)))
			failures_add(&merge->failures, sym_image_path(image),
				     message_format("%s", trouble));
	}
}

/* Which way served for jitted code, and whether there is any name for it. */
static bool add_jit_trouble(struct merge *merge)
{
	bool unwanted =
		merge->options->jit == SYM_JIT_NONE || merge->options->jit == SYM_JIT_PERF_MAP;
	struct sym_error *error = sym_snapshot_jit(merge->snapshot, &merge->jit);
	const struct sym_jit_info *jit = merge->jit;

	if (error) {
		target_say(error);
		return false;
	}
	if (jit->way == SYM_JIT_RUNDOWN)
		note(merge, "the runtime was asked over its diagnostics socket to list its "
			    "methods; --jit=perfmap does without");
	if (jit->way != SYM_JIT_NONE || merge->counts.runtime || merge->info->writer_fd >= 0 ||
	    unwanted)
		return true;
	failures_add(&merge->failures, "jitted code",
		     message_format("no names: there is no perf map; %s; %s",
				    jit->contract_reason ? jit->contract_reason
							 : "its memory was not read",
				    jit->rundown_reason ? jit->rundown_reason
							: "it was not asked for a rundown"));
	return true;
}

/* Maps of --maps that are not of the mapped images: their methods are named from the tables. */
static void say_refused_maps(struct merge *merge)
{
	size_t count = sym_snapshot_image_count(merge->snapshot);

	for (size_t i = 0; i < count; i++) {
		const char *reason =
			sym_image_refused_map(sym_snapshot_image_at(merge->snapshot, i));

		if (reason)
			note(merge, "not used: %s", reason);
	}
}

static bool gather(struct merge *merge)
{
	struct sym_error *error;

	keep_maps(merge);
	error = sym_snapshot_symbols(merge->snapshot,
				     SYM_SYMBOLS_PRECOMPILED | SYM_SYMBOLS_PERF_MAP |
					     SYM_SYMBOLS_RUNTIME | SYM_SYMBOLS_UNNAMED,
				     &merge->symbols);
	if (error) {
		target_say(error);
		return false;
	}
	add_troubles(merge);
	say_refused_maps(merge);
	merge->counts =
		merge_lines_count(merge->symbols, sym_snapshot_image_count(merge->snapshot));
	return add_jit_trouble(merge) && target_lives(merge->snapshot, merge->options);
}

static bool render(const struct merge *merge, char **text_ret, size_t *size_bytes_ret)
{
	struct sym_error *error =
		sym_symbols_format(merge->symbols, 0, sym_symbols_count(merge->symbols),
				   SYM_MAP_PERF, merge->write_flags, text_ret, size_bytes_ret);

	if (error)
		target_say(error);
	return !error;
}

static void done(struct merge *merge, const char *action, const char *path, size_t lines)
{
	merge->action = action;
	merge->path = strdup(path);
	merge->written_lines = lines;
}

/* ---- elsewhere ---------------------------------------------------------- */

static bool print_map(struct merge *merge)
{
	char *text AUTO_FREE = NULL;
	size_t size_bytes;

	if (!render(merge, &text, &size_bytes))
		return false;
	fwrite(text, 1, size_bytes, stdout);
	done(merge, "written", "-", sym_symbols_count(merge->symbols));
	return true;
}

static bool put(struct merge *merge, const struct map_location *location,
		const struct map_owner *owner, const char *action)
{
	char *text AUTO_FREE = NULL;
	size_t size_bytes;
	char *failure;
	bool written;

	if (!render(merge, &text, &size_bytes))
		return false;
	failure = perf_map_file_replace(location, owner, text, size_bytes, &written);
	if (failure)
		return fail(failure);
	if (written)
		done(merge, action, location->path, sym_symbols_count(merge->symbols));
	else
		done(merge, "unchanged", location->path, 0);
	return true;
}

static bool write_elsewhere(struct merge *merge)
{
	struct map_location location = { .directory_fd = -1 };
	struct map_owner owner = { .set = false };
	const char *path = merge->options->output;
	char *failure;
	bool written;

	if (!strcmp(path, "-"))
		return print_map(merge);
	failure = map_location_open(path, NULL, &location);
	if (!failure && map_location_oddity(&location))
		failure = message_format("%s is %s: not written", path,
					 map_location_oddity(&location));
	written = failure ? fail(failure) : put(merge, &location, &owner, "written");
	map_location_close(&location);
	return written;
}

/* ---- in the place where tools look -------------------------------------- */

static bool replace(struct merge *merge, const struct map_location *location)
{
	const struct sym_process_info *process = sym_snapshot_process(merge->snapshot);
	const struct sym_perf_map_info *info = merge->info;
	struct map_owner owner = { .set = true, .uid = process->uid, .gid = process->gid };
	const char *oddity = map_location_oddity(location);

	if (oddity)
		note(merge, "%s is %s: not used, and replaced", location->path, oddity);
	else if (info->refused_path && !strcmp(info->refused_path, location->path))
		note(merge, "%s is not used, and replaced: %s", location->path,
		     info->refused_reason);
	if (info->writer_fd >= 0 &&
	    map_location_holds(location, info->writer_device, info->writer_inode)) {
		char *failure =
			perf_map_file_keep(location, info->writer_device, info->writer_inode);

		if (failure)
			return fail(failure);
		note(merge,
		     "the runtime goes on writing to its own file, now %s.runtime; "
		     "merge again for what it adds, merge --undo puts it back",
		     location->path);
	}
	return put(merge, location, &owner, "replaced");
}

static bool append_to(struct merge *merge, const struct map_location *location,
		      const struct runtime_map *map)
{
	struct sym_symbols *present GUARDED(symbols) = NULL;
	struct merge_missing missing = { 0 };
	char *text AUTO_FREE = NULL;
	char *failure;
	struct sym_error *error = sym_perf_map_read(map->read_fd, &present, NULL);

	if (!error)
		error = merge_lines_missing(merge->symbols, present, merge->write_flags, &missing);
	if (error) {
		target_say(error);
		return false;
	}
	text = missing.text;
	if (!text)
		return fail(NULL);
	if (map->made_append)
		note(merge,
		     "set O_APPEND on the runtime's own descriptor of %s, so that its lines follow "
		     "ours",
		     location->path);
	failure = missing.lines ? runtime_map_append(map, text, missing.size_bytes) : NULL;
	if (failure)
		return fail(failure);
	/* Here the runtime's own lines stay, whoever else knows the same methods. */
	merge->counts.runtime = sym_symbols_count(present) - missing.covered;
	done(merge, missing.lines ? "appended" : "unchanged", location->path, missing.lines);
	return true;
}

static bool append(struct merge *merge, const struct map_location *location)
{
	int32_t pid = sym_snapshot_process(merge->snapshot)->pid;
	struct runtime_map map = { -1, -1, false };
	char *reason = NULL;
	bool appended;

	switch (runtime_map_open(pid, merge->info, &map, &reason)) {
	case RUNTIME_MAP_OPEN:
		break;
	case RUNTIME_MAP_NOT_PERMITTED:
		if (merge->options->mode == MERGE_MODE_APPEND)
			return fail(reason);
		note(merge, "%s: the map is replaced instead", reason ? reason : "out of memory");
		free(reason);
		return replace(merge, location);
	case RUNTIME_MAP_FAILED:
		return fail(reason);
	}
	appended = append_to(merge, location, &map);
	runtime_map_close(&map);
	return appended;
}

static char *why_not_append(const struct merge *merge, const struct map_location *location)
{
	const struct sym_perf_map_info *info = merge->info;

	if (info->writer_fd < 0)
		return message_format("process %d is writing no perf map; --mode=replace makes one",
				      sym_snapshot_process(merge->snapshot)->pid);
	return message_format("%s is not the file that the runtime is writing%s%s", location->path,
			      info->path ? "; that is " : "", info->path ? info->path : "");
}

/* perf and BCC look inside the container first. */
static void say_what_hides(struct merge *merge)
{
	const struct sym_perf_map_info *info = merge->info;
	struct map_location inside = { .directory_fd = -1 };
	char *failure AUTO_FREE = NULL;

	if (merge->options->in_target || !strcmp(info->host_path, info->target_path))
		return;
	failure = map_location_open(info->target_path, merge->options->root, &inside);
	if (failure)
		return;
	if (!faccessat(inside.directory_fd, inside.name, F_OK, AT_SYMLINK_NOFOLLOW))
		note(merge,
		     "%s, inside the container, hides %s from perf and BCC; "
		     "--in-target updates that one",
		     info->target_path, info->host_path);
	map_location_close(&inside);
}

static bool write_at(struct merge *merge, const struct map_location *location)
{
	const struct sym_perf_map_info *info = merge->info;
	bool can_append = !merge->options->root && info->writer_fd >= 0 &&
			  map_location_holds(location, info->writer_device, info->writer_inode);

	if (merge->options->mode == MERGE_MODE_APPEND && !can_append)
		return fail(why_not_append(merge, location));
	if (can_append && merge->options->mode != MERGE_MODE_REPLACE)
		return append(merge, location);
	return replace(merge, location);
}

/* Only what left nothing out is remembered: what is missing is to be said each time. */
static bool write_in_place(struct merge *merge, const struct map_location *location)
{
	int32_t pid = sym_snapshot_process(merge->snapshot)->pid;
	int cache_fd = merge->maker.place.directory_fd;
	struct receipt inputs = { .usable = false };

	if (!merge->cache_trouble)
		inputs = receipt_of_inputs(merge->snapshot, merge->options, merge->info, location);
	if (inputs.usable && receipt_holds(&inputs, cache_fd, pid, location, &merge->counts)) {
		done(merge, "unchanged", location->path, 0);
		return add_jit_trouble(merge);
	}
	if (!gather(merge) || !write_at(merge, location))
		return false;
	if (!merge->failures.count)
		receipt_leave(&inputs, cache_fd, pid, location, &merge->counts);
	return true;
}

static void say_who_must_refresh(struct merge *merge)
{
	struct running_tool tools[16];
	size_t count;

	if (!strcmp(merge->action, "unchanged") || merge->options->root)
		return;
	count = running_tools_find(tools, sizeof(tools) / sizeof(tools[0]));
	for (size_t i = 0; i < count; i++)
		note(merge, "%s (process %d) is running: %s", tools[i].comm, tools[i].pid,
		     tools[i].advice);
}

static bool find_perf_map(struct merge *merge)
{
	struct sym_error *error = sym_snapshot_perf_map(merge->snapshot, &merge->info);

	if (error)
		target_say(error);
	return !error;
}

static bool at_location(struct merge *merge,
			bool (*act)(struct merge *, const struct map_location *))
{
	const char *path =
		merge->options->in_target ? merge->info->target_path : merge->info->host_path;
	struct map_location location = { .directory_fd = -1 };
	char *failure = map_location_open(path, merge->options->root, &location);
	bool worked = failure ? fail(failure) : act(merge, &location);

	map_location_close(&location);
	return worked;
}

static bool undo(struct merge *merge, const struct map_location *location)
{
	const struct sym_perf_map_info *info = merge->info;
	char *failure;

	if (info->writer_fd >= 0 &&
	    map_location_holds(location, info->writer_device, info->writer_inode))
		return fail(message_format("nothing to undo: %s is the runtime's own file; lines "
					   "that were appended to it stay",
					   location->path));
	failure = perf_map_file_restore(location, sym_snapshot_process(merge->snapshot)->uid, info);
	if (failure)
		return fail(failure);
	done(merge, "undone", location->path, 0);
	return true;
}

/* ---- the command -------------------------------------------------------- */

static json_t *jit_json(const struct merge *merge)
{
	static const struct sym_jit_info nothing = { .way = SYM_JIT_NONE };
	const struct sym_jit_info *jit = merge->jit ? merge->jit : &nothing;

	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "way", sym_jit_way_text(jit->way),
			 "methods", (json_int_t)merge->counts.jitted, "unnamed",
			 (json_int_t)jit->unnamed_count, "unnamed_dynamic",
			 (json_int_t)jit->unnamed_dynamic_count, "read_calls",
			 (json_int_t)jit->read_calls, "read_bytes", (json_int_t)jit->read_bytes);
}

static void print_json(const struct merge *merge)
{
	json_output_print(json_pack("{s:o, s:s, s:I, s:I, s:I, s:I, s:o, s:I, s:o, s:O}", "map",
				    json_output_text(merge->path), "action", merge->action,
				    "images", (json_int_t)merge->counts.images,
				    "precompiled_symbols", (json_int_t)merge->counts.precompiled,
				    "unnamed_functions", (json_int_t)merge->counts.unnamed,
				    "runtime_lines", (json_int_t)merge->counts.runtime, "jit",
				    jit_json(merge), "written_lines",
				    (json_int_t)merge->written_lines, "failures",
				    json_output_failures(&merge->failures), "notes", merge->notes));
}

static void print_summary(const struct merge *merge)
{
	/* The map itself went to standard output. */
	FILE *stream = merge->path && !strcmp(merge->path, "-") ? stderr : stdout;
	const char *what = merge->action;

	if (merge->jit && merge->jit->way != SYM_JIT_NONE)
		fprintf(stream, "jitted code: %zu methods by %s, %" PRIu64 " not named for sure\n",
			merge->counts.jitted, sym_jit_way_text(merge->jit->way),
			merge->jit->unnamed_count);
	fprintf(stream,
		"map merging: %zu images, %zu precompiled symbols, %zu lines of the runtime, ",
		merge->counts.images, merge->counts.precompiled, merge->counts.runtime);
	if (!strcmp(what, "unchanged"))
		fprintf(stream, "0 appended: %s was complete\n", merge->path ? merge->path : "");
	else if (!strcmp(what, "appended"))
		fprintf(stream, "%zu appended to %s\n", merge->written_lines,
			merge->path ? merge->path : "");
	else
		fprintf(stream, "%zu written to %s\n", merge->written_lines,
			merge->path ? merge->path : "");
	if (merge->counts.unnamed)
		fprintf(stream,
			"stripped native images: %zu functions without a name, by their start "
			"(IMAGE!0xVADDR)\n",
			merge->counts.unnamed);
}

static int report(struct merge *merge)
{
	failures_print(&merge->failures);
	if (merge->options->json)
		print_json(merge);
	else if (merge->options->undo)
		printf("%s is the runtime's own file again\n", merge->path ? merge->path : "");
	else
		print_summary(merge);
	return merge->failures.count ? EXIT_PARTLY : EXIT_DONE;
}

static bool has_anything_to_merge(const struct merge *merge)
{
	const struct sym_process_info *process = sym_snapshot_process(merge->snapshot);
	const char *shape = process->runtime_shape;

	if (!shape || strcmp(shape, "nativeaot") != 0)
		return true;
	message("process %d (%s) is NativeAOT: its methods are symbols of an ELF file, which "
		"profilers read themselves",
		process->pid, process->comm);
	return false;
}

static bool run(struct merge *merge)
{
	if (!open_places(merge))
		return false;
	merge->snapshot = target_open_dotnet(merge->options, merge->map_dirs.items);
	if (!merge->snapshot || !find_perf_map(merge) || !has_anything_to_merge(merge))
		return false;
	if (merge->options->undo)
		return at_location(merge, undo);
	if (merge->options->output)
		return gather(merge) && write_elsewhere(merge);
	say_what_hides(merge);
	if (!at_location(merge, write_in_place))
		return false;
	say_who_must_refresh(merge);
	return true;
}

/* NULL, or what is wrong with the options together. */
static const char *usage_trouble(const struct options *options)
{
	if (!options->pid)
		return "merge needs a PID; see dotnet-mapgen merge --help";
	if (options->operand_count)
		return "merge takes one PID and nothing else; see dotnet-mapgen merge --help";
	if (options->output && (options->mode || options->in_target || options->undo))
		return "--output does not go with --mode, --in-target and --undo";
	if (options->output && !strcmp(options->output, "-") && options->json)
		return "--output=- and --json both want standard output";
	if (options->root && !options->output)
		return "a recorded process is merged with --output only";
	if (options->undo && options->mode)
		return "--undo does not go with --mode";
	return NULL;
}

int merge_run(const struct options *options)
{
	struct merge merge = { .options = options };
	const char *trouble = usage_trouble(options);
	int exit_code;

	if (trouble) {
		message("%s", trouble);
		return EXIT_USAGE;
	}
	merge.write_flags = (options->names == NAME_FORM_SHORT ? SYM_WRITE_SHORT_NAMES : 0) |
			    (options->tiers == TIER_FORM_STRIP ? SYM_WRITE_NO_TIERS : 0);
	merge.maker.format = SYM_MAP_RELATIVE;
	merge.maker.place.directory_fd = -1;
	merge.notes = json_array();
	exit_code = run(&merge) ? report(&merge) : EXIT_FAILED;
	json_decref(merge.notes);
	sym_symbols_destroy(merge.symbols);
	sym_snapshot_close(merge.snapshot);
	failures_deinit(&merge.failures);
	free(merge.map_dirs.items);
	free(merge.path);
	free(merge.cache_trouble);
	map_place_close(&merge.maker.place);
	return exit_code;
}
