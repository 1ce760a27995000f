/* SPDX-License-Identifier: MIT */
/*
 * The command merge: all symbols of a process into the perf map that other
 * tools read. Where and how they are written is merge_write.h's; this says what was done.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapgen/command.h"
#include "mapgen/merge_write.h"
#include "mapgen/message.h"
#include "mapgen/receipt.h"
#include "mapgen/target.h"

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
			merge_note(merge, "relative maps are not kept: %s",
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
		merge_note(merge, "relative maps are not kept: %s", merge->cache_trouble);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		struct sym_image *image = sym_snapshot_image_at(merge->snapshot, i);

		/* Of an image that is in memory only there is no file to know again. */
		if (target_is_assembly(image) && sym_image_content_key(image))
			keep_map(merge, image);
	}
}

/* Maps of --maps that are not of the mapped images: their methods are named from the
 * tables. */
static void say_refused_maps(struct merge *merge)
{
	size_t count = sym_snapshot_image_count(merge->snapshot);

	for (size_t i = 0; i < count; i++) {
		const char *reason =
			sym_image_refused_map(sym_snapshot_image_at(merge->snapshot, i));

		if (reason)
			merge_note(merge, "not used: %s", reason);
	}
}

/* Where the runtime itself says that an image lies elsewhere, its names may be wrong. */
static void say_contradiction(struct merge *merge)
{
	const struct sym_load_check *check = NULL;
	struct sym_error *error = sym_snapshot_load_check(merge->snapshot, &check);

	if (error)
		target_say(error);
	else if (check->contradiction)
		merge_note(merge, "%s contradicts in %" PRIu64 " of %" PRIu64 " images: %s",
			   check->path, check->contradiction_count, check->mapped_count,
			   check->contradiction);
}

static bool gather(struct merge *merge)
{
	struct sym_symbols *symbols;
	struct sym_error *error;

	error = sym_snapshot_symbols(merge->snapshot, merge_symbols_flags, &symbols);
	if (error) {
		target_say(error);
		return false;
	}
	merge->symbols = merge->own_symbols = symbols;
	/* After it: an image whose map is in the cache already is not read another time. */
	keep_maps(merge);
	merge_add_troubles(merge);
	say_refused_maps(merge);
	say_contradiction(merge);
	merge->counts =
		merge_lines_count(merge->symbols, sym_snapshot_image_count(merge->snapshot));
	return merge_add_jit_trouble(merge) && target_lives(merge->snapshot, merge->options);
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
		merge_done(merge, "unchanged", location->path, 0);
		return merge_add_jit_trouble(merge);
	}
	if (!gather(merge) || !merge_write_at(merge, location))
		return false;
	if (!merge->failures.count)
		receipt_leave(&inputs, cache_fd, pid, location, &merge->counts);
	return true;
}

static bool undo(struct merge *merge, const struct map_location *location)
{
	const struct sym_perf_map_info *info = merge->info;
	char *failure;

	if (info->writer_fd >= 0 &&
	    map_location_holds(location, info->writer_device, info->writer_inode))
		return merge_fail(
			message_format("nothing to undo: %s is the runtime's own file; lines "
				       "that were appended to it stay",
				       location->path));
	failure = perf_map_file_restore(location, sym_snapshot_process(merge->snapshot)->uid,
					target_started_s(merge->snapshot, merge->options), info);
	if (failure)
		return merge_fail(failure);
	merge_done(merge, "undone", location->path, 0);
	return true;
}

/* ---- the command -------------------------------------------------------- */

static void print_json(const struct merge *merge)
{
	json_output_print(json_pack(
		"{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:o, s:O}", "map",
		json_output_text(merge->path), "action", merge->action, "images",
		(json_int_t)merge->counts.images, "precompiled_symbols",
		(json_int_t)merge->counts.precompiled, "unnamed_functions",
		(json_int_t)merge->counts.unnamed, "linkage_stubs",
		(json_int_t)merge->counts.linkage, "nativeaot_functions",
		(json_int_t)merge->counts.ahead, "runtime_lines", (json_int_t)merge->counts.runtime,
		"jit", merge_jit_json(merge), "written_lines", (json_int_t)merge->written_lines,
		"failures", json_output_failures(&merge->failures), "notes", merge->notes));
}

