/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/thread_table.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/grow.h"
#include "libsym/error.h"

enum {
	MOST_THREADS = (1 << 24) - 1,
};

void thread_table_deinit(struct thread_table *table)
{
	for (size_t i = 0; i < table->process_count; i++)
		free(table->processes[i].name);
	for (size_t i = 0; i < table->thread_count; i++)
		free(table->threads[i].name);
	free(table->processes);
	free(table->threads);
	address_table_deinit(&table->by_pid);
	address_table_deinit(&table->by_tid);
	*table = (struct thread_table){ 0 };
}

static uint64_t key_of(int32_t number)
{
	return (uint64_t)(uint32_t)number + 1;
}

static bool lead_to(struct address_table *numbers, int32_t number, uint32_t entry)
{
	struct range_slot *slot = address_table_slot(numbers, key_of(number));

	if (slot)
		slot->value = (void *)((uintptr_t)entry + 1);
	return slot;
}

static bool find(const struct address_table *numbers, int32_t number, uint32_t *ret)
{
	uintptr_t entry = (uintptr_t)address_table_find(numbers, key_of(number));

	*ret = (uint32_t)entry - 1;
	return entry;
}

static struct sym_error *add_process(struct thread_table *table, int32_t pid, const char *name,
				     uint32_t *ret)
{
	char *copy;

	if (!grow_items((void **)&table->processes, &table->process_capacity, table->process_count,
			sizeof(*table->processes)))
		return &sym_error_no_memory;
	copy = strdup(name);
	if (!copy)
		return &sym_error_no_memory;
	*ret = (uint32_t)table->process_count++;
	table->processes[*ret] = (struct profile_process){ .pid = pid, .name = copy };
	return NULL;
}

static struct sym_error *add_thread(struct thread_table *table, int32_t pid, int32_t tid,
				    uint32_t process, const char *name, uint32_t *ret)
{
	char *copy;

	if (table->thread_count == MOST_THREADS)
		return sym_error_create(SYM_ERROR_LIMIT, "more than %d threads", MOST_THREADS);
	if (!grow_items((void **)&table->threads, &table->thread_capacity, table->thread_count,
			sizeof(*table->threads)))
		return &sym_error_no_memory;
	copy = strdup(name);
	if (!copy)
		return &sym_error_no_memory;
	*ret = (uint32_t)table->thread_count++;
	table->threads[*ret] =
		(struct profile_thread){ .pid = pid, .tid = tid, .process = process, .name = copy };
	return NULL;
}

struct sym_error *thread_table_add(struct thread_table *table, int32_t pid, int32_t tid,
				   const char *process_name, const char *name, uint32_t *ret)
{
	uint32_t process;
	struct sym_error *error = add_process(table, pid, process_name, &process);

	return error ? error : add_thread(table, pid, tid, process, name, ret);
}

static struct sym_error *find_process(struct thread_table *table, int32_t pid, const char *name,
				      uint32_t *ret)
{
	struct sym_error *error;

	if (find(&table->by_pid, pid, ret))
		return NULL;
	error = add_process(table, pid, name, ret);
	if (!error && !lead_to(&table->by_pid, pid, *ret))
		error = &sym_error_no_memory;
	return error;
}

static struct sym_error *add_current(struct thread_table *table, int32_t pid, int32_t tid,
				     const char *name, uint32_t *ret)
{
	uint32_t process;
	struct sym_error *error = find_process(table, pid, tid == pid ? name : "", &process);

	if (!error)
		error = add_thread(table, pid, tid, process, name, ret);
	if (!error && !lead_to(&table->by_tid, tid, *ret))
		error = &sym_error_no_memory;
	return error;
}

struct sym_error *thread_table_find(struct thread_table *table, int32_t pid, int32_t tid,
				    uint32_t *ret)
{
	if (find(&table->by_tid, tid, ret) && table->threads[*ret].pid == pid)
		return NULL;
	return add_current(table, pid, tid, "", ret);
}

bool thread_table_has(const struct thread_table *table, int32_t tid, uint32_t *ret)
{
	return find(&table->by_tid, tid, ret);
}

struct sym_error *thread_table_fork(struct thread_table *table, int32_t pid, int32_t tid,
				    int32_t parent_pid, int32_t parent_tid)
{
	uint32_t parent, process, thread;
	struct sym_error *error = thread_table_find(table, parent_pid, parent_tid, &parent);
	char *name;

	if (error)
		return error;
	name = strdup(table->threads[parent].name);
	if (!name)
		return &sym_error_no_memory;
	if (pid != parent_pid) {
		error = add_process(table, pid, name, &process);
		if (!error && !lead_to(&table->by_pid, pid, process))
			error = &sym_error_no_memory;
	}
	if (!error)
		error = add_current(table, pid, tid, name, &thread);
	free(name);
	return error;
}

static bool rename_to(char **name, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return false;
	free(*name);
	*name = copy;
	return true;
}

/* Adds entries of their own for a program that exec() started, and its thread. */
static struct sym_error *replace(struct thread_table *table, int32_t pid, int32_t tid,
				 const char *name)
{
	uint32_t process, thread;
	struct sym_error *error = add_process(table, pid, name, &process);

	if (!error && !lead_to(&table->by_pid, pid, process))
		error = &sym_error_no_memory;
	return error ? error : add_current(table, pid, tid, name, &thread);
}

struct sym_error *thread_table_name(struct thread_table *table, int32_t pid, int32_t tid,
				    const char *name, bool is_exec)
{
	struct profile_thread *named;
	uint32_t thread;
	struct sym_error *error;

	if (is_exec)
		return replace(table, pid, tid, name);
	error = thread_table_find(table, pid, tid, &thread);
	if (error)
		return error;
	named = &table->threads[thread];
	if (!rename_to(&named->name, name))
		return &sym_error_no_memory;
	if (tid == pid && !rename_to(&table->processes[named->process].name, name))
		return &sym_error_no_memory;
	return NULL;
}
