/* SPDX-License-Identifier: MIT */
#include "libsym/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/path.h"
#include "libsym/core_process.h"
#include "libsym/forked.h"
#include "libsym/stdio_buffer.h"

DEFINE_GUARD(ground, struct snapshot_ground *, snapshot_ground_release)
#define AUTO_GROUND GUARDED(ground)

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
	if (ret->flags & ~(uint32_t)(SYM_SNAPSHOT_TIER_IN_NAME | SYM_SNAPSHOT_KEEP_NAMES))
		return sym_error_create(SYM_ERROR_ARGUMENT, "unknown flags 0x%x", ret->flags);
	if (ret->jit > SYM_JIT_NONE)
		return sym_error_create(SYM_ERROR_ARGUMENT, "unknown way %u to jitted code",
					ret->jit);
	return NULL;
}

const struct sym_mapping *snapshot_runtime_mapping(const struct sym_snapshot *snapshot)
{
	const struct address_space *space = snapshot->space;
	const struct runtime_info *runtime = snapshot_runtime(snapshot);

	if (!runtime || !runtime->shape || runtime->mapping_index >= space->mapping_count)
		return NULL;
	for (size_t i = runtime->mapping_index; i < space->mapping_count; i++) {
		const struct sym_mapping *mapping = &space->mappings[i];
		struct sym_image *module = NULL;

		if (strcmp(mapping->path, space->mappings[runtime->mapping_index].path) != 0)
			continue;
		sym_error_destroy(snapshot_image_of(snapshot, i, &module));
		if (module && snapshot->lines[i].placed && module->image &&
		    module->image->kind == SYM_IMAGE_ELF)
			return mapping;
	}
	return NULL;
}

/* False for want of memory. */
static bool fill_runtime(struct sym_snapshot *snapshot)
{
	const struct runtime_info *runtime = snapshot_runtime(snapshot);
	const struct sym_mapping *mapping;
	struct sym_error *error;

	if (!runtime)
		return false;
	if (!runtime->shape)
		return true;
	snapshot->info.runtime_version = runtime->version;
	snapshot->info.runtime_shape = runtime->shape;
	error = snapshot_open_all(snapshot);
	sym_error_destroy(error);
	if (error)
		return false;
	mapping = snapshot_runtime_mapping(snapshot);
	if (mapping)
		snapshot->info.runtime_image_index = mapping->image_index;
	return true;
}

static unsigned int perf_map_flags(uint32_t flags)
{
	return (flags & SYM_SNAPSHOT_TIER_IN_NAME ? PERFMAP_TIER_IN_NAME : 0) |
	       (flags & SYM_SNAPSHOT_KEEP_NAMES ? PERFMAP_KEEP_NAMES : 0);
}

static struct sym_error *begin(const struct sym_snapshot_opts *opts,
			       struct sym_snapshot_opts *checked, struct snapshot_ground **ret)
{
	struct snapshot_ground *ground AUTO_GROUND = calloc(1, sizeof(*ground));
	struct sym_error *error;

	if (!ground)
		return &sym_error_no_memory;
	pthread_mutex_init(&ground->lock, NULL);
	live_code_slot_init(&ground->live_code);
	error = check_opts(opts, checked);
	if (!error) {
		ground->jit = (enum sym_jit_way)checked->jit;
		ground->perf_map_flags = perf_map_flags(checked->flags);
		ground->context.fetch = checked->fetch;
		ground->context.fetch_context = checked->fetch_context;
	}
	if (!error && (!path_list_copy(checked->relative_map_dirs, &ground->relative_map_dirs) ||
		       !path_list_copy(checked->debug_dirs, &ground->debug_dirs)))
		error = &sym_error_no_memory;
	if (!error)
		*ret = STEAL(ground);
	return error;
}

/* All images of the process as it was last looked at; for those who look for an assembly. */
static struct sym_error *list_images(void *context, struct image ***ret, size_t *count_ret)
{
	struct snapshot_ground *ground = context;
	struct sym_snapshot *newest;
	struct sym_error *error = NULL;

