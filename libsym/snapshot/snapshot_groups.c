/* SPDX-License-Identifier: MIT */
/*
 * Groups of mappings that make images: which mappings form a group, when a group is opened, and
 * what a later snapshot of the same process uses again.
 *
 * Locks are taken in this order: of an image, of snapshot_shared, open_lock, of a group.
 * No other lock is taken while group_lock is held.
 */
#include <stdlib.h>
#include <string.h>

#include "libsym/base/path.h"
#include "libsym/image/discover_file.h"
#include "libsym/image/hugepage_text.h"
#include "libsym/snapshot/snapshot.h"

struct sym_image snapshot_no_image;

void snapshot_shared_release(struct snapshot_shared *ground)
{
	if (!ground || atomic_fetch_sub_explicit(&ground->users, 1, memory_order_acq_rel))
		return;
	jitted_lines_deinit(&ground->jitted_lines);
	jitted_code_slot_deinit(&ground->jitted_code);
	process_close(ground->process);
	path_list_free(ground->relative_map_dirs);
	path_list_free(ground->debug_dirs);
	pthread_mutex_destroy(&ground->lock);
	free(ground);
}

void snapshot_enlist(struct sym_snapshot *snapshot)
{
	struct snapshot_shared *ground = snapshot->ground;

	pthread_mutex_lock(&ground->lock);
	snapshot->older = ground->newest;
	ground->newest = snapshot;
	pthread_mutex_unlock(&ground->lock);
}

static void snapshot_delist(struct sym_snapshot *snapshot)
{
	struct snapshot_shared *ground = snapshot->ground;
	struct sym_snapshot **place = &ground->newest;

	pthread_mutex_lock(&ground->lock);
	while (*place && *place != snapshot)
		place = &(*place)->older;
	if (*place)
		*place = snapshot->older;
	if (ground->numbered == snapshot)
		ground->numbered = NULL;
	pthread_mutex_unlock(&ground->lock);
}

void load_check_deinit(struct sym_load_check *check)
{
	free((char *)check->path);
	free((char *)check->contradiction);
	*check = (struct sym_load_check){ 0 };
}

void sym_snapshot_close(struct sym_snapshot *snapshot)
{
	if (!snapshot)
		return;
	snapshot_delist(snapshot);
	if (snapshot->has_place)
		perfmap_location_deinit(&snapshot->place);
	load_check_deinit(&snapshot->load_check);
	for (size_t i = 0; i < snapshot->group_count; i++)
		mapped_file_release(atomic_load(&snapshot->groups[i]));
	lazy_deinit(&snapshot->runtime);
	pthread_mutex_destroy(&snapshot->group_lock);
	pthread_mutex_destroy(&snapshot->open_lock);
	pthread_mutex_destroy(&snapshot->info_lock);
	free(snapshot->images);
	free(snapshot->groups);
	free(snapshot->lines);
	address_space_destroy(snapshot->space);
	snapshot_shared_release(snapshot->ground);
	free(snapshot);
}

/* ---- which mappings belong together ------------------------------------------------ */

static size_t anonymous_group(const struct sym_snapshot *snapshot)
{
	return snapshot->space->file_count;
}

static size_t vdso_group(const struct sym_snapshot *snapshot)
{
	return snapshot->space->file_count + 1;
}

static void group_files(struct sym_snapshot *snapshot)
{
	const struct address_space *space = snapshot->space;

	for (size_t i = 0; i < space->file_count; i++)
		for (size_t j = 0; !space->files[i].memory && j < space->files[i].mapping_count;
		     j++) {
			struct snapshot_line *line =
				&snapshot->lines[space->files[i].mapping_indexes[j]];

			line->group = (uint32_t)i;
			line->number = (uint32_t)j;
		}
}

/* True for memory in the group of a file. */
static bool is_remapped(const struct sym_snapshot *snapshot, size_t line)
{
	const struct address_space *space = snapshot->space;
	uint32_t group = snapshot->lines[line].group;

	return group < space->file_count &&
	       snapshot->lines[line].number >= space->files[group].mapping_count;
}

/* A program or library in a memory file is a group by itself. */
static bool may_be_remapped(const struct sym_snapshot *snapshot, const struct hugepage_run *run)
{
	for (size_t i = run->first; i < run->end; i++)
		if (snapshot->lines[i].group != SNAPSHOT_NO_GROUP)
			return false;
	return true;
}

