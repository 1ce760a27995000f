/* SPDX-License-Identifier: MIT */
#include "mapgen/perfdata/fixup_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/json_output.h"
#include "mapgen/cli/target.h"
#include "mapgen/perfdata/perf_files.h"
#include "mapgen/perfdata/undo_record.h"

enum {
	/* One sample in this many may lie in code without a name: a stub, or code that was freed.
	 */
	UNNAMED_PART = 100
};

static bool is_process_whole(const struct planned_process *process)
{
	return !process->left && !process->failures.count &&
	       process->unnamed_samples + process->lost_samples <=
		       (process->code_samples + process->lost_samples) / UNNAMED_PART;
}

static bool is_whole(const struct perf_fix_report *report, const struct options *options)
{
	if (options->pid && !report->plan->process_count)
		return false;
	for (size_t i = 0; i < report->plan->process_count; i++)
		if (!is_process_whole(&report->plan->processes[i]))
			return false;
	return !report->failures.count &&
	       report->unrecorded->outside <= report->unrecorded->samples / UNNAMED_PART;
}

/* ---- text ----------------------------------------------------------------------------------- */

static const char *state_text(const struct planned_process *process)
{
	if (process->lives)
		return "live";
	if (process->refused)
		return "there, but may not be looked at";
	return process->other_now ? "gone, its id is another's now" : "gone";
}

static void print_code(const struct planned_process *process, FILE *to)
{
	const char *place = process->code_place ? process->code_place : "";
	bool is_by_memory = !strcmp(place, sym_jit_method_text(SYM_JIT_CONTRACT));

	switch (process->code) {
	case CODE_LIVE:
		fprintf(to, "; jitted code: %zu names from the live process (%s)",
			process->code_names,
			is_by_memory ? target_jit_word(SYM_JIT_CONTRACT) : place);
		if (process->map_names)
			fprintf(to, ", %zu names of freed code from its perf map",
				process->map_names);
		break;
	case CODE_SAVED:
		fprintf(to, "; jitted code: %zu names from the saved map %s of %s",
			process->code_names, place,
			process->code_owner ? process->code_owner : "an unknown user");
		break;
	case CODE_NOWHERE:
		fprintf(to, "; jitted code: no names, %s",
			process->lives     ? place
			: process->refused ? "because it has no saved map"
					   : "because the process has ended and left no map");
		break;
	}
}

static void print_native(size_t files, size_t functions, size_t unnamed, FILE *to)
{
	fprintf(to, "%zu functions of %zu stripped files, %zu by their bounds", functions, files,
		unnamed);
}

/* Where the names come from. */
static void print_origins(const struct planned_process *process, FILE *to)
{
	if (process->is_ahead) {
		fprintf(to, "NativeAOT: the methods are in an ELF file, %s",
			process->code_place ? process->code_place : "out of memory");
	} else if (process->is_dotnet) {
		fprintf(to, "precompiled code: %zu names of %zu files", process->methods,
			process->images);
		print_code(process, to);
	}
	if (!process->native_images)
		return;
	fprintf(to, "%snative code: ", process->is_dotnet ? "; " : "");
	print_native(process->native_images, process->native_functions, process->native_unnamed,
		     to);
}

static void print_failures(const struct planned_process *process)
{
	for (size_t i = 0; i < process->failures.count; i++)
		message("process %d: %s%s%s", process->pid, process->failures.items[i].subject,
			*process->failures.items[i].subject ? ": " : "",
			process->failures.items[i].reason ? process->failures.items[i].reason
							  : "out of memory");
}

static void print_process(const struct planned_process *process, FILE *to)
{
	char *comm AUTO_FREE = message_printable(process->comm ? process->comm : "");

	fprintf(to, "process %d", process->pid);
	if (comm && *comm)
		fprintf(to, " (%s)", comm);
	fprintf(to, ", %s: ", state_text(process));
	print_origins(process, to);
	fputc('\n', to);
	if (process->unnamed_samples)
		fprintf(to,
			"  %" PRIu64 " of %" PRIu64
			" samples in memory with jitted code lie in code "
			"without a name, [unnamed code]\n",
			process->unnamed_samples, process->code_samples);
	if (process->lost_samples)
		fprintf(to,
			"  %" PRIu64
			" samples lie in memory with jitted code whose names are gone, [unknown]\n",
			process->lost_samples);
	if (process->fixed_before)
		fprintf(to, "  %zu mappings had been given names before\n", process->fixed_before);
}

static size_t count_others(const struct fixup_plan *plan)
{
	size_t count = 0;

	for (size_t i = 0; i < plan->process_count; i++)
		count += !plan->processes[i].is_dotnet;
	return count;
}

