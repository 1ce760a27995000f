/* SPDX-License-Identifier: MIT */
#include "libsym/perf/inherited_file.h"

#include <inttypes.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/libsym.h"
#include "libsym/limits.h"

enum {
	/* from child to parent; masters have children that have children */
	MOST_GENERATIONS = 16
};

/*
 * A process that cannot be read counts as not having it. A process with another executable has not
 * inherited it.
 */
static struct sym_error *inherited_file_check_ancestor(const struct process *process,
						       const struct process *ancestor,
						       inherited_file_has *has, const void *context,
						       bool *ret)
{
	struct sym_error *error = has(ancestor, context, ret);

	if (!error || sym_error_code(error) != SYM_ERROR_PERMISSION ||
	    !strcmp(process->comm, ancestor->comm))
		return error;
	sym_error_destroy(error);
	return NULL;
}

/* The first ancestor is the last one that the walk reaches. *ret is NULL when there is none. */
static struct sym_error *find_first(const struct process *process, inherited_file_has *has,
				    const void *context, struct process **ret)
{
	struct process *first AUTO_PROCESS = NULL;
	int32_t pid = process->parent_pid;

	for (int i = 0; i < MOST_GENERATIONS && pid > 0; i++) {
		struct process *ancestor AUTO_PROCESS = NULL;
		struct sym_error *error = process_open(pid, NULL, &ancestor);
		bool has_it = false;

		if (!error)
			error = inherited_file_check_ancestor(process, ancestor, has, context,
							      &has_it);
		if (error)
			return error;
		pid = ancestor->parent_pid;
		if (!has_it)
			continue;
		process_close(first);
		first = STEAL(ancestor);
	}
	*ret = STEAL(first);
	return NULL;
}

static bool is_same_memory(const struct sym_mapping *a, const struct sym_mapping *b)
{
	return a->protection & b->protection & SYM_SHARED && a->inode && a->inode == b->inode &&
	       a->device_major == b->device_major && a->device_minor == b->device_minor &&
	       a->start_address - a->offset == b->start_address - b->offset;
}

static struct sym_error *inherited_file_intersect(const struct address_space *a,
						  const struct address_space *b,
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

struct sym_error *inherited_file_find_shared(const struct process *process,
					     const struct address_space *space,
					     inherited_file_has *has, const void *context,
					     struct address_ranges *ret)
{
	struct address_space *others AUTO_ADDRESS_SPACE = NULL;
	struct process *first AUTO_PROCESS = NULL;
	struct address_ranges shared = { 0 };
	struct sym_error *error = NULL;

	if (!process->recorded)
		error = find_first(process, has, context, &first);
	if (!error && !first)
		return sym_error_create(SYM_ERROR_NOT_FOUND,
					"another process began to write it, and no ancestor "
					"that can be read has it open");
	if (!error)
		error = address_space_read(first, &others);
	if (!error)
		error = inherited_file_intersect(space, others, &shared);
	if (!error && !shared.count)
		error = sym_error_create(
			SYM_ERROR_NOT_FOUND,
			"no memory is shared with process %d, which has it open too",
			(int)first->pid);
	if (error)
		address_ranges_deinit(&shared);
	else
		*ret = shared;
	return error;
}

/* ---- perf maps --------------------------------------------------------------------- */

/* True when the ancestor writes to this file. */
static struct sym_error *inherited_file_is_written_by(const struct process *ancestor,
						      const void *context, bool *ret)
{
	struct perfmap_descriptors writers;
	struct sym_error *error = perfmap_descriptors_find(ancestor, &perf_map_naming, &writers);

	if (error)
		return error;
	*ret = perfmap_descriptor_has(&writers.own, context) ||
	       perfmap_descriptor_has(&writers.other, context);
	perfmap_descriptors_deinit(&writers);
	return NULL;
}

/* The file behind the descriptor of the process. */
static struct sym_error *take_file(const struct process *process,
				   const struct perfmap_descriptor *other, struct perfmap_file *ret)
{
	struct sym_error *error = perfmap_descriptor_open(process, other, ret);

	if (!error && (uint64_t)ret->status.st_size > LIMIT_PERF_MAP_BYTES)
		error = sym_error_create(SYM_ERROR_LIMIT, "has more than %" PRIu64 " bytes",
					 LIMIT_PERF_MAP_BYTES);
	return error;
}

struct sym_error *inherited_file_find_map(const struct process *process,
					  const struct address_space *space,
					  const struct perfmap_location *place, struct buf *why,
					  struct inherited_file_map *ret)
{
	const struct perfmap_descriptor *other = &place->others_map;
	struct sym_error *error;
	char name[64];

	*ret = (struct inherited_file_map){ .file.fd = -1 };
	if (!other->namespace_pid)
		return NULL;
	error = inherited_file_find_shared(process, space, inherited_file_is_written_by,
					   &other->status, &ret->shared);
	if (!error)
		error = take_file(process, other, &ret->file);
	if (!error)
		return NULL;
	inherited_file_map_deinit(ret);
	if (sym_error_is_no_memory(error))
		return error;
	sym_perf_map_file_name(other->namespace_pid, name, sizeof(name));
	buf_printf(why, "%s is not used: %s", name, sym_error_message(error));
	sym_error_destroy(error);
	return NULL;
}

void inherited_file_map_deinit(struct inherited_file_map *map)
{
	perfmap_file_close(&map->file);
	address_ranges_deinit(&map->shared);
}