	*ret = NULL;
	*count_ret = 0;
	pthread_mutex_lock(&ground->lock);
	newest = ground->newest;
	if (newest)
		error = snapshot_open_all(newest);
	if (newest && !error) {
		*ret = calloc(newest->module_count + 1, sizeof(struct image *));
		error = *ret ? NULL : &sym_error_no_memory;
	}
	for (size_t i = 0; *ret && i < newest->module_count; i++)
		if (newest->modules[i]->image)
			(*ret)[(*count_ret)++] = image_share(newest->modules[i]->image);
	pthread_mutex_unlock(&ground->lock);
	return error;
}

struct image *snapshot_executable(const struct sym_snapshot *snapshot)
{
	const char *executable = snapshot->process->executable;

	for (size_t i = 0; executable && i < snapshot->module_count; i++) {
		struct sym_image *module = snapshot->modules[i];

		if (module->image && module->image->kind == SYM_IMAGE_ELF &&
		    !strcmp(module->path, executable))
			return module_trouble(module) ? NULL : module->image;
	}
	return NULL;
}

static struct image *share_executable(void *context)
{
	struct snapshot_ground *ground = context;
	struct image *image = NULL;
	struct sym_error *error = NULL;

	pthread_mutex_lock(&ground->lock);
	if (ground->newest)
		error = snapshot_open_all(ground->newest);
	if (ground->newest && !error)
		image = snapshot_executable(ground->newest);
	if (image)
		image_share(image);
	pthread_mutex_unlock(&ground->lock);
	sym_error_destroy(error);
	return image;
}

static void number_images(void *context)
{
	struct snapshot_ground *ground = context;

	pthread_mutex_lock(&ground->lock);
	if (ground->numbered)
		sym_error_destroy(snapshot_open_all(ground->numbered));
	pthread_mutex_unlock(&ground->lock);
}

/* A snapshot of a process that is open. */
static struct sym_error *finish(struct snapshot_ground *ground, struct address_space *space,
				struct sym_snapshot **ret)
{
	struct sym_snapshot *snapshot;
	struct sym_error *error;

	ground->context.process = ground->process;
	ground->context.company = (struct module_company){
		.images = { ground, list_images, share_executable },
		.number = number_images,
	};
	ground->context.relative_map_dirs = (const char *const *)ground->relative_map_dirs;
	ground->context.debug_dirs = (const char *const *)ground->debug_dirs;
	error = snapshot_create(ground, space, &snapshot);
	if (error)
		return error;
	snapshot_enlist(snapshot);
	snapshot_make_users(snapshot);
	*ret = snapshot;
	return NULL;
}

/* `addresses` NULL: all that is mapped. */
static struct sym_error *open_live(int32_t pid, const struct sym_snapshot_opts *opts,
				   const uint64_t *addresses, size_t count,
				   struct sym_snapshot **ret)
{
	struct snapshot_ground *ground AUTO_GROUND = NULL;
	struct address_space *space AUTO_ADDRESS_SPACE = NULL;
	struct sym_snapshot_opts checked;
	struct sym_error *error = begin(opts, &checked, &ground);

	if (!error)
		error = process_open(pid, checked.root, &ground->process);
	if (!error)
		error = addresses
				? address_space_read_near(ground->process, addresses, count, &space)
				: address_space_read(ground->process, &space);
	if (error)
		return error;
	if (!space) {
		*ret = NULL;
		return NULL;
	}
	error = finish(ground, space, ret);
	if (!error)
		space = NULL; /* the snapshot's now */
	return error;
}

struct sym_error *sym_snapshot_open(int32_t pid, const struct sym_snapshot_opts *opts,
				    struct sym_snapshot **ret)
{
	return open_live(pid, opts, NULL, 0, ret);
}

struct sym_error *sym_snapshot_open_near(int32_t pid, const struct sym_snapshot_opts *opts,
					 const uint64_t *addresses, size_t count,
					 struct sym_snapshot **ret)
{
	if (!addresses)
		return sym_error_create(SYM_ERROR_ARGUMENT, "near no addresses");
	return open_live(pid, opts, addresses, count, ret);
}

