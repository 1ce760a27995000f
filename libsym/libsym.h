/* SPDX-License-Identifier: MIT */
/**
 * @file
 * libsym: names for the addresses of a running process on Linux.
 *
 * INTRODUCTION
 *
 * libsym turns addresses of a process into names: native code from the symbol
 * tables of its ELF files, precompiled .NET code (ReadyToRun) from the tables of
 * the image itself, jitted code from the memory of the runtime that made it, or
 * from a perf map. The process is only looked at: it is not stopped, nothing is
 * written into it, and it needs no preparation.
 *
 * Ways to use it:
 *  1. addresses to names: sym_snapshot_open(), sym_resolver_create(),
 *     sym_resolver_resolve() with as many addresses as there are at once;
 *  2. everything a process has: sym_snapshot_symbols(), one disjoint list;
 *  3. a file without a process: sym_image_open(), sym_image_symbols();
 *  4. addresses here, names elsewhere: sym_snapshot_normalize() on the machine
 *     of the process, sym_image_open_by_id() and sym_image_resolve() where the files are.
 *
 * EXAMPLE
 *
 *     struct sym_snapshot *snapshot = NULL;
 *     struct sym_resolver *resolver = NULL;
 *     struct sym_result *result = NULL;
 *     struct sym_error *error = sym_snapshot_open(pid, NULL, &snapshot);
 *
 *     if (!error)
 *             error = sym_resolver_create(snapshot, &resolver);
 *     if (!error)
 *             error = sym_result_create(&result);
 *     if (!error)
 *             error = sym_resolver_resolve(resolver, &address, 1, result);
 *     if (!error && sym_result_at(result, 0)->status == SYM_RESOLVED)
 *             puts(sym_result_at(result, 0)->name);
 *     if (error)
 *             fprintf(stderr, "%s\n", sym_error_message(error));
 *     sym_error_destroy(error);
 *     sym_result_destroy(result);
 *     sym_resolver_destroy(resolver);
 *     sym_snapshot_close(snapshot);
 *
 * WORDS
 *
 *   address  in a process
 *   vaddr    link-time address inside an ELF file
 *   rva      relative to the image base of a PE file
 *   offset   bytes into a file
 * Intervals are half open, [start, end). Sizes are in bytes.
 *
 * THREADS
 *
 * There is no global state. A snapshot, an image and a list of symbols do not change once they are
 * made and may be used by several threads at once. A resolver may be shared too; a result belongs
 * to one thread at a time. Of a thread's stack up to 80 KiB are used, 200 KiB for lines and inlined
 * functions, 600 KiB where a file has names made to use it. No thread may be cancelled in a call. A
 * child of fork() may end what it inherits, and use nothing of it.
 *
 * OWNERSHIP
 *
 * What *_open() and *_create() hand out ends with *_close() and *_destroy() of the same name, which
 * accept NULL. Everything reached through an object (strings, structs behind a const pointer)
 * belongs to it and lives as long as it does, unless its comment says less. An object made from
 * another one must end first. Strings are NUL terminated; names are bytes, mostly UTF-8. A file
 * that was asked holds a descriptor; where there are none left (see setrlimit(2)) it is
 * SYM_UNREADABLE until a refresh.
 *
 * ERRORS
 *
 * A function that can fail returns a `struct sym_error *`: NULL is success,
 * anything else is to be ended with sym_error_destroy(). On failure nothing is
 * written to an out parameter. An address without a name is not an error: every
 * answer has a status that says why. The library never prints and never exits.
 *
 * STABILITY
 *
 * Structs that the caller allocates begin with `size`, to be set to sizeof the struct; zero in
 * every other field asks for the default. Structs that the library allocates are reached by pointer
 * and may grow at their end: never copy or measure them. Enum values are pinned and only ever added
 * to. The soname is the major version.
 *
 * PARTS
 *
 * This header brings the others: sym_error.h (errors), sym_symbols.h (symbols
 * and lists), sym_image.h (files), sym_watch.h (a process again and again).
 * What follows here is about processes and answers.
 */
#ifndef LIBSYM_LIBSYM_H
#define LIBSYM_LIBSYM_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/sym_error.h"
#include "libsym/sym_image.h"
#include "libsym/sym_symbols.h"
#include "libsym/sym_watch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------
 * Version
 * ------------------------------------------------------------------------ */

#define SYM_VERSION_MAJOR 0
#define SYM_VERSION_MINOR 1
#define SYM_VERSION_PATCH 0

