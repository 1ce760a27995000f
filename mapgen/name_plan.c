/* SPDX-License-Identifier: MIT */
#include "mapgen/name_plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hash.h"
#include "libsym/base/path.h"
#include "mapgen/buildid_dir.h"
#include "mapgen/name_plan_internal.h"
#include "mapgen/standin_elf.h"
#include "mapgen/standin_image.h"
#include "mapgen/target.h"

struct planned_file {
	UT_hash_handle hh;
	uint32_t standin;
	char key[];
};

enum {
	MOST_STANDIN_BYTES = INT32_MAX
};

void name_plan_deinit(struct name_plan *plan)
{
	struct planned_file *file, *next;

	HASH_ITER(hh, plan->files, file, next)
	{
		HASH_DEL(plan->files, file);
		free(file);
	}
	for (size_t i = 0; i < plan->standin_count; i++)
		free(plan->standins[i].label);
	for (size_t i = 0; i < plan->process_count; i++) {
		free(plan->processes[i].comm);
		free(plan->processes[i].code_place);
		failures_deinit(&plan->processes[i].failures);
	}
	free(plan->standins);
	free(plan->processes);
}

/* ---- stand-ins ------------------------------------------------------------------ */

static char *add_standin(struct name_plan *plan, const struct planned_standin *standin,
			 uint32_t *index_ret)
{
	struct planned_standin *items;

	for (size_t i = 0; i < plan->standin_count; i++)
		if (!memcmp(plan->standins[i].id, standin->id, BUILD_ID_BYTES)) {
			*index_ret = (uint32_t)i;
			return NULL;
		}
	items = reallocarray(plan->standins, plan->standin_count + 1, sizeof(*items));
	if (!items)
		return message_format("out of memory");
	plan->standins = items;
	items[plan->standin_count] = *standin;
	items[plan->standin_count].label = strdup(standin->label);
	*index_ret = (uint32_t)plan->standin_count++;
	return NULL;
}

char *plan_keep_standin(struct name_plan *plan, struct planned_standin *standin,
			const struct buf *file, uint32_t *index_ret)
{
	char *failure = buildid_dir_put(plan->cache, standin->id, standin->label, file->data,
					file->size_bytes, &standin->is_new);

	return failure ? failure : add_standin(plan, standin, index_ret);
}

char *plan_make_standin(struct name_plan *plan, const struct symbol_run *run, uint32_t *index_ret)
{
	struct planned_standin standin = { .label = (char *)run->label, .symbols = run->count };
	struct standin_elf elf;
	struct buf file;
	char *failure = NULL;

	buf_init(&file, MOST_STANDIN_BYTES);
	standin_elf_init(&elf);
	for (size_t i = 0; i < run->count; i++)
		standin_image_add(&elf, plan->options, run->symbols[i]);
	for (size_t i = 0; run->code && i < run->code->count; i++)
		standin_elf_add_code(&elf, &run->code_source, run->code->items[i].start,
				     run->code->items[i].end);
	if (!standin_elf_finish(&elf, run->origin, &file, standin.id))
		failure = message_format("its names do not fit into memory");
	if (!failure)
		failure = plan_keep_standin(plan, &standin, &file, index_ret);
	standin_elf_deinit(&elf);
	buf_deinit(&file);
	return failure;
}

bool plan_known_file(const struct name_plan *plan, const char *key, uint32_t *index_ret)
{
	struct planned_file *file;

	HASH_FIND_STR(plan->files, key, file);
	if (file)
		*index_ret = file->standin;
	return file != NULL;
}

void plan_remember_file(struct name_plan *plan, const char *key, uint32_t standin)
{
	size_t bytes = strlen(key) + 1;
	struct planned_file *file = malloc(sizeof(*file) + bytes);

	if (!file)
		return; /* it is done again then */
	memcpy(file->key, key, bytes);
	file->standin = standin;
	HASH_ADD_KEYPTR(hh, plan->files, file->key, bytes - 1, file);
	if (!hash_added(file))
		free(file);
}

/* From the first symbol to the end of the last, as far as there is any. */
static struct address_range code_range(const struct sym_symbols *symbols,
				       const struct file_code *code)
{
	const struct sym_symbol *first = sym_symbols_at(symbols, 0);
	const struct sym_symbol *last = sym_symbols_at(symbols, sym_symbols_count(symbols) - 1);
	uint64_t end = last->start + last->size_bytes;

	return (struct address_range){ first->start > code->start ? first->start : code->start,
				       end < code->end ? end : code->end };
}