struct sym_error *sym_snapshot_open_core(const char *path, const struct sym_snapshot_opts *opts,
					 struct sym_snapshot **ret)
{
	struct snapshot_ground *ground AUTO_GROUND = NULL;
	struct address_space *space AUTO_ADDRESS_SPACE = NULL;
	struct sym_snapshot_opts checked;
	struct sym_error *error = begin(opts, &checked, &ground);

	if (!error && (ground->jit == SYM_JIT_RUNDOWN || ground->jit == SYM_JIT_PERF_MAP))
		error = sym_error_create(SYM_ERROR_ARGUMENT,
					 "a core file can neither be asked nor has it a perf map");
	if (!error && ground->jit == SYM_JIT_AUTO)
		ground->jit = SYM_JIT_CONTRACT;
	if (!error)
		error = core_process_open(path, checked.root, &ground->process);
	if (!error)
		error = core_address_space(ground->process->core, &space);
	if (!error)
		error = finish(ground, space, ret);
	if (!error)
		space = NULL; /* the snapshot's now */
	return error;
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

const struct sym_process_info *sym_snapshot_process(const struct sym_snapshot *constant)
{
	struct sym_snapshot *snapshot = (struct sym_snapshot *)constant;

	if (atomic_load_explicit(&snapshot->is_info_whole, memory_order_acquire))
		return &snapshot->info;
	pthread_mutex_lock(&snapshot->info_lock);
	if (!atomic_load(&snapshot->is_info_whole) && fill_runtime(snapshot))
		atomic_store_explicit(&snapshot->is_info_whole, true, memory_order_release);
	pthread_mutex_unlock(&snapshot->info_lock);
	return &snapshot->info;
}

struct sym_error *sym_snapshot_check(const struct sym_snapshot *snapshot)
{
	return process_check(snapshot->process);
}

/* Whether it could be done; it fails for want of memory only. */
static bool has_all(const struct sym_snapshot *snapshot)
{
	struct sym_error *error = snapshot_open_all(snapshot);

	sym_error_destroy(error);
	return !error;
}

size_t sym_snapshot_mapping_count(const struct sym_snapshot *snapshot)
{
	return has_all(snapshot) ? snapshot->space->mapping_count : 0;
}

struct sym_error *sym_snapshot_open_images(struct sym_snapshot *snapshot)
{
	return snapshot_open_all(snapshot);
}

const struct sym_mapping *sym_snapshot_mapping_at(const struct sym_snapshot *snapshot, size_t index)
{
	return index < snapshot->space->mapping_count && has_all(snapshot)
		       ? &snapshot->space->mappings[index]
		       : NULL;
}

size_t sym_snapshot_image_count(const struct sym_snapshot *snapshot)
{
	return has_all(snapshot) ? snapshot->module_count : 0;
}

struct sym_image *sym_snapshot_image_at(const struct sym_snapshot *snapshot, size_t index)
{
	return has_all(snapshot) && index < snapshot->module_count ? snapshot->modules[index]
								   : NULL;
}

/*
 * A map that the runtime itself does not write was left by a merge, or is of a time before the
 * runtime was told to stop: as long as the runtime can be asked, what it says wins. Where it cannot
 * (it is stopped), the map tells what lay there once.
 */
static bool may_be_left(const struct sym_snapshot *snapshot, const struct perf_map_place *place)
{
	const struct runtime_info *runtime;

	if (snapshot->jit != SYM_JIT_AUTO || snapshot->process->recorded || !place->file_count ||
	    place->info.writer_fd >= 0 || place->info.writer_unknown)
		return false;
	runtime = snapshot_runtime(snapshot);
	return runtime && runtime->shape && strcmp(runtime->shape, "nativeaot") != 0;
}

static bool refuse_left(struct perf_map_place *place, const struct live_code *code)
{
	const char *reason = code->rundown_reason ?: code->contract_reason;
	char *why AUTO_FREE = NULL;

	if (asprintf(&why, "the runtime does not write it; %s", reason ?: "it was not asked") < 0)
		why = NULL;
	return why && perf_map_place_refuse(place, why);
}

/* With the files that may be believed. `asks`: the runtime too, if that tells which they are. */
static struct sym_error *find_perf_map(const struct sym_snapshot *snapshot, bool asks,
				       struct perf_map_place *ret)
{
	const struct live_code *code = atomic_load(&snapshot->ground->live_code.code);
	struct sym_error *error = perf_map_place_find(snapshot->process, ret);

