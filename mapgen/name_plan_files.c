/* SPDX-License-Identifier: MIT */
/*
 * The part of name_plan.c that does without a process: files that were mapped,
 * and perf maps that were left behind. A file serves if it has the recorded
 * device and inode and was not written after the recording; a map, if its
 * addresses lie where the recorded process had code.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "mapgen/name_plan_internal.h"
#include "mapgen/target.h"

/* ---- files -------------------------------------------------------------------------------- */

/* Here the device of stat() is not the one of mappings. */
static bool has_devices_of_its_own(const char *path)
{
	static const long btrfs = 0x9123683e, overlay = 0x794c7630;
	struct statfs status;

	return !statfs(path, &status) &&
	       ((long)status.f_type == btrfs || (long)status.f_type == overlay);
}

static char *why_not_this_file(const struct deciding *deciding,
			       const struct recorded_mapping *mapping, const char *path)
{
	struct stat status;

	if (stat(path, &status))
		return message_format("cannot be looked at: %s", strerror(errno));
	if (!mapping->has_room || mapping->has_build_id)
		return message_format("which file was mapped was not recorded");
	if (status.st_ino != mapping->inode || ((major(status.st_dev) != mapping->device_major ||
						 minor(status.st_dev) != mapping->device_minor) &&
						!has_devices_of_its_own(path)))
		return message_format("it is another file now");
	if (status.st_mtim.tv_sec > deciding->plan->recorded_until)
		return message_format("it was written after the recording");
	return NULL;
}

/* One that gets machine code. */
static bool is_hit_assembly(const struct deciding *deciding, const struct recorded_mapping *mapping)
{
	return is_assembly_name(mapping->name) && deciding_is_hit(deciding, mapping);
}

static char *name_precompiled(struct deciding *deciding, const char *path, const char *key,
			      struct sym_image *image, struct recorded_mapping *mapping)
{
	int fd AUTO_CLOSE =
		is_hit_assembly(deciding, mapping) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	const struct file_code code = { { fd, 0 }, 0, UINT64_MAX };
	uint32_t standin = NO_STANDIN;
	char *failure =
		plan_file_standin(deciding->plan, key, image, fd < 0 ? NULL : &code, &standin);

	if (standin != NO_STANDIN)
		deciding_fix(deciding, mapping, RECORDED_BUILD_ID, standin);
	return failure;
}

static char *name_by_image(struct deciding *deciding, const char *path, const char *key,
			   struct recorded_mapping *mapping)
{
	struct sym_image *image GUARDED(image) = NULL;
	const char *const *debug_dirs = deciding->plan->options->debug_dirs.items;
	struct sym_error *error = sym_image_open(path, &image);
	char *failure;

	if (!error)
		error = sym_image_look_in(image, debug_dirs);
	if (error) {
		failure = message_format("%s", sym_error_message(error));
		sym_error_destroy(error);
		return failure;
	}
	if (!target_is_precompiled(image)) {
		name_native(deciding, image, key, mapping);
		return NULL;
	}
	return name_precompiled(deciding, path, key, image, mapping);
}

static void name_file(struct deciding *deciding, struct recorded_mapping *mapping)
{
	const char *root = deciding->plan->options->root;
	char *path AUTO_FREE = message_format("%s%s", root ? root : "", mapping->name);
	char *key AUTO_FREE = message_format("%s %x:%x %" PRIu64 " %d", mapping->name,
					     mapping->device_major, mapping->device_minor,
					     mapping->inode, is_hit_assembly(deciding, mapping));
	char *failure;

	failure = why_not_this_file(deciding, mapping, path);
	if (!failure)
		failure = name_by_image(deciding, path, key, mapping);
	/* Native files have names of their own, most of them. */
	if (failure && is_assembly_name(mapping->name))
		deciding_complain(deciding, mapping->name, failure);
	else
		free(failure);
}

/* A live process has told of its native images. */
static bool may_be_named(const struct deciding *deciding, const struct recorded_mapping *mapping)
{
	return mapping->fix == RECORDED_AS_IT_IS &&
	       mapping_class_of(mapping->name) == MAPPING_FILE && !is_fixed_already(mapping) &&
	       (is_assembly_name(mapping->name) || !deciding->process->lives);
}

void decide_by_files(struct deciding *deciding)
{
	for (size_t i = 0; i < deciding->count; i++)
		if (may_be_named(deciding, &deciding->mappings[i]))
			name_file(deciding, &deciding->mappings[i]);
}

/* ---- saved maps ------------------------------------------------------------------------------ */

struct saved_map {
	char *path;
	struct sym_symbols *symbols;
};

/* Memory with code that nothing has named so far. */
static bool has_no_names(const struct recorded_mapping *mapping)
{
	return mapping_class_of(mapping->name) == MAPPING_CODE &&
	       mapping->fix == RECORDED_AS_IT_IS && !is_fixed_already(mapping);
}

/* All, or code without names only, by address; heap. NULL when there is no memory. */
static struct recorded_mapping **sorted_mappings(const struct deciding *deciding,
						 bool nameless_only, size_t *count_ret)
{
	struct recorded_mapping **sorted =
		calloc(deciding->count + 1, sizeof(struct recorded_mapping *));
	size_t count = 0;

	for (size_t i = 0; sorted && i < deciding->count; i++) {
		struct recorded_mapping *mapping = &deciding->mappings[i];

		if (!nameless_only || has_no_names(mapping))
			sorted[count++] = mapping;
	}
	if (sorted)
		sort_mappings(sorted, count);
	*count_ret = count;
	return sorted;
}