/** The version of the library in use, as "MAJOR.MINOR.PATCH". Static. */
SYM_API const char *sym_version(void);

/* ------------------------------------------------------------------------
 * Processes
 * ------------------------------------------------------------------------ */

/** Ways to the names of jitted code. */
enum sym_jit_way {
	/** The first that serves, and the perf map, if the runtime writes it or can be asked. It is
	 * asked for methods that hot reload or a profiler added, which its memory does not name. */
	SYM_JIT_AUTO = 0,
	/**
	 * The runtime's memory is read from outside by the description of itself that it
	 * publishes (.NET 10 and 11). It is not stopped, asked or written to. Needs the right to
	 * read its memory: equal ids and no fewer capabilities, or CAP_SYS_PTRACE. Alone: no perf
	 * map.
	 */
	SYM_JIT_CONTRACT = 1,
	/** The runtime is asked over its diagnostics socket to list its methods, which can crash it
	 * while it unloads hundreds of collectible assemblies a second (seen with .NET 9 and 10).
	 * Before .NET 10 this is what SYM_JIT_AUTO comes to. Alone: no perf map. */
	SYM_JIT_RUNDOWN = 2,
	/** Only the perf map that the process writes or has left. */
	SYM_JIT_PERF_MAP = 3,
	/** Jitted code stays without names. */
	SYM_JIT_NONE = 4
};

/** Short word for a way: "auto", "contract", "rundown", "perfmap", "none"; static. */
SYM_API const char *sym_jit_way_text(enum sym_jit_way way);

/** What else a snapshot is to do. */
enum sym_snapshot_flags {
	/**
	 * Names of a perf map keep the tier behind them, as the process wrote it
	 * ("M()[OptimizedTier1]"); the answers that come from it have no tier of their own. For
	 * tools that print both together: there is nothing to be joined.
	 */
	SYM_SNAPSHOT_TIER_IN_NAME = 1 << 0,
	/**
	 * Keeps all names of a perf map in memory. Else those beyond its first 4 MiB are read from
	 * the file when they are asked for; one that the file has lost by then, cut or written anew
	 * in its place, is SYM_NO_MATCH until sym_resolver_refresh(). Deleting it loses nothing.
	 */
	SYM_SNAPSHOT_KEEP_NAMES = 1 << 1
};

struct sym_snapshot_opts {
	size_t size;
	/**
	 * Directory that holds the process tree to look at: ROOT/proc/PID/... and
	 * the mapped files below ROOT. NULL: this machine.
	 */
	const char *root;
	/**
	 * Directories with relative maps, NULL terminated; NULL for none: crossgen's and
	 * crossgen2's, under the names of sym_image_map_name(). A map is used only where its
	 * signature, if any, is the image's, and its rows are exactly methods of the mapped
	 * image; sym_image_refused_map() says why one is not.
	 */
	const char *const *relative_map_dirs;
	uint32_t flags; /**< enum sym_snapshot_flags */
	uint32_t jit;   /**< enum sym_jit_way: where the names of jitted code come from */
	/** Who brings debug files that are not on this machine; see sym_fetch_fn. NULL: nobody. */
	sym_fetch_fn *fetch;
	void *fetch_context; /**< handed to `fetch` */
	/**
	 * Directories of this machine with separate debug files, NULL terminated; NULL for none.
	 * They are looked at as /usr/lib/debug is, and before it: sym_image_debug_places().
	 */
	const char *const *debug_dirs;
};

/**
 * A process at one moment: its mappings, its images, its identity.
 *
 * A mapped file is opened when somebody first asks for what is in it, and only if it is
 * the one that is mapped. The process may go away later: what was opened stays. A file
 * of which nobody has asked by then is still found by its path, unless it was deleted, replaced or
 * changed since the process began; its addresses get SYM_STALE or SYM_UNREADABLE then.
 * sym_snapshot_open_images() opens all at once.
 */
struct sym_snapshot;