	if (error || !may_be_left(snapshot, ret))
		return error;
	/* Where that fails, nothing is known against the map. */
	if (asks && !code)
		sym_error_destroy(live_code_get(snapshot, &code));
	if (!code || code->source || refuse_left(ret, code))
		return NULL;
	perf_map_place_deinit(ret);
	return &sym_error_no_memory;
}

struct sym_error *sym_snapshot_perf_map(struct sym_snapshot *snapshot,
					const struct sym_perf_map_info **ret)
{
	struct perf_map_place place;
	struct sym_error *error = find_perf_map(snapshot, false, &place);

	if (error)
		return error;
	if (snapshot->has_place)
		perf_map_place_deinit(&snapshot->place);
	snapshot->place = place;
	snapshot->has_place = true;
	*ret = &snapshot->place.info;
	return NULL;
}

/* Of the map that the process is writing, which comes last. */
static struct sym_error *find_held_back(const struct sym_snapshot *snapshot,
					const struct perf_map_place *place,
					struct perfmap_input *own)
{
	const struct sym_perf_map_info *info = &place->info;
	struct stat status;

	if (info->writer_fd < 0 || fstat(own->fd, &status) || status.st_ino != info->writer_inode ||
	    status.st_dev != info->writer_device)
		return NULL;
	return stdio_buffer_find(snapshot->process, snapshot->space, own->fd, &own->writer);
}

static struct sym_error *read_maps(const struct sym_snapshot *snapshot,
				   const struct perf_map_place *place,
				   const struct forked_map *forked, unsigned int flags,
				   struct perfmap_source **ret)
{
	struct perfmap_input inputs[PERF_MAP_PLACE_FILES + 1];
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = NULL;
	struct sym_error *error;
	size_t count = 0;

	/* Its own comes last: of two lines that overlap, the one read later holds. */
	if (forked->file.fd >= 0)
		inputs[count++] = (struct perfmap_input){
			.fd = forked->file.fd,
			.path = forked->file.path,
			.only = &forked->shared,
		};
	for (size_t i = 0; i < place->file_count; i++)
		inputs[count++] = (struct perfmap_input){ .fd = place->files[i].fd,
							  .path = place->files[i].path };
	if (!count)
		return NULL;
	error = find_held_back(snapshot, place, &inputs[count - 1]);
	if (error)
		return error;
	error = perfmap_source_open(inputs, count, flags, &source);
	/* A map found by the number of a process is its own only while the process is. */
	if (!error)
		error = process_check(snapshot->process);
	if (!error)
		*ret = STEAL(source);
	return error;
}

struct sym_error *snapshot_read_perf_map(const struct sym_snapshot *snapshot, unsigned int flags,
					 struct buf *why, struct perfmap_source **ret)
{
	struct perf_map_place place;
	struct forked_map forked;
	struct sym_error *error;

	*ret = NULL;
	error = find_perf_map(snapshot, true, &place);
	if (error)
		return error;
	error = forked_find_map(snapshot->process, snapshot->space, &place, why, &forked);
	if (!place.file_count && forked.file.fd < 0 && !why->size_bytes && place.info.refused_path)
		buf_printf(why, "%s is not used: %s", place.info.refused_path,
			   place.info.refused_reason ? place.info.refused_reason : "");
	if (!error)
		error = read_maps(snapshot, &place, &forked, flags, ret);
	forked_map_deinit(&forked);
	perf_map_place_deinit(&place);
	return error;
}
