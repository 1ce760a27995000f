/* SPDX-License-Identifier: MIT */
/*
 * The command merge: writes all symbols of a process into the perf map that other tools read.
 * merge_write.h decides where and how; this file reports the result.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapgen/cli/command.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/name_form.h"
#include "mapgen/cli/target.h"
#include "mapgen/perfmap/merge_write.h"

/* Maps of --maps that do not fit the mapped images; their methods are named from the tables of the
 * image. */
static void say_refused_maps(struct merge *merge)
{
	size_t count = sym_snapshot_image_count(merge->snapshot);

	for (size_t i = 0; i < count; i++) {
		const char *reason =
			sym_image_rejected_map(sym_snapshot_image_at(merge->snapshot, i));

		if (reason)
			merge_note(merge, "not used: %s", reason);
	}
}

/* When the runtime says that an image lies elsewhere, its names may be wrong. */
static void say_contradiction(struct merge *merge)
{
	const struct sym_load_check *check = NULL;
	struct sym_error *error = sym_snapshot_load_check(merge->snapshot, &check);

	if (error)
		message_error(error);
	else if (check->contradiction)
		merge_note(merge, "%s contradicts in %" PRIu64 " of %" PRIu64 " images: %s",
			   check->path, check->contradiction_count, check->mapped_count,
			   check->contradiction);
}

static bool merge_gather_symbols(struct merge *merge)
{
	struct sym_symbols *symbols;
	struct sym_error *error;

	error = sym_snapshot_symbols(merge->snapshot, merge_symbols_flags, &symbols);
	if (!message_error(error))
		return false;
	merge->symbols = merge->own_symbols = symbols;
	merge_add_troubles(merge);
	say_refused_maps(merge);
	say_contradiction(merge);
	merge->counts =
		merge_lines_count(merge->symbols, sym_snapshot_image_count(merge->snapshot));
	return merge_add_jit_trouble(merge) && target_lives(merge->snapshot, merge->options);
}

static bool write_in_place(struct merge *merge, const struct map_location *location)
{
	return merge_gather_symbols(merge) && merge_write_at(merge, location);
}

static bool merge_undo(struct merge *merge, const struct map_location *location)
{
	const struct sym_perf_map_info *info = merge->info;
	struct sym_error *failure;

	if (map_location_holds(location, info))
		return message_error(sym_error_create(
			SYM_ERROR_IO,
			"nothing to undo: %s is the runtime's own file; appended lines stay in it",
			location->path));
	/* The directory was opened by the number of the process. */
	if (!target_lives(merge->snapshot, merge->options))
		return false;
	failure = perfmap_file_restore(location, sym_snapshot_process(merge->snapshot)->uid,
				       target_started_s(merge->snapshot, merge->options), info);
	if (failure)
		return message_error(failure);
	merge_done(merge, "undone", location->path, 0);
	return true;
}

/* ---- the command -------------------------------------------------------- */

static void print_json(const struct merge *merge)
{
	json_output_print(json_pack(
		"{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:o, s:O}", "map",
		json_output_text(merge->path), "action", merge->action, "map_bytes",
		(json_int_t)merge->map_bytes, "images", (json_int_t)merge->counts.images,
		"precompiled_symbols", (json_int_t)merge->counts.precompiled, "unnamed_functions",
		(json_int_t)merge->counts.unnamed, "linkage_stubs",
		(json_int_t)merge->counts.linkage, "nativeaot_functions",
		(json_int_t)merge->counts.ahead, "runtime_lines", (json_int_t)merge->counts.runtime,
		"jit", merge_jit_json(merge), "written_lines", (json_int_t)merge->written_lines,
		"failures", json_output_failures(&merge->failures), "notes", merge->notes));
}

static void print_summary(const struct merge *merge)
{
	/* The map itself, or the output of another command, went to standard output. */
	bool is_taken = (merge->path && !strcmp(merge->path, "-")) || merge->options->on_behalf;
	FILE *stream = is_taken ? stderr : stdout;
	const char *what = merge->action;

	if (merge->jit && merge->jit->method != SYM_JIT_NONE)
		fprintf(stream,
			"jitted code: %zu methods by %s, %" PRIu64 " without a certain name\n",
			merge->counts.jitted, target_jit_word(merge->jit->method),
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
	if (merge->map_bytes)
		fprintf(stream, "the map has %.1f MB\n", (double)merge->map_bytes / (1 << 20));
	if (merge->counts.ahead)
		fprintf(stream, "compiled ahead of time: %zu functions, methods included\n",
			merge->counts.ahead);
	if (merge->counts.unnamed || merge->counts.linkage)
		fprintf(stream,
			"native images: %zu functions without a name, by their start "
			"(IMAGE!0xVADDR); %zu linkage stubs (NAME@plt)\n",
			merge->counts.unnamed, merge->counts.linkage);
	if (merge->jit && merge->jit->method != SYM_JIT_NONE)
		fprintf(stream, "for methods that are compiled later: dotnet-mapgen watch %d\n",
			merge->options->pid);
	if (merge->counts.unnamed)
		fprintf(stream, "for names in native images: dotnet-mapgen fetch-symbols %d\n",
			merge->options->pid);
}

static int merge_report(struct merge *merge)
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

static bool merge_execute(struct merge *merge)
{
	merge->snapshot = target_open_dotnet(merge->options, merge->options->relmap_dirs.items);
	if (!merge->snapshot || !merge_find_perf_map(merge))
		return false;
	if (merge->options->undo)
		return merge_at_location(merge, merge_undo);
	if (!merge_enable_perf_map(merge))
		return false;
	if (merge->options->output)
		return merge_gather_symbols(merge) && merge_write_elsewhere(merge);
	merge_say_what_hides(merge);
	if (!merge_at_location(merge, write_in_place))
		return false;
	merge_say_who_must_refresh(merge);
	merge_say_large_map(merge);
	return true;
}

/* NULL, or the error in a combination of options. */
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
	merge.write_flags = name_form_write_flags(options);
	merge.notes = json_array();
	exit_code = merge_execute(&merge) ? merge_report(&merge) : EXIT_FAILED;
	json_decref(merge.notes);
	sym_symbols_destroy(merge.own_symbols);
	sym_snapshot_close(merge.snapshot);
	failures_deinit(&merge.failures);
	free(merge.path);
	return exit_code;
}
