/* SPDX-License-Identifier: MIT */
#include "libsym/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/path.h"
#include "libsym/core_process.h"
#include "libsym/snapshot_images.h"

void sym_snapshot_close(struct sym_snapshot *snapshot)
{
	if (!snapshot)
		return;
	for (size_t i = 0; i < snapshot->module_count; i++)
		module_destroy(snapshot->modules[i]);
	for (size_t i = 0; i < snapshot->image_count; i++)
		image_close(snapshot->images[i]);
	if (snapshot->has_place)
		perf_map_place_deinit(&snapshot->place);
	load_check_deinit(&snapshot->load_check);
	live_code_slot_deinit(&snapshot->live_code);
	free(snapshot->modules);
	free(snapshot->images);
	free(snapshot->is_placed);
	path_list_free(snapshot->relative_map_dirs);
	address_space_destroy(snapshot->space);
	process_close(snapshot->process);
	free(snapshot);
}

DEFINE_GUARD(snapshot, struct sym_snapshot *, sym_snapshot_close)
#define AUTO_SNAPSHOT GUARDED(snapshot)

/* Options that a newer caller knows and we do not must be zero. */
static struct sym_error *check_opts(const struct sym_snapshot_opts *opts,
				    struct sym_snapshot_opts *ret)
{
	const uint8_t *bytes = (const uint8_t *)opts;

	*ret = (struct sym_snapshot_opts){ .size = sizeof(*ret) };
	if (!opts)
		return NULL;
	if (opts->size < sizeof(opts->size))
		return sym_error_create(SYM_ERROR_ARGUMENT,
					"sym_snapshot_opts.size is not set to the size of the "
					"struct");
	for (size_t i = sizeof(*ret); i < opts->size; i++)
		if (bytes[i])
			return sym_error_create(SYM_ERROR_ARGUMENT,
						"sym_snapshot_opts asks for something that this "
						"version does not know");
	memcpy(ret, opts, opts->size < sizeof(*ret) ? opts->size : sizeof(*ret));
	if (ret->flags)
		return sym_error_create(SYM_ERROR_ARGUMENT, "unknown flags 0x%x", ret->flags);
	if (ret->jit > SYM_JIT_NONE)
		return sym_error_create(SYM_ERROR_ARGUMENT, "unknown way %u to jitted code",
					ret->jit);
	return NULL;
}

const struct sym_mapping *snapshot_runtime_mapping(const struct sym_snapshot *snapshot)
{
	const struct address_space *space = snapshot->space;
	const struct runtime_info *runtime = &snapshot->runtime;

	if (!runtime->shape || runtime->mapping_index >= space->mapping_count)
		return NULL;
	for (size_t i = runtime->mapping_index; i < space->mapping_count; i++) {
		const struct sym_mapping *mapping = &space->mappings[i];
		const struct sym_image *module;

		if (mapping->image_index == UINT32_MAX || !snapshot->is_placed[i] ||
		    strcmp(mapping->path, space->mappings[runtime->mapping_index].path))
			continue;
		module = snapshot->modules[mapping->image_index];
		if (module->image && module->image->kind == SYM_IMAGE_ELF)
			return mapping;
	}
	return NULL;
}

static void fill_info(struct sym_snapshot *snapshot)
{
	const struct process *process = snapshot->process;
	const struct runtime_info *runtime = &snapshot->runtime;
	const struct sym_mapping *mapping = snapshot_runtime_mapping(snapshot);

	snapshot->info = (struct sym_process_info){
		.pid = process->pid,
		.namespace_pid = process->namespace_pid,
		.uid = process->uid,
		.gid = process->gid,
		.start_time_ticks = process->start_time_ticks,
		.comm = process->comm,
		.executable = process->executable,
		.runtime_version = runtime->shape ? runtime->version : NULL,
		.runtime_shape = runtime->shape,
		.runtime_image_index = UINT32_MAX,
		.other_mount_namespace = process->other_mount_namespace,
		.other_pid_namespace = process->other_pid_namespace,
	};
	if (mapping)
		snapshot->info.runtime_image_index = mapping->image_index;
}

/* Everything of a process that is open; takes the snapshot over. */
static struct sym_error *open_rest(struct sym_snapshot *snapshot, struct sym_snapshot **ret)
{
	struct sym_snapshot *owned AUTO_SNAPSHOT = snapshot;
	struct sym_error *error =
		runtime_info_read(snapshot->process, snapshot->space, &snapshot->runtime);

	if (!error)
		error = snapshot_open_images(snapshot);
	if (!error)
		error = process_check(snapshot->process);
	if (error)
		return error;
	fill_info(snapshot);
	*ret = STEAL(owned);
	return NULL;
}

static struct sym_error *begin(const struct sym_snapshot_opts *opts,
			       struct sym_snapshot_opts *checked, struct sym_snapshot **ret)
{
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = calloc(1, sizeof(*snapshot));
	struct sym_error *error;

	if (!snapshot)
		return &sym_error_no_memory;
	live_code_slot_init(&snapshot->live_code);
	error = check_opts(opts, checked);
	if (!error) {
		snapshot->jit = (enum sym_jit_way)checked->jit;
		snapshot->fetch = checked->fetch;
		snapshot->fetch_context = checked->fetch_context;
	}
	if (!error && !path_list_copy(checked->relative_map_dirs, &snapshot->relative_map_dirs))
		error = &sym_error_no_memory;
	if (!error)
		*ret = STEAL(snapshot);
	return error;
}

