/* SPDX-License-Identifier: MIT */
/*
 * The command info: what kind of .NET process this is, as far as it matters for names. Gathers
 * facts first, then prints them as text or as JSON. It only reads; an unknown fact is left out or
 * printed as unknown.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/format/linux/mapping_name.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/json_output.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/target.h"

enum {
	KINDS = SYM_IMAGE_NATIVE_PE + 1,
	/* When less than this share of its code has symbols, an image has only what it exports. */
	FEW_PERCENT = 50,
	/* Mappings are whole pages, so up to two pages may be no code. */
	PADDING_BYTES = 2 * 4096
};

/* Paths of assemblies in a single-file application are HOST!/NAME. */
static const char bundle_mark[] = "!/";

/* Executable mappings of one image. */
struct image_code {
	uint64_t bytes;
	bool without_file;
};

struct process_facts {
	struct image_code *code; /* by index of the image */
	size_t kind_counts[KINDS];
	size_t bundled, bundled_unpacked; /* images in a bundle; those in memory without a file */
	uint64_t methods;
	size_t doublemapped, writable_code; /* mappings */
	bool unread; /* an image of which something could not be read; it is listed */
};

/* The code of a native image, and how much of it has symbols. */
struct native_facts {
	uint64_t code_bytes;  /* executable mappings */
	uint64_t named_bytes; /* inside symbols */
	size_t symbols;
	char *trouble; /* heap; NULL when it could be read */
};

static void count_mapping(const struct sym_mapping *mapping, size_t images,
			  struct process_facts *facts)
{
	if (mapping_name_is_doublemapper(mapping->path))
		facts->doublemapped++;
	if (!(mapping->protection & SYM_EXECUTE))
		return;
	if (mapping->image_index < images) {
		facts->code[mapping->image_index].bytes +=
			mapping->end_address - mapping->start_address;
		facts->code[mapping->image_index].without_file = !mapping->path[0];
	} else if (mapping->protection & SYM_WRITE && !mapping->path[0]) {
		facts->writable_code++;
	}
}

static void count_image(struct sym_image *image, const struct image_code *code,
			struct process_facts *facts)
{
	uint64_t methods = 0;

	facts->kind_counts[sym_image_kind(image)]++;
	if (strstr(sym_image_path(image), bundle_mark)) {
		facts->bundled++;
		facts->bundled_unpacked += code->without_file;
	}
	if (sym_image_kind(image) == SYM_IMAGE_READYTORUN ||
	    sym_image_kind(image) == SYM_IMAGE_COMPOSITE)
		sym_error_destroy(sym_image_method_count(image, &methods));
	facts->methods += methods;
}

static bool info_gather(struct sym_snapshot *snapshot, struct process_facts *facts)
{
	size_t images = sym_snapshot_image_count(snapshot);

	facts->code = calloc(images + 1, sizeof(*facts->code));
	if (!facts->code) {
		message("out of memory");
		return false;
	}
	for (size_t i = 0; i < sym_snapshot_mapping_count(snapshot); i++)
		count_mapping(sym_snapshot_mapping_at(snapshot, i), images, facts);
	for (size_t i = 0; i < images; i++)
		count_image(sym_snapshot_image_at(snapshot, i), &facts->code[i], facts);
	return true;
}

/* NULL: no jitted code is mapped. */
static const char *write_or_execute(const struct process_facts *facts)
{
	if (facts->doublemapped)
		return "on";
	return facts->writable_code ? "off" : NULL;
}

/* Not what the file is, but that it could not be read this time. */
static bool is_failure(const struct sym_error *error)
{
	switch (sym_error_code(error)) {
	case SYM_ERROR_NO_MEMORY:
	case SYM_ERROR_IO:
	case SYM_ERROR_LIMIT:
		return true;
	default:
		return false;
	}
}

