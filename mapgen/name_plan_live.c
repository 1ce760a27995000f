/* SPDX-License-Identifier: MIT */
/*
 * The part of name_plan.c that asks a live process. A recorded mapping is the
 * process's own when it is mapped there now, from the same file at the same offset; with
 * addresses chosen at random that holds for no other process.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "mapgen/name_plan_internal.h"
#include "mapgen/target.h"

enum agreement {
	AGREEMENT_SAME,
	AGREEMENT_ABSENT, /* nothing executable is there now */
	AGREEMENT_OTHER,
};

static size_t first_mapping_behind(const struct sym_snapshot *snapshot, uint64_t address)
{
	size_t low = 0, high = sym_snapshot_mapping_count(snapshot);

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sym_snapshot_mapping_at(snapshot, middle)->end_address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool same_name(const char *recorded, const char *path)
{
	size_t length = strlen(path);

	return !strncmp(recorded, path, length) &&
	       (!recorded[length] || !strcmp(recorded + length, " (deleted)"));
}

static bool shows_the_same(const struct recorded_mapping *recorded, const struct sym_mapping *now)
{
	if (!now->inode)
		return mapping_class_of(recorded->name) == MAPPING_CODE &&
		       strncmp(recorded->name, "/memfd:", 7) != 0;
	if (recorded->offset - recorded->start_address != now->offset - now->start_address)
		return false;
	if (!recorded->has_room || recorded->has_build_id)
		return same_name(recorded->name, now->path);
	return recorded->inode == now->inode && recorded->device_major == now->device_major &&
	       recorded->device_minor == now->device_minor;
}

/* *now_ret: the first mapping that is the recorded one. */
static enum agreement compare(const struct sym_snapshot *snapshot,
			      const struct recorded_mapping *recorded,
			      const struct sym_mapping **now_ret)
{
	size_t count = sym_snapshot_mapping_count(snapshot);

	*now_ret = NULL;
	for (size_t i = first_mapping_behind(snapshot, recorded->start_address); i < count; i++) {
		const struct sym_mapping *now = sym_snapshot_mapping_at(snapshot, i);

		if (now->start_address >= recorded->end_address)
			break;
		if (!(now->protection & SYM_EXECUTE))
			continue;
		if (!shows_the_same(recorded, now))
			return AGREEMENT_OTHER;
		if (!*now_ret)
			*now_ret = now;
	}
	return *now_ret ? AGREEMENT_SAME : AGREEMENT_ABSENT;
}

/* Programs and libraries are loaded out of memory files too. */
static bool may_be_file(const struct recorded_mapping *mapping)
{
	return mapping_class_of(mapping->name) == MAPPING_FILE ||
	       !strncmp(mapping->name, "/memfd:", 7);
}

static bool is_the_recorded_process(const struct deciding *deciding,
				    const struct sym_snapshot *snapshot)
{
	for (size_t i = 0; i < deciding->count; i++) {
		const struct recorded_mapping *mapping = &deciding->mappings[i];
		const struct sym_mapping *now;

		if (may_be_file(mapping) && compare(snapshot, mapping, &now) == AGREEMENT_SAME)
			return true;
	}
	return false;
}

/* ---- code heaps --------------------------------------------------------------------- */

static bool is_code_memory(const struct sym_mapping *mapping)
{
	return !mapping->inode || !strncmp(mapping->path, "/memfd:", 7) ||
	       !strncmp(mapping->path, "/dev/zero", 9);
}

/*
 * perf archive packs no file that is seen in call chains only. The code memory of a
 * process is nearly always hit itself: its stand-in takes in the names of such files.
 */
static bool joins_code(const struct deciding *deciding, const struct recorded_mapping *mapping)
{
	return mapping->fix == RECORDED_BUILD_ID &&
	       !deciding->plan->standins[mapping->standin].native_bytes &&
	       !deciding_is_hit(deciding, mapping);
}

static bool code_is_hit(const struct deciding *deciding)
{
	for (size_t i = 0; i < deciding->count; i++)
		if (mapping_class_of(deciding->mappings[i].name) == MAPPING_CODE &&
		    deciding_is_hit(deciding, &deciding->mappings[i]))
			return true;
	return false;
}

/* Mappings with code that are the process's own, ascending; heap. */
static size_t own_code(const struct deciding *deciding, const struct sym_snapshot *snapshot,
		       struct recorded_mapping ***ret)
{
	struct recorded_mapping **own =
		calloc(deciding->count + 1, sizeof(struct recorded_mapping *));
	bool with_files = code_is_hit(deciding);
	size_t count = 0;

	*ret = own;
	for (size_t i = 0; own && i < deciding->count; i++) {
		struct recorded_mapping *mapping = &deciding->mappings[i];
		const struct sym_mapping *now;

		if ((mapping_class_of(mapping->name) == MAPPING_CODE &&
		     mapping->fix == RECORDED_AS_IT_IS &&
		     compare(snapshot, mapping, &now) == AGREEMENT_SAME) ||
		    (with_files && joins_code(deciding, mapping)))
			own[count++] = mapping;
	}
	sort_mappings(own, count);
	return count;
}

static bool is_among(struct recorded_mapping *const *mappings, size_t count, uint64_t address)
{
	for (size_t i = 0; i < count && mappings[i]->start_address <= address; i++)
		if (mappings[i]->fix == RECORDED_BUILD_ID && mappings[i]->end_address > address)
			return true;
	return false;
}

/* Those that lie in memory of no file, in files that join it, or in no record; in *ret, heap. */
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
		     address_ranges_have(names->unrecorded, symbol->start, 0)))
			items[kept++] = symbol;
	}
	return kept;
}

