/* SPDX-License-Identifier: MIT */
/*
 * The everyday name of a process: the entry assembly without ".dll" when the .NET host runs one,
 * else the name of the executable. Finds processes by this name.
 */
#ifndef MAPGEN_CLI_PROCESS_NAME_H
#define MAPGEN_CLI_PROCESS_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/libsym.h"

/* The name; heap. NULL for a kernel thread, for a process that has ended, and when out of memory.
 */
char *process_name_of(int32_t pid);

/*
 * All processes of a name except the caller. *ret is heap, ascending. Errors: NO_MEMORY, and those
 * of sym_process_ids().
 */
struct sym_error *process_name_find(const char *name, int32_t **ret, size_t *count_ret)
	__attribute__((warn_unused_result));

/* "12, 34, 56 and 7 more"; heap, NULL when out of memory. */
char *process_name_list_pids(const int32_t *pids, size_t count);

/* The one process of a name. False, with one line, when there is none or there are several. */
bool process_name_choose(const char *name, int32_t *ret);

#endif