static struct native_facts native_facts(struct sym_image *image, uint64_t code_bytes, bool *unread)
{
	struct native_facts facts = { .code_bytes = code_bytes };
	struct sym_symbols *symbols GUARDED(symbols) = NULL;
	struct sym_error *error;
	uint64_t end = 0;

	error = sym_image_symbols(image, 0, &symbols);
	if (error) {
		*unread |= is_failure(error);
		facts.trouble =
			message_format("%s", message_without_subject(sym_image_path(image),
								     sym_error_message(error)));
		sym_error_destroy(error);
		return facts;
	}
	facts.symbols = sym_symbols_count(symbols);
	/* Sorted by start; bytes in several symbols count once. */
	for (size_t i = 0; i < facts.symbols; i++) {
		const struct sym_symbol *symbol = sym_symbols_at(symbols, i);
		uint64_t stop = symbol->start + symbol->size_bytes;
		uint64_t start = symbol->start > end ? symbol->start : end;

		if (stop <= start)
			continue;
		facts.named_bytes += stop - start;
		end = stop;
	}
	return facts;
}

static unsigned int percent(const struct native_facts *facts)
{
	uint64_t share = facts->code_bytes ? facts->named_bytes * 100 / facts->code_bytes : 100;

	return share > 100 ? 100 : (unsigned int)share;
}

static bool has_few(const struct native_facts *facts)
{
	return facts->trouble || (percent(facts) < FEW_PERCENT &&
				  facts->code_bytes > facts->named_bytes + PADDING_BYTES);
}

static bool is_native(const struct sym_image *image)
{
	/* The vDSO has no file that symbols could come from. */
	return sym_image_kind(image) == SYM_IMAGE_ELF && sym_image_path(image)[0] == '/';
}

/* A NativeAOT program has its methods in an ELF file, and nothing else. */
static void print_aot(struct sym_snapshot *snapshot, struct process_facts *facts)
{
	struct sym_image *program = target_aot_program(snapshot);
	char *naming AUTO_FREE = program ? target_aot_naming(program) : NULL;
	char *printable AUTO_FREE = naming ? message_printable(naming) : NULL;
	struct native_facts native;

	if (!program)
		return;
	native = native_facts(
		program, facts->code[sym_snapshot_process(snapshot)->runtime_image_index].bytes,
		&facts->unread);
	printf("methods      of an ELF file, %s\n", printable ? printable : "out of memory");
	if (sym_image_symbol_file(program))
		printf("             %zu symbols, %u %% of its code\n", native.symbols,
		       percent(&native));
	free(native.trouble);
}

static json_t *aot_json(struct sym_snapshot *snapshot)
{
	struct sym_image *program = target_aot_program(snapshot);
	char *naming AUTO_FREE = program ? target_aot_naming(program) : NULL;

	if (!program)
		return json_null();
	return json_pack("{s:o, s:o, s:o}", "program", json_output_text(sym_image_path(program)),
			 "symbol_file", json_output_text(sym_image_symbol_file(program)), "naming",
			 json_output_text(naming));
}

static json_t *native_json(struct sym_snapshot *snapshot, struct process_facts *facts)
{
	json_t *array = json_array();

	for (size_t i = 0; i < sym_snapshot_image_count(snapshot); i++) {
		struct sym_image *image = sym_snapshot_image_at(snapshot, i);
		struct native_facts native;

		if (!is_native(image))
			continue;
		native = native_facts(image, facts->code[i].bytes, &facts->unread);
		json_array_append_new(array,
				      json_pack("{s:o, s:I, s:I, s:I, s:o}", "path",
						json_output_text(sym_image_path(image)), "symbols",
						(json_int_t)native.symbols, "code_bytes",
						(json_int_t)native.code_bytes, "named_bytes",
						(json_int_t)native.named_bytes, "trouble",
						json_output_text(native.trouble)));
		free(native.trouble);
	}
	return array;
}

