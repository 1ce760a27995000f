/* SPDX-License-Identifier: MIT */
/*
 * Names without a live process: from files that were mapped, and from perf maps that processes
 * left. A file may be used if it has the recorded device and inode and was not written after the
 * recording. A map may be used if its addresses lie where the recorded process had code.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "libsym/base/ascending.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/foreign_file.h"
#include "libsym/base/path.h"
#include "mapgen/cli/file_owner.h"
#include "mapgen/cli/target.h"
#include "mapgen/perfdata/fixup_internal.h"

/* ---- files -------------------------------------------------------------------------------- */

/* On these file systems stat() gives another device than /proc/PID/maps. */
static bool has_devices_of_its_own(const char *path)
{
	static const long btrfs = 0x9123683e, overlay = 0x794c7630;
	struct statfs status;

	return !statfs(path, &status) &&
	       ((long)status.f_type == btrfs || (long)status.f_type == overlay);
}

static struct sym_error *why_not_this_file(const struct recorded_mapping *mapping,
					   int64_t recorded_until, const char *path)
{
	struct stat status;
	int result = foreign_file_examine(-1, path, 0, NULL, &status);

	if (result)
		return sym_error_create(SYM_ERROR_IO, "cannot be examined: %s",
					foreign_file_problem(result));
	if (!mapping->has_room || mapping->has_build_id)
		return sym_error_create(SYM_ERROR_IO,
					"the recording does not say which file was mapped");
	if (status.st_ino != mapping->inode || ((major(status.st_dev) != mapping->device_major ||
						 minor(status.st_dev) != mapping->device_minor) &&
						!has_devices_of_its_own(path)))
		return sym_error_create(SYM_ERROR_IO, "it is another file now");
	if (status.st_mtim.tv_sec > recorded_until)
		return sym_error_create(SYM_ERROR_IO, "it was written after the recording");
	return NULL;
}

/* A symbol file with machine code. */
static bool is_hit_assembly(const struct process_fixup *process_fixup,
			    const struct recorded_mapping *mapping)
{
	return path_is_assembly(mapping->name) && process_fixup_is_hit(process_fixup, mapping);
}

/* The path may lead to another file than before. */
static int open_recorded(const char *path, const struct recorded_mapping *mapping)
{
	struct stat status;
	int fd AUTO_CLOSE = foreign_file_open(-1, path, 0, NULL, &status);

	return fd >= 0 && status.st_ino == mapping->inode ? steal_fd(&fd) : -1;
}

static struct sym_error *name_precompiled(struct process_fixup *process_fixup, const char *path,
					  const char *key, struct sym_image *image,
					  struct recorded_mapping *mapping)
{
	int fd AUTO_CLOSE =
		is_hit_assembly(process_fixup, mapping) ? open_recorded(path, mapping) : -1;
	const struct file_code code = { { fd, 0 }, 0, UINT64_MAX };
	uint32_t standin = NO_SYMFILE;
	struct sym_error *failure = fixup_file_symfile(process_fixup->plan, key, image,
						       fd < 0 ? NULL : &code, &standin);

	if (standin != NO_SYMFILE)
		process_fixup_fix(process_fixup, mapping, RECORDED_BUILD_ID, standin);
	return failure;
}

static struct sym_error *open_image(const struct options *options, const char *path,
				    struct sym_image **ret)
{
	struct sym_image *image GUARDED(object_file) = NULL;
	const struct sym_image_opts opts = { .size = sizeof(opts), .budget = options->budget };
	struct sym_error *error = sym_image_open_with(path, &opts, &image);

	if (!error)
		error = sym_image_set_debug_dirs(image, options->debug_dirs.items);
	if (!error)
		error = sym_image_fork_for_dwarf(image);
	if (!error)
		*ret = STEAL(image);
	return error;
}

bool fixup_is_missing(const struct options *options, const struct recorded_mapping *mapping)
{
	char *path AUTO_FREE =
		message_format("%s%s", options->root ? options->root : "", mapping->name);
	struct stat status;

	return stat(path, &status) && (errno == ENOENT || errno == ENOTDIR);
}

struct sym_error *fixup_open_file(const struct options *options, int64_t recorded_until,
				  const struct recorded_mapping *mapping, struct sym_image **ret)
{
	char *path AUTO_FREE =
		message_format("%s%s", options->root ? options->root : "", mapping->name);
	struct sym_error *failure = why_not_this_file(mapping, recorded_until, path);

	return failure ? failure : open_image(options, path, ret);
}

