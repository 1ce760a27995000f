/* SPDX-License-Identifier: MIT */
/*
 * The command symbols: which native images of a process have no names, and
 * brings their debug files into a build-id tree where libsym, perf and gdb look.
 * Only looks at the process; the files of the tree are all that it writes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "mapgen/command.h"
#include "mapgen/json_output.h"
#include "mapgen/message.h"
#include "mapgen/progress.h"
#include "mapgen/symbols_choice.h"
#include "mapgen/symbols_fetch.h"
#include "mapgen/symbols_shared.h"
#include "mapgen/target.h"

struct symbols_run {
	const struct options *options;
	struct sym_snapshot *snapshot;
	struct symbols_fetcher *fetcher; /* NULL with --offline */
	const struct symbols_choice *choice;
	struct progress progress;
	const char *image_name; /* of the present step */
	json_t *array;
	size_t counts[SYMBOLS_OUTCOMES];
	struct sym_identity *shared; /* of the files that were told already */
	size_t shared_count;
};

/* False when the image is no ELF file, or the kernel's own page: it has no outcome then. */
static bool identify(struct sym_image *image, struct sym_identity *identity,
		     struct symbols_result *ret)
{
	struct sym_error *error;

	*ret = (struct symbols_result){ 0 };
	if (sym_image_path(image)[0] != '/')
		return false;
	identity->size = sizeof(*identity);
	error = sym_image_identity(image, identity);
	if (!error)
		return identity->kind == SYM_IDENTITY_ELF;
	if (sym_image_kind(image) == SYM_IMAGE_ELF) {
		ret->outcome = SYMBOLS_FAILED;
		ret->reason = strdup(sym_image_trouble(image) ?: sym_error_message(error));
	}
	sym_error_destroy(error);
	return ret->outcome == SYMBOLS_FAILED;
}

static void add_json(struct symbols_run *run, const char *path, const struct sym_identity *identity,
		     const struct symbols_result *result)
{
	char id[2 * sizeof(identity->id) + 1];

	hex_write_bytes(id, identity->id, identity->id_size_bytes);
	json_array_append_new(run->array,
			      json_pack("{s:o, s:s, s:s, s:o, s:o, s:o}", "image",
					json_output_text(path), "build_id", id, "symbols",
					symbols_outcome_text(result->outcome), "debug_file",
					json_output_text(result->path), "server",
					json_output_text(result->server), "reason",
					json_output_text(result->reason)));
}

static void print(const char *path, const struct sym_identity *identity,
		  const struct symbols_result *result)
{
	char *image AUTO_FREE = message_printable(path);
	char id[2 * sizeof(identity->id) + 1];

	hex_write_bytes(id, identity->id, identity->id_size_bytes);
	printf("%-8s %s", symbols_outcome_text(result->outcome), image ? image : "");
	if (result->outcome == SYMBOLS_FETCHED)
		printf("  %.1f MB from %s", (double)result->size_bytes / 1e6, result->server);
	else if (result->outcome == SYMBOLS_HERE)
		printf("  %s", result->path);
	else if (result->outcome == SYMBOLS_MISSING)
		printf("  build-id %s", id);
	else if (result->reason)
		printf("  %s", result->reason);
	putchar('\n');
}

static void find_symbols(struct symbols_run *run, const struct sym_identity *identity,
			 struct symbols_result *ret)
{
	if (identity->contents & (SYM_CONTENT_SYMBOL_TABLE | SYM_CONTENT_DEBUG_INFO))
		ret->outcome = SYMBOLS_OWN;
	else if (identity->id_size_bytes < 2)
		ret->outcome = SYMBOLS_NO_ID;
	else if (run->fetcher)
		symbols_fetch(run->fetcher, identity, ret);
	else
		symbols_look(run->choice->tree, identity, ret);
}

static void tell(struct symbols_run *run, const char *path, const struct sym_identity *identity,
		 const struct symbols_result *result)
{
	run->counts[result->outcome]++;
	if (run->array) {
		add_json(run, path, identity, result);
	} else if (result->outcome != SYMBOLS_OWN) {
		progress_hide(&run->progress);
		print(path, identity, result);
	}
}

static bool is_first(struct symbols_run *run, const struct sym_identity *shared)
{
	struct sym_identity *grown;

	for (size_t i = 0; i < run->shared_count; i++)
		if (!memcmp(run->shared[i].id, shared->id, sizeof(shared->id)))
			return false;
	grown = reallocarray(run->shared, run->shared_count + 1, sizeof(*grown));
	if (grown) {
		grown[run->shared_count++] = *shared;
		run->shared = grown;
	}
	return true;
}