static void print_summary(const struct merge *merge)
{
	/* The map itself went to standard output, or what another command prints does. */
	bool is_taken = (merge->path && !strcmp(merge->path, "-")) || merge->options->on_behalf;
	FILE *stream = is_taken ? stderr : stdout;
	const char *what = merge->action;

	if (merge->jit && merge->jit->way != SYM_JIT_NONE)
		fprintf(stream, "jitted code: %zu methods by %s, %" PRIu64 " not named for sure\n",
			merge->counts.jitted, sym_jit_way_text(merge->jit->way),
			merge->jit->unnamed_count);
	fprintf(stream,
		"map merging: %zu images, %zu precompiled symbols, %zu lines of the "
		"runtime, ",
		merge->counts.images, merge->counts.precompiled, merge->counts.runtime);
	if (!strcmp(what, "unchanged"))
		fprintf(stream, "0 appended: %s was complete\n", merge->path ? merge->path : "");
	else if (!strcmp(what, "kept"))
		fprintf(stream, "%s stays as it is\n", merge->path ? merge->path : "");
	else if (!strcmp(what, "appended"))
		fprintf(stream, "%zu appended to %s\n", merge->written_lines,
			merge->path ? merge->path : "");
	else
		fprintf(stream, "%zu written to %s\n", merge->written_lines,
			merge->path ? merge->path : "");
	if (merge->counts.ahead)
		fprintf(stream, "compiled ahead of time: %zu functions, its methods among them\n",
			merge->counts.ahead);
	if (merge->counts.unnamed || merge->counts.linkage)
		fprintf(stream,
			"native images: %zu functions without a name, by their start "
			"(IMAGE!0xVADDR); %zu linkage stubs (NAME@plt)\n",
			merge->counts.unnamed, merge->counts.linkage);
	if (merge->counts.unnamed)
		fprintf(stream, "dotnet-mapgen symbols %d brings the names of native images\n",
			merge->options->pid);
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

/*
 * Maps of the cache are made here for other tools and for generate. They are not
 * handed to the library: it names the methods from the image in the time
 * that it takes to check a map against it.
 */
static bool run(struct merge *merge)
{
	merge->cache_trouble = map_place_open_cache(&merge->maker.place);
	merge->snapshot = target_open_dotnet(merge->options, merge->options->map_dirs.items);
	if (!merge->snapshot || !merge_find_perf_map(merge))
		return false;
	if (merge->options->undo)
		return merge_at_location(merge, undo);
	if (!merge_enable_perf_map(merge))
		return false;
	if (merge->options->output)
		return gather(merge) && merge_write_elsewhere(merge);
	merge_say_what_hides(merge);
	if (!merge_at_location(merge, write_in_place))
		return false;
	merge_say_who_must_refresh(merge);
	return true;
}

/* NULL, or what is wrong with the options together. */
static const char *usage_trouble(const struct options *options)
{
	if (options->output && (options->mode || options->in_target || options->undo))
		return "--output does not go with --mode, --in-target and --undo";
	if (options->output && !strcmp(options->output, "-") && options->json)
		return "--output=- and --json both want standard output";
	if (options->root && !options->output)
		return "a recorded process is merged with --output only";
	if (options->enable_perfmap && (options->undo || options->root))
		return "--enable-perfmap does not go with --undo and --root";
	if (options->undo && options->mode)
		return "--undo does not go with --mode";
	return NULL;
}

int merge_run(const struct options *options)
{
	struct merge merge = { .options = options };
	const char *trouble = usage_trouble(options);
	int exit_code;

	if (!options_have_one_pid(options, "merge"))
		return EXIT_USAGE;
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
	sym_symbols_destroy(merge.own_symbols);
	sym_snapshot_close(merge.snapshot);
	failures_deinit(&merge.failures);
	free(merge.path);
	free(merge.cache_trouble);
	map_place_close(&merge.maker.place);
	return exit_code;
}