/**
 * Takes a snapshot. `pid` may be the id of a thread: its process is taken.
 *
 * Fails with SYM_ERROR_NOT_FOUND when there is no such process,
 * SYM_ERROR_PERMISSION when it may not be looked at, SYM_ERROR_STALE when it
 * ended or called exec() in the middle.
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_snapshot_open(int32_t pid, const struct sym_snapshot_opts *opts, struct sym_snapshot **ret);
SYM_API void sym_snapshot_close(struct sym_snapshot *snapshot);

/**
 * For a few questions: a snapshot of no more than the images that `addresses` are code of. *ret
 * is NULL, and that is no error, where they are not all code of files that are still there, or the
 * kernel does not tell of single mappings (before Linux 6.11, or not this caller). Of these
 * addresses it says what a whole snapshot says, where their image is an ELF file; anything else it
 * says without the rest of the process. Errors: those of sym_snapshot_open().
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_snapshot_open_near(int32_t pid, const struct sym_snapshot_opts *opts, const uint64_t *addresses,
		       size_t count, struct sym_snapshot **ret);

/**
 * Opens every mapped file that is not open yet, so that names can be had when the process
 * is gone. Functions that tell of all images or of mappings with their images (count, at, symbols,
 * process) do so by themselves, and act as if there were none where there was no memory for it;
 * resolving never needs it. Files that cannot be opened are images with a trouble.
 *
 * Fails with SYM_ERROR_NO_MEMORY; may then be called again.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_snapshot_open_images(struct sym_snapshot *snapshot);

/**
 * The same from a core file (x86-64): of the process as it was when the file was written.
 *
 * A core file leaves out most of the mapped files; their code, tables and metadata are read from
 * the files, below sym_snapshot_opts.root where that is set. A file that is younger than the core
 * file, or of which the core file has something else, is not used. Jitted code is named
 * by data contract, which needs the writable memory of the runtime: gcore, createdump --full and
 * the kernel write it down, createdump's other kinds do not; sym_snapshot_jit() says so.
 *
 * Fails with SYM_ERROR_FORMAT, SYM_ERROR_UNSUPPORTED, SYM_ERROR_LIMIT; SYM_ERROR_ARGUMENT for a way
 * to jitted code that needs a live process.
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_snapshot_open_core(const char *path, const struct sym_snapshot_opts *opts,
		       struct sym_snapshot **ret);

/** What is known of the process as such. */
struct sym_process_info {
	int32_t pid;               /**< as this machine counts */
	int32_t namespace_pid;     /**< as the process itself counts (innermost NStgid) */
	uint32_t uid;              /**< effective user id */
	uint32_t gid;              /**< effective group id */
	uint64_t start_time_ticks; /**< field 22 of /proc/PID/stat */
	const char *comm;          /**< short command name */
	const char *executable;    /**< path inside the process's own root; "" when unknown */
	/** .NET runtime in it, as "10.0.12"; "" when hosted but of unknown version; NULL when there
	 * is none. */
	const char *runtime_version;
	/** "framework-dependent", "self-contained", "single-file", "nativeaot"; NULL without a
	 * runtime. */
	const char *runtime_shape;
	/** Index of the runtime's image (libcoreclr.so or the executable); UINT32_MAX when there is
	 * none. */
	uint32_t runtime_image_index;
	uint32_t other_mount_namespace; /**< 1 when its mount namespace is not the caller's */
	uint32_t other_pid_namespace;   /**< 1 when its PID namespace is not the caller's */
	uint32_t reserved;
};

/** Lives as long as the snapshot. */
SYM_API const struct sym_process_info *sym_snapshot_process(const struct sym_snapshot *snapshot);

/** SYM_ERROR_STALE when the process has ended, called exec() or its PID is another's since the
 * snapshot; NULL while it is the same. */
SYM_API SYM_MUST_CHECK struct sym_error *sym_snapshot_check(const struct sym_snapshot *snapshot);

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
	/** UINT32_MAX when it belongs to no image. Memory of no file may: code was moved there. */
	uint32_t image_index;
	const char *path; /**< "" for anonymous memory; without " (deleted)" */
	uint32_t deleted; /**< 1 when the kernel says so */
	uint32_t reserved;
};

SYM_API size_t sym_snapshot_mapping_count(const struct sym_snapshot *snapshot);
SYM_API const struct sym_mapping *sym_snapshot_mapping_at(const struct sym_snapshot *snapshot,
							  size_t index);

/** Mapped files, in the order of their first mapping. A file that is mapped twice at different
 * bases is two images. */
SYM_API size_t sym_snapshot_image_count(const struct sym_snapshot *snapshot);
SYM_API struct sym_image *sym_snapshot_image_at(const struct sym_snapshot *snapshot, size_t index);

/** The perf map that the process itself writes or has left, and the places where tools look for
 * one. */
