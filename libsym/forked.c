/* SPDX-License-Identifier: MIT */
#include "libsym/forked.h"

#include <inttypes.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/libsym.h"
#include "libsym/limits.h"

enum {
	/* From child to parent; masters have children that have children. */
	MOST_GENERATIONS = 16
};

/* Of one that may not be looked at nothing is known; a program of another name has nothing of it.
 */
static struct sym_error *ask(const struct process *process, const struct process *ancestor,
			     forked_has *has, const void *context, bool *ret)
{
	struct sym_error *error = has(ancestor, context, ret);

	if (!error || sym_error_code(error) != SYM_ERROR_PERMISSION ||
	    !strcmp(process->comm, ancestor->comm))
		return error;
	sym_error_destroy(error);
	return NULL;
}

/* The first is the last that is come to. *ret is NULL when there is none. */
static struct sym_error *find_first(const struct process *process, forked_has *has,
				    const void *context, struct process **ret)
{
	struct process *first AUTO_PROCESS = NULL;
	int32_t pid = process->parent_pid;

	for (int i = 0; i < MOST_GENERATIONS && pid > 0; i++) {
		struct process *ancestor AUTO_PROCESS = NULL;
		struct sym_error *error = process_open(pid, NULL, &ancestor);
		bool has_it = false;

		if (!error)
			error = ask(process, ancestor, has, context, &has_it);
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
				     const struct address_space *space, forked_has *has,
				     const void *context, struct address_ranges *ret)
{
	struct address_space *others AUTO_ADDRESS_SPACE = NULL;
	struct process *first AUTO_PROCESS = NULL;
	struct address_ranges shared = { 0 };
	struct sym_error *error = NULL;

	if (!process->recorded)
		error = find_first(process, has, context, &first);
	if (!error && !first)
		return sym_error_create(SYM_ERROR_NOT_FOUND,
					"another process began it, and no ancestor that can be "
					"looked at has it");
	if (!error)
		error = address_space_read(first, &others);
	if (!error)
		error = intersect(space, others, &shared);
	if (!error && !shared.count)
		error = sym_error_create(SYM_ERROR_NOT_FOUND,
					 "no memory is shared with process %d, which has it too",
					 (int)first->pid);
	if (error)
		address_ranges_deinit(&shared);
	else
		*ret = shared;
	return error;
}

/* ---- perf maps --------------------------------------------------------------------- */

/* Does an ancestor write to this file? */
static struct sym_error *writes(const struct process *ancestor, const void *context, bool *ret)
{
	struct perf_map_writers writers;
	struct sym_error *error = perf_map_writers_find(ancestor, &perf_map_naming, &writers);

	if (error)
		return error;
	*ret = perf_map_writer_has(&writers.own, context) ||
	       perf_map_writer_has(&writers.other, context);
	perf_map_writers_deinit(&writers);
	return NULL;
}

/* The file behind the descriptor of the process. */
static struct sym_error *take_file(const struct process *process,
				   const struct perf_map_writer *other, struct perf_map_file *ret)
{
	struct sym_error *error = perf_map_writer_open(process, other, ret);

	if (!error && (uint64_t)ret->status.st_size > LIMIT_PERF_MAP_BYTES)
		error = sym_error_create(SYM_ERROR_LIMIT, "has more than %" PRIu64 " bytes",
					 LIMIT_PERF_MAP_BYTES);
	return error;
}

struct sym_error *forked_find_map(const struct process *process, const struct address_space *space,
				  const struct perf_map_place *place, struct buf *why,
				  struct forked_map *ret)
{
	const struct perf_map_writer *other = &place->others_map;
	struct sym_error *error;
	char name[64];

	*ret = (struct forked_map){ .file.fd = -1 };
	if (!other->namespace_pid)
		return NULL;
	error = forked_find_shared(process, space, writes, &other->status, &ret->shared);
	if (!error)
		error = take_file(process, other, &ret->file);
	if (!error)
		return NULL;
	forked_map_deinit(ret);
	if (sym_error_code(error) == SYM_ERROR_NO_MEMORY)
		return error;
	sym_perf_map_file_name(other->namespace_pid, name, sizeof(name));
	buf_printf(why, "%s is not used: %s", name, sym_error_message(error));
	sym_error_destroy(error);
	return NULL;
}

void forked_map_deinit(struct forked_map *map)
{
	perf_map_file_close(&map->file);
	address_ranges_deinit(&map->shared);
}
