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
	struct symbols_fetcher *fetcher;
	struct progress progress;
	json_t *array;
	size_t counts[SYMBOLS_OUTCOMES];
	struct sym_identity *shared; /* shared files that were printed already */
	size_t shared_count;
};

/* ---- what was found, by the build-id of a native image or the PDB that an assembly names ----- */

static void add_json(struct symbols_run *run, const char *path, const struct sym_identity *identity,
		     const struct sym_pdb_reference *pdb, const struct symbols_result *result)
{
	char id[2 * sizeof(identity->id) + 1];
	json_t *object;

	if (pdb) {
		hex_write_bytes(id, pdb->guid, sizeof(pdb->guid));
		object = json_pack("{s:o, s:o, s:s}", "image", json_output_text(path), "pdb",
				   json_output_text(pdb->name), "guid", id);
	} else {
		hex_write_bytes(id, identity->id, identity->id_size_bytes);
		object = json_pack("{s:o, s:s}", "image", json_output_text(path), "build_id", id);
	}
	json_object_update_new(object, json_pack("{s:s, s:o, s:o, s:o}", "symbols",
						 symbols_outcome_text(result->outcome),
						 "debug_file", json_output_text(result->path),
						 "server", json_output_text(result->server),
						 "reason", json_output_text(result->reason)));
	json_array_append_new(run->array, object);
}

static void print_result(const char *path, const struct sym_identity *identity,
			 const struct sym_pdb_reference *pdb, const struct symbols_result *result)
{
	char *image AUTO_FREE = message_printable(path);
	char *name AUTO_FREE = message_printable(pdb ? pdb->name : "");
	char id[2 * sizeof(identity->id) + 1];

	printf("%-8s %s%s%s", symbols_outcome_text(result->outcome), image ? image : "",
	       pdb ? "  " : "", name ? name : "");
	if (result->outcome == SYMBOLS_MISSING && identity) {
		hex_write_bytes(id, identity->id, identity->id_size_bytes);
		printf("  build-id %s", id);
	}
	if (result->outcome == SYMBOLS_FETCHED)
		printf("  %.1f MB from %s", (double)result->size_bytes / 1e6, result->server);
	else if (result->outcome == SYMBOLS_HERE)
		printf("  %s", result->path);
	else if (result->reason)
		printf("  %s", result->reason);
	putchar('\n');
}

/* `identity` NULL: of the PDB. */
static void report(struct symbols_run *run, const char *path, const struct sym_identity *identity,
		   const struct sym_pdb_reference *pdb, const struct symbols_result *result)
{
	run->counts[result->outcome]++;
	if (run->options->json) {
		add_json(run, path, identity, pdb, result);
	} else if (result->outcome != SYMBOLS_OWN) {
		progress_hide(&run->progress);
		print_result(path, identity, pdb, result);
	}
}

/* ---- images ---------------------------------------------------------------------------------- */

/* False when the image is no assembly that names a PDB. */
static bool visit_assembly(struct symbols_run *run, struct sym_image *image)
{
	const struct sym_pdb_reference *pdb = sym_image_pdb_reference(image);
	struct symbols_result result = { .outcome = SYMBOLS_OWN };

	if (!pdb)
		return false;
	if (!sym_image_pdb(image, NULL))
		symbols_fetch(run->fetcher, NULL, pdb, &result);
	report(run, sym_image_path(image), NULL, pdb, &result);
	symbols_result_deinit(&result);
	return true;
}

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

static void find_symbols(struct symbols_run *run, const struct sym_identity *identity,
			 struct symbols_result *ret)
{
	if (identity->contents & (SYM_CONTENT_SYMBOL_TABLE | SYM_CONTENT_DEBUG_INFO))
		ret->outcome = SYMBOLS_OWN;
	else if (identity->id_size_bytes < 2)
		ret->outcome = SYMBOLS_NO_ID;
	else
		symbols_fetch(run->fetcher, identity, NULL, ret);
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
	run->progress.name = path_file_name(shared.name);
	find_symbols(run, &shared.identity, &result);
	report(run, shared.name, &shared.identity, NULL, &result);
	symbols_result_deinit(&result);
}

static void fetch_symbols_visit(struct symbols_run *run, size_t index)
{
	struct sym_image *image = sym_snapshot_image_at(run->snapshot, index);
	const char *path = sym_image_path(image);
	struct sym_identity identity = { 0 };
	struct symbols_result result;

	progress_step(&run->progress, path_file_name(path));
	if (!run->options->names_only && visit_assembly(run, image))
		return;
	if (!fetch_symbols_identify(image, &identity, &result))
		return;
	if (result.outcome != SYMBOLS_FAILED)
		find_symbols(run, &identity, &result);
	report(run, path, &identity, NULL, &result);
	if (result.path)
		visit_shared(run, result.path);
	symbols_result_deinit(&result);
}

/* Hints for a user who expected more names. */
static void fetch_symbols_advise(const struct symbols_run *run)
{
	const struct symbols_choice *choice = symbols_fetcher_choice(run->fetcher);

	if (run->counts[SYMBOLS_FETCHED] && strcmp(choice->tree, SYMBOLS_STANDARD_TREE) != 0)
		message("for tools to find %s: gdb -iex 'set debug-file-directory %s'",
			choice->tree, choice->tree);
	if (run->counts[SYMBOLS_MISSING] && !run->options->offline && choice->is_microsoft_only)
		message("only Microsoft's server was asked; debug files of distributions are on "
			"debuginfod servers: --server=URL or $DEBUGINFOD_URLS");
}

static int fetch_symbols_finish(struct symbols_run *run)
{
	const size_t *counts = run->counts;
	size_t lacking = counts[SYMBOLS_MISSING] + counts[SYMBOLS_FAILED] + counts[SYMBOLS_NO_ID];

	if (run->options->json)
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
	struct sym_snapshot *snapshot GUARDED(snapshot) = NULL;
	struct symbols_run run = { .options = options };
	int exit_code;

	if (!options->pid || options->operand_count) {
		message("fetch-symbols takes one process; see dotnet-mapgen fetch-symbols --help");
		return EXIT_USAGE;
	}
	snapshot = target_open(options, NULL);
	if (!snapshot || !target_open_images(snapshot))
		return EXIT_FAILED;
	run.snapshot = snapshot;
	run.array = options->json ? json_array() : NULL;
	run.fetcher = symbols_fetcher_create(options, &run.progress);
	if (!run.fetcher)
		return EXIT_FAILED;
	exit_code = run_over_images(&run);
	free(run.shared);
	symbols_fetcher_destroy(run.fetcher);
	return exit_code;
}
