/* SPDX-License-Identifier: MIT */
/*
 * Names from a live process, for the recorded mappings that it still has (fixup_recorded.c).
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "mapgen/cli/target.h"
#include "mapgen/perfdata/fixup_internal.h"

/* ---- code heaps --------------------------------------------------------------------- */

static bool is_code_memory(const struct sym_mapping *mapping)
{
	return !mapping->inode || mapping_class_of(mapping->path) == MAPPING_CODE;
}

/*
 * perf archive packs no file that occurs in call chains only. The code memory of a process nearly
 * always has samples of its own, so its symbol file also has the names of such files.
 */
static bool joins_code(const struct process_fixup *process_fixup,
		       const struct recorded_mapping *mapping)
{
	return mapping->fix == RECORDED_BUILD_ID &&
	       !process_fixup->plan->symfiles[mapping->standin].native_bytes &&
	       !process_fixup_is_hit(process_fixup, mapping);
}

static bool code_is_hit(const struct process_fixup *process_fixup)
{
	for (size_t i = 0; i < process_fixup->count; i++)
		if (mapping_class_of(process_fixup->mappings[i].name) == MAPPING_CODE &&
		    process_fixup_is_hit(process_fixup, &process_fixup->mappings[i]))
			return true;
	return false;
}

/* Code that the process still has. */
static bool is_own_code(const struct process_fixup *process_fixup,
			const struct recorded_mapping *mapping)
{
	return (mapping_class_of(mapping->name) == MAPPING_CODE &&
		mapping->fix == RECORDED_AS_IT_IS &&
		fixup_find_now(process_fixup->snapshot, mapping)) ||
	       (joins_code(process_fixup, mapping) && code_is_hit(process_fixup));
}

static bool is_among(struct recorded_mapping *const *mappings, size_t count, uint64_t address)
{
	for (size_t i = 0; i < count && mappings[i]->start_address <= address; i++)
		if (mappings[i]->fix == RECORDED_BUILD_ID && mappings[i]->end_address > address)
			return true;
	return false;
}

/* Those in memory of no file, in files that join it, or in no record; in *ret, heap. */
static size_t code_symbols(const struct sym_snapshot *snapshot, const struct sym_symbols *symbols,
			   const struct code_names *names, const struct sym_symbol ***ret)
{
	size_t count = sym_symbols_count(symbols), kept = 0;
	const struct sym_symbol **items = calloc(count + 1, sizeof(const struct sym_symbol *));
	size_t mapping = 0, mappings = sym_snapshot_mapping_count(snapshot);

	*ret = items;
	for (size_t i = 0; items && i < count; i++) {
		const struct sym_symbol *symbol = sym_symbols_at(symbols, i);

		while (mapping < mappings &&
		       sym_snapshot_mapping_at(snapshot, mapping)->end_address <= symbol->start)
			mapping++;
		if (mapping == mappings)
			break;
		if (sym_snapshot_mapping_at(snapshot, mapping)->start_address <= symbol->start &&
		    (is_code_memory(sym_snapshot_mapping_at(snapshot, mapping)) ||
		     is_among(names->mappings, names->mapping_count, symbol->start) ||
		     address_ranges_contain(names->unrecorded, symbol->start, 0)))
			items[kept++] = symbol;
	}
	return kept;
}

static struct sym_error *name_code(struct process_fixup *process_fixup,
				   struct sym_snapshot *snapshot, const struct sym_symbols *symbols)
{
	const struct sym_process_info *info = sym_snapshot_process(snapshot);
	const struct sym_symbol **items AUTO_FREE = NULL;
	struct recorded_mapping **mappings AUTO_FREE = NULL;
	struct unrecorded unrecorded = { 0 };
	struct code_names names = { 0 };
	char *origin AUTO_FREE =
		message_format("code of process %d (%s), started at tick %" PRIu64 ", by address",
			       info->pid, info->comm, info->start_time_ticks);
	struct sym_error *failure = &sym_error_no_memory;