static void group_remapped(struct sym_snapshot *snapshot)
{
	const struct address_space *space = snapshot->space;
	struct hugepage_run run = { 0 };

	/* After a lack of memory the same lines may be grouped again. */
	for (size_t i = 0; i < space->file_count; i++)
		space->files[i].hugepage_run_count = 0;
	while (hugepage_run_next(space, &run)) {
		uint32_t number = snapshot->lines[run.first - 1].group;
		struct address_space_file *file;

		if (number == SNAPSHOT_NO_GROUP || snapshot->lines[run.end].group != number ||
		    !may_be_remapped(snapshot, &run))
			continue;
		file = &space->files[number];
		for (size_t i = run.first; i < run.end; i++) {
			snapshot->lines[i].group = number;
			snapshot->lines[i].number =
				(uint32_t)(file->mapping_count + file->hugepage_run_count++);
		}
	}
}

static void group_lines(struct sym_snapshot *snapshot)
{
	const struct address_space *space = snapshot->space;
	uint32_t anonymous = 0;

	snapshot->vdso_line = UINT32_MAX;
	for (size_t i = 0; i < space->mapping_count; i++)
		snapshot->lines[i].group = SNAPSHOT_NO_GROUP;
	group_files(snapshot);
	group_remapped(snapshot);
	for (size_t i = 0; i < space->mapping_count; i++) {
		struct snapshot_line *line = &snapshot->lines[i];
		const char *path = space->mappings[i].path;

		if (!*path && line->group == SNAPSHOT_NO_GROUP) {
			line->group = (uint32_t)anonymous_group(snapshot);
			line->number = anonymous++;
		} else if (*path == '[' && snapshot->vdso_line == UINT32_MAX &&
			   !strcmp(path, "[vdso]")) {
			line->group = (uint32_t)vdso_group(snapshot);
			snapshot->vdso_line = (uint32_t)i;
		}
	}
}

/* Fills in what needs no file. */
static void fill_info(struct sym_snapshot *snapshot)
{
	const struct process *process = snapshot->process;

	snapshot->info = (struct sym_process_info){
		.pid = process->pid,
		.namespace_pid = process->namespace_pid,
		.uid = process->uid,
		.gid = process->gid,
		.start_time_ticks = process->start_time_ticks,
		.comm = process->comm,
		.executable = process->executable,
		.runtime_image_index = UINT32_MAX,
		.other_mount_namespace = process->other_mount_namespace,
		.other_pid_namespace = process->other_pid_namespace,
	};
	if (process->recorded)
		return;
	snapshot->info.file_uid = process->rights.uid;
	snapshot->info.file_gid = process->rights.gid;
	snapshot->info.groups = process->rights.groups;
	snapshot->info.group_count = process->rights.group_count;
	snapshot->info.capabilities = process->rights.capabilities;
}

struct sym_error *snapshot_create(struct snapshot_shared *ground, struct address_space *space,
				  struct sym_snapshot **ret)
{
	struct sym_snapshot *snapshot = calloc(1, sizeof(*snapshot));

	if (!snapshot)
		return &sym_error_no_memory;
	snapshot->lines = calloc(space->mapping_count + 1, sizeof(*snapshot->lines));
	snapshot->groups = calloc(space->file_count + 2, sizeof(*snapshot->groups));
	if (!snapshot->lines || !snapshot->groups) {
		free(snapshot->lines);
		free(snapshot->groups);
		free(snapshot);
		return &sym_error_no_memory;
	}
	snapshot->taken_ns = space->read_ns;
	snapshot->group_count = space->file_count + 2;
	snapshot->space = space;
	atomic_fetch_add_explicit(&ground->users, 1, memory_order_relaxed);
	snapshot->ground = ground;
	snapshot->process = ground->process;
	snapshot->jit = ground->jit;
	lazy_init(&snapshot->runtime);
	pthread_mutex_init(&snapshot->group_lock, NULL);
	pthread_mutex_init(&snapshot->open_lock, NULL);
	pthread_mutex_init(&snapshot->info_lock, NULL);
	group_lines(snapshot);
	fill_info(snapshot);
	*ret = snapshot;
	return NULL;
}

/*
 * All mappings of a group that are memory; NULL when out of memory. There is room for `more` in
 * front.
 */