struct sym_perf_map_info {
	/**
	 * Path of the perf map in use, to be opened from the caller's own root
	 * (for a process in another namespace it begins with /proc/PID/root);
	 * NULL when there is none that may be used.
	 */
	const char *path;
	/** Why a map that lies there is not used (symlink, wrong owner, older than the process,
	 * ...); NULL when there is none. */
	const char *refused_path;
	const char *refused_reason;
	/** Where tools on this machine look for the map of the process: /tmp/perf-PID.map. */
	const char *host_path;
	/** Where the process itself would write; as seen by the caller. Equal to host_path when it
	 * is in no other namespace. */
	const char *target_path;
	/** Descriptor number, in the process, through which it writes a perf map; -1 when it does
	 * not. */
	int32_t writer_fd;
	uint32_t writer_unknown; /**< 1: its descriptors may not be looked at: it may write one */
	uint64_t writer_inode;   /**< inode of the file behind writer_fd; 0 when there is none */
	uint64_t writer_device;
};

/** Looks afresh at each call; lives until the next call on this snapshot or its end. Not for
 * several threads at once. */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_snapshot_perf_map(struct sym_snapshot *snapshot, const struct sym_perf_map_info **ret);

/**
 * What the runtime itself has written about the images that it loaded
 * (perfinfo-PID.map, .NET Core 1.0 to .NET 8, beside a perf map), compared with
 * where the images of the snapshot are found to be.
 */
struct sym_load_check {
	const char *path; /**< of the file; NULL when there is none that may be believed */
	uint64_t line_count;
	uint64_t bad_line_count; /**< skipped */
	/** Lines of an image that is mapped, and of these the ones that say where (2.x never
	 * does, and nothing is said of an image without precompiled code). */
	uint64_t mapped_count;
	uint64_t base_count;
	/** Lines that the snapshot contradicts: another load base, or another module version id. */
	uint64_t contradiction_count;
	const char *contradiction; /**< the first of them, for a person; NULL when there is none */
};

/** Looks afresh at each call; lives until the next call on this snapshot or its end. Not for
 * several threads at once. */
SYM_API SYM_MUST_CHECK struct sym_error *sym_snapshot_load_check(struct sym_snapshot *snapshot,
								 const struct sym_load_check **ret);

/** "perf-PID.map", as tools look for it, also for a process that is gone; counts as snprintf(). */
SYM_API size_t sym_perf_map_file_name(int32_t pid, char *room, size_t room_bytes);

/** What is known to go wrong when this runtime writes a perf map; NULL: nothing. Static. */
SYM_API const char *sym_snapshot_perf_map_hazard(const struct sym_snapshot *snapshot);

/**
 * Asks the runtime over its diagnostics socket to write a perf map from now on (.NET 8 and later).
 *
 * This changes the process: it writes a file, which costs it time with every method that it
 * compiles, until it ends. Nothing in this library does so unasked. When this returns, what has
 * been compiled so far is in the file; stubs are not. SYM_ERROR_UNSUPPORTED for earlier runtimes.
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_snapshot_enable_perf_map(struct sym_snapshot *snapshot);

/** What the runtime in a process told about its jitted code. */
struct sym_jit_info {
	/** What served: SYM_JIT_CONTRACT, SYM_JIT_RUNDOWN, or SYM_JIT_NONE. */
	enum sym_jit_way way;
	uint32_t reserved;
	/** Why a way did not serve; NULL for one that did, or was not tried. */
	const char *contract_reason;
	const char *rundown_reason;
	uint64_t method_count; /**< methods that have a name */
	/** Pieces of code without one: they changed while they were looked at, or contradict
	 * themselves. */
	uint64_t unnamed_count;
	uint64_t unnamed_dynamic_count; /**< of these: dynamic methods and what can be unloaded */
	uint64_t read_calls;            /**< system calls that read the memory of the process */
	uint64_t read_bytes;
};

/**
 * How the runtime's jitted code was read, reading it if that has not been done:
 * once a snapshot, when it is first needed. Lives as long as the snapshot.
 *
 * Code that is compiled later is not in it: take another snapshot, or see sym_resolver_refresh().
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_snapshot_jit(struct sym_snapshot *snapshot,
							  const struct sym_jit_info **ret);

/** Precompiled methods that the runtime has prepared for use, beside what the images say. */
struct sym_prepared_check {
	size_t size;
	uint64_t count;
	uint64_t equal_count;     /**< same start and whole name */
	uint64_t different_count; /**< in one of the two something is wrong */
	uint64_t unnamed_count;   /**< the runtime's memory does not tell the name for sure */
};

