/* SPDX-License-Identifier: MIT */
/*
 * The command fetch-symbols: finds the native images of a process that have no names, and the
 * assemblies without a PDB. It downloads their debug files and PDBs into a tree that libsym
 * searches, and perf and gdb for native images. It only reads the process, and writes only to the
 * tree.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/json_output.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/progress.h"
#include "mapgen/cli/target.h"
#include "mapgen/debuginfo/dwz_file.h"
#include "mapgen/debuginfo/symbol_servers.h"
#include "mapgen/debuginfo/symbols_fetch.h"

struct symbols_run {
	const struct options *options;
	struct sym_snapshot *snapshot;
	struct symbols_fetcher *fetcher; /* NULL with --offline */
	const struct symbols_choice *choice;
	struct progress progress;
	const char *image_name; /* of the current step */
	json_t *array;
	size_t counts[SYMBOLS_OUTCOMES];
	struct sym_identity *shared; /* shared files that were printed already */
	size_t shared_count;
};

/* ---- PDBs of assemblies ---------------------------------------------------------------------- */

static void add_pdb_json(struct symbols_run *run, const char *path,
			 const struct sym_pdb_reference *pdb, const struct symbols_result *result)
{
	char guid[2 * sizeof(pdb->guid) + 1];

	hex_write_bytes(guid, pdb->guid, sizeof(pdb->guid));
	json_array_append_new(run->array,
			      json_pack("{s:o, s:o, s:s, s:s, s:o, s:o, s:o}", "image",
					json_output_text(path), "pdb", json_output_text(pdb->name),
					"guid", guid, "symbols",
					symbols_outcome_text(result->outcome), "debug_file",
					json_output_text(result->path), "server",
					json_output_text(result->server), "reason",
					json_output_text(result->reason)));
}

static void print_pdb(const char *path, const struct sym_pdb_reference *pdb,
		      const struct symbols_result *result)
{
	char *image AUTO_FREE = message_printable(path);
	char *name AUTO_FREE = message_printable(pdb->name);

	printf("%-8s %s  %s", symbols_outcome_text(result->outcome), image ? image : "",
	       name ? name : "");
	if (result->outcome == SYMBOLS_FETCHED)
		printf("  %.1f MB from %s", (double)result->size_bytes / 1e6, result->server);
	else if (result->outcome == SYMBOLS_HERE)
		printf("  %s", result->path);
	else if (result->reason)
		printf("  %s", result->reason);
	putchar('\n');
}

/* False when the image is no assembly that names a PDB. */
static bool visit_assembly(struct symbols_run *run, struct sym_image *image)
{
	const struct sym_pdb_reference *pdb = sym_image_pdb_reference(image);
	struct symbols_result result = { 0 };

	if (!pdb)
		return false;
	if (sym_image_pdb(image, NULL))
		result.outcome = SYMBOLS_OWN;
	else if (run->fetcher)
		symbols_fetch_pdb(run->fetcher, pdb, &result);
	else
		symbols_look_for_pdb(run->choice->tree, pdb, &result);
	run->counts[result.outcome]++;
	if (run->array) {
		add_pdb_json(run, sym_image_path(image), pdb, &result);
	} else if (result.outcome != SYMBOLS_OWN) {
		progress_hide(&run->progress);
		print_pdb(sym_image_path(image), pdb, &result);
	}
	symbols_result_deinit(&result);
	return true;
}

/* ---- debug files of native images ------------------------------------------------------------ */