struct sym_error *sym_snapshot_open(int32_t pid, const struct sym_snapshot_opts *opts,
				    struct sym_snapshot **ret)
{
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = NULL;
	struct sym_snapshot_opts checked;
	struct sym_error *error = begin(opts, &checked, &snapshot);

	if (!error)
		error = process_open(pid, checked.root, &snapshot->process);
	if (!error)
		error = address_space_read(snapshot->process, &snapshot->space);
	return error ? error : open_rest(STEAL(snapshot), ret);
}

struct sym_error *sym_snapshot_open_core(const char *path, const struct sym_snapshot_opts *opts,
					 struct sym_snapshot **ret)
{
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = NULL;
	struct sym_snapshot_opts checked;
	struct sym_error *error = begin(opts, &checked, &snapshot);

	if (!error && (snapshot->jit == SYM_JIT_RUNDOWN || snapshot->jit == SYM_JIT_PERF_MAP))
		error = sym_error_create(SYM_ERROR_ARGUMENT,
					 "a core file can neither be asked nor has it a perf map");
	if (!error && snapshot->jit == SYM_JIT_AUTO)
		snapshot->jit = SYM_JIT_CONTRACT;
	if (!error)
		error = core_process_open(path, checked.root, &snapshot->process);
	if (!error)
		error = core_address_space(snapshot->process->core, &snapshot->space);
	return error ? error : open_rest(STEAL(snapshot), ret);
}

bool snapshot_uses_runtime(const struct sym_snapshot *snapshot)
{
	return snapshot->jit == SYM_JIT_AUTO || snapshot->jit == SYM_JIT_CONTRACT ||
	       snapshot->jit == SYM_JIT_RUNDOWN;
}

bool snapshot_uses_perf_map(const struct sym_snapshot *snapshot)
{
	return snapshot->jit == SYM_JIT_AUTO || snapshot->jit == SYM_JIT_PERF_MAP;
}

const char *sym_jit_way_text(enum sym_jit_way way)
{
	static const char *const texts[] = {
		[SYM_JIT_AUTO] = "auto",       [SYM_JIT_CONTRACT] = "contract",
		[SYM_JIT_RUNDOWN] = "rundown", [SYM_JIT_PERF_MAP] = "perfmap",
		[SYM_JIT_NONE] = "none",
	};

	return (size_t)way < sizeof(texts) / sizeof(texts[0]) ? texts[way] : "unknown";
}

const struct sym_process_info *sym_snapshot_process(const struct sym_snapshot *snapshot)
{
	return &snapshot->info;
}

struct sym_error *sym_snapshot_check(const struct sym_snapshot *snapshot)
{
	return process_check(snapshot->process);
}

size_t sym_snapshot_mapping_count(const struct sym_snapshot *snapshot)
{
	return snapshot->space->mapping_count;
}

const struct sym_mapping *sym_snapshot_mapping_at(const struct sym_snapshot *snapshot, size_t index)
{
	return index < snapshot->space->mapping_count ? &snapshot->space->mappings[index] : NULL;
}

size_t sym_snapshot_image_count(const struct sym_snapshot *snapshot)
{
	return snapshot->module_count;
}

struct sym_image *sym_snapshot_image_at(const struct sym_snapshot *snapshot, size_t index)
{
	return index < snapshot->module_count ? snapshot->modules[index] : NULL;
}

struct sym_error *sym_snapshot_perf_map(struct sym_snapshot *snapshot,
					const struct sym_perf_map_info **ret)
{
	struct perf_map_place place;
	struct sym_error *error = perf_map_place_find(snapshot->process, &place);

	if (error)
		return error;
	if (snapshot->has_place)
		perf_map_place_deinit(&snapshot->place);
	snapshot->place = place;
	snapshot->has_place = true;
	*ret = &snapshot->place.info;
	return NULL;
}

static struct sym_error *read_place(const struct sym_snapshot *snapshot,
				    const struct perf_map_place *place, struct buf *why,
				    struct perfmap_source **ret)
{
	const char *paths[PERF_MAP_PLACE_FILES];
	int fds[PERF_MAP_PLACE_FILES];
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = NULL;
	struct sym_error *error;

	if (!place->file_count) {
		if (place->info.refused_path)
			buf_printf(why, "%s is not used: %s", place->info.refused_path,
				   place->info.refused_reason ? place->info.refused_reason : "");
		return NULL;
	}
	for (size_t i = 0; i < place->file_count; i++) {
		fds[i] = place->files[i].fd;
		paths[i] = place->files[i].path;
	}
	error = perfmap_source_open(fds, paths, place->file_count, &source);
	/* A map found by the number of a process is its own only while the process is. */
	if (!error)
		error = process_check(snapshot->process);
	if (!error)
		*ret = STEAL(source);
	return error;
}

struct sym_error *snapshot_read_perf_map(const struct sym_snapshot *snapshot, struct buf *why,
					 struct perfmap_source **ret)
{
	struct perf_map_place place;
	struct sym_error *error;

	*ret = NULL;
	error = perf_map_place_find(snapshot->process, &place);
	if (error)
		return error;
	error = read_place(snapshot, &place, why, ret);
	perf_map_place_deinit(&place);
	return error;
}