static char *name_found_code(struct deciding *deciding, const struct code_names *names)
{
	char *failure = names->symbol_count ? deciding_name_code(deciding, names) : NULL;

	if (!failure && names->symbol_count)
		deciding->process->code = CODE_LIVE;
	return failure;
}

static char *name_code(struct deciding *deciding, struct sym_snapshot *snapshot,
		       const struct sym_symbols *symbols)
{
	const struct sym_process_info *info = sym_snapshot_process(snapshot);
	const struct sym_symbol **items AUTO_FREE = NULL;
	struct recorded_mapping **mappings AUTO_FREE = NULL;
	struct unrecorded unrecorded = { 0 };
	struct code_names names = { .mapping_count = own_code(deciding, snapshot, &mappings) };
	char *origin AUTO_FREE =
		message_format("code of process %d (%s), started at tick %" PRIu64 ", by address",
			       info->pid, info->comm, info->start_time_ticks);
	char *failure;

	if (mappings && origin && unrecorded_find(deciding, snapshot, &unrecorded) &&
	    unrecorded_take_in(&unrecorded, deciding, mappings, names.mapping_count)) {
		names.mappings = mappings;
		names.unrecorded = &unrecorded.code;
		names.origin = origin;
		names.symbol_count = code_symbols(snapshot, symbols, &names, &items);
		names.symbols = items;
	}
	failure = items ? name_found_code(deciding, &names) : message_format("out of memory");
	unrecorded_deinit(&unrecorded);
	return failure;
}

/* ---- files ---------------------------------------------------------------------------- */

static void name_file(struct deciding *deciding, struct sym_snapshot *snapshot,
		      struct recorded_mapping *mapping)
{
	struct name_plan *plan = deciding->plan;
	bool with_code;
	struct file_code code = {
		.source = { deciding->memory_fd, mapping->start_address - mapping->offset },
		.start = mapping->offset,
		.end = mapping->offset + (mapping->end_address - mapping->start_address),
	};
	uint32_t standin = NO_STANDIN;
	const struct sym_mapping *now;
	struct sym_image *image;
	char *key AUTO_FREE = NULL;
	char *failure;

	if (compare(snapshot, mapping, &now) != AGREEMENT_SAME || now->image_index == UINT32_MAX)
		return;
	image = sym_snapshot_image_at(snapshot, now->image_index);
	with_code = target_is_precompiled(image) && deciding->memory_fd >= 0 &&
		    deciding_is_hit(deciding, mapping);
	key = message_format("%s %x:%x %" PRIu64 " %d", sym_image_path(image), now->device_major,
			     now->device_minor, now->inode, with_code);
	if (!target_is_precompiled(image)) {
		name_native(deciding, image, key, mapping);
		return;
	}
	if (plan->anonymous) {
		deciding_fix(deciding, mapping, RECORDED_ANONYMOUS, NO_STANDIN);
		return;
	}
	failure = plan_file_standin(plan, key, image, with_code ? &code : NULL, &standin);
	if (failure)
		deciding_complain(deciding, sym_image_path(image), failure);
	if (standin == NO_STANDIN)
		return;
	deciding_fix(deciding, mapping, RECORDED_BUILD_ID, standin);
}

/* ---- the process ------------------------------------------------------------------------ */

/* Negative where there is no such process, or it may not be read. */
static int open_memory(const struct deciding *deciding)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mem", deciding->process->pid);
	return deciding->plan->options->root ? -1 : open(path, O_RDONLY | O_CLOEXEC);
}

