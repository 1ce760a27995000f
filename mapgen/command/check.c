/* SPDX-License-Identifier: MIT */
/*
 * check: what of a process or of a recording can be named, what cannot and why, and which command
 * helps. Only looks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/json_output.h"
#include "mapgen/cli/machine.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/process_name.h"
#include "mapgen/cli/target.h"
#include "mapgen/live/unwind_tables.h"
#include "mapgen/profile/profile_open.h"
#include "mapgen/profile/stack_quality.h"
#include "mapgen/view/json_parts.h"
#include "mapgen/view/units.h"

enum {
	TEXT_LIMIT = 1 << 20,
	MOST_CAUSES = 10,
	MOST_IMAGES = 4, /* named in a line */
};

DEFINE_GUARD(profile, struct profile *, profile_destroy)

/* One line: what, its state, and the command that helps ("": none is needed). */
static void put_line(const char *what, const char *state, const char *help)
{
	printf("  %-15s  %s%s%s\n", what, state, *help ? "    " : "", help);
}

/* ---- a recording ----------------------------------------------------------------------------- */

static uint64_t sum(const uint64_t counts[FRAME_KINDS])
{
	uint64_t all = 0;

	for (int kind = 0; kind < FRAME_KINDS; kind++)
		all += counts[kind];
	return all;
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 100.0;
}

/* Returns advice against frames without names. */
static char *help_for_names(const struct profile *profile, const struct quality_cause *cause)
{
	bool has_bounds = strstr(cause->reason, "bounds") != NULL;
	bool is_gone = strstr(cause->reason, "process is gone") != NULL;

	if (cause->kind == FRAME_KIND_KERNEL)
		return message_format("sudo dotnet-mapgen record");
	if (has_bounds && profile->pid)
		return message_format("dotnet-mapgen fetch-symbols %d, then record", profile->pid);
	if (has_bounds)
		return message_format("dotnet-mapgen fetch-symbols PID, then record");
	if (is_gone)
		return message_format(
			"dotnet-mapgen record keeps names; or perf-fix while it lives");
	return message_format("%s", "");
}

static const char *help_for_stacks(const struct quality_cause *cause)
{
	return strstr(cause->reason, "frame pointers") ? "dotnet-mapgen record unwinds whole stacks"
	       : strstr(cause->reason, "copy")         ? "perf record --call-graph dwarf,65528"
						       : "";
}

static const char *cause_place(const struct quality_cause *cause)
{
	if (*cause->image)
		return path_file_name(cause->image);
	return cause->kind == FRAME_KIND_KERNEL ? "the kernel" : "memory of no file";
}

static void print_unnamed(const struct profile *profile, const struct stack_quality *quality)
{
	uint64_t all = sum(quality->frames);
	char room[UNITS_ROOM];

	for (size_t i = 0; i < quality->unnamed_count && i < MOST_CAUSES; i++) {
		const struct quality_cause *cause = &quality->unnamed[i];
		char *help AUTO_FREE = help_for_names(profile, cause);

		printf("    %7s  %s: %s%s%s\n", units_percent(cause->count, all, room),
		       cause_place(cause), cause->reason, *help ? "    " : "", help);
	}
	if (quality->unnamed_count > MOST_CAUSES)
		printf("    ...  (%zu more causes)\n", quality->unnamed_count - MOST_CAUSES);
}

static void print_cut(const struct stack_quality *quality)
{
	char room[UNITS_ROOM];

	for (size_t i = 0; i < quality->cut_count && i < MOST_CAUSES; i++) {
		const struct quality_cause *cause = &quality->cut[i];
		const char *help = help_for_stacks(cause);

		printf("    %7s  end in %s: %s%s%s\n",
		       units_percent(cause->count, quality->samples, room), cause_place(cause),
		       cause->reason, *help ? "    " : "", help);
	}
	if (quality->cut_count > MOST_CAUSES)
		printf("    ...  (%zu more causes)\n", quality->cut_count - MOST_CAUSES);
}