/**
 * Compares two readings of the same methods: by the runtime's memory (data contract, .NET 10 and
 * 11), and by the tables of the images. Reads each time it is called.
 *
 * @param difference_ret where there is a difference one line about the first, heap, to be
 * ended with free(); else NULL. May be NULL.
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_snapshot_prepared_check(struct sym_snapshot *snapshot, struct sym_prepared_check *check,
			    char **difference_ret);

enum sym_snapshot_symbols_flags {
	SYM_SYMBOLS_PRECOMPILED =
		1 << 0, /**< methods of ReadyToRun images, their stub ranges included; functions of
			   a program compiled ahead of time */
	SYM_SYMBOLS_PERF_MAP =
		1 << 1, /**< what its perf map says, mapped now or not, but of listed images */
	SYM_SYMBOLS_ELF = 1 << 2,     /**< native functions */
	SYM_SYMBOLS_RUNTIME = 1 << 3, /**< jitted code, told by the runtime in the process */
	/** native functions that no symbol names (SYM_SYMBOL_UNNAMED), and linkage stubs (NAME@plt)
	 */
	SYM_SYMBOLS_UNNAMED = 1 << 4,
	/** names of native functions as symbol tables have them: of C++, Rust, D, OCaml mangled */
	SYM_SYMBOLS_LINKAGE_NAMES = 1 << 5
};

/**
 * All symbols of a process by address, as one disjoint sorted list.
 *
 * Where two overlap, the image itself wins over the runtime, the runtime over a
 * perf map, of two lines of a perf map the later one, and everything over SYM_SYMBOL_UNNAMED.
 * Of that, what is left between symbols stays, under the text of the whole function. Lines of a
 * perf map that are such texts themselves are left out. An image that cannot be read costs its
 * own symbols only; sym_image_trouble() says why.
 *
 * @param flags enum sym_snapshot_symbols_flags; 0 means PRECOMPILED | PERF_MAP | RUNTIME
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_snapshot_symbols(struct sym_snapshot *snapshot, uint32_t flags, struct sym_symbols **ret);

/**
 * The disjoint symbols of a perf map file, by the process's rules; a torn last line is left out.
 *
 * @param fd open for reading; not closed; read from its start with pread()
 * @param bad_lines_ret lines that were skipped; may be NULL
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_perf_map_read(int fd, struct sym_symbols **ret,
							   uint64_t *bad_lines_ret);

/**
 * Opens the perf map that a process, which is gone, has left where tools look for it; for
 * sym_perf_map_read(). That the PID was not another's since, the caller must know. Fails with
 * SYM_ERROR_NOT_FOUND, and SYM_ERROR_UNSUPPORTED for what is no regular file; follows no links.
 *
 * @param root as sym_snapshot_opts.root
 * @param fd_ret the caller closes it
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_perf_map_open(int32_t pid, const char *root,
							   int *fd_ret);

/** Ids of all processes that can be seen, ascending; heap array, to be ended with free(). `root`:
 * as sym_snapshot_opts.root. */
SYM_API SYM_MUST_CHECK struct sym_error *sym_process_ids(const char *root, int32_t **ret,
							 size_t *count_ret);

/* ------------------------------------------------------------------------
 * Resolving
 * ------------------------------------------------------------------------ */

/** What became of an address. */
enum sym_status {
	SYM_RESOLVED = 0,
	SYM_UNMAPPED = 1,   /**< no mapping of the process covers it */
	SYM_NO_SYMBOLS = 2, /**< it lies in something that has no symbols at all */
	SYM_NO_MATCH = 3,   /**< there are symbols, none covers it */
	SYM_STALE =
		4, /**< the file on disk is not the one that is mapped, or the process is another */
	SYM_UNREADABLE = 5,  /**< not all of the file could be read, or there was no memory to */
	SYM_BAD_FORMAT = 6,  /**< the file contradicts its format */
	SYM_UNSUPPORTED = 7, /**< a kind of code that is recognised and not read */
	/**
	 * It lies in a function of a native image that no symbol names (a stripped file). The
	 * bounds of the function are known, from .eh_frame, and `name` says which one it is:
	 * IMAGE!0xVADDR, file name of the image and vaddr of the first byte of the function.
	 * That is for folding and for looking the name up elsewhere; it is not a name.
	 */
	SYM_UNNAMED = 8
};