static void print_native(struct sym_snapshot *snapshot, struct process_facts *facts)
{
	bool heading = false;

	for (size_t i = 0; i < sym_snapshot_image_count(snapshot); i++) {
		struct sym_image *image = sym_snapshot_image_at(snapshot, i);
		char *path AUTO_FREE = NULL;
		struct native_facts native;

		if (!is_native(image))
			continue;
		native = native_facts(image, facts->code[i].bytes, &facts->unread);
		path = message_printable(sym_image_path(image));
		if (has_few(&native)) {
			if (!heading)
				puts("native images with few or no symbols:");
			heading = true;
			if (native.trouble)
				printf("  %s  [%s]\n", path ? path : "", native.trouble);
			else
				printf("  %s  %zu symbols, %u %% of its code\n", path ? path : "",
				       native.symbols, percent(&native));
		}
		free(native.trouble);
	}
}

static json_t *composites_json(struct sym_snapshot *snapshot)
{
	json_t *array = json_array();

	for (size_t i = 0; i < sym_snapshot_image_count(snapshot); i++) {
		struct sym_image *image = sym_snapshot_image_at(snapshot, i);

		if (sym_image_kind(image) == SYM_IMAGE_COMPONENT)
			json_array_append_new(
				array,
				json_pack("{s:o, s:o}", "component",
					  json_output_text(sym_image_path(image)), "composite",
					  json_output_text(sym_image_composite(image))));
	}
	return array;
}

static int by_text(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static void print_composite(const char *owner, size_t components)
{
	char *printable AUTO_FREE = message_printable(owner);

	printf("composite    %s holds the code of %zu assembl%s\n", printable ? printable : "",
	       components, components == 1 ? "y" : "ies");
}

/* One line for each composite image that components name: most processes have none or one. */
static void print_composites(struct sym_snapshot *snapshot)
{
	size_t images = sym_snapshot_image_count(snapshot), count = 0;
	const char **owners AUTO_FREE = calloc(images + 1, sizeof(*owners));

	if (!owners)
		return;
	for (size_t i = 0; i < images; i++) {
		owners[count] = sym_image_composite(sym_snapshot_image_at(snapshot, i));
		count += owners[count] != NULL;
	}
	qsort(owners, count, sizeof(*owners), by_text);
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && !strcmp(owners[first], owners[end]);)
			end++;
		print_composite(owners[first], end - first);
	}
}

/* The perfinfo file of the runtime; NULL when there is none that may be used. */
static const struct sym_load_check *load_check(struct sym_snapshot *snapshot)
{
	const struct sym_load_check *check = NULL;
	struct sym_error *error = sym_snapshot_load_check(snapshot, &check);

	if (error)
		message_error(error);
	return check && check->path ? check : NULL;
}

static json_t *load_check_json(struct sym_snapshot *snapshot)
{
	const struct sym_load_check *check = load_check(snapshot);

	if (!check)
		return json_null();
	return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:o}", "path",
			 json_output_text(check->path), "lines", (json_int_t)check->line_count,
			 "bad_lines", (json_int_t)check->bad_line_count, "mapped",
			 (json_int_t)check->mapped_count, "with_base",
			 (json_int_t)check->base_count, "contradictions",
			 (json_int_t)check->contradiction_count, "contradiction",
			 json_output_text(check->contradiction));
}

static void print_load_check(struct sym_snapshot *snapshot)
{
	const struct sym_load_check *check = load_check(snapshot);
	char *path AUTO_FREE = check ? message_printable(check->path) : NULL;
	char *contradiction AUTO_FREE =
		check && check->contradiction ? message_printable(check->contradiction) : NULL;

	if (!check)
		return;
	printf("perfinfo     %s: %" PRIu64 " images, %" PRIu64 " mapped, %" PRIu64
	       " with load base, %" PRIu64 " contradicted\n",
	       path ? path : "", check->line_count, check->mapped_count, check->base_count,
	       check->contradiction_count);
	if (contradiction)
		printf("  [%s]\n", contradiction);
}