static void print_losses(const struct profile_losses *losses)
{
	char room[UNITS_ROOM];
	uint64_t lost = losses->lost_records + losses->lost_samples;

	if (lost || losses->throttled)
		printf("  %-15s  %s records, %s times throttled\n", "lost", units_count(lost, room),
		       units_count(losses->throttled, (char[UNITS_ROOM]){ 0 }));
	if (losses->unknown_processes)
		printf("  %-15s  %s samples of processes that ended before they were looked at\n",
		       "", units_count(losses->unknown_processes, room));
	if (losses->cut)
		printf("  %-15s  %s\n", "cut", losses->cut);
}

static void print_quality(const struct options *options, const struct profile *profile,
			  const struct stack_quality *quality)
{
	char room[UNITS_ROOM], count[UNITS_ROOM];

	printf("%s: %s", options->input, profile->title ? profile->title : "a recording");
	if (profile->pid)
		printf(" (PID %d%s%s)", profile->pid, profile->runtime ? ", " : "",
		       profile->runtime ? profile->runtime : "");
	printf(", %.1f s, %s stacks\n", profile_seconds(profile),
	       units_count(quality->samples, count));
	printf("  %-15s  %s of frames\n", "named",
	       units_percent(sum(quality->named_frames), sum(quality->frames), room));
	for (int kind = 0; kind < FRAME_KINDS; kind++)
		if (quality->frames[kind])
			printf("    %7s  %s\n",
			       units_percent(quality->named_frames[kind], quality->frames[kind],
					     room),
			       frame_kind_text((enum frame_kind)kind));
	if (quality->unnamed_count)
		puts("  not named");
	print_unnamed(profile, quality);
	printf("  %-15s  %s\n", "whole stacks",
	       units_percent(quality->whole_samples, quality->samples, room));
	print_cut(quality);
	if (quality->guessed_samples)
		printf("    %7s  have frames that were guessed\n",
		       units_percent(quality->guessed_samples, quality->samples, room));
	print_losses(&profile->losses);
}

static bool is_below(const struct options *options, const struct stack_quality *quality)
{
	double named = share(sum(quality->named_frames), sum(quality->frames));
	double whole = share(quality->whole_samples, quality->samples);

	return named < options->min_percent || whole < options->min_percent;
}

static int check_recording(const struct options *options)
{
	const struct profile_open_opts opts = { .options = options };
	struct profile *profile GUARDED(profile) = NULL;
	struct stack_quality quality;
	struct sym_error *error = profile_open(options->input, &opts, &profile);
	bool below, printed = true;

	if (!error)
		error = stack_quality_measure(profile, UINT32_MAX, &quality);
	if (!message_error_of(options->input, error))
		return EXIT_FAILED;
	below = is_below(options, &quality);
	if (options->json)
		printed = json_output_print(
			json_pack("{s:o, s:o, s:o, s:b}", "input", json_output_text(options->input),
				  "quality", json_parts_quality(&quality), "losses",
				  json_parts_losses(profile), "below_min", (int)below));
	else
		print_quality(options, profile, &quality);
	stack_quality_deinit(&quality);
	return below || !printed ? EXIT_FAILED : EXIT_DONE;
}

/* ---- a process ------------------------------------------------------------------------------- */

struct process_check {
	char *title;
	char *managed;                     /* NULL: not .NET */
	bool managed_is_none;              /* jitted code has no names; `managed` says why */
	size_t native_images, bare_images; /* of these without a symbol table */
	struct buf bare;                   /* names of some */
	struct buf unreadable;             /* managed images */
	size_t tableless_images;           /* native, without unwind tables */
	struct buf tableless;              /* names of some */
	size_t lined_images;               /* assemblies with a PDB */
	struct buf lined;                  /* names of some */
	size_t lineless_images;            /* without, beside those of the framework */
	struct buf lineless;               /* names of some */
	size_t lineless_of_framework;
};

static bool is_native(const struct sym_image *image)
{
	return sym_image_kind(image) == SYM_IMAGE_ELF && sym_image_path(image)[0] == '/';
}

