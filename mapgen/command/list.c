/* SPDX-License-Identifier: MIT */
/*
 * The command list: the processes that host a .NET runtime, or the images of one of them. It only
 * reads, and prints facts of the library.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapgen/cli/command.h"
#include "mapgen/cli/json_output.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/process_name.h"
#include "mapgen/cli/target.h"

static void print_process_heading(void)
{
	printf("%7s %-12s %-10s %-19s %-8s %s\n", "PID", "USER", "RUNTIME", "SHAPE", "PERFMAP",
	       "NAME");
}

static void print_process(struct sym_snapshot *snapshot, const struct options *options,
			  json_t *array)
{
	const struct sym_process_info *process = sym_snapshot_process(snapshot);
	static const struct sym_perf_map_info no_map = { .writer_fd = -1 };
	const struct sym_perf_map_info *map = &no_map;
	struct sym_error *error = sym_snapshot_perf_map(snapshot, &map);
	/* The name that commands accept instead of the PID; processes of a recorded tree have none.
	 */
	char *found AUTO_FREE = options->root ? NULL : process_name_of(process->pid);
	const char *name = found ? found : process->comm;
	char *shown AUTO_FREE = message_printable(name);
	char *path AUTO_FREE = map->path ? message_printable(map->path) : NULL;
	char *refused AUTO_FREE = map->rejected_path ? message_printable(map->rejected_path) : NULL;
	char *user AUTO_FREE = options->root ? message_format("%" PRIu32, process->uid)
					     : target_user_text(process->uid);

	message_error(error);
	if (options->json) {
		json_array_append_new(
			array,
			json_pack("{s:i, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
				  "pid", process->pid, "name", json_output_text(name), "user",
				  json_output_text(user), "uid", (json_int_t)process->uid,
				  "runtime_version", json_output_text(process->runtime_version),
				  "shape", json_output_text(process->runtime_shape), "command",
				  json_output_text(process->comm), "writes_perf_map",
				  map->writer_unknown ? json_null()
						      : json_boolean(map->writer_fd >= 0),
				  "perf_map", json_output_text(map->path), "refused_perf_map",
				  json_output_text(map->rejected_path), "refused_reason",
				  json_output_text(map->rejected_reason), "executable",
				  json_output_text(process->executable)));
		return;
	}
	printf("%7d %-12s %-10s %-19s %-8s %s", process->pid, user,
	       *process->runtime_version ? process->runtime_version : "unknown",
	       process->runtime_shape ? process->runtime_shape : "unknown",
	       map->writer_unknown   ? "unknown"
	       : map->writer_fd >= 0 ? "yes"
				     : "no",
	       shown ? shown : "");
	if (map->path)
		printf("  (%s)", path ? path : "");
	if (map->rejected_path)
		printf("  [%s is not used: it %s]", refused ? refused : "", map->rejected_reason);
	putchar('\n');
}

/* A process that has ended since it was listed is no failure. True: it may not be looked at. */
static bool visit_process(int32_t pid, const struct options *options, json_t *array, size_t *shown)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts),
					  .root = options->root,
					  .budget = options->budget };
	struct sym_snapshot *snapshot GUARDED(snapshot) = NULL;
	struct sym_error *error = sym_snapshot_open(pid, &opts, &snapshot);

	if (error) {
		enum sym_error_code code = sym_error_code(error);

		if (code != SYM_ERROR_PERMISSION && code != SYM_ERROR_NOT_FOUND &&
		    code != SYM_ERROR_STALE)
			message("process %d: %s", pid, sym_error_message(error));
		sym_error_destroy(error);
		return code == SYM_ERROR_PERMISSION;
	}
	if (!sym_snapshot_process(snapshot)->runtime_version)
		return false;
	if (!options->json && !*shown)
		print_process_heading();
	++*shown;
	print_process(snapshot, options, array);
	return false;
}

static void report_unreadable(const int32_t *pids, size_t count)
{
	char *text AUTO_FREE = process_name_list_pids(pids, count);

	message("%zu process%s may not be looked at by this user: %s", count,
		count == 1 ? "" : "es", text ? text : "");
}

static int list_processes(const struct options *options)
{
	int32_t *pids AUTO_FREE = NULL;
	size_t count, unreadable = 0, shown = 0;
	json_t *array;

	if (!message_error(sym_process_ids(options->root, &pids, &count)))
		return EXIT_FAILED;
	array = options->json ? json_array() : NULL;
	for (size_t i = 0; i < count; i++)
		if (visit_process(pids[i], options, array, &shown))
			pids[unreadable++] = pids[i];
	if (unreadable)
		report_unreadable(pids, unreadable);
	if (options->json)
		return json_output_print(array) ? EXIT_DONE : EXIT_FAILED;
	if (!shown)
		message("no process that can be seen hosts a .NET runtime");
	return EXIT_DONE;
}

