/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Part of libsym.h: facts about a process: identity, mappings, images, jitted code.
 */
#ifndef LIBSYM_SYM_PROCESS_H
#define LIBSYM_SYM_PROCESS_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/sym_error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sym_image;
struct sym_snapshot;

/* ------------------------------------------------------------------------
 * Process, mappings, images
 * ------------------------------------------------------------------------ */

/** Facts about a process. */
struct sym_process_info {
	int32_t pid;               /**< as this machine counts */
	int32_t namespace_pid;     /**< as the process itself counts (innermost NStgid) */
	uint32_t uid;              /**< effective user id */
	uint32_t gid;              /**< effective group id */
	uint64_t start_time_ticks; /**< field 22 of /proc/PID/stat */
	const char *comm;          /**< short command name */
	const char *executable;    /**< path in the process's own root; "" when unknown */
	/** Version of its .NET runtime, as "10.0.12"; "" when unknown; NULL without a runtime. */
	const char *runtime_version;
	/** "framework-dependent", "self-contained", "single-file" or "nativeaot"; NULL without a
	 * runtime. */
	const char *runtime_shape;
	/** Index of the runtime's image (libcoreclr.so or the executable); UINT32_MAX without. */
	uint32_t runtime_image_index;
	uint32_t other_mount_namespace; /**< 1 when its mount namespace is not the caller's */
	uint32_t other_pid_namespace;   /**< 1 when its PID namespace is not the caller's */
	uint32_t reserved;
	uint32_t file_uid;      /**< user id for file access; 0 for a recorded process */
	uint32_t file_gid;      /**< group id for file access; 0 for a recorded process */
	const uint32_t *groups; /**< supplementary groups */
	size_t group_count;
	uint64_t capabilities; /**< 1 << CAP_..., in the caller's user namespace */
};

/** Returns facts about the process; they live as long as the snapshot. */
SYM_API const struct sym_process_info *sym_snapshot_process(const struct sym_snapshot *snapshot);

enum sym_protection {
	SYM_READ = 1 << 0,
	SYM_WRITE = 1 << 1,
	SYM_EXECUTE = 1 << 2,
	SYM_SHARED = 1 << 3
};

/** One line of /proc/PID/maps. */
struct sym_mapping {
	uint64_t start_address;
	uint64_t end_address;
	uint64_t offset; /**< into the mapped file */
	uint64_t inode;  /**< 0 for anonymous memory */
	uint32_t device_major;
	uint32_t device_minor;
	uint32_t protection; /**< enum sym_protection */
	/** UINT32_MAX outside images. Anonymous memory can belong to an image whose code was moved
	 * there. */
	uint32_t image_index;
	const char *path; /**< without " (deleted)"; "" for anonymous memory */
	uint32_t deleted; /**< 1 when /proc/PID/maps has " (deleted)" */
	uint32_t reserved;
};

/** Returns the number of mappings. */
SYM_API size_t sym_snapshot_mapping_count(const struct sym_snapshot *snapshot);

/**
 * Returns a mapping by its index.
 *
 * @param index  From 0, by address.
 * @return It lives as long as the snapshot; NULL beyond the end.
 */
SYM_API const struct sym_mapping *sym_snapshot_mapping_at(const struct sym_snapshot *snapshot,
							  size_t index);

/**
 * Returns the number of images.
 *
 * A file mapped twice at different bases is two images.
 */
SYM_API size_t sym_snapshot_image_count(const struct sym_snapshot *snapshot);

/**
 * Returns an image by its index.
 *
 * @param index  From 0, in the order of their first mappings.
 * @return It lives as long as the snapshot; NULL beyond the end.
 */
SYM_API struct sym_image *sym_snapshot_image_at(const struct sym_snapshot *snapshot, size_t index);

/* ------------------------------------------------------------------------
 * Jitted code
 * ------------------------------------------------------------------------ */