static json_t *kinds_json(const struct process_facts *facts)
{
	json_t *object = json_object();

	for (int kind = 0; kind < KINDS; kind++)
		if (facts->kind_counts[kind])
			json_object_set_new(object, sym_image_kind_text((enum sym_image_kind)kind),
					    json_integer((json_int_t)facts->kind_counts[kind]));
	return object;
}

static json_t *bundle_json(const struct sym_process_info *process,
			   const struct process_facts *facts)
{
	if (!facts->bundled)
		return json_null();
	return json_pack("{s:o, s:I, s:I}", "path", json_output_text(process->executable), "mapped",
			 (json_int_t)(facts->bundled - facts->bundled_unpacked), "unpacked",
			 (json_int_t)facts->bundled_unpacked);
}

static bool print_json(struct sym_snapshot *snapshot, struct process_facts *facts)
{
	const struct sym_process_info *process = sym_snapshot_process(snapshot);

	return json_output_print(json_pack(
		"{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o}", "pid", process->pid,
		"executable", json_output_text(process->executable), "runtime_version",
		json_output_text(process->runtime_version), "shape",
		json_output_text(process->runtime_shape), "write_xor_execute",
		json_output_text(write_or_execute(facts)), "bundle", bundle_json(process, facts),
		"nativeaot", aot_json(snapshot), "images", kinds_json(facts), "precompiled_methods",
		(json_int_t)facts->methods, "components", composites_json(snapshot), "perfinfo",
		load_check_json(snapshot), "native_images", native_json(snapshot, facts)));
}

static void print_text(struct sym_snapshot *snapshot, struct process_facts *facts)
{
	const struct sym_process_info *process = sym_snapshot_process(snapshot);
	char *executable AUTO_FREE = message_printable(process->executable);
	const char *protection = write_or_execute(facts);
	const char *program = executable ? executable : "";

	printf("process      %d  %s\n", process->pid, program);
	printf("runtime      %s, %s\n",
	       *process->runtime_version ? process->runtime_version : "of unknown version",
	       process->runtime_shape ? process->runtime_shape : "of unknown shape");
	if (facts->bundled)
		printf("bundle       %s: %zu assemblies mapped from it, %zu unpacked to memory\n",
		       program, facts->bundled - facts->bundled_unpacked, facts->bundled_unpacked);
	if (protection || !target_aot_program(snapshot))
		printf("W^X          %s\n",
		       protection ? protection : "unknown: no jitted code is mapped");
	else
		puts("W^X          no jitted code: compiled ahead of time");
	print_aot(snapshot, facts);
	fputs("images      ", stdout);
	for (int kind = 0; kind < KINDS; kind++)
		if (facts->kind_counts[kind] && kind != SYM_IMAGE_UNKNOWN)
			printf(" %zu %s", facts->kind_counts[kind],
			       sym_image_kind_text((enum sym_image_kind)kind));
	printf("\nprecompiled  %zu images, %" PRIu64 " methods\n",
	       facts->kind_counts[SYM_IMAGE_READYTORUN] + facts->kind_counts[SYM_IMAGE_COMPOSITE],
	       facts->methods);
	print_composites(snapshot);
	print_load_check(snapshot);
	print_native(snapshot, facts);
}

int info_run(const struct options *options)
{
	struct sym_snapshot *snapshot GUARDED(snapshot) = NULL;
	struct process_facts facts = { 0 };
	bool done;

	if (!options_have_one_pid(options, "info"))
		return EXIT_USAGE;
	snapshot = target_open_dotnet(options, NULL);
	if (!snapshot || !info_gather(snapshot, &facts))
		return EXIT_FAILED;
	done = true;
	if (options->json)
		done = print_json(snapshot, &facts);
	else
		print_text(snapshot, &facts);
	free(facts.code);
	if (!done)
		return EXIT_FAILED;
	return facts.unread ? EXIT_PARTLY : EXIT_DONE;
}