static uint32_t *list_memory(const struct sym_snapshot *snapshot, size_t group, size_t more,
			     size_t *count_ret)
{
	size_t count = snapshot->space->mapping_count, found = more;
	uint32_t *indexes = calloc(more + count + 1, sizeof(*indexes));

	for (size_t i = 0; indexes && i < count; i++)
		if (snapshot->lines[i].group == group &&
		    (group == anonymous_group(snapshot) || is_remapped(snapshot, i)))
			indexes[found++] = (uint32_t)i;
	*count_ret = found;
	return indexes;
}

static struct sym_error *make_file_group(const struct sym_snapshot *snapshot, size_t number,
					 struct mapped_file **ret)
{
	const struct address_space *space = snapshot->space;
	const struct address_space_file *file = &space->files[number];
	uint32_t *all AUTO_FREE = NULL;
	size_t count;

	if (!file->hugepage_run_count)
		return mapped_file_create(MAPPED_FILE_FILE, space->mappings, file->mapping_indexes,
					  file->mapping_count, snapshot->taken_ns, ret);
	all = list_memory(snapshot, number, file->mapping_count, &count);
	if (!all)
		return &sym_error_no_memory;
	memcpy(all, file->mapping_indexes, file->mapping_count * sizeof(*all));
	return mapped_file_create(MAPPED_FILE_FILE, space->mappings, all, count, snapshot->taken_ns,
				  ret);
}

static struct sym_error *make_group(const struct sym_snapshot *snapshot, size_t number,
				    struct mapped_file **ret)
{
	const struct address_space *space = snapshot->space;
	uint32_t *anonymous AUTO_FREE = NULL;
	size_t count;

	if (number < space->file_count)
		return make_file_group(snapshot, number, ret);
	if (number == vdso_group(snapshot))
		return mapped_file_create(MAPPED_FILE_VDSO, space->mappings, &snapshot->vdso_line,
					  snapshot->vdso_line != UINT32_MAX, snapshot->taken_ns,
					  ret);
	anonymous = list_memory(snapshot, number, 0, &count);
	if (!anonymous)
		return &sym_error_no_memory;
	return mapped_file_create(MAPPED_FILE_MEMORY, space->mappings, anonymous, count,
				  snapshot->taken_ns, ret);
}

static struct sym_error *get_group(const struct sym_snapshot *snapshot, size_t number,
				   struct mapped_file **ret)
{
	_Atomic(struct mapped_file *) *place = &snapshot->groups[number];
	struct sym_error *error = NULL;

	*ret = atomic_load_explicit(place, memory_order_acquire);
	if (*ret)
		return NULL;
	pthread_mutex_lock((pthread_mutex_t *)&snapshot->group_lock);
	*ret = atomic_load(place);
	if (!*ret)
		error = make_group(snapshot, number, ret);
	if (!error)
		atomic_store_explicit(place, *ret, memory_order_release);
	pthread_mutex_unlock((pthread_mutex_t *)&snapshot->group_lock);
	return error;
}

/* ---- opening ------------------------------------------------------------------------ */

static void *read_runtime(const void *context)
{
	const struct sym_snapshot *snapshot = context;
	struct runtime_info *info = calloc(1, sizeof(*info));
	struct sym_error *error =
		info ? runtime_info_read(snapshot->process, snapshot->space, info) : NULL;

	if (!error)
		return info;
	sym_error_destroy(error);
	free(info);
	return NULL;
}

const struct runtime_info *snapshot_runtime(const struct sym_snapshot *snapshot)
{
	return lazy_get((struct lazy *)&snapshot->runtime, read_runtime, free, snapshot);
}

/* Only in such a process does a runtime unpack assemblies into memory. */
static struct sym_error *may_have_memory_images(const struct sym_snapshot *snapshot, bool *ret)
{
	const struct runtime_info *runtime = snapshot_runtime(snapshot);

	if (!runtime)
		return &sym_error_no_memory;
	*ret = runtime->shape && !strcmp(runtime->shape, "single-file");
	return NULL;
}

/* *ret is NULL for a group without images. */
static struct sym_error *open_group(const struct sym_snapshot *snapshot, size_t number,
				    struct mapped_file **ret)
{
	struct mapped_file *group;
	struct sym_error *error = NULL;
	bool has_images = true;

	*ret = NULL;
	if (number == anonymous_group(snapshot))
		error = may_have_memory_images(snapshot, &has_images);
	else if (number == vdso_group(snapshot))
		has_images = snapshot->vdso_line != UINT32_MAX;
	else
		has_images = !snapshot->space->files[number].memory;
	if (error || !has_images)
		return error;
	error = get_group(snapshot, number, &group);
	if (!error)
		error = mapped_file_open(group, &snapshot->ground->context, snapshot_open_group);
	if (!error)
		*ret = group;
	return error;
}