/** A few words for a status, for a person; static. */
SYM_API const char *sym_status_text(enum sym_status status);

/** What is known of an address without a name for it. */
struct sym_position {
	uint64_t address; /**< as asked */
	/** SYM_RESOLVED: it lies in a file, and `offset` says where; SYM_UNMAPPED, or
	 * SYM_NO_SYMBOLS: in memory of no file. */
	enum sym_status status;
	uint32_t mapping_index;  /**< UINT32_MAX when not mapped */
	struct sym_image *image; /**< belongs to the snapshot; NULL when it lies in none */
	/** into the image's file, of an image inside another file into its own bytes; UINT64_MAX
	 * when it lies in none */
	uint64_t offset;
	/** rva or vaddr in the image; UINT64_MAX when it is not loaded from there, or there is no
	 * image. Of an ELF file the better one to take elsewhere: its debug file has the same
	 * vaddrs, and mostly no offsets. */
	uint64_t image_position;
};

/**
 * Normalises addresses: says in which file each lies and where in it, so that
 * names can be looked up later, elsewhere, without the process. With
 * sym_image_identity() of the image that is all that sym_image_open_by_id() and
 * sym_image_resolve() need on another machine.
 *
 *     struct sym_position position;
 *     struct sym_identity identity = { .size = sizeof(identity) };
 *
 *     error = sym_snapshot_normalize(snapshot, &address, 1, &position);
 *     if (!error && position.image)
 *             error = sym_image_identity(position.image, &identity);
 *
 * @param ret room for `count`, in the order asked; nothing in it needs freeing
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_snapshot_normalize(struct sym_snapshot *snapshot,
								const uint64_t *addresses,
								size_t count,
								struct sym_position *ret);

struct sym_resolver;

/**
 * A resolver over a snapshot (borrowed: it must outlive the resolver). Nothing
 * is loaded before an address asks for it; what was loaded is kept, and answers
 * in up to 2 MB, for whoever asks for the same addresses again.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_resolver_create(struct sym_snapshot *snapshot,
							     struct sym_resolver **ret);
SYM_API void sym_resolver_destroy(struct sym_resolver *resolver);

/** What a refresh found. */
enum sym_refresh {
	SYM_REFRESH_NOTHING = 0, /**< nothing is new: there is no use in asking again */
	/** Lines were appended to the perf map, or records to the jitdump, and only they were read;
	 * or the runtime told of other jitted code than before; or other memory is executable. */
	SYM_REFRESH_APPENDED = 1,
	SYM_REFRESH_REREAD = 2, /**< one of them is another, or was cut: they were read anew */
	/** The process has ended, called exec(), or its PID is another's. What was read goes on
	 * answering; what a runtime had told before was taken up by a refresh that said so. */
	SYM_REFRESH_ENDED = 3,
	/** Other files are mapped than before: libraries or assemblies were loaded, unloaded, or
	 * written in place. What else is new was taken up too. */
	SYM_REFRESH_MAPPED = 4
};

/**
 * Takes up what the process has mapped and unmapped, what the runtime in it has compiled, and what
 * its perf map and its jitdump have got, since they were read. Files that are mapped as they were
 * stay open, with all that was read of them. Of a last line only what ends with a newline counts,
 * of a jitdump a record whose name is there in full, be they in the file or still in the buffer of
 * the process's stdio (glibc, memory that may be read); the rest waits for the next refresh.
 *
 * A runtime is asked again once an address has asked for its code, by the way that served. By data
 * contract the first refresh reads all (8,700 methods: 50 ms of CPU), others what is new (3 ms). By
 * rundown the first asks for another rundown and begins a tracing session, until the resolver
 * ends, in which the runtime tells what it compiles, in portions; a thread (256 KiB of stack, all
 * signals blocked) receives them, others take them. A method whose compilation had begun before the
 * session is in neither: the first refresh that comes 5 s later asks for one more list, others 50
 * s after that, 500 s, and so on. Where the runtime had no room for its events (16 MB), or may have
 * had none (after 2 MB at once), or nobody took 64 MB of them, it is asked
 * for all anew. What cannot tell just now (it is stopped) is asked by the next refresh, what did
 * not answer in time never again.
 *
 * Names that were handed out stay; only those, and images, of files that were unmapped, or of a
 * perf map that was replaced, end with the second such change after that; those of a runtime's
 * code, when names of what is gone have twice come to more than of all code and 16 MB. The snapshot
 * stays what it was; images that came later are the resolver's. May be called while other threads
 * resolve: each address gets the old answer or the new one. When it fails, the old ones stay.
 * @param ret may be NULL
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_resolver_refresh(struct sym_resolver *resolver,
							      enum sym_refresh *ret);

/**
 * A function that the compiler put into another one. The innermost of a chain is
 * where sym_answer.file and line are; each was called at the place given
 * here, in the next one of the chain, the last one in sym_answer.name.
 */
