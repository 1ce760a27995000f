/* SPDX-License-Identifier: MIT */
/*
 * A child process that reads DWARF for its parent. libdw (0.188) ends its process if it runs out of
 * memory: by an assertion where a table grows, by the handler of dwarf_new_oom_handler(), which
 * must not return, by an allocation that is not checked, by a stack that cannot grow. In a child
 * this costs one answer, and the parent detects it. The child is made with fork(): it has
 * everything that was opened before, and answers until its parent stops it or exits.
 */
#ifndef LIBSYM_DWARF_DWARF_WORKER_H
#define LIBSYM_DWARF_DWARF_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libsym/base/buf.h"
#include "libsym/base/text_set.h"
#include "libsym/dwarf/dwarf_cost.h"
#include "libsym/dwarf/dwarf_info.h"

struct dwarf_worker {
	pid_t pid; /* 0: no child */
	int fd;
};

/* Runs in the child, which exits when it returns. */
typedef void dwarf_worker_fn(void *context, int fd);

/* Starts the child. It keeps the file descriptors `kept` (negative ones are ignored) and closes all
 * others. Returns false if no child could be made. */
bool dwarf_worker_start(struct dwarf_worker *worker, dwarf_worker_fn *serve, void *context,
			const int *kept, size_t kept_count);
/* Kills the child, if there is one. Returns the CPU time that it used, in ns. */
int64_t dwarf_worker_stop(struct dwarf_worker *worker);

/* Transfer all bytes or fail; they also fail if the other side has exited. */
bool dwarf_worker_send(int fd, const void *bytes, size_t size_bytes);
bool dwarf_worker_receive(int fd, void *bytes, size_t size_bytes);

/* A question, and the head of its answer. */
struct dwarf_question {
	struct dwarf_room room;
	uint64_t vaddr;
	uint64_t inlined_max;
};

struct dwarf_reply {
	struct dwarf_place place; /* its pointers are invalid */
	uint32_t is_found;
	uint32_t inlined_count;
	struct dwarf_bill bill;
	uint64_t text_bytes; /* size of the strings and inlined functions that follow */
};

/* Serialise what follows a reply, and read it back with strings in `texts`. Return false if out of
 * memory or malformed. */
bool dwarf_reply_write(const struct dwarf_place *place, const struct sym_inlined *inlined,
		       size_t inlined_count, struct buf *ret);
bool dwarf_reply_read(const struct buf *text, struct text_set *texts, struct dwarf_place *place,
		      struct sym_inlined *inlined, size_t inlined_count);

#endif