struct sym_error *snapshot_ask_line(const struct sym_snapshot *snapshot, size_t number,
				    struct sym_image **ret)
{
	struct snapshot_line *line = &snapshot->lines[number];
	struct mapping_owner place = { 0 };
	struct mapped_file *group = NULL;
	struct sym_error *error = NULL;

	if (line->group != SNAPSHOT_NO_GROUP)
		error = open_group(snapshot, line->group, &group);
	if (error)
		return error;
	if (group)
		place = group->places[line->number];
	/* Every writer writes the same value. */
	if (place.placed)
		__atomic_store_n(&line->placed, true, __ATOMIC_RELAXED);
	if (place.shared)
		__atomic_store_n(&line->shared, true, __ATOMIC_RELAXED);
	atomic_store_explicit(&line->image, place.image ? place.image : &snapshot_no_image,
			      memory_order_release);
	*ret = place.image;
	return NULL;
}

bool snapshot_choose_part(const struct sym_snapshot *snapshot, size_t line, uint64_t address,
			  struct sym_image **image)
{
	const struct sym_mapping *mapping = &snapshot->space->mappings[line];
	const struct mapped_file *group;
	const struct image_part *part;

	if (!__atomic_load_n(&snapshot->lines[line].shared, __ATOMIC_RELAXED))
		return true;
	/* The group is open: a placement showed that it shares the mapping. */
	group = atomic_load_explicit(&snapshot->groups[snapshot->lines[line].group],
				     memory_order_acquire);
	part = mapped_file_part_at(group, address - mapping->start_address + mapping->offset);
	if (part)
		*image = part->image;
	return part;
}

uint64_t snapshot_offset(const struct sym_snapshot *snapshot, size_t line,
			 const struct sym_image *image, uint64_t address)
{
	const struct sym_mapping *mapping = &snapshot->space->mappings[line];
	uint64_t offset = address - mapping->start_address + mapping->offset;
	uint64_t first = image->object ? image->object->file.offset : 0, left;

	if (is_remapped(snapshot, line))
		return object_file_position_to_offset(image->object, address - image->load_base,
						      &offset, &left)
			       ? offset
			       : UINT64_MAX;
	return offset < first ? UINT64_MAX : offset - first;
}

uint64_t snapshot_position(const struct sym_snapshot *snapshot, size_t line,
			   const struct sym_image *image, uint64_t address)
{
	uint64_t position, offset;

	if (__atomic_load_n(&snapshot->lines[line].placed, __ATOMIC_RELAXED))
		return address - image->load_base;
	offset = snapshot_offset(snapshot, line, image, address);
	if (!image->object || offset == UINT64_MAX ||
	    !object_file_offset_to_position(image->object, offset, &position))
		return UINT64_MAX;
	return position;
}

/* ---- all of them -------------------------------------------------------------------- */

/* An image of a group, and where it comes in the list of all. */
struct listed {
	struct sym_image *image;
	size_t mapping; /* its first one; SIZE_MAX: none */
	size_t number;  /* in the order of the groups */
};

static int compare_images(const void *left, const void *right)
{
	const struct listed *a = left, *b = right;

	return ((uintptr_t)a->image > (uintptr_t)b->image) -
	       ((uintptr_t)a->image < (uintptr_t)b->image);
}

static int compare_places(const void *left, const void *right)
{
	const struct listed *a = left, *b = right;

	return a->mapping != b->mapping ? (a->mapping > b->mapping) - (a->mapping < b->mapping)
					: (a->number > b->number) - (a->number < b->number);
}

/* The images of all open groups. Another snapshot may have created a group, and this one not opened
 * it. */
static size_t list_images(const struct sym_snapshot *snapshot, struct listed *ret)
{
	size_t count = 0;

	for (size_t i = 0; i < snapshot->group_count; i++) {
		const struct mapped_file *group = atomic_load(&snapshot->groups[i]);

		if (!group || !mapped_file_is_open(group))
			continue;
		for (size_t j = 0; j < group->image_count; j++, count++)
			if (ret)
				ret[count] = (struct listed){ group->images[j], SIZE_MAX, count };
	}
	return count;
}