struct sym_inlined {
	const char *name;         /**< as a person would write it; "" when unknown */
	const char *linkage_name; /**< mangled; NULL where `name` is that already */
	const char *call_file;    /**< NULL when unknown */
	uint32_t call_line;       /**< 0 when unknown */
	uint32_t call_column;
};

/** The answer to one address. */
struct sym_answer {
	uint64_t address; /**< as asked */
	enum sym_status status;
	enum sym_source_kind source; /**< SYM_SOURCE_NONE unless resolved or unnamed */
	/** Full name without tier; of SYM_UNNAMED what that says; otherwise NULL. */
	const char *name;
	const char *tier;      /**< NULL when there is none */
	uint64_t offset_bytes; /**< address minus start of the symbol */
	uint64_t size_bytes;   /**< of the symbol; 0 when unknown */
	/** The image it lies in, NULL for none. Known without a name too. */
	const struct sym_image *image;
	/** Path to show: the image's, or what /proc/PID/maps has ("[heap]", "/memfd:doublemapper");
	 * "" for anonymous memory. */
	const char *image_path;
	/** rva or vaddr of the address in the image; UINT64_MAX when there is no image. */
	uint64_t image_position;
	/** More about a status other than SYM_RESOLVED; NULL when the status says it all. */
	const char *reason;
	enum sym_symbol_kind kind;
	uint32_t reserved;
	/**
	 * The name as the symbol table has it, where `name` is what a person would write for it
	 * (C++, Rust, D, OCaml); NULL where `name` is that already. Lives as long as `name`.
	 */
	const char *linkage_name;
	/** With SYM_WANT_LINES: source file, line and column of the address itself; NULL and 0
	 * where unknown. */
	const char *file;
	uint32_t line;
	uint32_t column;
	/** With SYM_WANT_INLINED: what was inlined at the address, innermost first; NULL for
	 * nothing. Lives as long as the answer; its strings as long as `name`. */
	const struct sym_inlined *inlined;
	size_t inlined_count;
	/**
	 * With SYM_WANT_COMPONENT, for a method of a composite image: simple name of its assembly,
	 * and its MVID as 36 characters. It is that of the metadata which told the name; where the
	 * composite says what it was compiled from, it is that too, else there is no name. NULL for
	 * other images. Live as long as `name`.
	 */
	const char *component;
	const char *component_mvid;
};

/** Answers to one batch; reused from batch to batch so that a hot look-up allocates nothing. */
struct sym_result;

SYM_API SYM_MUST_CHECK struct sym_error *sym_result_create(struct sym_result **ret);
SYM_API void sym_result_destroy(struct sym_result *result);

/** What answers are to have beyond a name: from the DWARF of native images and their debug files,
 * from the function tables of Go programs, from composite images, and lines of jitted code from the
 * jitdump that named it (Node.js --perf-prof, LLVM, perf's agent for Java; .NET writes none). */
enum sym_want {
	SYM_WANT_LINES = 1 << 0,   /**< source file, line and column */
	SYM_WANT_INLINED = 1 << 1, /**< functions that were inlined */
	/** of composite images: the assembly that a method belongs to, and which build of it */
	SYM_WANT_COMPONENT = 1 << 2
};

/**
 * Asks for more in every answer that the result is given from now on. DWARF is
 * read unit by unit as addresses ask for it, and under a lock: this is for some
 * thousand addresses, not for a hot path. SYM_ERROR_ARGUMENT for unknown flags.
 *
 * What -gsplit-dwarf left to other files is read from those that the image names (.dwo), or from
 * FILE.dwp beside it, when an address asks for it. All files may change under it: what was changed
 * is not used.
 *
 * @param want enum sym_want; 0 asks for names only, as a new result does
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_result_want(struct sym_result *result, uint32_t want);
SYM_API size_t sym_result_count(const struct sym_result *result);

/** The answer to the `index`-th address asked; lives until the result is used again. Names live as
 * long as the resolver, but see sym_resolver_refresh(). */