/* Ranges may overlap: the furthest end so far decides. Symbols inside are put into `kept`. */
static size_t inside(struct recorded_mapping *const *mappings, size_t count,
		     const struct sym_symbols *symbols, const struct sym_symbol **kept)
{
	size_t total = sym_symbols_count(symbols), at = 0, found = 0;
	uint64_t covered_to = 0;

	for (size_t i = 0; i < total; i++) {
		const struct sym_symbol *symbol = sym_symbols_at(symbols, i);

		while (at < count && mappings[at]->start_address <= symbol->start) {
			if (mappings[at]->end_address > covered_to)
				covered_to = mappings[at]->end_address;
			at++;
		}
		if (symbol->start >= covered_to)
			continue;
		if (kept)
			kept[found] = symbol;
		found++;
	}
	return found;
}

static char *check_map(const struct deciding *deciding, const struct sym_symbols *symbols)
{
	struct recorded_mapping **mappings AUTO_FREE = NULL;
	size_t count, total = sym_symbols_count(symbols), found;

	mappings = sorted_mappings(deciding, false, &count);
	if (!mappings)
		return message_format("out of memory");
	found = inside(mappings, count, symbols, NULL);
	/* Code that came into being after the recording lies outside. As addresses are chosen at
	 * random, of another process's map next to nothing lies inside. */
	if (found && found >= total / 4)
		return NULL;
	return message_format(
		"only %zu of its %zu addresses lie in code of the recorded process: it "
		"is another's",
		found, total);
}

static char *read_map(const struct deciding *deciding, const char *path, struct sym_symbols **ret)
{
	int fd AUTO_CLOSE = path_open_in_root(-1, path, PATH_NO_SYMLINKS | PATH_REGULAR);
	struct sym_symbols *symbols GUARDED(symbols) = NULL;
	struct sym_error *error;
	char *failure;

	*ret = NULL;
	if (fd == -ENOENT)
		return NULL;
	if (fd < 0)
		return message_format("cannot open: %s", strerror(-fd));
	error = sym_perf_map_read(fd, &symbols, NULL);
	if (error) {
		failure = message_format("%s", sym_error_message(error));
		sym_error_destroy(error);
		return failure;
	}
	failure = check_map(deciding, symbols);
	if (!failure)
		*ret = STEAL(symbols);
	return failure;
}

/* A live process does without. */
static void complain_of_map(struct deciding *deciding, const char *path, char *failure)
{
	if (deciding->process->code == CODE_LIVE)
		free(failure);
	else
		deciding_complain(deciding, path, failure);
}

static bool find_map(struct deciding *deciding, const char *directory, struct saved_map *ret)
{
	char *path AUTO_FREE = NULL;
	char name[40];
	char *failure;

	sym_perf_map_file_name(deciding->process->pid, name, sizeof(name));
	path = message_format("%s/%s", directory, name);
	failure = path ? read_map(deciding, path, &ret->symbols) : NULL;
	if (failure)
		complain_of_map(deciding, path, failure);
	if (!ret->symbols)
		return false;
	ret->path = STEAL(path);
	return true;
}

static char *name_by_map(struct deciding *deciding, const struct saved_map *map)
{
	struct recorded_mapping **mappings AUTO_FREE = NULL;
	const struct sym_symbol **kept AUTO_FREE =
		calloc(sym_symbols_count(map->symbols) + 1, sizeof(const struct sym_symbol *));
	char *origin AUTO_FREE = message_format("code of process %d, from its perf map, by address",
						deciding->process->pid);
	struct code_names names = { .symbols = kept, .origin = origin };
	char *failure;

	mappings = sorted_mappings(deciding, true, &names.mapping_count);
	if (!mappings || !kept || !origin)
		return message_format("out of memory");
	names.mappings = mappings;
	names.symbol_count = inside(mappings, names.mapping_count, map->symbols, kept);
	if (!names.symbol_count)
		return NULL;
	failure = deciding_name_code(deciding, &names);
	if (!failure && deciding->process->code == CODE_NOWHERE)
		deciding->process->code = CODE_SAVED;
	return failure;
}

static bool lacks_names(const struct deciding *deciding)
{
	for (size_t i = 0; i < deciding->count; i++)
		if (has_no_names(&deciding->mappings[i]))
			return true;
	return false;
}

void decide_by_saved_map(struct deciding *deciding)
{
	const struct text_list *chosen = &deciding->plan->options->map_dirs;
	const char *root = deciding->plan->options->root;
	char *below_root AUTO_FREE = message_format("%s/tmp", root ? root : "");
	const char *const usual[] = { below_root ? below_root : "/tmp" };
	const char *const *directories = chosen->count ? chosen->items : usual;
	size_t count = chosen->count ? chosen->count : 1;
	struct planned_process *process = deciding->process;
	const size_t live_names = process->code_names;
	struct saved_map map = { NULL, NULL };
	char *failure = NULL;

	if (!lacks_names(deciding))
		return;
	for (size_t i = 0; i < count && !map.path; i++)
		find_map(deciding, directories[i], &map);
	if (map.path)
		failure = name_by_map(deciding, &map);
	if (failure)
		complain_of_map(deciding, map.path, failure);
	if (process->code == CODE_LIVE) {
		process->map_names = process->code_names - live_names;
		process->code_names = live_names;
	} else if (process->code == CODE_SAVED) {
		free(process->code_place);
		process->code_place = STEAL(map.path);
	}
	free(map.path);
	sym_symbols_destroy(map.symbols);
}