/* Orders images by their first mapping; images without a mapping come last. */
static struct sym_error *order_images(struct sym_snapshot *snapshot)
{
	size_t count = list_images(snapshot, NULL);
	struct listed *listed AUTO_FREE = calloc(count + 1, sizeof(*listed));

	snapshot->images = calloc(count + 1, sizeof(struct sym_image *));
	if (!listed || !snapshot->images)
		return &sym_error_no_memory;
	list_images(snapshot, listed);
	qsort(listed, count, sizeof(*listed), compare_images);
	for (size_t i = snapshot->space->mapping_count; i-- > 0;) {
		const struct listed wanted = { atomic_load(&snapshot->lines[i].image), 0, 0 };
		struct listed *found =
			bsearch(&wanted, listed, count, sizeof(*listed), compare_images);

		if (found)
			found->mapping = i;
	}
	qsort(listed, count, sizeof(*listed), compare_places);
	for (; snapshot->image_count < count; snapshot->image_count++)
		snapshot->images[snapshot->image_count] = listed[snapshot->image_count].image;
	return NULL;
}

static struct sym_error *open_all(struct sym_snapshot *snapshot)
{
	struct sym_error *error = NULL;
	struct sym_image *image;

	for (size_t i = 0; !error && i < snapshot->space->mapping_count; i++)
		error = snapshot_image_of(snapshot, i, &image);
	free(STEAL(snapshot->images));
	snapshot->image_count = 0;
	return error ? error : order_images(snapshot);
}

/* Sets the user's indexes, of images and in mappings. */
static void number_images(struct sym_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->image_count; i++)
		atomic_store(&snapshot->images[i]->index, (uint32_t)i);
	for (size_t i = 0; i < snapshot->space->mapping_count; i++) {
		const struct sym_image *image = atomic_load(&snapshot->lines[i].image);

		if (image && image != &snapshot_no_image)
			snapshot->space->mappings[i].image_index = atomic_load(&image->index);
	}
}

struct sym_error *snapshot_open_all(const struct sym_snapshot *constant)
{
	struct sym_snapshot *snapshot = (struct sym_snapshot *)constant;
	struct sym_error *error = NULL;

	if (atomic_load_explicit(&snapshot->all_open, memory_order_acquire))
		return NULL;
	pthread_mutex_lock(&snapshot->open_lock);
	if (!atomic_load(&snapshot->all_open)) {
		error = open_all(snapshot);
		if (!error && snapshot->is_users)
			number_images(snapshot);
		if (!error)
			atomic_store_explicit(&snapshot->all_open, true, memory_order_release);
	}
	pthread_mutex_unlock(&snapshot->open_lock);
	return error;
}

void snapshot_make_users(struct sym_snapshot *snapshot)
{
	pthread_mutex_lock(&snapshot->ground->lock);
	snapshot->ground->numbered = snapshot;
	pthread_mutex_unlock(&snapshot->ground->lock);
	pthread_mutex_lock(&snapshot->open_lock);
	snapshot->is_users = true;
	if (atomic_load(&snapshot->all_open))
		number_images(snapshot);
	pthread_mutex_unlock(&snapshot->open_lock);
}

/* ---- another look --------------------------------------------------------------------- */

/* False when a file was written to since, or lacked a descriptor. Such groups are opened again. */
static bool is_as_opened(const struct mapped_file *group)
{
	if (!mapped_file_is_open(group) || group->kind == MAPPED_FILE_MEMORY)
		return true;
	for (size_t i = 0; i < group->image_count; i++)
		if (image_was_short(group->images[i]))
			return false;
	return !group->was_short &&
	       (!group->host || group->host->is_copy || group->kind == MAPPED_FILE_VDSO ||
		sparse_file_is_as_opened(&group->host->file));
}

bool snapshot_is_as_opened(const struct sym_snapshot *snapshot)
{
	for (size_t i = 0; i <= vdso_group(snapshot); i++) {
		const struct mapped_file *group = atomic_load(&snapshot->groups[i]);

		if (group && !is_as_opened(group))
			return false;
	}
	return true;
}

static size_t group_of(const struct sym_snapshot *snapshot, const struct sym_mapping *mapping)
{
	size_t line = address_space_find(snapshot->space, mapping->start_address);

	return line == ADDRESS_SPACE_NONE ||
			       snapshot->lines[line].group >= snapshot->space->file_count
		       ? SIZE_MAX
		       : snapshot->lines[line].group;
}

