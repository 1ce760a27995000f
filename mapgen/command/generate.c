/* SPDX-License-Identifier: MIT */
/*
 * The command generate: one relative map for each precompiled image of a process, or of files.
 * Chooses the images and counts them; relative_map.c makes a map. Given files, it opens one image
 * at a time.
 */
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libsym/base/path.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/json_output.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/progress.h"
#include "mapgen/cli/target.h"
#include "mapgen/relmap/relative_map.h"

struct generation {
	struct map_maker maker;
	struct progress progress;
	struct failures failures;
	size_t counts[MAP_OUTCOMES];
	bool ended;     /* the process ended while maps were made */
	json_t *images; /* NULL without --json */
};

struct paths {
	char **items;
	size_t count;
};

static void add_result(struct generation *generation, const char *path, enum map_outcome outcome,
		       const char *map_path, struct sym_error *error)
{
	generation->counts[outcome]++;
	if (generation->images)
		json_array_append_new(
			generation->images,
			json_pack("{s:o, s:s, s:o, s:o}", "path", json_output_text(path), "outcome",
				  map_outcome_text(outcome), "map", json_output_text(map_path),
				  "reason",
				  json_output_text(error ? sym_error_message(error) : NULL)));
	if (outcome == MAP_FAILED || outcome == MAP_PARTLY)
		failures_add_error(&generation->failures, path, error);
	else
		sym_error_destroy(error);
}

static void add_image(struct generation *generation, struct sym_image *image)
{
	char *map_path AUTO_FREE = NULL;
	struct sym_error *error;
	enum map_outcome outcome = relative_map_make(&generation->maker, image, &map_path, &error);

	add_result(generation, sym_image_path(image), outcome, map_path, error);
}

static void add_file(struct generation *generation, const char *path)
{
	struct sym_image *image GUARDED(object_file) = NULL;
	const struct sym_image_opts opts = {
		.size = sizeof(opts),
		.assembly_dirs = generation->maker.platform_dirs.items,
		.budget = generation->maker.budget,
	};
	struct sym_error *error = sym_image_open_with(path, &opts, &image);

	if (!error)
		add_image(generation, image);
	else
		add_result(generation, path, MAP_FAILED, NULL, error);
}

static bool paths_add(struct paths *paths, const char *path)
{
	char **items = reallocarray(paths->items, paths->count + 1, sizeof(*items));

	if (items)
		paths->items = items;
	if (!items || !(items[paths->count] = strdup(path))) {
		message("out of memory");
		return false;
	}
	paths->count++;
	return true;
}

static void paths_deinit(struct paths *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		free(paths->items[i]);
	free(paths->items);
}

static int by_name(const FTSENT **left, const FTSENT **right)
{
	return strcmp((*left)->fts_name, (*right)->fts_name);
}

DEFINE_GUARD(fts, FTS *, fts_close)