static char *make_file_standin(struct name_plan *plan, struct sym_image *image,
			       const struct sym_symbols *symbols, const struct file_code *code,
			       uint32_t *index_ret)
{
	struct address_range range;
	const struct address_ranges ranges = { &range, 1 };
	size_t count = sym_symbols_count(symbols);
	const struct sym_symbol **items AUTO_FREE =
		calloc(count, sizeof(const struct sym_symbol *));
	const char *mvid = sym_image_mvid(image);
	const char *label = path_file_name(sym_image_path(image));
	char *origin AUTO_FREE = NULL;
	struct symbol_run run;

	origin = message_format("%s {%s} by offset", label, mvid ? mvid : "");
	if (!items)
		return message_format("out of memory");
	for (size_t i = 0; i < count; i++)
		items[i] = sym_symbols_at(symbols, i);
	run = (struct symbol_run){
		.symbols = items, .count = count, .origin = origin, .label = label
	};
	if (code) {
		range = code_range(symbols, code);
		run.code = &ranges;
		run.code_source = code->source;
	}
	return plan_make_standin(plan, &run, index_ret);
}

char *plan_file_standin(struct name_plan *plan, const char *key, struct sym_image *image,
			const struct file_code *code, uint32_t *index_ret)
{
	struct sym_symbols *symbols = NULL;
	struct sym_error *error;
	uint32_t index = NO_STANDIN;
	char *failure = NULL;

	if (plan_known_file(plan, key, index_ret))
		return NULL;
	error = sym_image_symbols(image, SYM_IMAGE_SYMBOLS_STUBS | SYM_IMAGE_SYMBOLS_BY_OFFSET,
				  &symbols);
	if (error) {
		failure = message_format("%s", sym_error_message(error));
		sym_error_destroy(error);
	} else if (sym_symbols_count(symbols)) {
		failure = make_file_standin(plan, image, symbols, code, &index);
	}
	sym_symbols_destroy(symbols);
	plan_remember_file(plan, key, index);
	*index_ret = index;
	return failure;
}

/* ---- mappings ----------------------------------------------------------------------- */

bool is_assembly_name(const char *name)
{
	size_t length = strlen(name);

	return length > 4 &&
	       (!strcasecmp(name + length - 4, ".dll") || !strcasecmp(name + length - 4, ".exe"));
}

enum mapping_class mapping_class_of(const char *name)
{
	if (!strncmp(name, "/memfd:", 7) || !strcmp(name, "//anon") ||
	    !strncmp(name, "/dev/zero", 9) || !strncmp(name, "[anon:", 6) || !*name)
		return MAPPING_CODE;
	return *name == '/' ? MAPPING_FILE : MAPPING_OTHER;
}

bool is_fixed_already(const struct recorded_mapping *mapping)
{
	return mapping->has_build_id &&
	       !memcmp(mapping->build_id_start, standin_id_mark, sizeof(standin_id_mark));
}

void deciding_complain(struct deciding *deciding, const char *subject, char *reason)
{
	struct failures *failures = &deciding->process->failures;

	if (failures_have(failures, subject))
		free(reason);
	else
		failures_add(failures, subject, reason);
}

bool deciding_is_hit(const struct deciding *deciding, const struct recorded_mapping *mapping)
{
	return recorded_hits_in(deciding->plan->hits, mapping->start_address, mapping->end_address);
}

/* Several mappings may show one file. */
static void count_file(struct deciding *deciding, uint32_t standin)
{
	for (size_t i = 0; i < deciding->count; i++)
		if (deciding->mappings[i].fix == RECORDED_BUILD_ID &&
		    deciding->mappings[i].standin == standin)
			return;
	if (deciding->plan->standins[standin].native_bytes) {
		deciding->process->native_images++;
		deciding->process->native_functions += deciding->plan->standins[standin].symbols;
		deciding->process->native_unnamed += deciding->plan->standins[standin].unnamed;
		return;
	}
	deciding->process->images++;
	deciding->process->methods += deciding->plan->standins[standin].symbols;
}

void deciding_fix(struct deciding *deciding, struct recorded_mapping *mapping,
		  enum recorded_fix fix, uint32_t standin)
{
	if (fix != RECORDED_ANONYMOUS && !mapping->has_room) {
		deciding_complain(deciding, mapping->name,
				  message_format("its MMAP record has no room for a build-id; "
						 "--mode=anon does without"));
		return;
	}
	if (fix == RECORDED_BUILD_ID)
		count_file(deciding, standin);
	deciding->process->fixed += mapping->fix == RECORDED_AS_IT_IS;
	mapping->fix = fix;
	mapping->standin = standin;
}

