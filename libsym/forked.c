/* SPDX-License-Identifier: MIT */
#include "libsym/forked.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/libsym.h"

enum {
	/* From child to parent; masters have children that have children. */
	MOST_GENERATIONS = 16
};

/* *ret is NULL when there is none. */
static struct sym_error *find_origin(const struct process *process, int32_t namespace_pid,
				     struct process **ret)
{
	int32_t pid = process->parent_pid;

	*ret = NULL;
	for (int i = 0; i < MOST_GENERATIONS && pid > 0; i++) {
		struct process *parent AUTO_PROCESS = NULL;
		struct sym_error *error = process_open(pid, NULL, &parent);

		if (error)
			return error;
		pid = parent->parent_pid;
		if (parent->namespace_pid == namespace_pid) {
			*ret = STEAL(parent);
			return NULL;
		}
	}
	return NULL;
}

static bool is_same_memory(const struct sym_mapping *a, const struct sym_mapping *b)
{
	return a->protection & b->protection & SYM_SHARED && a->inode && a->inode == b->inode &&
	       a->device_major == b->device_major && a->device_minor == b->device_minor &&
	       a->start_address - a->offset == b->start_address - b->offset;
}

static struct sym_error *intersect(const struct address_space *a, const struct address_space *b,
				   struct address_ranges *ret)
{
	for (size_t i = 0, j = 0; i < a->mapping_count && j < b->mapping_count;) {
		const struct sym_mapping *first = &a->mappings[i], *second = &b->mappings[j];
		uint64_t start = first->start_address > second->start_address
					 ? first->start_address
					 : second->start_address;
		uint64_t end = first->end_address < second->end_address ? first->end_address
									: second->end_address;

		if (start < end && is_same_memory(first, second) &&
		    !address_ranges_append(ret, start, end))
			return &sym_error_no_memory;
		if (first->end_address == end)
			i++;
		else
			j++;
	}
	return NULL;
}

struct sym_error *forked_find_shared(const struct process *process,
				     const struct address_space *space, int32_t namespace_pid,
				     struct process **origin_ret, struct address_ranges *ret)
{
	struct address_space *others AUTO_ADDRESS_SPACE = NULL;
	struct process *origin AUTO_PROCESS = NULL;
	struct address_ranges shared = { 0 };
	struct sym_error *error;

	if (process->recorded)
		return sym_error_create(SYM_ERROR_NOT_FOUND,
					"process %d began it, and this one is recorded",
					(int)namespace_pid);
	error = find_origin(process, namespace_pid, &origin);
	if (!error && !origin)
		error = sym_error_create(SYM_ERROR_NOT_FOUND,
					 "process %d, which began it, is no ancestor of it now",
					 (int)namespace_pid);
	if (!error)
		error = address_space_read(origin, &others);
	if (!error)
		error = intersect(space, others, &shared);
	if (!error && !shared.count)
		error = sym_error_create(SYM_ERROR_NOT_FOUND,
					 "no memory is shared with process %d, which began it",
					 (int)namespace_pid);
	if (error) {
		address_ranges_deinit(&shared);
		return error;
	}
	*origin_ret = STEAL(origin);
	*ret = shared;
	return NULL;
}

/* ---- perf maps --------------------------------------------------------------------- */

/* The file that both write, out of those of the one that began it. */
static struct sym_error *take_file(const struct process *origin, const struct perf_map_place *place,
				   struct perf_map_file *ret)
{
	const struct stat *status = &place->others_map.status;
	struct perf_map_place origins;
	struct sym_error *error = perf_map_place_find(origin, &origins);

	if (error)
		return error;
	for (size_t i = 0; i < origins.file_count && ret->fd < 0; i++) {
		struct perf_map_file *file = &origins.files[i];

		if (file->status.st_ino != status->st_ino || file->status.st_dev != status->st_dev)
			continue;
		*ret = *file;
		ret->fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
		ret->path = strdup(file->path);
	}
	perf_map_place_deinit(&origins);
	return ret->fd >= 0 && !ret->path ? &sym_error_no_memory : NULL;
}

static struct sym_error *find_map(const struct process *process, const struct address_space *space,
				  const struct perf_map_place *place, struct forked_map *ret)
{
	struct process *origin AUTO_PROCESS = NULL;
	struct sym_error *error = forked_find_shared(
		process, space, place->others_map.namespace_pid, &origin, &ret->shared);

	if (!error)
		error = take_file(origin, place, &ret->file);
	if (!error && ret->file.fd < 0)
		error = sym_error_create(SYM_ERROR_NOT_FOUND,
					 "process %d, which began it, does not write it any more",
					 (int)origin->namespace_pid);
	return error;
}

struct sym_error *forked_find_map(const struct process *process, const struct address_space *space,
				  const struct perf_map_place *place, struct buf *why,
				  struct forked_map *ret)
{
	struct sym_error *error;

	char name[64];

	*ret = (struct forked_map){ .file.fd = -1 };
	if (!place->others_map.namespace_pid)
		return NULL;
	error = find_map(process, space, place, ret);
	if (!error)
		return NULL;
	forked_map_deinit(ret);
	if (sym_error_code(error) == SYM_ERROR_NO_MEMORY)
		return error;
	sym_perf_map_file_name(place->others_map.namespace_pid, name, sizeof(name));
	buf_printf(why, "%s is not used: %s", name, sym_error_message(error));
	sym_error_destroy(error);
	return NULL;
}

void forked_map_deinit(struct forked_map *map)
{
	if (map->file.fd >= 0)
		close(map->file.fd);
	free(map->file.path);
	address_ranges_deinit(&map->shared);
	*map = (struct forked_map){ .file.fd = -1 };
}
