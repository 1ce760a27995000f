/* SPDX-License-Identifier: MIT */
/*
 * Uprobes that are named in tracefs, so that perf events of them may be inherited by new threads:
 * the kernel keeps the file itself, not its path.
 *
 * They are named after this process, and removed in the end. What a process that is gone has left
 * is removed by the next one; without a perf event such a name costs nothing.
 */
#ifndef MAPGEN_RECORD_TRACE_EVENT_H
#define MAPGEN_RECORD_TRACE_EVENT_H

#include <stdint.h>

#include "libsym/libsym.h"

/*
 * Names a uprobe at an offset into a file. `name`: letters, digits and '_'. *id_ret is for
 * perf_event_attr.config. Errors: UNSUPPORTED when there is no tracefs, PERMISSION, IO.
 */
struct sym_error *trace_event_add(const char *name, const char *path, uint64_t offset,
				  uint64_t *id_ret) __attribute__((warn_unused_result));

/* Removes those of this process. Its perf events of them are closed. */
void trace_event_remove_own(void);

/* Removes those of processes that are gone. */
void trace_event_remove_left(void);

#endif