/* ---- processes ------------------------------------------------------------------------ */

static bool speaks_of_dotnet(const struct deciding *deciding)
{
	for (size_t i = 0; i < deciding->count; i++) {
		const char *name = deciding->mappings[i].name;

		/* Any program may be called NAME.exe. */
		if ((is_assembly_name(name) && strcasecmp(name + strlen(name) - 4, ".exe") != 0) ||
		    !strncmp(name, "/memfd:doublemapper", 19) ||
		    !strcmp(path_file_name(name), "libcoreclr.so"))
			return true;
	}
	return false;
}

static void leave(struct deciding *deciding, const struct recorded_mapping *mapping)
{
	deciding->process->left++;
	deciding_complain(deciding, mapping->name,
			  message_format("no names were found for what was mapped at 0x%" PRIx64,
					 mapping->start_address));
}

/* Managed memory that stays without names, for the closing line. */
static void count_left(struct deciding *deciding)
{
	for (size_t i = 0; i < deciding->count; i++) {
		const struct recorded_mapping *mapping = &deciding->mappings[i];

		if (is_fixed_already(mapping))
			deciding->process->fixed_before++;
		else if (mapping->fix == RECORDED_AS_IT_IS &&
			 (is_assembly_name(mapping->name) ||
			  !strncmp(mapping->name, "/memfd:doublemapper", 19)))
			leave(deciding, mapping);
	}
}

static void decide_the_rest(struct deciding *deciding)
{
	decide_by_files(deciding);
	/* Also of what a live process had and has no more, the map that it writes may tell. */
	decide_by_saved_map(deciding);
	count_left(deciding);
	deciding_count_lost(deciding);
}

/* Of a process that has nothing to do with .NET. False when there is nothing to name. */
static bool decide_native(struct deciding *deciding)
{
	if (deciding->plan->options->native == NATIVE_ALL)
		decide_by_files(deciding);
	/* What cannot be named of a process that is there is said. */
	if (deciding->process->native_images ||
	    (deciding->process->lives && deciding->process->failures.count))
		return true;
	failures_deinit(&deciding->process->failures);
	free(deciding->process->comm);
	return false;
}

static bool decide(struct name_plan *plan, struct recorded_mapping *mappings, size_t count,
		   size_t data_count)
{
	struct planned_process *processes =
		reallocarray(plan->processes, plan->process_count + 1, sizeof(*processes));
	struct deciding deciding = {
		.plan = plan,
		.mappings = mappings,
		.count = count,
		.data_count = data_count,
		.memory_fd = -1,
		.root_fd = -1,
	};
	bool has_decided;

	if (!processes) {
		message("out of memory");
		return false;
	}
	plan->processes = processes;
	deciding.process = &processes[plan->process_count];
	*deciding.process = (struct planned_process){ .pid = mappings[0].pid };
	has_decided = decide_by_process(&deciding);
	deciding.process->is_dotnet =
		!deciding.no_runtime && (has_decided || speaks_of_dotnet(&deciding));
	if (deciding.process->is_dotnet)
		decide_the_rest(&deciding);
	else if (!decide_native(&deciding))
		return true;
	plan->process_count++;
	return true;
}

/* The process that was chosen; one of its threads stands for it. 0: all. */
static int32_t chosen_process(const struct options *options, const struct recorded_maps *maps)
{
	int32_t pid;

	for (size_t i = 0; i < maps->count; i++)
		if (maps->items[i].pid == options->pid)
			return options->pid;
	pid = options->pid ? target_of_thread(options->pid, options->root) : 0;
	return pid ? pid : options->pid;
}

bool name_plan_make(struct name_plan *plan, struct recorded_maps *maps)
{
	const int32_t only = chosen_process(plan->options, maps);
	size_t end;

	for (size_t first = 0; first < maps->count; first = end) {
		struct recorded_mapping *mappings = &maps->items[first];
		size_t count = 0;

		for (end = first; end < maps->count && maps->items[end].pid == mappings->pid; end++)
			count += !maps->items[end].is_data;
		if (count && (!only || mappings->pid == only) &&
		    !decide(plan, mappings, count, end - first - count))
			return false;
	}
	return true;
}
