/* SPDX-License-Identifier: MIT */
/*
 * Opening snapshots, and the perf map of a snapshot.
 *
 * A snapshot has two parts. struct snapshot_shared has what all snapshots of one process share: the
 * process, the options, the jitted code. struct sym_snapshot has the mappings and the groups of one
 * moment.
 * sym_snapshot_open() makes both. A refresh makes a new struct sym_snapshot over the same
 * snapshot_shared (snapshot_look_again()).
 * Functions about groups and images are in snapshot_groups.c.
 */
#include "libsym/snapshot/snapshot.h"
#include "libsym/snapshot/snapshot_runtime.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/path.h"
#include "libsym/perf/inherited_file.h"
#include "libsym/perf/unflushed_stdio.h"
#include "libsym/process/core_process.h"

DEFINE_GUARD(ground, struct snapshot_shared *, snapshot_shared_release)
#define AUTO_GROUND GUARDED(ground)

static struct sym_error *check_opts(const struct sym_snapshot_opts *opts,
				    struct sym_snapshot_opts *ret)
{
	struct sym_error *error = sym_error_read_opts(opts, "sym_snapshot_opts", ret, sizeof(*ret));

	if (error)
		return error;
	if (ret->flags & ~(uint32_t)(SYM_SNAPSHOT_TIER_IN_NAME | SYM_SNAPSHOT_FORK_FOR_DWARF))
		return sym_error_create(SYM_ERROR_ARGUMENT, "unknown flags 0x%x", ret->flags);
	if (ret->jit > SYM_JIT_NONE)
		return sym_error_create(SYM_ERROR_ARGUMENT, "unknown way %u to jitted code",
					ret->jit);
	return NULL;
}

/* False when out of memory. */
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
	return flags & SYM_SNAPSHOT_TIER_IN_NAME ? PERFMAP_TIER_IN_NAME : 0;
}

static struct sym_error *snapshot_shared_create(const struct sym_snapshot_opts *opts,
						struct sym_snapshot_opts *checked,
						struct snapshot_shared **ret)
{
	struct snapshot_shared *ground AUTO_GROUND = calloc(1, sizeof(*ground));
	struct sym_error *error;

	if (!ground)
		return &sym_error_no_memory;
	pthread_mutex_init(&ground->lock, NULL);
	jitted_code_slot_init(&ground->jitted_code);
	jitted_lines_init(&ground->jitted_lines);
	error = check_opts(opts, checked);
	if (!error) {
		ground->jit = (enum sym_jit_method)checked->jit;
		ground->budget = budget_inside(checked->budget);
		ground->perf_map_flags = perf_map_flags(checked->flags);
		ground->context.fetch = checked->fetch;
		ground->context.fetch_context = checked->fetch_context;
		ground->context.forks_for_dwarf = checked->flags & SYM_SNAPSHOT_FORK_FOR_DWARF;
	}
	if (!error && (!path_list_copy(checked->relative_map_dirs, &ground->relative_map_dirs) ||
		       !path_list_copy(checked->debug_dirs, &ground->debug_dirs)))
		error = &sym_error_no_memory;
	if (!error)
		*ret = STEAL(ground);
	return error;
}

/* Lists all images of the newest snapshot, for the search of an assembly. */
static struct sym_error *list_images(void *context, struct object_file ***ret, size_t *count_ret)
{
	struct snapshot_shared *ground = context;
	struct sym_snapshot *newest;
	struct sym_error *error = NULL;

	*ret = NULL;
	*count_ret = 0;
	pthread_mutex_lock(&ground->lock);
	newest = ground->newest;
	if (newest)
		error = snapshot_open_all(newest);
	if (newest && !error) {
		*ret = calloc(newest->image_count + 1, sizeof(struct object_file *));
		error = *ret ? NULL : &sym_error_no_memory;
	}
	for (size_t i = 0; *ret && i < newest->image_count; i++)
		if (newest->images[i]->object)
			(*ret)[(*count_ret)++] = object_file_share(newest->images[i]->object);
	pthread_mutex_unlock(&ground->lock);
	return error;
}

static struct object_file *share_executable(void *context)
{
	struct snapshot_shared *ground = context;
	struct object_file *object = NULL;
	struct sym_error *error = NULL;