static void name_file(struct process_fixup *process_fixup, struct recorded_mapping *mapping)
{
	const struct fixup_plan *plan = process_fixup->plan;
	const char *root = plan->options->root;
	char *path AUTO_FREE = message_format("%s%s", root ? root : "", mapping->name);
	char *key AUTO_FREE = message_format(
		"%s %x:%x %" PRIu64 " %d", mapping->name, mapping->device_major,
		mapping->device_minor, mapping->inode, is_hit_assembly(process_fixup, mapping));
	struct sym_image *image GUARDED(object_file) = NULL;
	struct sym_error *failure =
		fixup_open_file(plan->options, plan->recorded_until, mapping, &image);

	if (!failure && target_is_precompiled(image))
		failure = name_precompiled(process_fixup, path, key, image, mapping);
	else if (!failure)
		name_native(process_fixup, image, key, mapping);
	/* Most native files have names of their own. */
	if (failure && path_is_assembly(mapping->name) && !fixup_is_missing(plan->options, mapping))
		process_fixup_fail(process_fixup, mapping->name, failure);
	else
		sym_error_destroy(failure);
}

/* False for native images of a live process: fixup_native.c has named them already. */
static bool may_be_named(const struct process_fixup *process_fixup,
			 const struct recorded_mapping *mapping)
{
	return mapping->fix == RECORDED_AS_IT_IS &&
	       mapping_class_of(mapping->name) == MAPPING_FILE && !is_fixed_already(mapping) &&
	       (path_is_assembly(mapping->name) || !process_fixup->process->lives);
}

void decide_by_files(struct process_fixup *process_fixup)
{
	for (size_t i = 0; i < process_fixup->count; i++)
		if (may_be_named(process_fixup, &process_fixup->mappings[i]))
			name_file(process_fixup, &process_fixup->mappings[i]);
}

/* ---- saved maps ------------------------------------------------------------------------------ */

struct saved_map {
	char *path;
	char *owner; /* to show */
	struct sym_symbols *symbols;
};

/* Managed code that has no names so far: a map of merge has names of precompiled code too. */
static bool has_no_names(const struct process_fixup *process_fixup,
			 const struct recorded_mapping *mapping)
{
	(void)process_fixup;
	return (mapping_class_of(mapping->name) == MAPPING_CODE ||
		path_is_assembly(mapping->name)) &&
	       mapping->fix == RECORDED_AS_IT_IS && !is_fixed_already(mapping);
}

/* Ranges may overlap, so the furthest end so far counts. Puts the symbols inside into `kept`. */
static size_t fixup_files_inside(struct recorded_mapping *const *mappings, size_t count,
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

static struct sym_error *check_map(const struct process_fixup *process_fixup,
				   const struct sym_symbols *symbols)
{
	struct recorded_mapping **mappings AUTO_FREE = NULL;
	size_t count, total = sym_symbols_count(symbols), found;

	mappings = process_fixup_choose(process_fixup, NULL, &count);
	if (!mappings)
		return &sym_error_no_memory;
	found = fixup_files_inside(mappings, count, symbols, NULL);
	/* Code that was compiled after the recording lies outside. Addresses are random, so nearly
	 * nothing of another process's map lies inside. */
	if (found && found >= total / 4)
		return NULL;
	return sym_error_create(
		SYM_ERROR_IO,
		"only %zu of its %zu addresses lie in code of the recorded process: "
		"it is of another process",
		found, total);
}

/* In a directory of --perf-maps every file counts. In /tmp, where everybody can create files, the
 * owner must be trusted. *fd_ret stays negative when there is no map. */
static struct sym_error *open_map(const struct process_fixup *process_fixup, const char *path,
				  int *fd_ret)
{
	const struct options *options = process_fixup->plan->options;
	struct sym_error *error;

	if (options->perfmap_dirs.count) {
		*fd_ret = foreign_file_open(-1, path, FOREIGN_NO_LINKS, NULL, NULL);
		return *fd_ret >= 0 || *fd_ret == -ENOENT
			       ? NULL
			       : sym_error_create(SYM_ERROR_IO, "cannot open: %s",
						  foreign_file_problem(*fd_ret));
	}
	error = sym_perf_map_open(process_fixup->process->pid, options->root, fd_ret);
	if (!error || sym_error_code(error) != SYM_ERROR_NOT_FOUND)
		return error;
	sym_error_destroy(error);
	return NULL;
}

static struct sym_error *read_map(const struct process_fixup *process_fixup, const char *path,
				  struct saved_map *ret)
{
	struct sym_symbols *symbols GUARDED(symbols) = NULL;
	int fd AUTO_CLOSE = -1;
	struct sym_error *error = open_map(process_fixup, path, &fd);

	if (error || fd < 0)
		return error;
	error = sym_perf_map_read(fd, &symbols, NULL);
	if (!error)
		error = check_map(process_fixup, symbols);
	if (error)
		return error;
	ret->owner = file_owner_text(fd);
	ret->symbols = STEAL(symbols);
	return NULL;
}

/* A live process needs no saved map. */
static void complain_of_map(struct process_fixup *process_fixup, const char *path,
			    struct sym_error *failure)
{
	if (process_fixup->process->code == CODE_LIVE)
		sym_error_destroy(failure);
	else
		process_fixup_fail(process_fixup, path, failure);
}

static bool find_map(struct process_fixup *process_fixup, const char *directory,
		     struct saved_map *ret)
{
	char *path AUTO_FREE = NULL;
	char name[40];
	struct sym_error *failure;

	sym_perf_map_file_name(process_fixup->process->pid, name, sizeof(name));
	path = message_format("%s/%s", directory, name);
	failure = path ? read_map(process_fixup, path, ret) : NULL;
	if (failure)
		complain_of_map(process_fixup, path, failure);
	if (!ret->symbols)
		return false;
	ret->path = STEAL(path);
	return true;
}

/* Whether one of the symbols, ascending, begins in the mapping. */
static bool has_symbol(const struct recorded_mapping *mapping, const struct sym_symbols *symbols)
{
	size_t count = sym_symbols_count(symbols);
	size_t before = ASCENDING_COUNT(count, i,
					sym_symbols_at(symbols, i)->start < mapping->start_address);

	return before < count && sym_symbols_at(symbols, before)->start < mapping->end_address;
}

/* Files of which the map has nothing stay as they are. */
static size_t keep_named(struct recorded_mapping **mappings, size_t count,
			 const struct sym_symbols *symbols)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (mapping_class_of(mappings[i]->name) == MAPPING_CODE ||
		    has_symbol(mappings[i], symbols))
			mappings[kept++] = mappings[i];
	return kept;
}

