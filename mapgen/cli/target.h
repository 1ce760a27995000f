/* SPDX-License-Identifier: MIT */
/*
 * The process that a command looks at: opens its snapshot as the options say, and reports in one
 * line why that failed.
 */
#ifndef MAPGEN_CLI_TARGET_H
#define MAPGEN_CLI_TARGET_H

#include <stdbool.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/rights.h"
#include "libsym/libsym.h"
#include "mapgen/cli/options.h"

DEFINE_GUARD(snapshot, struct sym_snapshot *, sym_snapshot_close)
DEFINE_GUARD(object_file, struct sym_image *, sym_image_close)
DEFINE_GUARD(symbols, struct sym_symbols *, sym_symbols_destroy)
DEFINE_GUARD(resolver, struct sym_resolver *, sym_resolver_destroy)
DEFINE_GUARD(result, struct sym_result *, sym_result_destroy)

/* NULL, with a message, on failure. `map_dirs`: NULL terminated or NULL. */
struct sym_snapshot *target_open(const struct options *options, const char *const *map_dirs);

/* As target_open(), and refuses a process without a .NET runtime. */
struct sym_snapshot *target_open_dotnet(const struct options *options, const char *const *map_dirs);

/* False, with a message, when there is no memory for the images. */
bool target_open_images(struct sym_snapshot *snapshot);

/* False, with a message, for a process without a .NET runtime. */
bool target_is_dotnet(const struct sym_snapshot *snapshot);

/* False, with a message, when the process is no longer the one of the snapshot. */
bool target_lives(const struct sym_snapshot *snapshot, const struct options *options);

/* The rights with which paths of the process are opened; borrows its groups. Writes *ret and
 * returns it for a live process. NULL for a recorded process, whose tree belongs to the caller. */
const struct rights *target_rights(const struct sym_snapshot *snapshot,
				   const struct options *options, struct rights *ret);

/* The process of a thread, as `root` (NULL: /) shows it; 0 when there is none. */
int32_t target_of_thread(int32_t tid, const char *root);

/* When the process started, in seconds since 1970, at most two seconds early; 0: unknown. */
int64_t target_started_s(const struct sym_snapshot *snapshot, const struct options *options);

/* True for images that a .NET runtime loads, and for files that should be such images but cannot be
 * read. */
bool target_is_assembly(const struct sym_image *image);

/* True for images with machine code of methods. */
bool target_is_precompiled(const struct sym_image *image);

/*
 * Reads the jitted code of several processes, each in a thread of its own. Runtimes that must be
 * asked are waited for together, and one that does not answer takes no time from the others.
 */
void target_read_code(struct sym_snapshot *const *snapshots, size_t count);

/*
 * Prints a message when the runtime was asked to list its methods. Call it only after the jitted
 * code of the snapshot was read, or this reads it.
 */
void target_say_asked(struct sym_snapshot *snapshot);
enum {
	/* How long a look-up waits for a runtime that reports what it compiles every 0.1 s. */
	TARGET_WAIT_MS = 120
};

/* Prints a message when the runtime keeps reporting methods, which it does while a resolver of it
 * is refreshed. */
void target_say_followed(struct sym_snapshot *snapshot);

/* The user's name where this machine knows one, else the number; heap. */
char *target_user_text(uint32_t uid);

/* Where the names of jitted code come from, or (*is_none_ret) why there are none; heap, NULL when
 * out of memory. Reads the code if that has not been done. */
char *target_code_way(struct sym_snapshot *snapshot, bool *is_none_ret);

/* The word of --jit for where names of jitted code come from. JSON has sym_jit_method_text(). */
const char *target_jit_word(uint32_t method);

/* Why neither memory nor rundown gave names of jitted code; heap, NULL when out of memory. */
char *target_code_reasons(const struct sym_jit_info *jit);

/*
 * True for an assembly, and for the host of a single-file application that cannot be read: then no
 * assembly inside it is an image.
 */
bool target_is_of_interest(struct sym_snapshot *snapshot, size_t image_index);

/* The program of a NativeAOT process; NULL for any other process. */
struct sym_image *target_aot_program(struct sym_snapshot *snapshot);

/* Names of the program: "named by its own symbol table" and the like; heap, NULL when out of
 * memory. */
char *target_aot_naming(struct sym_image *program);

#endif
