/* SPDX-License-Identifier: MIT */
/*
 * The debug file of one image that the caller brings: asked for once, when
 * somebody needs it and nothing on this machine serves, and believed only as
 * debugfile.h believes files. Knows nothing of where the caller gets it from.
 */
#ifndef LIBSYM_DEBUG_FETCH_H
#define LIBSYM_DEBUG_FETCH_H

#include "libsym/base/lazy.h"
#include "libsym/image.h"
#include "libsym/libsym.h"

struct debug_fetch {
	sym_fetch_fn *fetch; /* NULL: nobody is asked */
	void *context;
	struct lazy answer;
};

void debug_fetch_init(struct debug_fetch *fetch);
void debug_fetch_deinit(struct debug_fetch *fetch);

/*
 * The debug file of `image` (ELF), asking for it if that has not been done; `path` is what the
 * image is called. NULL when there is none to be had, or for want of memory. Thread safe; lives as
 * long as `fetch`.
 */
struct image *debug_fetch_get(struct debug_fetch *fetch, struct image *image, const char *path);

/* Why what was brought is not used, or could not be; NULL: nothing was asked, or all is well. */
const char *debug_fetch_trouble(const struct debug_fetch *fetch);

#endif
