/* SPDX-License-Identifier: MIT */
/*
 * The precompiled methods of one image, and their names.
 * It owns everything that the tables need.
 * A name is formatted when it is first needed, then kept.
 * Thread safe: the look-up of a known name takes no lock and allocates nothing.
 * It knows no addresses of processes.
 */
#ifndef LIBSYM_SOURCE_PRECOMPILED_H
#define LIBSYM_SOURCE_PRECOMPILED_H

#include "libsym/error.h"
#include "libsym/file/object_file.h"
#include "libsym/format/dotnet/r2r.h"

struct precompiled;

/*
 * `assemblies` may be NULL.
 * Errors: those of object_file_use_managed() and r2r_open(), with the path of the image.
 */
struct sym_error *precompiled_open(struct object_file *object,
				   const struct r2r_assemblies *assemblies,
				   struct precompiled **ret) __attribute__((warn_unused_result));
void precompiled_close(struct precompiled *precompiled);

const struct r2r *precompiled_r2r(const struct precompiled *precompiled);
const struct pe *precompiled_pe(const struct precompiled *precompiled);

/*
 * Name of a range (index into r2r_ranges()), in the runtime's dialect. It lives as long as the
 * object.
 * NULL when it has none; *why_ret is then a static text, or NULL when out of memory.
 */
const char *precompiled_name(struct precompiled *precompiled, size_t range, const char **why_ret);

/* Writes the name of a range into a buffer without keeping it, for lists of all names. */
bool precompiled_write_name(struct precompiled *precompiled, size_t range, struct buf *buf,
			    const char **why_ret);

/*
 * True when a method starts at `rva` and has exactly this size.
 * On ARM64 a map of crossgen2 counts the constants after a method too. There any size that reaches
 * no other method is accepted.
 */
bool precompiled_has_method(const struct precompiled *precompiled, uint32_t rva,
			    uint32_t size_bytes);

DEFINE_GUARD(precompiled, struct precompiled *, precompiled_close)
#define AUTO_PRECOMPILED GUARDED(precompiled)

#endif