/* There may be hundreds of processes without .NET. */
static void print_others(const struct fixup_plan *plan, size_t count, FILE *to)
{
	size_t files = 0, functions = 0, unnamed = 0;

	for (size_t i = 0; i < plan->symfile_count; i++) {
		files += plan->symfiles[i].native_bytes != 0;
		functions += plan->symfiles[i].native_bytes ? plan->symfiles[i].symbols : 0;
		unnamed += plan->symfiles[i].unnamed;
	}
	fprintf(to, "%zu processes without .NET; native code of all: ", count);
	print_native(files, functions, unnamed, to);
	fputc('\n', to);
}

static void print_processes(const struct fixup_plan *plan, FILE *to)
{
	size_t others = count_others(plan);

	for (size_t i = 0; i < plan->process_count; i++) {
		if (plan->processes[i].is_dotnet || others == 1)
			print_process(&plan->processes[i], to);
		print_failures(&plan->processes[i]);
	}
	if (others > 1)
		print_others(plan, others, to);
}

/* The source of one of several processes. */
static void print_way_to_names(const struct fixup_plan *plan, FILE *to)
{
	for (size_t i = 0; i < plan->process_count; i++)
		if (plan->processes[i].lives && plan->processes[i].native_unnamed) {
			fprintf(to,
				"for names in its native images: dotnet-mapgen fetch-symbols %d, "
				"then perf-fix again\n",
				plan->processes[i].pid);
			return;
		}
}

/* Without added mappings the live process may have newer ones. */
static void print_unrecorded(const struct perf_fix_report *report, FILE *to)
{
	const struct unrecorded_maps *unrecorded = report->unrecorded;

	if (unrecorded->added)
		fprintf(to,
			"%zu mappings were not recorded; they were added as the live processes "
			"have them\n",
			unrecorded->added);
	if (!unrecorded->outside)
		return;
	fprintf(to,
		"%" PRIu64 " of %" PRIu64
		" samples, of %zu processes, lie outside of all recorded mappings, [unknown]%s%s\n",
		unrecorded->outside, unrecorded->samples, unrecorded->processes,
		report->adding_trouble ? "; " : "",
		report->adding_trouble ? report->adding_trouble : "");
}

void perf_fix_report_no_code(const struct options *options)
{
	message("process %" PRId32 " has no .NET code%s in the data", options->pid,
		options->native == NATIVE_ALL ? " and no stripped native code" : "");
}

static void print_text(const struct perf_fix_report *report, const struct options *options,
		       FILE *to)
{
	const struct fixup_plan *plan = report->plan;
	size_t left = 0, made = 0;

	print_processes(plan, to);
	for (size_t i = 0; i < plan->process_count; i++)
		left += plan->processes[i].left;
	for (size_t i = 0; i < plan->symfile_count; i++)
		made += plan->symfiles[i].is_new;
	print_way_to_names(plan, to);
	print_unrecorded(report, to);
	if (!plan->process_count && options->pid)
		perf_fix_report_no_code(options);
	else if (!plan->process_count && options->native == NATIVE_ALL)
		message("there is no .NET process and no stripped native code in the data");
	else if (!plan->process_count)
		message("there is no .NET process in the data; for others use --native=all");
	if (report->was_compressed)
		fprintf(to, "the data was compressed; the output is not\n");
	fprintf(to, "perf-fix: %zu mappings of %zu processes fixed, %zu left", report->changed,
		plan->process_count, left);
	if (plan->symfile_count)
		fprintf(to, "; %zu stand-ins in %s (%zu new)", plan->symfile_count, report->cache,
			made);
	fprintf(to, "; written to %s\n",
		strcmp(report->output, "-") ? report->output : "standard output");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static const char *origin_text(const struct planned_process *process)
{
	static const char *const texts[] = { "none", "live", "saved-map" };

	return texts[process->code];
}

static json_t *process_json(const struct planned_process *process)
{
	json_t *owner = process->code_owner ? json_output_text(process->code_owner) : NULL;

	return json_pack(
		"{s:i, s:o, s:b, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o*, s:I, s:I, s:I, "
		"s:I, s:I, s:I, s:I, s:I, s:o}",
		"pid", process->pid, "comm", json_output_text(process->comm), "live",
		process->lives, "refused", process->refused, "dotnet", process->is_dotnet, "images",
		(json_int_t)process->images, "precompiled_names", (json_int_t)process->methods,
		"native_images", (json_int_t)process->native_images, "native_functions",
		(json_int_t)process->native_functions, "native_unnamed",
		(json_int_t)process->native_unnamed, "code_origin",
		json_output_text(origin_text(process)), "code_place",
		json_output_text(process->code_place), "code_owner", owner, "code_names",
		(json_int_t)process->code_names, "map_names", (json_int_t)process->map_names,
		"code_samples", (json_int_t)process->code_samples, "unnamed_samples",
		(json_int_t)process->unnamed_samples, "lost_samples",
		(json_int_t)process->lost_samples, "fixed", (json_int_t)process->fixed,
		"fixed_before", (json_int_t)process->fixed_before, "left",
		(json_int_t)process->left, "failures", json_output_failures(&process->failures));
}

static json_t *symfile_json(const struct planned_symfile *standin)
{
	char digits[2 * BUILD_ID_BYTES + 1];

	hex_write_bytes(digits, standin->id, BUILD_ID_BYTES);
	return json_pack("{s:s, s:o, s:I, s:b}", "build_id", digits, "of",
			 json_output_text(standin->label), "symbols", (json_int_t)standin->symbols,
			 "new", standin->is_new);
}

static json_t *report_json(const struct perf_fix_report *report)
{
	const struct fixup_plan *plan = report->plan;
	json_t *processes = json_array(), *symfiles = json_array();

	for (size_t i = 0; i < plan->process_count; i++)
		json_array_append_new(processes, process_json(&plan->processes[i]));
	for (size_t i = 0; i < plan->symfile_count; i++)
		json_array_append_new(symfiles, symfile_json(&plan->symfiles[i]));
	return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:b, s:o, s:o, s:o, s:o}", "output",
			 json_output_text(report->output), "records", (json_int_t)report->records,
			 "changed_records", (json_int_t)report->changed, "samples",
			 (json_int_t)report->unrecorded->samples, "unrecorded_samples",
			 (json_int_t)report->unrecorded->outside, "added_mappings",
			 (json_int_t)report->unrecorded->added, "was_compressed",
			 report->was_compressed, "buildid_dir", json_output_text(report->cache),
			 "processes", processes, "standins", symfiles, "failures",
			 json_output_failures(&report->failures));
}