static struct sym_error *name_by_map(struct process_fixup *process_fixup,
				     const struct saved_map *map)
{
	struct recorded_mapping **mappings AUTO_FREE = NULL;
	const struct sym_symbol **kept AUTO_FREE =
		calloc(sym_symbols_count(map->symbols) + 1, sizeof(const struct sym_symbol *));
	char *origin AUTO_FREE = message_format("code of process %d, from its perf map, by address",
						process_fixup->process->pid);
	struct code_names names = { .symbols = kept, .origin = origin };
	struct sym_error *failure;

	mappings = process_fixup_choose(process_fixup, has_no_names, &names.mapping_count);
	if (!mappings || !kept || !origin)
		return &sym_error_no_memory;
	names.mapping_count = keep_named(mappings, names.mapping_count, map->symbols);
	names.mappings = mappings;
	names.symbol_count = fixup_files_inside(mappings, names.mapping_count, map->symbols, kept);
	if (!names.symbol_count)
		return NULL;
	failure = process_fixup_name_code(process_fixup, &names);
	if (!failure && process_fixup->process->code == CODE_NOWHERE)
		process_fixup->process->code = CODE_SAVED;
	return failure;
}

static bool lacks_names(const struct process_fixup *process_fixup)
{
	for (size_t i = 0; i < process_fixup->count; i++)
		if (has_no_names(process_fixup, &process_fixup->mappings[i]))
			return true;
	return false;
}

static void find_saved_map(struct process_fixup *process_fixup, struct saved_map *ret)
{
	const struct text_list *chosen = &process_fixup->plan->options->perfmap_dirs;
	const char *root = process_fixup->plan->options->root;
	char *below_root AUTO_FREE = message_format("%s/tmp", root ? root : "");
	const char *const usual[] = { below_root ? below_root : "/tmp" };
	const char *const *directories = chosen->count ? chosen->items : usual;
	size_t count = chosen->count ? chosen->count : 1;

	for (size_t i = 0; i < count && !ret->path; i++)
		find_map(process_fixup, directories[i], ret);
}

struct sym_symbols *fixup_open_saved_map(const struct options *options,
					 struct recorded_mapping *mappings, size_t count)
{
	struct fixup_plan plan = { .options = options };
	struct planned_process process = { .pid = mappings->pid };
	struct process_fixup process_fixup = { .plan = &plan,
					       .process = &process,
					       .mappings = mappings,
					       .count = count,
					       .memory_fd = -1,
					       .root_fd = -1 };
	struct saved_map map = { NULL, NULL, NULL };

	find_saved_map(&process_fixup, &map);
	failures_deinit(&process.failures);
	free(map.path);
	free(map.owner);
	return map.symbols;
}

void decide_by_saved_map(struct process_fixup *process_fixup)
{
	struct planned_process *process = process_fixup->process;
	const size_t live_names = process->code_names;
	struct saved_map map = { NULL, NULL, NULL };
	struct sym_error *failure = NULL;

	if (!lacks_names(process_fixup))
		return;
	find_saved_map(process_fixup, &map);
	if (map.path)
		failure = name_by_map(process_fixup, &map);
	if (failure)
		complain_of_map(process_fixup, map.path, failure);
	if (process->code == CODE_LIVE) {
		process->map_names = process->code_names - live_names;
		process->code_names = live_names;
	} else if (process->code == CODE_SAVED) {
		free(process->code_place);
		process->code_place = STEAL(map.path);
		free(process->code_owner);
		process->code_owner = STEAL(map.owner);
	}
	free(map.owner);
	free(map.path);
	sym_symbols_destroy(map.symbols);
}