/* Told like an image, under the name that the debug file has for it; once, when several share it.
 */
static void visit_shared(struct symbols_run *run, const char *debug_file)
{
	struct symbols_result result = { 0 };
	struct symbols_shared shared;

	if (!symbols_shared_wanted(debug_file, &shared) || !is_first(run, &shared.identity))
		return;
	run->image_name = path_file_name(shared.name);
	find_symbols(run, &shared.identity, &result);
	tell(run, shared.name, &shared.identity, &result);
	symbols_result_deinit(&result);
}

static void visit(struct symbols_run *run, size_t index)
{
	struct sym_image *image = sym_snapshot_image_at(run->snapshot, index);
	const char *path = sym_image_path(image);
	struct sym_identity identity = { 0 };
	struct symbols_result result;

	run->image_name = path_file_name(path);
	progress_step(&run->progress, run->image_name);
	if (!identify(image, &identity, &result))
		return;
	if (result.outcome != SYMBOLS_FAILED)
		find_symbols(run, &identity, &result);
	tell(run, path, &identity, &result);
	if (result.path)
		visit_shared(run, result.path);
	symbols_result_deinit(&result);
}

static void on_bytes(void *context, uint64_t bytes, uint64_t total_bytes)
{
	struct symbols_run *run = context;

	progress_bytes(&run->progress, run->image_name, bytes, total_bytes);
}

static void before_message(void *context)
{
	struct symbols_run *run = context;

	progress_hide(&run->progress);
}

/* What somebody may do who expected more. */
static void advise(const struct symbols_run *run)
{
	if (run->counts[SYMBOLS_FETCHED] && strcmp(run->choice->tree, SYMBOLS_STANDARD_TREE) != 0)
		message("tools find %s when told: gdb -iex 'set debug-file-directory %s'",
			run->choice->tree, run->choice->tree);
	if (run->counts[SYMBOLS_MISSING] && run->fetcher && run->choice->is_microsoft_only)
		message("only Microsoft's server was asked; a distribution has its debug files on "
			"a "
			"debuginfod server: --server=URL or $DEBUGINFOD_URLS");
}

static int finish(struct symbols_run *run)
{
	const size_t *counts = run->counts;
	size_t lacking = counts[SYMBOLS_MISSING] + counts[SYMBOLS_FAILED] + counts[SYMBOLS_NO_ID];

	if (run->array)
		return json_output_print(run->array) ? lacking ? EXIT_PARTLY : EXIT_DONE
						     : EXIT_FAILED;
	message("%zu fetched, %zu here already, %zu with their own symbols; %zu without",
		counts[SYMBOLS_FETCHED], counts[SYMBOLS_HERE], counts[SYMBOLS_OWN], lacking);
	advise(run);
	return lacking ? EXIT_PARTLY : EXIT_DONE;
}

static int run_over_images(struct symbols_run *run)
{
	size_t count = sym_snapshot_image_count(run->snapshot);

	progress_begin(&run->progress, count);
	for (size_t i = 0; i < count; i++)
		visit(run, i);
	progress_end(&run->progress);
	return target_lives(run->snapshot, run->options) ? finish(run) : EXIT_FAILED;
}

int symbols_run(const struct options *options)
{
	struct symbols_choice choice GUARDED(symbols_choice) = { 0 };
	struct sym_snapshot *snapshot GUARDED(snapshot) = NULL;
	struct symbols_run run = { .options = options, .choice = &choice };
	int exit_code;

	if (!options->pid || options->operand_count) {
		message("symbols takes one process; see dotnet-mapgen symbols --help");
		return EXIT_USAGE;
	}
	if (!symbols_choice_make(options, &choice))
		return EXIT_FAILED;
	snapshot = target_open(options, NULL);
	if (!snapshot || !target_open_images(snapshot))
		return EXIT_FAILED;
	run.snapshot = snapshot;
	run.array = options->json ? json_array() : NULL;
	if (options->json && !run.array) {
		message("out of memory");
		return EXIT_FAILED;
	}
	if (!options->offline) {
		if (!symbols_choice_can_keep(&choice))
			return EXIT_FAILED;
		run.fetcher = symbols_fetcher_create(
			choice.servers, choice.tree,
			&(struct symbols_watch){ on_bytes, before_message, &run });
		if (!run.fetcher)
			return EXIT_FAILED;
	}
	exit_code = run_over_images(&run);
	free(run.shared);
	symbols_fetcher_destroy(run.fetcher);
	return exit_code;
}