	mappings = process_fixup_choose(process_fixup, is_own_code, &names.mapping_count);
	if (mappings && origin && unrecorded_find(process_fixup, snapshot, &unrecorded) &&
	    unrecorded_take_in(&unrecorded, process_fixup, mappings, names.mapping_count)) {
		names.mappings = mappings;
		names.unrecorded = &unrecorded.code;
		names.origin = origin;
		names.symbol_count = code_symbols(snapshot, symbols, &names, &items);
		names.symbols = items;
	}
	if (items)
		failure =
			names.symbol_count ? process_fixup_name_code(process_fixup, &names) : NULL;
	if (!failure && names.symbol_count)
		process_fixup->process->code = CODE_LIVE;
	unrecorded_deinit(&unrecorded);
	return failure;
}

/* ---- files ---------------------------------------------------------------------------- */

static void name_file(struct process_fixup *process_fixup, struct sym_snapshot *snapshot,
		      struct recorded_mapping *mapping)
{
	struct fixup_plan *plan = process_fixup->plan;
	bool with_code;
	struct file_code code = {
		.source = { process_fixup->memory_fd, mapping->start_address - mapping->offset },
		.start = mapping->offset,
		.end = mapping->offset + (mapping->end_address - mapping->start_address),
	};
	uint32_t standin = NO_SYMFILE;
	const struct sym_mapping *now = fixup_find_now(snapshot, mapping);
	struct sym_image *image;
	char *key AUTO_FREE = NULL;
	struct sym_error *failure;

	if (!now || now->image_index == UINT32_MAX)
		return;
	image = sym_snapshot_image_at(snapshot, now->image_index);
	with_code = target_is_precompiled(image) && process_fixup->memory_fd >= 0 &&
		    process_fixup_is_hit(process_fixup, mapping);
	key = message_format("%s %x:%x %" PRIu64 " %d", sym_image_path(image), now->device_major,
			     now->device_minor, now->inode, with_code);
	if (!target_is_precompiled(image)) {
		name_native(process_fixup, image, key, mapping);
		return;
	}
	if (plan->anonymous) {
		process_fixup_fix(process_fixup, mapping, RECORDED_ANONYMOUS, NO_SYMFILE);
		return;
	}
	failure = fixup_file_symfile(plan, key, image, with_code ? &code : NULL, &standin);
	if (failure)
		process_fixup_fail(process_fixup, sym_image_path(image), failure);
	if (standin == NO_SYMFILE)
		return;
	process_fixup_fix(process_fixup, mapping, RECORDED_BUILD_ID, standin);
}

/* ---- the process ------------------------------------------------------------------------ */

/* Negative when there is no such process, or it may not be read. */
static int open_memory(const struct process_fixup *process_fixup)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mem", process_fixup->process->pid);
	return process_fixup->plan->options->root ? -1 : open(path, O_RDONLY | O_CLOEXEC);
}