SYM_API const struct sym_answer *sym_result_at(const struct sym_result *result, size_t index);

/**
 * Resolves `count` addresses; answers come in the same order. Of a stack ask for the byte before a
 * return address; where nothing is, or what is no call, for the address itself, if a symbol begins
 * there: some frames that no call made say so (signals; OSR of .NET 11; where a stack begins).
 * Fails only when it could not work at all (no memory).
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_resolver_resolve(struct sym_resolver *resolver,
							      const uint64_t *addresses,
							      size_t count,
							      struct sym_result *result);

/**
 * The same for addresses that were seen at known times, as samples of a profile were: a jit uses
 * memory again, and a jitdump tells when what was put where. So an address gets the name of what
 * lay there then, also when that has been freed and is mapped no more. All else, and where a
 * jitdump says nothing, is answered as of now; perf maps have no times.
 *
 * @param times_ns CLOCK_MONOTONIC (perf record -k mono) in ns, one for each address; 0: not known.
 *        One that is before the first record of the jitdump is of another clock and passed over,
 *        as are all where the jitdump counts cycles
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_resolver_resolve_at(struct sym_resolver *resolver, const uint64_t *addresses,
			const uint64_t *times_ns, size_t count, struct sym_result *result);

/** What is said of one address at a glance; the caller's memory. */
struct sym_glance {
	size_t size;      /**< of this struct, set by the caller */
	const char *name; /**< this and what follows: as sym_answer has it */
	const char *tier;
	const char *image_path;
	uint64_t offset_bytes;
	uint64_t size_bytes;
	enum sym_source_kind source;
	enum sym_symbol_kind kind;
	/** Where the last address lay; zero before the first use with a resolver. */
	struct {
		const void *resolver, *live;
		uint64_t start, size_bytes, generation;
	} reserved;
};

/**
 * Resolves one address of jitted code in a fraction of the time: for tools that get
 * their addresses one by one, and mostly of methods.
 *
 * @return 1: *glance has what sym_resolver_resolve() would say. 0: nothing was
 *         written that counts; the address is of an image, has no name, or needs
 *         more than a glance: ask sym_resolver_resolve().
 */
SYM_API int sym_resolver_glance(struct sym_resolver *resolver, uint64_t address,
				struct sym_glance *glance);

/* ------------------------------------------------------------------------
 * The kernel
 * ------------------------------------------------------------------------ */

/** The functions of the running kernel and of its modules; does not change. */
struct sym_kernel;

/**
 * Reads what the kernel says of itself. A resolver does it by itself when it is
 * asked for an address of the kernel.
 *
 * @param root directory with proc/kallsyms; NULL: this machine
 *
 * When addresses are hidden (kernel.kptr_restrict, no CAP_SYSLOG) that is no
 * error: every answer says so then.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_kernel_open(const char *root, struct sym_kernel **ret);
SYM_API void sym_kernel_close(struct sym_kernel *kernel);

/** Why there are no symbols; NULL when there are. */
SYM_API const char *sym_kernel_trouble(const struct sym_kernel *kernel);

/**
 * As sym_resolver_resolve(). sym_answer.image_path is "[kernel.kallsyms]" or
 * the module, "[NAME]". The kernel tells where a function begins; that it ends
 * where the next one begins is believed inside one module only, elsewhere not
 * beyond the page.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_kernel_resolve(const struct sym_kernel *kernel,
							    const uint64_t *addresses, size_t count,
							    struct sym_result *result);

/** All of its functions by address. */
SYM_API SYM_MUST_CHECK struct sym_error *sym_kernel_symbols(const struct sym_kernel *kernel,
							    struct sym_symbols **ret);

/* ------------------------------------------------------------------------
 * Positions in files
 * ------------------------------------------------------------------------ */

/** Kinds of position inside an image. */
enum sym_position_kind {
	SYM_POSITION_OFFSET = 0, /**< offset into the file; of one in an archive into its bytes */
	SYM_POSITION_RVA = 1,    /**< rva of a PE file */
	SYM_POSITION_VADDR = 2   /**< vaddr of a linked ELF file */
};

/**
 * Resolves positions inside one image, mapped or not. sym_answer.address is
 * the position as asked.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_resolve(struct sym_image *image,
							   enum sym_position_kind kind,
							   const uint64_t *positions, size_t count,
							   struct sym_result *result);

#ifdef __cplusplus
}
#endif

#endif
