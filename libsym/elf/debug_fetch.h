/* SPDX-License-Identifier: MIT */
/* The debug file of one object that the caller fetches. It is requested once, when it is needed and
 * nothing on this machine serves. It is checked like any debug file (debugfile.h). */
#ifndef LIBSYM_ELF_DEBUG_FETCH_H
#define LIBSYM_ELF_DEBUG_FETCH_H

#include "libsym/base/lazy.h"
#include "libsym/file/object_file.h"
#include "libsym/libsym.h"

struct debug_fetch {
	sym_fetch_fn *fetch; /* NULL: nothing is fetched */
	void *context;
	struct lazy answer;
};

void debug_fetch_init(struct debug_fetch *fetch);
void debug_fetch_deinit(struct debug_fetch *fetch);

/* The debug file of `object` (ELF), fetched if that has not been done; `path` is the displayed
 * path. *ret is NULL if there is none; it is valid as long as `fetch`. The only error is out of
 * memory; a later call may succeed. Thread safe. */
struct sym_error *debug_fetch_get(struct debug_fetch *fetch, struct object_file *object,
				  const char *path, struct object_file **ret);

/* Why the fetched file is not used, or could not be fetched; NULL: nothing was fetched, or it is
 * used. */
const char *debug_fetch_problem(const struct debug_fetch *fetch);

#endif