static bool is_same_file(const struct address_space_file *a, const struct address_space_file *b)
{
	return a->inode == b->inode && a->device_major == b->device_major &&
	       a->device_minor == b->device_minor && a->deleted == b->deleted &&
	       !strcmp(a->path, b->path);
}

/* The group of the same file before: usually at the same index; else searched. */
static size_t find_before(const struct sym_snapshot *before, const struct sym_snapshot *fresh,
			  const struct address_space_file *file)
{
	const struct address_space *space = before->space;
	size_t number = group_of(before, &fresh->space->mappings[file->mapping_indexes[0]]);

	if (number != SIZE_MAX && is_same_file(&space->files[number], file))
		return number;
	for (size_t i = 0; i < space->file_count; i++)
		if (is_same_file(&space->files[i], file))
			return i;
	return SIZE_MAX;
}

static struct sym_error *snapshot_carry_group(const struct sym_snapshot *before, size_t old_number,
					      struct sym_snapshot *fresh, size_t number)
{
	struct mapped_file *old, *made;
	struct sym_error *error = get_group(before, old_number, &old);

	if (!error)
		error = make_group(fresh, number, &made);
	if (error)
		return error;
	if (mapped_file_has_lines(old, made->mappings, made->lines, mapped_file_line_count(made)) &&
	    is_as_opened(old)) {
		mapped_file_release(made);
		made = mapped_file_share(old);
	} else {
		mapped_file_follow(made, old);
	}
	atomic_store(&fresh->groups[number], made);
	return NULL;
}

static struct sym_error *carry_groups(const struct sym_snapshot *before, struct sym_snapshot *fresh)
{
	const struct address_space *space = fresh->space;
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i < space->file_count; i++) {
		size_t old = space->files[i].memory ? SIZE_MAX
						    : find_before(before, fresh, &space->files[i]);

		if (old != SIZE_MAX)
			error = snapshot_carry_group(before, old, fresh, i);
	}
	if (!error && before->vdso_line != UINT32_MAX && fresh->vdso_line != UINT32_MAX)
		error = snapshot_carry_group(before, vdso_group(before), fresh, vdso_group(fresh));
	/* Memory is examined only if it contains assemblies. */
	if (!error && atomic_load(&before->groups[anonymous_group(before)]))
		error = snapshot_carry_group(before, anonymous_group(before), fresh,
					     anonymous_group(fresh));
	return error;
}

/* A runtime stays. Without one, a runtime may be loaded later. */
static struct sym_error *carry_runtime(const struct sym_snapshot *before,
				       struct sym_snapshot *fresh)
{
	const struct runtime_info *old = lazy_peek(&before->runtime);
	struct runtime_info *info;
	uint64_t address;

	if (!old || !old->shape)
		return NULL;
	info = malloc(sizeof(*info));
	if (!info)
		return &sym_error_no_memory;
	*info = *old;
	address = before->space->mappings[old->mapping_index].start_address;
	info->mapping_index = address_space_find(fresh->space, address);
	if (info->mapping_index == ADDRESS_SPACE_NONE) {
		free(info);
		return NULL;
	}
	lazy_set(&fresh->runtime, info, free);
	return NULL;
}

struct sym_error *snapshot_look_again(const struct sym_snapshot *before,
				      struct address_space *space, struct sym_snapshot **ret)
{
	struct sym_snapshot *fresh;
	struct sym_error *error = snapshot_create(before->ground, space, &fresh);

	if (error)
		return error;
	error = carry_groups(before, fresh);
	if (!error)
		error = carry_runtime(before, fresh);
	if (error) {
		fresh->space = NULL; /* still the caller's */
		sym_snapshot_close(fresh);
		return error;
	}
	snapshot_enlist(fresh);
	*ret = fresh;
	return NULL;
}

/* Index of the next file from `number` on; file_count at the end. */
static size_t next_file(const struct sym_snapshot *snapshot, size_t number)
{
	const struct address_space *space = snapshot->space;

	while (number < space->file_count && space->files[number].memory)
		number++;
	return number;
}

bool snapshot_has_same_files(const struct sym_snapshot *before, const struct sym_snapshot *fresh)
{
	size_t old = next_file(before, 0), now = next_file(fresh, 0);

	while (old < before->space->file_count && now < fresh->space->file_count) {
		if (atomic_load(&before->groups[old]) != atomic_load(&fresh->groups[now]))
			return false;
		old = next_file(before, old + 1);
		now = next_file(fresh, now + 1);
	}
	return old == before->space->file_count && now == fresh->space->file_count;
}