static void list_name(struct buf *names, size_t count, const char *path)
{
	if (count < MOST_IMAGES)
		buf_printf(names, "%s%s", names->size_bytes ? ", " : "", path_file_name(path));
}

static bool is_of_framework(const char *path)
{
	return strstr(path, "/shared/Microsoft.NETCore.App/") ||
	       strstr(path, "/shared/Microsoft.AspNetCore.App/");
}

static void look_for_lines(struct process_check *check, struct sym_image *image)
{
	const char *path = sym_image_path(image), *reason;

	if (sym_image_pdb(image, &reason))
		list_name(&check->lined, check->lined_images++, path);
	else if (is_of_framework(path))
		check->lineless_of_framework++;
	else
		list_name(&check->lineless, check->lineless_images++, path);
}

static void look_at_image(struct process_check *check, struct sym_image *image)
{
	const char *name = path_file_name(sym_image_path(image));

	if (is_native(image)) {
		check->native_images++;
		if (!unwind_tables_are_there(image))
			list_name(&check->tableless, check->tableless_images++, name);
		if (sym_image_symbol_file(image))
			return;
		list_name(&check->bare, check->bare_images++, name);
	} else if (target_is_assembly(image) && sym_image_problem(image)) {
		list_name(&check->unreadable, 0, name);
	} else if (target_is_assembly(image)) {
		look_for_lines(check, image);
	}
}

static void look_at_process(struct sym_snapshot *snapshot, struct process_check *check)
{
	const struct sym_process_info *info = sym_snapshot_process(snapshot);

	*check = (struct process_check){ 0 };
	buf_init(&check->bare, TEXT_LIMIT);
	buf_init(&check->unreadable, TEXT_LIMIT);
	buf_init(&check->tableless, TEXT_LIMIT);
	buf_init(&check->lined, TEXT_LIMIT);
	buf_init(&check->lineless, TEXT_LIMIT);
	check->title = process_name_of(info->pid);
	if (info->runtime_version)
		check->managed = target_code_way(snapshot, &check->managed_is_none);
	for (size_t i = 0; i < sym_snapshot_image_count(snapshot); i++)
		look_at_image(check, sym_snapshot_image_at(snapshot, i));
}

static void process_check_deinit(struct process_check *check)
{
	free(check->title);
	free(check->managed);
	buf_deinit(&check->bare);
	buf_deinit(&check->unreadable);
	buf_deinit(&check->tableless);
	buf_deinit(&check->lined);
	buf_deinit(&check->lineless);
}

static void print_managed(const struct sym_process_info *info, struct process_check *check)
{
	char *state AUTO_FREE = NULL;

	if (!info->runtime_version) {
		put_line("managed code", "none: this is no .NET process", "");
		return;
	}
	state = message_format(check->managed_is_none ? "jitted code has no names: %s"
						      : "every method can be named (%s)",
			       check->managed ? check->managed : "out of memory");
	put_line("managed code", state, "");
	if (check->unreadable.size_bytes)
		put_line("", buf_string(&check->unreadable), "cannot be read");
}

static void print_tables(struct process_check *check)
{
	const char *names = buf_string(&check->tableless);
	char *state AUTO_FREE = NULL;

	if (!check->tableless_images) {
		put_line("whole stacks", "yes (by unwind tables)", "");
		return;
	}
	state = message_format("through %s%s by frame pointers only: no unwind tables",
			       names ? names : "",
			       check->tableless_images > MOST_IMAGES ? ", ..." : "");
	put_line("whole stacks", state, "");
}

static void put_names(struct buf *text, struct buf *names, size_t count)
{
	const char *some = buf_string(names);

	buf_printf(text, "%s%s", some ? some : "", count > MOST_IMAGES ? ", ..." : "");
}

/* Which assemblies have a PDB, so that their frames have lines. In a bundle no assembly is an
 * image. */