/* False when the image is not an ELF file, or is the vDSO: it gets no line. */
static bool fetch_symbols_identify(struct sym_image *image, struct sym_identity *identity,
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
		ret->reason = strdup(sym_image_problem(image) ?: sym_error_message(error));
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

static void fetch_symbols_print(const char *path, const struct sym_identity *identity,
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
	else if (result->outcome == SYMBOLS_MISSING && result->reason)
		printf("  build-id %s  %s", id, result->reason);
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

static void fetch_symbols_report(struct symbols_run *run, const char *path,
				 const struct sym_identity *identity,
				 const struct symbols_result *result)
{
	run->counts[result->outcome]++;
	if (run->array) {
		add_json(run, path, identity, result);
	} else if (result->outcome != SYMBOLS_OWN) {
		progress_hide(&run->progress);
		fetch_symbols_print(path, identity, result);
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

/* Printed like an image, under the name that the debug file has for it; once when several debug
 * files share it. */
static void visit_shared(struct symbols_run *run, const char *debug_file)
{
	struct symbols_result result = { 0 };
	struct symbols_shared shared;

	if (!symbols_shared_wanted(debug_file, &shared) || !is_first(run, &shared.identity))
		return;
	run->image_name = path_file_name(shared.name);
	find_symbols(run, &shared.identity, &result);
	fetch_symbols_report(run, shared.name, &shared.identity, &result);
	symbols_result_deinit(&result);
}

static void fetch_symbols_visit(struct symbols_run *run, size_t index)
{
	struct sym_image *image = sym_snapshot_image_at(run->snapshot, index);
	const char *path = sym_image_path(image);
	struct sym_identity identity = { 0 };
	struct symbols_result result;

	run->image_name = path_file_name(path);
	progress_step(&run->progress, run->image_name);
	if (!run->options->names_only && visit_assembly(run, image))
		return;
	if (!fetch_symbols_identify(image, &identity, &result))
		return;
	if (result.outcome != SYMBOLS_FAILED)
		find_symbols(run, &identity, &result);
	fetch_symbols_report(run, path, &identity, &result);
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

/* Hints for a user who expected more names. */
static void fetch_symbols_advise(const struct symbols_run *run)
{
	if (run->counts[SYMBOLS_FETCHED] && strcmp(run->choice->tree, SYMBOLS_STANDARD_TREE) != 0)
		message("for tools to find %s: gdb -iex 'set debug-file-directory %s'",
			run->choice->tree, run->choice->tree);
	if (run->counts[SYMBOLS_MISSING] && run->fetcher && run->choice->is_microsoft_only)
		message("only Microsoft's server was asked; debug files of distributions are on "
			"debuginfod servers: --server=URL or $DEBUGINFOD_URLS");
}

static int fetch_symbols_finish(struct symbols_run *run)
{
	const size_t *counts = run->counts;
	size_t lacking = counts[SYMBOLS_MISSING] + counts[SYMBOLS_FAILED] + counts[SYMBOLS_NO_ID];

	if (run->array)
		return json_output_print(run->array) ? lacking ? EXIT_PARTLY : EXIT_DONE
						     : EXIT_FAILED;
	message("%zu fetched, %zu here already, %zu with their own symbols; %zu without",
		counts[SYMBOLS_FETCHED], counts[SYMBOLS_HERE], counts[SYMBOLS_OWN], lacking);
	fetch_symbols_advise(run);
	return lacking ? EXIT_PARTLY : EXIT_DONE;
}

static int run_over_images(struct symbols_run *run)
{
	size_t count = sym_snapshot_image_count(run->snapshot);

	progress_begin(&run->progress, count);
	for (size_t i = 0; i < count; i++)
		fetch_symbols_visit(run, i);
	progress_end(&run->progress);
	return target_lives(run->snapshot, run->options) ? fetch_symbols_finish(run) : EXIT_FAILED;
}

int fetch_symbols_run(const struct options *options)
{
	struct symbols_choice choice GUARDED(symbols_choice) = { 0 };
	struct sym_snapshot *snapshot GUARDED(snapshot) = NULL;
	struct symbols_run run = { .options = options, .choice = &choice };
	int exit_code;

	if (!options->pid || options->operand_count) {
		message("fetch-symbols takes one process; see dotnet-mapgen fetch-symbols --help");
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
		if (options->names_only)
			symbols_fetcher_names_only(run.fetcher);
	}
	exit_code = run_over_images(&run);
	free(run.shared);
	symbols_fetcher_destroy(run.fetcher);
	return exit_code;
}