/* Works also when the process has ended in the meantime. */
static int open_root(const struct process_fixup *process_fixup)
{
	const char *root = process_fixup->plan->options->root;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/root", process_fixup->process->pid);
	return open(root ? root : path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static struct sym_snapshot *open_process(struct process_fixup *process_fixup)
{
	struct sym_snapshot *snapshot =
		fixup_ahead_take(process_fixup->plan, process_fixup->process->pid);
	struct sym_error *error =
		snapshot ? NULL
			 : fixup_open_snapshot(process_fixup->plan->options,
					       process_fixup->process->pid, &snapshot);

	if (!error)
		return snapshot;
	process_fixup->process->refused = sym_error_code(error) == SYM_ERROR_PERMISSION;
	if (process_fixup->process->refused)
		process_fixup_complain(process_fixup, "live process",
				       message_format("%s", sym_error_message(error)));
	sym_error_destroy(error);
	return NULL;
}

static void fixup_live_forget(struct process_fixup *process_fixup)
{
	for (size_t i = 0; i < process_fixup->count + process_fixup->data_count; i++)
		process_fixup->mappings[i].fix = RECORDED_AS_IT_IS;
	process_fixup->process->fixed = 0;
	process_fixup->process->images = 0;
	process_fixup->process->methods = 0;
	process_fixup->process->native_images = 0;
	process_fixup->process->native_functions = 0;
	process_fixup->process->native_unnamed = 0;
	process_fixup->process->code = CODE_NOWHERE;
	process_fixup->process->code_names = 0;
	process_fixup->process->code_samples = process_fixup->process->unnamed_samples = 0;
	process_fixup->process->lives = process_fixup->process->is_ahead = false;
	free(STEAL(process_fixup->process->code_place));
}

/* Says whether the PID still belongs to the same process. Otherwise nothing that was read is used.
 */
static bool still_the_same(const struct process_fixup *process_fixup,
			   const struct sym_snapshot *snapshot)
{
	struct sym_error *error;

	if (process_fixup->plan->options->root)
		return true;
	error = sym_snapshot_check(snapshot);
	sym_error_destroy(error);
	return !error;
}

static void name_files(struct process_fixup *process_fixup, struct sym_snapshot *snapshot)
{
	for (size_t i = 0; i < process_fixup->count; i++)
		if (fixup_may_be_file(&process_fixup->mappings[i]))
			name_file(process_fixup, snapshot, &process_fixup->mappings[i]);
}

/* All its methods are in an ELF file; perf names them when the file has symbols. */
static void say_aot(struct process_fixup *process_fixup, struct sym_image *program)
{
	char *naming = target_aot_naming(program);

	process_fixup->process->is_ahead = true;
	process_fixup->process->code_place = naming;
	if (!sym_image_symbol_file(program))
		process_fixup_complain(process_fixup, sym_image_path(program),
				       naming ? message_format("%s", naming) : NULL);
}

static void name_all_code(struct process_fixup *process_fixup, struct sym_snapshot *snapshot)
{
	struct sym_symbols *symbols GUARDED(symbols) = NULL;
	struct sym_error *error = sym_snapshot_symbols(snapshot, 0, &symbols);
	struct sym_image *ahead = target_aot_program(snapshot);
	bool is_none;
	struct sym_error *failure;

	if (error) {
		process_fixup_fail(process_fixup, "jitted code", error);
		return;
	}
	failure = name_code(process_fixup, snapshot, symbols);
	if (failure)
		process_fixup_fail(process_fixup, "jitted code", failure);
	if (ahead) {
		say_aot(process_fixup, ahead);
		return;
	}
	process_fixup->process->code_place = target_code_way(snapshot, &is_none);
	if (is_none && process_fixup->process->code_place)
		process_fixup_complain(process_fixup, "jitted code",
				       message_format("%s", process_fixup->process->code_place));
}

bool decide_by_process(struct process_fixup *process_fixup)
{
	struct sym_snapshot *snapshot GUARDED(snapshot) = open_process(process_fixup);
	int memory_fd AUTO_CLOSE = open_memory(process_fixup);
	int root_fd AUTO_CLOSE = open_root(process_fixup);
	struct rights rights;

	if (!snapshot)
		return false;
	if (!fixup_is_the_recorded(process_fixup->mappings, process_fixup->count, snapshot)) {
		process_fixup->process->other_now = true;
		return false;
	}
	process_fixup->no_runtime = !sym_snapshot_process(snapshot)->runtime_version;
	if (process_fixup->no_runtime && process_fixup->plan->options->native != NATIVE_ALL)
		return false;
	process_fixup->process->lives = true;
	process_fixup->memory_fd = memory_fd;
	/* In our mount namespace the kernel prints the paths of a chroot(2) as we see them. */
	if (process_fixup->plan->options->root ||
	    sym_snapshot_process(snapshot)->other_mount_namespace)
		process_fixup->root_fd = root_fd;
	process_fixup->snapshot = snapshot;
	process_fixup->rights = target_rights(snapshot, process_fixup->plan->options, &rights);
	name_files(process_fixup, snapshot);
	if (!process_fixup->no_runtime)
		name_all_code(process_fixup, snapshot);
	process_fixup->memory_fd = process_fixup->root_fd = -1;
	process_fixup->rights = NULL;
	process_fixup->snapshot = NULL;
	if (!still_the_same(process_fixup, snapshot)) {
		fixup_live_forget(process_fixup);
		return false;
	}
	process_fixup->process->comm = strdup(sym_snapshot_process(snapshot)->comm);
	return true;
}