int perf_fix_report_print(const struct perf_fix_report *report, const struct options *options,
			  FILE *to)
{
	if (!options->json)
		print_text(report, options, to);
	else if (!json_output_print_to(report_json(report), to))
		return EXIT_FAILED;
	failures_print(&report->failures);
	return is_whole(report, options) ? EXIT_DONE : EXIT_PARTLY;
}

/* ---- the way back ------------------------------------------------------------------------------
 */

struct undoing {
	struct perf_place place;
	size_t count;
};

static struct sym_error *put_back(void *context, const struct undo_line *line)
{
	struct undoing *undoing = context;
	uint8_t there[UINT16_MAX];

	for (size_t i = 0; i < undoing->place.part_count; i++) {
		const struct perf_part *part = &undoing->place.parts[i];

		if (strcmp(part->name, line->part) != 0)
			continue;
		if (path_read_at(part->output_fd, there, line->count, line->offset) ||
		    memcmp(there, line->new_bytes, line->count) != 0)
			return sym_error_create(SYM_ERROR_IO,
						"it was changed since: nothing was restored");
		if (pwrite(part->output_fd, line->old_bytes, line->count, (off_t)line->offset) !=
		    (ssize_t)line->count)
			return sym_error_create(SYM_ERROR_IO, "cannot write");
		undoing->count++;
		return NULL;
	}
	return sym_error_create(SYM_ERROR_IO, "the undo record names a part that does not exist");
}

static struct sym_error *perf_undo_records(struct undoing *undoing, const char *path,
					   char **undo_path_ret)
{
	struct sym_error *failure = perf_place_open(&undoing->place, path, path);

	for (size_t i = 0; !failure && i < undoing->place.part_count; i++)
		failure = perf_files_copy(undoing->place.parts[i].input_fd,
					  undoing->place.parts[i].output_fd, path);
	if (failure)
		return failure;
	*undo_path_ret = message_format(undoing->place.is_directory ? "%s/undo" : "%s.undo",
					undoing->place.output_path);
	failure = undo_record_read(*undo_path_ret, put_back, undoing);
	return failure ? failure : perf_place_commit(&undoing->place);
}

static json_t *undo_json(const char *path, size_t count)
{
	return json_pack("{s:o, s:I}", "output", json_output_text(path), "records_put_back",
			 (json_int_t)count);
}

int perf_undo(const char *path, const struct options *options)
{
	struct undoing undoing = { .place = PERF_PLACE_NONE };
	char *undo_path AUTO_FREE = NULL;
	struct sym_error *failure = perf_undo_records(&undoing, path, &undo_path);

	/* Swaps the directory for one without an undo record. */
	if (!failure && !undoing.place.is_directory)
		unlink(undo_path);
	perf_place_deinit(&undoing.place);
	if (failure) {
		message("%s: %s", path, sym_error_message(failure));
		sym_error_destroy(failure);
		return EXIT_FAILED;
	}
	if (options->json)
		return json_output_print(undo_json(path, undoing.count)) ? EXIT_DONE : EXIT_FAILED;
	printf("perf-fix: %zu records restored in %s\n", undoing.count, path);
	return EXIT_DONE;
}
