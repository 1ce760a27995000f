/* SPDX-License-Identifier: MIT */
/*
 * The process that a command was asked about: opens its snapshot by the
 * options and says in one line why not, where it cannot.
 */
#ifndef MAPGEN_TARGET_H
#define MAPGEN_TARGET_H

#include <stdbool.h>

#include "libsym/base/cleanup.h"
#include "libsym/libsym.h"
#include "mapgen/options.h"

DEFINE_GUARD(snapshot, struct sym_snapshot *, sym_snapshot_close)
DEFINE_GUARD(image, struct sym_image *, sym_image_close)
DEFINE_GUARD(symbols, struct sym_symbols *, sym_symbols_destroy)
DEFINE_GUARD(resolver, struct sym_resolver *, sym_resolver_destroy)
DEFINE_GUARD(result, struct sym_result *, sym_result_destroy)

/* NULL, said, on failure. `map_dirs`: NULL terminated or NULL. */
struct sym_snapshot *target_open(const struct options *options, const char *const *map_dirs);

/* As above, and refuses (one line) a process without a .NET runtime. */
struct sym_snapshot *target_open_dotnet(const struct options *options, const char *const *map_dirs);

/* False, said: there is no memory to look at the images, which would seem to be none. */
bool target_open_images(struct sym_snapshot *snapshot);

/* False, said, for a process without a .NET runtime. */
bool target_is_dotnet(const struct sym_snapshot *snapshot);

/* False, said, when the process is no longer the one of the snapshot. */
bool target_lives(const struct sym_snapshot *snapshot, const struct options *options);

/* The process that has a thread, as `root` (NULL: /) shows it; 0 when there is none. */
int32_t target_of_thread(int32_t tid, const char *root);

/* When the process began, in seconds since 1970, or a second or two before; 0: not known. */
int64_t target_started_s(const struct sym_snapshot *snapshot, const struct options *options);

/* Are both of one process, whatever program it runs? An id is used again. */
bool target_is_same(const struct sym_snapshot *left, const struct sym_snapshot *right);

/* True for images that a .NET runtime loads, and for what should be one but cannot be read. */
bool target_is_assembly(const struct sym_image *image);

/* True for images with native code of methods in them. */
bool target_is_precompiled(const struct sym_image *image);

/*
 * Says that the runtime was asked to list its methods, where it was: DESIGN.md, "the target is not
 * touched". Only of a snapshot whose jitted code has been read: else this reads it.
 */
void target_say_asked(struct sym_snapshot *snapshot);
/* And that it goes on to tell, which it does where a resolver of it is refreshed. True: it does. */
bool target_say_followed(struct sym_snapshot *snapshot);

/* Where the names of jitted code are from, or (*is_none_ret) why there are none; heap, NULL when
 * out of memory. Reads the code if that has not been done. */
char *target_code_way(struct sym_snapshot *snapshot, bool *is_none_ret);

/* Why neither way served for jitted code; heap, NULL when out of memory. */
char *target_code_reasons(const struct sym_jit_info *jit);

/* Says an error and ends it. */
void target_say(struct sym_error *error);

/*
 * True for an assembly, and for the host of a single-file application that is in trouble: then none
 * of the assemblies inside it is an image.
 */
bool target_is_of_interest(struct sym_snapshot *snapshot, size_t image_index);

/* The program of a process that was compiled ahead of time (NativeAOT); NULL for any other process.
 */
struct sym_image *target_aot_program(struct sym_snapshot *snapshot);

/* "named by its own symbol table" and the like; heap, NULL when out of memory. */
char *target_aot_naming(struct sym_image *program);

/* Are there names of the code that a runtime in the process has compiled? NULL: of none. */
bool target_tells_code(struct sym_snapshot *snapshot);

#endif
