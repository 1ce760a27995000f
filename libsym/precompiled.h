/* SPDX-License-Identifier: MIT */
/*
 * The precompiled methods of one image, opened together with everything that
 * must stay alive for it, and their names, each formatted once when first
 * asked. Thread safe: a look-up of a name that is known takes no lock and
 * allocates nothing. Knows no addresses of processes.
 */
#ifndef LIBSYM_PRECOMPILED_H
#define LIBSYM_PRECOMPILED_H

#include "libsym/error.h"
#include "libsym/format/r2r.h"
#include "libsym/image.h"

struct precompiled;

/* `assemblies` may be NULL. Errors: as image_use_managed() and r2r_open(), with the path of the
 * image. */
struct sym_error *precompiled_open(struct image *image, const struct r2r_assemblies *assemblies,
				   struct precompiled **ret) __attribute__((warn_unused_result));
void precompiled_close(struct precompiled *precompiled);

const struct r2r *precompiled_r2r(const struct precompiled *precompiled);
const struct pe *precompiled_pe(const struct precompiled *precompiled);

/*
 * Name of a range (index into r2r_ranges()), in the runtime's dialect. NULL when it has
 * none; *why_ret is then a static text, or NULL for want of memory. Lives as long as the object.
 */
const char *precompiled_name(struct precompiled *precompiled, size_t range, const char **why_ret);

/* The same into a buffer, without keeping it: for those who want all names once. */
bool precompiled_write_name(struct precompiled *precompiled, size_t range, struct buf *buf,
			    const char **why_ret);

/*
 * True when a method begins at `rva` and has exactly this size. On ARM64 a map of crossgen2 also
 * counts the constants behind a method: there a size that reaches no other method is right too.
 */
bool precompiled_has_method(const struct precompiled *precompiled, uint32_t rva,
			    uint32_t size_bytes);

DEFINE_GUARD(precompiled, struct precompiled *, precompiled_close)
#define AUTO_PRECOMPILED GUARDED(precompiled)

#endif