/* Serves also when the process has ended meanwhile. */
static int open_root(const struct deciding *deciding)
{
	const char *root = deciding->plan->options->root;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/root", deciding->process->pid);
	return open(root ? root : path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static struct sym_snapshot *open_process(struct deciding *deciding)
{
	const struct options *options = deciding->plan->options;
	struct sym_snapshot_opts opts = {
		.size = sizeof(opts),
		.root = options->root,
		.jit = (uint32_t)options->jit,
		.debug_dirs = options->debug_dirs.items,
	};
	struct sym_snapshot *snapshot;
	struct sym_error *error = sym_snapshot_open(deciding->process->pid, &opts, &snapshot);

	if (!error)
		return snapshot;
	deciding->process->refused = sym_error_code(error) == SYM_ERROR_PERMISSION;
	if (deciding->process->refused)
		deciding_complain(deciding, "live process",
				  message_format("%s", sym_error_message(error)));
	sym_error_destroy(error);
	return NULL;
}

static void forget(struct deciding *deciding)
{
	for (size_t i = 0; i < deciding->count + deciding->data_count; i++)
		deciding->mappings[i].fix = RECORDED_AS_IT_IS;
	deciding->process->fixed = 0;
	deciding->process->images = 0;
	deciding->process->methods = 0;
	deciding->process->native_images = 0;
	deciding->process->native_functions = 0;
	deciding->process->native_unnamed = 0;
	deciding->process->code = CODE_NOWHERE;
	deciding->process->code_names = 0;
	deciding->process->code_samples = deciding->process->unnamed_samples = 0;
	deciding->process->lives = deciding->process->is_ahead = false;
	free(STEAL(deciding->process->code_place));
}

/* What was read is the process's own only if it is still the same. */
static bool still_the_same(const struct deciding *deciding, const struct sym_snapshot *snapshot)
{
	struct sym_error *error;

	if (deciding->plan->options->root)
		return true;
	error = sym_snapshot_check(snapshot);
	sym_error_destroy(error);
	return !error;
}

static void name_files(struct deciding *deciding, struct sym_snapshot *snapshot)
{
	for (size_t i = 0; i < deciding->count; i++)
		if (may_be_file(&deciding->mappings[i]))
			name_file(deciding, snapshot, &deciding->mappings[i]);
}

/* All its methods are in an ELF file, which perf names by itself if it has symbols. */
static void say_aot(struct deciding *deciding, struct sym_image *program)
{
	char *naming = target_aot_naming(program);

	deciding->process->is_ahead = true;
	deciding->process->code_place = naming;
	if (!sym_image_symbol_file(program))
		deciding_complain(deciding, sym_image_path(program),
				  naming ? message_format("%s", naming) : NULL);
}

static void name_all_code(struct deciding *deciding, struct sym_snapshot *snapshot)
{
	struct sym_symbols *symbols GUARDED(symbols) = NULL;
	struct sym_error *error = sym_snapshot_symbols(snapshot, 0, &symbols);
	struct sym_image *ahead = target_aot_program(snapshot);
	bool is_none;
	char *failure;

	if (error) {
		deciding_complain(deciding, "jitted code",
				  message_format("%s", sym_error_message(error)));
		sym_error_destroy(error);
		return;
	}
	failure = name_code(deciding, snapshot, symbols);
	if (failure)
		deciding_complain(deciding, "jitted code", failure);
	if (ahead) {
		say_aot(deciding, ahead);
		return;
	}
	deciding->process->code_place = target_code_way(snapshot, &is_none);
	if (is_none && deciding->process->code_place)
		deciding_complain(deciding, "jitted code",
				  message_format("%s", deciding->process->code_place));
}

bool decide_by_process(struct deciding *deciding)
{
	struct sym_snapshot *snapshot GUARDED(snapshot) = open_process(deciding);
	int memory_fd AUTO_CLOSE = open_memory(deciding);
	int root_fd AUTO_CLOSE = open_root(deciding);

	if (!snapshot)
		return false;
	if (!is_the_recorded_process(deciding, snapshot)) {
		deciding->process->other_now = true;
		return false;
	}
	deciding->no_runtime = !sym_snapshot_process(snapshot)->runtime_version;
	if (deciding->no_runtime && deciding->plan->options->native != NATIVE_ALL)
		return false;
	deciding->process->lives = true;
	deciding->memory_fd = memory_fd;
	deciding->root_fd = root_fd;
	name_files(deciding, snapshot);
	if (!deciding->no_runtime)
		name_all_code(deciding, snapshot);
	deciding->memory_fd = deciding->root_fd = -1;
	if (!still_the_same(deciding, snapshot)) {
		forget(deciding);
		return false;
	}
	deciding->process->comm = strdup(sym_snapshot_process(snapshot)->comm);
	return true;
}