/** Where the names of jitted code come from. */
enum sym_jit_method {
	/**
	 * The first of SYM_JIT_CONTRACT and SYM_JIT_RUNDOWN that works, and the perf map.
	 * The runtime wins over the perf map.
	 * A map that the .NET runtime does not write may be outdated.
	 * Such a map is used only if the runtime can be asked.
	 * Hot reload and profilers add methods that the runtime's memory does not name.
	 * For those the runtime is asked as with SYM_JIT_RUNDOWN.
	 */
	SYM_JIT_AUTO = 0,
	/**
	 * The memory of the runtime, read from outside; no perf map.
	 * The runtime publishes a description of its data structures (.NET 10 and 11).
	 * It is not stopped, asked or written to.
	 * Needs permission to read its memory: equal ids and no fewer capabilities, or
	 * CAP_SYS_PTRACE.
	 */
	SYM_JIT_CONTRACT = 1,
	/**
	 * A rundown over the runtime's diagnostics socket; no perf map.
	 * Before .NET 10 SYM_JIT_AUTO uses it.
	 * It can crash a runtime that unloads hundreds of collectible assemblies a second (seen
	 * with .NET 9 and 10).
	 */
	SYM_JIT_RUNDOWN = 2,
	/** The perf map that the process writes or has left. */
	SYM_JIT_PERF_MAP = 3,
	/** None: jitted code has no names. */
	SYM_JIT_NONE = 4
};

/** Returns a short word: "auto", "contract", "rundown", "perfmap", "none"; static. */
SYM_API const char *sym_jit_method_text(enum sym_jit_method method);

/** How the runtime's jitted code was read. */
struct sym_jit_info {
	/** The method that worked: SYM_JIT_CONTRACT, SYM_JIT_RUNDOWN, or SYM_JIT_NONE. */
	enum sym_jit_method method;
	uint32_t reserved;
	/** Why SYM_JIT_CONTRACT did not work; NULL when it did or was not tried. */
	const char *contract_reason;
	/** Why SYM_JIT_RUNDOWN did not work; NULL when it did or was not tried. */
	const char *rundown_reason;
	uint64_t method_count; /**< methods with a name */
	/** Pieces of code without a name: they changed during the reading, or their data are
	 * inconsistent. */
	uint64_t unnamed_count;
	uint64_t unnamed_dynamic_count; /**< those in dynamic methods and collectible assemblies */
	uint64_t read_calls;            /**< system calls that read the memory of the process */
	uint64_t read_bytes;
};

/**
 * Reports how the runtime's jitted code was read.
 *
 * Reads it if that was not done yet; a snapshot reads it once.
 * For code that is compiled later see sym_resolver_refresh().
 *
 * @param ret  It lives as long as the snapshot.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_snapshot_jit(struct sym_snapshot *snapshot,
							  const struct sym_jit_info **ret);

/**
 * The runtime's own list of loaded images, compared with the images of the snapshot.
 *
 * .NET Core 1.0 to .NET 8 write it beside a perf map, as perfinfo-PID.map.
 */
struct sym_load_check {
	const char *path; /**< of the list; NULL when there is none that can be used */
	uint64_t line_count;
	uint64_t bad_line_count; /**< lines that were skipped */
	uint64_t mapped_count;   /**< lines of mapped images */
	/** Those with a load base; .NET Core 2.x writes none, nor do images without precompiled
	 * code have one. */
	uint64_t base_count;
	/** Lines with another load base or module version id than the snapshot has. */
	uint64_t contradiction_count;
	const char *contradiction; /**< the first of them, for people; NULL when there is none */
};

/**
 * Compares the runtime's own list of loaded images with the snapshot.
 *
 * Each call reads the list again.
 * Use it from one thread at a time.
 *
 * @param ret  It lives until the next call with this snapshot, or until that is closed.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_snapshot_load_check(struct sym_snapshot *snapshot,
								 const struct sym_load_check **ret);

#ifdef __cplusplus
}
#endif

#endif