struct image_facts {
	bool counted;
	uint64_t methods;
	const char *trouble;
	char *own_trouble; /* heap: why methods could not be counted */
	char *naming;      /* heap: where a NativeAOT program has its names from */
};

static struct image_facts image_facts(struct sym_image *image, bool is_aot_program)
{
	struct image_facts facts = { .trouble = sym_image_problem(image) };
	struct sym_error *error;

	if (facts.trouble)
		facts.trouble = message_without_subject(sym_image_path(image), facts.trouble);

	if (is_aot_program)
		facts.naming = target_aot_naming(image);
	if (facts.trouble || !target_is_assembly(image))
		return facts;
	error = sym_image_method_count(image, &facts.methods);
	facts.counted = !error;
	if (error) {
		facts.own_trouble = message_format("%s", sym_error_message(error));
		facts.trouble = facts.own_trouble ? message_without_subject(sym_image_path(image),
									    facts.own_trouble)
						  : "out of memory";
		sym_error_destroy(error);
	}
	return facts;
}

static void print_image(struct sym_image *image, const struct image_facts *facts)
{
	uint64_t base = sym_image_load_base(image);
	const char *mvid = sym_image_mvid(image);
	char *path AUTO_FREE = message_printable(sym_image_path(image));
	char *note AUTO_FREE =
		facts->naming ? message_format("NativeAOT: %s", facts->naming) : NULL;
	char base_text[17] = "-", methods_text[21] = "-";
	char *bracket AUTO_FREE = NULL;

	if (base != UINT64_MAX)
		snprintf(base_text, sizeof(base_text), "%" PRIx64, base);
	if (facts->counted)
		snprintf(methods_text, sizeof(methods_text), "%" PRIu64, facts->methods);
	if (facts->trouble || note)
		bracket = message_printable(facts->trouble ? facts->trouble : note);
	printf("%16s %-9s %7s %-36s %s%s%s%s\n", base_text,
	       sym_image_kind_text(sym_image_kind(image)), methods_text, mvid ? mvid : "-",
	       path ? path : "", bracket ? "  [" : "", bracket ? bracket : "", bracket ? "]" : "");
}

static json_t *image_json(struct sym_image *image, const struct image_facts *facts)
{
	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "load_base",
			 json_output_address(sym_image_load_base(image)), "kind",
			 sym_image_kind_text(sym_image_kind(image)), "methods",
			 facts->counted ? json_integer((json_int_t)facts->methods) : json_null(),
			 "assembly", json_output_text(sym_image_assembly_name(image)), "mvid",
			 json_output_text(sym_image_mvid(image)), "path",
			 json_output_text(sym_image_path(image)), "trouble",
			 json_output_text(facts->trouble), "nativeaot",
			 json_output_text(facts->naming));
}

static int list_images(const struct options *options)
{
	struct sym_snapshot *snapshot GUARDED(snapshot) = target_open_dotnet(options, NULL);
	const struct sym_image *program = snapshot ? target_aot_program(snapshot) : NULL;
	size_t count, troubled = 0;
	json_t *array;

	if (!snapshot)
		return EXIT_FAILED;
	array = options->json ? json_array() : NULL;
	count = sym_snapshot_image_count(snapshot);
	if (!options->json)
		printf("%16s %-9s %7s %-36s %s\n", "BASE", "KIND", "METHODS", "MVID", "PATH");
	for (size_t i = 0; i < count; i++) {
		struct sym_image *image = sym_snapshot_image_at(snapshot, i);
		struct image_facts facts = image_facts(image, image == program);

		/* Fonts, locales and other mapped data have no code. */
		if (sym_image_kind(image) == SYM_IMAGE_UNKNOWN && !target_is_assembly(image))
			continue;
		if (target_is_assembly(image) && facts.trouble)
			troubled++;
		if (options->json)
			json_array_append_new(array, image_json(image, &facts));
		else
			print_image(image, &facts);
		free(facts.own_trouble);
		free(facts.naming);
	}
	if (troubled)
		message("%zu image%s cannot be used for names; the reasons stand beside them",
			troubled, troubled == 1 ? "" : "s");
	if (options->json && !json_output_print(array))
		return EXIT_FAILED;
	return troubled ? EXIT_PARTLY : EXIT_DONE;
}

int list_run(const struct options *options)
{
	if (options->operand_count && !options_have_one_pid(options, "list"))
		return EXIT_USAGE;
	return options->pid ? list_images(options) : list_processes(options);
}