/* Files that are operands; of directories, at any depth, files named like an assembly. */
static bool gather_files(struct generation *generation, char **operands, struct paths *ret)
{
	/* Symbolic links are followed only when they are operands, because a tree may contain
	 * itself. */
	FTS *tree GUARDED(fts) =
		fts_open(operands, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
	FTSENT *entry;

	if (!tree) {
		message("cannot read the directories: %s", strerror(errno));
		return false;
	}
	for (errno = 0; (entry = fts_read(tree)); errno = 0) {
		bool named = entry->fts_level == FTS_ROOTLEVEL;

		switch (entry->fts_info) {
		case FTS_F:
			if ((named || path_is_assembly(entry->fts_name)) &&
			    !paths_add(ret, entry->fts_path))
				return false;
			break;
		case FTS_DNR:
		case FTS_ERR:
		case FTS_NS:
			add_result(
				generation, entry->fts_path, MAP_FAILED, NULL,
				sym_error_create(SYM_ERROR_IO, "%s", strerror(entry->fts_errno)));
			break;
		case FTS_DEFAULT:
			if (named)
				add_result(generation, entry->fts_path, MAP_FAILED, NULL,
					   sym_error_create(SYM_ERROR_IO, "not a regular file"));
			break;
		default:
			break;
		}
	}
	if (errno)
		message("cannot read the directories: %s", strerror(errno));
	return !errno;
}

static bool generate_files(struct generation *generation, const struct options *options)
{
	struct paths paths = { 0 };
	bool gathered = gather_files(generation, options->operands, &paths);

	if (gathered && !paths.count && !generation->failures.count) {
		message("no assemblies (*.dll, *.exe) in the operands");
		gathered = false;
	}
	progress_begin(&generation->progress, paths.count);
	for (size_t i = 0; gathered && i < paths.count; i++) {
		progress_step(&generation->progress, path_file_name(paths.items[i]));
		add_file(generation, paths.items[i]);
	}
	progress_end(&generation->progress);
	paths_deinit(&paths);
	return gathered;
}

/* An image that is mapped twice has one map. Files inside a bundle share its path. When memory is
 * short, an image may be processed twice, which does no harm. */
static bool is_new(struct text_set *seen, const struct sym_image *image)
{
	const char *assembly = sym_image_assembly_name(image);
	const char *mvid = sym_image_mvid(image);
	char *identity AUTO_FREE = message_format("%s/%s/%s", sym_image_path(image),
						  assembly ? assembly : "", mvid ? mvid : "");

	if (text_set_has(seen, identity))
		return false;
	text_set_add(seen, identity, strlen(identity));
	return true;
}

/* An image without precompiled code is no failure. */
static void say_aot(struct sym_snapshot *snapshot)
{
	struct sym_image *program = target_aot_program(snapshot);
	char *naming AUTO_FREE = program ? target_aot_naming(program) : NULL;

	if (program)
		message("NativeAOT has no assemblies to make maps of: the methods are in an ELF "
			"file, %s",
			naming ? naming : "out of memory");
}

static bool generate_process(struct generation *generation, const struct options *options)
{
	struct sym_snapshot *snapshot GUARDED(snapshot) = target_open_dotnet(options, NULL);
	struct text_set seen = { 0 };
	size_t count;

	if (!snapshot)
		return false;
	count = sym_snapshot_image_count(snapshot);
	say_aot(snapshot);
	progress_begin(&generation->progress, count);
	for (size_t i = 0; i < count; i++) {
		struct sym_image *image = sym_snapshot_image_at(snapshot, i);

		progress_step(&generation->progress, path_file_name(sym_image_path(image)));
		if (target_is_of_interest(snapshot, i) && is_new(&seen, image))
			add_image(generation, image);
	}
	progress_end(&generation->progress);
	text_set_deinit(&seen);
	generation->ended = !target_lives(snapshot, options);
	return true;
}

static void print_text_summary(const struct generation *generation, size_t whole)
{
	const size_t *counts = generation->counts;

	if (whole + counts[MAP_PARTLY])
		printf("maps are in %s\n", generation->maker.place.path);
	printf("map generation: %zu succeeded, ", whole);
	if (counts[MAP_PARTLY])
		printf("%zu incomplete, ", counts[MAP_PARTLY]);
	printf("%zu without precompiled code, %zu failed\n", counts[MAP_NO_CODE],
	       counts[MAP_FAILED]);
}

static void print_summary(const struct generation *generation, const struct options *options)
{
	const size_t *counts = generation->counts;
	size_t whole = counts[MAP_MADE] + counts[MAP_KEPT];

	failures_print(&generation->failures);
	if (!options->json) {
		print_text_summary(generation, whole);
		return;
	}
	json_output_print(json_pack("{s:o, s:I, s:I, s:I, s:I, s:O}", "directory",
				    json_output_text(generation->maker.place.path), "succeeded",
				    (json_int_t)whole, "incomplete", (json_int_t)counts[MAP_PARTLY],
				    "without_precompiled_code", (json_int_t)counts[MAP_NO_CODE],
				    "failed", (json_int_t)counts[MAP_FAILED], "images",
				    generation->images));
}

static int exit_code_of(const struct generation *generation)
{
	const size_t *counts = generation->counts;

	if (!counts[MAP_FAILED] && !counts[MAP_PARTLY] && !generation->ended)
		return EXIT_DONE;
	return counts[MAP_MADE] + counts[MAP_KEPT] + counts[MAP_PARTLY] ? EXIT_PARTLY : EXIT_FAILED;
}

int generate_run(const struct options *options)
{
	struct generation generation = {
		.maker = { .format = options->format ? (enum sym_map_format)options->format
						     : SYM_MAP_RELATIVE,
			   .crossgen = options->crossgen,
			   .platform_dirs = options->platform_dirs,
			   .budget = options->budget },
	};
	int exit_code = EXIT_FAILED;
	bool done;

	if (!options->pid && !options->operand_count) {
		message("generate needs a PID, files or directories; see dotnet-mapgen generate "
			"--help");
		return EXIT_USAGE;
	}
	if (options->pid ? options->operand_count > 0 : options->root != NULL) {
		message(options->pid ? "generate takes a PID or files, not both"
				     : "--root needs a PID; give the paths of the files below it "
				       "instead");
		return EXIT_USAGE;
	}
	if (options->crossgen && options->format == SYM_MAP_R2RMAP) {
		message("--crossgen does not go with --format=r2rmap");
		return EXIT_USAGE;
	}
	if (!message_error(relmap_cache_open(&generation.maker.place, options->output)))
		return EXIT_FAILED;
	if (options->json)
		generation.images = json_array();
	done = options->pid ? generate_process(&generation, options)
			    : generate_files(&generation, options);
	if (done) {
		print_summary(&generation, options);
		exit_code = exit_code_of(&generation);
	}
	json_decref(generation.images);
	failures_deinit(&generation.failures);
	relmap_cache_close(&generation.maker.place);
	return exit_code;
}