static void print_lines(const struct sym_process_info *info, struct process_check *check)
{
	size_t without = check->lineless_images + check->lineless_of_framework;
	char *help AUTO_FREE = message_format("dotnet-mapgen fetch-symbols %d", info->pid);
	struct buf text;

	if (!check->lined_images && !without)
		return;
	buf_init(&text, TEXT_LIMIT);
	put_names(&text, &check->lined, check->lined_images);
	if (without)
		buf_printf(&text, "%sno PDB: ", check->lined_images ? "; " : "");
	put_names(&text, &check->lineless, check->lineless_images);
	if (check->lineless_of_framework)
		buf_printf(&text, "%s%zu of the framework", check->lineless_images ? ", " : "",
			   check->lineless_of_framework);
	put_line("lines", buf_string(&text) ? buf_string(&text) : "", without && help ? help : "");
	buf_deinit(&text);
}

static void print_process(struct sym_snapshot *snapshot, struct process_check *check)
{
	const struct sym_process_info *info = sym_snapshot_process(snapshot);
	char *bare AUTO_FREE = NULL, *help AUTO_FREE = NULL;

	printf("%s (PID %d", check->title ? check->title : info->comm, info->pid);
	if (info->runtime_version)
		printf(", .NET %s, %s", info->runtime_version,
		       info->runtime_shape ? info->runtime_shape : "");
	printf(", in %s container)\n",
	       info->other_mount_namespace || info->other_pid_namespace ? "another" : "the same");
	print_managed(info, check);
	if (check->bare_images) {
		const char *names = buf_string(&check->bare);

		bare = message_format("%s%s: exported names and bounds only", names ? names : "",
				      check->bare_images > MOST_IMAGES ? ", ..." : "");
		help = message_format("dotnet-mapgen fetch-symbols %d", info->pid);
	} else {
		bare = message_format("all %zu images have symbols", check->native_images);
	}
	put_line("native code", bare, help ? help : "");
	print_tables(check);
	print_lines(info, check);
}

static json_t *process_json(struct sym_snapshot *snapshot, struct process_check *check)
{
	const struct sym_process_info *info = sym_snapshot_process(snapshot);

	return json_pack(
		"{s:i, s:o, s:o, s:o, s:b, s:I, s:I, s:b, s:I, s:I}", "pid", info->pid, "title",
		json_output_text(check->title), "runtime", json_output_text(info->runtime_version),
		"managed_way", json_output_text(check->managed), "managed_named",
		info->runtime_version && !check->managed_is_none, "native_images",
		(json_int_t)check->native_images, "bare_images", (json_int_t)check->bare_images,
		"unwind_tables", !check->tableless_images, "assemblies_with_pdb",
		(json_int_t)check->lined_images, "assemblies_without_pdb",
		(json_int_t)(check->lineless_images + check->lineless_of_framework));
}

static int check_process(const struct options *options)
{
	struct sym_snapshot *snapshot GUARDED(snapshot) = NULL;
	struct process_check check;
	json_t *value = NULL;
	bool is_bad;

	if (options->pid) {
		snapshot = target_open(options, NULL);
		if (!snapshot || !target_open_images(snapshot))
			return EXIT_FAILED;
		look_at_process(snapshot, &check);
		is_bad = options->min_percent > 0 && check.managed_is_none;
		if (options->json)
			value = process_json(snapshot, &check);
		else
			print_process(snapshot, &check);
		process_check_deinit(&check);
	} else {
		is_bad = false;
	}
	if (options->json)
		return json_output_print(json_pack("{s:o, s:o}", "process",
						   value ? value : json_null(), "machine",
						   machine_json())) &&
				       !is_bad
			       ? EXIT_DONE
			       : EXIT_FAILED;
	machine_print(stdout);
	return is_bad ? EXIT_FAILED : EXIT_DONE;
}

int check_run(const struct options *options)
{
	if (options->operand_count || (options->input && options->pid)) {
		message("check takes one PID or NAME, or -i FILE; see dotnet-mapgen check --help");
		return EXIT_USAGE;
	}
	return options->input ? check_recording(options) : check_process(options);
}
