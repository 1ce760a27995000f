/* SPDX-License-Identifier: MIT */
/*
 * Lines of jitted code of a process: by the memory of its runtime (.NET 10 and 11), or by its
 * rundown, which has the IL maps of all jitted methods (.NET Core 3.1 to .NET 9).
 * Nothing is read before a line is wanted. PDBs are kept, debug information is not.
 */
#ifndef LIBSYM_CLR_JITTED_LINES_H
#define LIBSYM_CLR_JITTED_LINES_H

#include <pthread.h>

#include "libsym/clr/inlined_lines.h"

/* For all snapshots of a process. All zero but the lock: nothing was read. */
struct jitted_lines {
	pthread_mutex_t lock;
	/* private */
	struct jit_debug *debug; /* NULL: not open */
	struct rundown_lines *rundown;
	int64_t rundown_due_ms;   /* an unknown method is no reason to ask again before */
	int64_t rundown_after_ms; /* the time between two; it doubles */
	char *failure;            /* why neither works; NULL: not tried, or one works */
	bool was_tried;
	struct jitted_module *modules;
	struct inlined_lines inlined;
};

void jitted_lines_init(struct jitted_lines *lines);
void jitted_lines_deinit(struct jitted_lines *lines);

/* An address in jitted code, which the runtime has named. */
struct jitted_place {
	uint64_t start_address; /* of the code */
	uint64_t size_bytes;
	uint32_t offset_bytes;
	const char *name; /* as the runtime has named it */
	bool wants_inlined;
	struct managed_line line; /* the answer; its strings live as long as the process's data */
	struct inlined_answer inlined; /* if wanted; by memory only */
};

/*
 * Finds lines and inlined methods. Thread safe. Free the inlined methods in any case.
 * Errors: NO_MEMORY; other failures are reasons of the lines.
 */
struct sym_error *jitted_lines_find(struct jitted_lines *lines, const struct clr_target *target,
				    enum sym_jit_method way, struct jitted_place *places,
				    size_t count) __attribute__((warn_unused_result));

/*
 * Appends the addresses as uint64_t at which the lines of methods may change. A method without an
 * IL map has none. Thread safe.
 * Errors: NO_MEMORY.
 */
struct sym_error *jitted_lines_append_rows(struct jitted_lines *lines,
					   const struct clr_target *target, enum sym_jit_method way,
					   const struct jitted_place *methods, size_t count,
					   struct buf *ret) __attribute__((warn_unused_result));

#endif