	pthread_mutex_lock(&ground->lock);
	if (ground->newest)
		error = snapshot_open_all(ground->newest);
	if (ground->newest && !error)
		object = snapshot_executable(ground->newest);
	if (object)
		object_file_share(object);
	pthread_mutex_unlock(&ground->lock);
	sym_error_destroy(error);
	return object;
}

static void number_images(void *context)
{
	struct snapshot_shared *ground = context;

	pthread_mutex_lock(&ground->lock);
	if (ground->numbered)
		sym_error_destroy(snapshot_open_all(ground->numbered));
	pthread_mutex_unlock(&ground->lock);
}

/* Makes the snapshot of an open process. */
static struct sym_error *snapshot_finish_opening(struct snapshot_shared *ground,
						 struct address_space *space,
						 struct sym_snapshot **ret)
{
	struct sym_snapshot *snapshot;
	struct sym_error *error;

	ground->process->budget = ground->budget;
	ground->context.process = ground->process;
	ground->context.company = (struct image_company){
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

struct sym_error *sym_snapshot_open(int32_t pid, const struct sym_snapshot_opts *opts,
				    struct sym_snapshot **ret)
{
	struct snapshot_shared *ground AUTO_GROUND = NULL;
	struct address_space *space AUTO_ADDRESS_SPACE = NULL;
	struct sym_snapshot_opts checked;
	struct sym_error *error = snapshot_shared_create(opts, &checked, &ground);

	if (!error)
		error = process_open(pid, checked.root, &ground->process);
	if (!error)
		error = address_space_read(ground->process, &space);
	if (!error)
		error = snapshot_finish_opening(ground, space, ret);
	if (!error)
		space = NULL; /* owned by the snapshot now */
	return error;
}

struct sym_error *sym_snapshot_open_core(const char *path, const struct sym_snapshot_opts *opts,
					 struct sym_snapshot **ret)
{
	struct snapshot_shared *ground AUTO_GROUND = NULL;
	struct address_space *space AUTO_ADDRESS_SPACE = NULL;
	struct sym_snapshot_opts checked;
	struct sym_error *error = snapshot_shared_create(opts, &checked, &ground);

	if (!error && (ground->jit == SYM_JIT_RUNDOWN || ground->jit == SYM_JIT_PERF_MAP))
		error = sym_error_create(
			SYM_ERROR_ARGUMENT,
			"a core file has neither a diagnostics socket nor a perf map");
	if (!error && ground->jit == SYM_JIT_AUTO)
		ground->jit = SYM_JIT_CONTRACT;
	if (!error)
		error = core_process_open(path, checked.root, &ground->process);
	if (!error)
		error = core_address_space(ground->process->core, &space);
	if (!error)
		error = snapshot_finish_opening(ground, space, ret);
	if (!error)
		space = NULL; /* owned by the snapshot now */
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

const char *sym_jit_method_text(enum sym_jit_method method)
{
	static const char *const texts[] = {
		[SYM_JIT_AUTO] = "auto",       [SYM_JIT_CONTRACT] = "contract",
		[SYM_JIT_RUNDOWN] = "rundown", [SYM_JIT_PERF_MAP] = "perfmap",
		[SYM_JIT_NONE] = "none",
	};

	return (size_t)method < sizeof(texts) / sizeof(texts[0]) ? texts[method] : "unknown";
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

/* False when out of memory. */
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
	return has_all(snapshot) ? snapshot->image_count : 0;
}

struct sym_image *sym_snapshot_image_at(const struct sym_snapshot *snapshot, size_t index)
{
	return has_all(snapshot) && index < snapshot->image_count ? snapshot->images[index] : NULL;
}

/*
 * A map that the .NET runtime does not write was left by `merge`, or is older than a command that
 * stopped the runtime's writing.
 * If the runtime can be asked, its names win over the map. If it cannot (it is stopped), the map
 * may be outdated.
 */
static bool may_be_left(const struct sym_snapshot *snapshot, const struct perfmap_location *place)
{
	const struct runtime_info *runtime;

	if (snapshot->jit != SYM_JIT_AUTO || snapshot->process->recorded || !place->file_count ||
	    place->info.writer_fd >= 0 || place->info.writer_unknown)
		return false;
	runtime = snapshot_runtime(snapshot);
	return runtime && runtime->shape && strcmp(runtime->shape, "nativeaot") != 0;
}

static bool refuse_left(struct perfmap_location *place, const struct jitted_code *code)
{
	const char *reason = code->rundown_reason ?: code->contract_reason;
	char *why AUTO_FREE = NULL;

	if (asprintf(&why, "the runtime does not write it; %s", reason ?: "it was not asked") < 0)
		why = NULL;
	return why && perfmap_location_refuse(place, why);
}

/* Finds the files that may be used. `asks`: ask the runtime too, if the result depends on it. */
static struct sym_error *find_perf_map(const struct sym_snapshot *snapshot, bool asks,
				       struct perfmap_location *ret)
{
	const struct jitted_code *code = atomic_load(&snapshot->ground->jitted_code.code);
	struct sym_error *error = perfmap_location_find(snapshot->process, ret);

	if (error || !may_be_left(snapshot, ret))
		return error;
	/* A failure proves nothing against the map. */
	if (asks && !code)
		sym_error_destroy(snapshot_live_code(snapshot, &code));
	if (!code || code->source || refuse_left(ret, code))
		return NULL;
	perfmap_location_deinit(ret);
	return &sym_error_no_memory;
}

struct sym_error *sym_snapshot_perf_map(struct sym_snapshot *snapshot,
					const struct sym_perf_map_info **ret)
{
	struct perfmap_location place;
	struct sym_error *error = find_perf_map(snapshot, false, &place);

	if (error)
		return error;
	if (snapshot->has_place)
		perfmap_location_deinit(&snapshot->place);
	snapshot->place = place;
	snapshot->has_place = true;
	*ret = &snapshot->place.info;
	return NULL;
}

/* Finds the unflushed lines of the map that the process is writing, which comes last. */
static struct sym_error *find_unflushed(const struct sym_snapshot *snapshot,
					const struct perfmap_location *place,
					struct perfmap_input *own)
{
	const struct sym_perf_map_info *info = &place->info;
	struct stat status;

	if (info->writer_fd < 0 || fstat(own->fd, &status) || status.st_ino != info->writer_inode ||
	    status.st_dev != info->writer_device)
		return NULL;
	return unflushed_stdio_find(snapshot->process, snapshot->space, own->fd, &own->writer);
}

static struct budget_account *account_of_map(const struct sym_snapshot *snapshot, int fd)
{
	return budget_account_of_file(snapshot->process->budget, fd);
}

static struct sym_error *read_maps(const struct sym_snapshot *snapshot,
				   const struct perfmap_location *place,
				   const struct inherited_file_map *forked, unsigned int flags,
				   struct perfmap_source **ret)
{
	struct perfmap_input inputs[PERFMAP_LOCATION_FILES + 1];
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = NULL;
	struct sym_error *error;
	size_t count = 0;

	/* Its own map comes last: of two overlapping lines the one read later wins. */
	if (forked->file.fd >= 0)
		inputs[count++] = (struct perfmap_input){
			.fd = forked->file.fd,
			.path = forked->file.path,
			.only = &forked->shared,
			.account = account_of_map(snapshot, forked->file.fd),
		};
	for (size_t i = 0; i < place->file_count; i++)
		inputs[count++] = (struct perfmap_input){ .fd = place->files[i].fd,
							  .path = place->files[i].path,
							  .account = account_of_map(
								  snapshot, place->files[i].fd) };
	if (!count)
		return NULL;
	error = find_unflushed(snapshot, place, &inputs[count - 1]);
	if (error)
		return error;
	error = perfmap_source_open(inputs, count, flags, &source);
	/* A map found by a PID belongs to the process only while that exists. */
	if (!error)
		error = process_check(snapshot->process);
	if (!error)
		*ret = STEAL(source);
	return error;
}

struct sym_error *snapshot_read_perf_map(const struct sym_snapshot *snapshot, unsigned int flags,
					 struct buf *why, struct perfmap_source **ret)
{
	struct perfmap_location place;
	struct inherited_file_map forked;
	struct sym_error *error;

	*ret = NULL;
	error = find_perf_map(snapshot, true, &place);
	if (error)
		return error;
	error = inherited_file_find_map(snapshot->process, snapshot->space, &place, why, &forked);
	if (!place.file_count && forked.file.fd < 0 && !why->size_bytes && place.info.rejected_path)
		buf_printf(why, "%s is not used: %s", place.info.rejected_path,
			   place.info.rejected_reason ? place.info.rejected_reason : "");
	if (!error)
		error = read_maps(snapshot, &place, &forked, flags, ret);
	inherited_file_map_deinit(&forked);
	perfmap_location_deinit(&place);
	return error;
}
