/* SPDX-License-Identifier: MIT */
/**
 * @file
 * libsym: names for the addresses of a running process on Linux.
 *
 * INTRODUCTION
 *
 * libsym turns addresses of a process into names.
 * Native code: from the symbol tables of its ELF files and their debug files.
 * Precompiled .NET code (ReadyToRun): from the tables of the image.
 * Jitted code: from the memory of the runtime, its event session, a perf map or a jitdump.
 * The process is not stopped, nothing is written into it, and it needs no preparation.
 *
 * Five ways to use it:
 * 1. Addresses to names, once: sym_snapshot_open(), sym_resolver_create(), then
 *    sym_resolver_resolve() with as many addresses as possible in one call.
 * 2. Addresses to names, again and again: sym_live_open(), sym_live_resolve().
 * 3. All symbols of a process as one disjoint list: sym_snapshot_symbols().
 * 4. A file without a process: sym_image_open(), sym_image_symbols(), sym_image_resolve().
 * 5. Addresses here, names on another machine: sym_snapshot_normalize() and
 *    sym_image_identity() here; sym_image_open_by_id() and sym_image_resolve() there.
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
 *   image    a file with code; in a snapshot: a file mapped into the process
 * Intervals are half open, [start, end). Sizes are in bytes.
 *
 * THREADS
 *
 * The library has no global state.
 * A snapshot, an image and a list of symbols do not change; several threads may use them at once.
 * Several threads may use one resolver.
 * A result belongs to one thread at a time.
 * A call uses up to 80 KiB of stack; 200 KiB with lines or inlined functions; 600 KiB for a file
 * whose names were made to use it.
 * Do not cancel a thread inside a call.
 * After fork(), the child may destroy inherited objects but must not use them.
 *
 * OWNERSHIP
 *
 * *_close() ends what *_open() made; *_destroy() ends what *_create() made. Both accept NULL.
 * An object made from another one must end before it.
 * Strings and structs reached through an object belong to it.
 * They live as long as the object, unless the comment of the function differs.
 * Strings are NUL terminated. Names are bytes, mostly UTF-8.
 * Each file in use holds a file descriptor.
 * Without a free descriptor (see setrlimit(2)) a file is SYM_UNREADABLE until a refresh.
 *
 * ERRORS
 *
 * A function that can fail returns a `struct sym_error *`.
 * NULL is success. Free any other value with sym_error_destroy().
 * On failure nothing is written to an out parameter.
 * "Errors:" lists codes without SYM_ERROR_; NO_MEMORY is possible everywhere.
 * An address without a name is not an error: each answer has a status that explains it.
 * The library never prints and never exits.
 *
 * STABILITY
 *
 * Structs that the caller allocates start with `size`; set it to sizeof the struct.
 * Zero in their other fields selects the default.
 * Structs that the library allocates are reached by pointer and may grow at their end.
 * Never copy or measure them.
 * Enum values are fixed; new ones may be added.
 * The soname is the major version.
 *
 * PARTS
 *
 * This header includes the others:
 *   sym_error.h     errors
 *   sym_symbols.h   symbols and lists of symbols
 *   sym_image.h     files with code
 *   sym_process.h   process, mappings, images, jitted code of a snapshot
 *   sym_lines.h     source lines of managed code, portable PDBs
 *   sym_live.h      a live process, refreshed at a bounded cost
 *   sym_perf_map.h  perf maps
 *   sym_unwind.h    stacks
 *   sym_threads.h   threads of a process, with registers and stacks
 *   sym_kernel.h    functions of the kernel
 *   sym_events.h    events of a .NET runtime
 *   sym_budget.h    limits on memory and time
 * The rest of this header: snapshots, resolving, refreshing, lines, positions in files, all
 * symbols of a process.
 */
#ifndef LIBSYM_LIBSYM_H
#define LIBSYM_LIBSYM_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/sym_budget.h"
#include "libsym/sym_error.h"
#include "libsym/sym_events.h"
#include "libsym/sym_image.h"
#include "libsym/sym_kernel.h"
#include "libsym/sym_lines.h"
#include "libsym/sym_live.h"
#include "libsym/sym_perf_map.h"
#include "libsym/sym_process.h"
#include "libsym/sym_symbols.h"
#include "libsym/sym_threads.h"
#include "libsym/sym_unwind.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------
 * Version
 * ------------------------------------------------------------------------ */

#define SYM_VERSION_MAJOR 0
#define SYM_VERSION_MINOR 1
#define SYM_VERSION_PATCH 0

/** Returns the version of the loaded library, as "MAJOR.MINOR.PATCH"; static. */
SYM_API const char *sym_version(void);

/* ------------------------------------------------------------------------
 * Snapshots
 * ------------------------------------------------------------------------ */

enum sym_snapshot_flags {
	/**
	 * Names of a perf map keep their tier as the process wrote it ("M()[OptimizedTier1]").
	 * Answers from it then have no tier of their own.
	 * For tools that print name and tier together.
	 */
	SYM_SNAPSHOT_TIER_IN_NAME = 1 << 0,
	/**
	 * Reads DWARF in child processes: fork() without exec, one for each image that needs it.
	 * libdw ends its process when it is out of memory.
	 * With this flag that costs single answers (sym_answer.lost).
	 * Without it libsym reserves memory in advance, which prevents most such ends, not all.
	 * The caller must not wait for these children (wait(), waitpid(-1)) or ignore SIGCHLD.
	 */
	SYM_SNAPSHOT_FORK_FOR_DWARF = 1 << 1
};

/** Options of a snapshot; 0 in a field selects the default. */
struct sym_snapshot_opts {
	size_t size; /**< sizeof(struct sym_snapshot_opts) */
	/**
	 * Root of a recorded process tree: it has ROOT/proc/PID/... and the mapped files.
	 * NULL: this machine.
	 */
	const char *root;
	/**
	 * Directories with relative maps of crossgen or crossgen2, NULL terminated; copied.
	 * Their file names are those of sym_image_map_name().
	 * A map is used only if its signature, where it has one, is the image's, and each row is
	 * a method of the mapped image.
	 * sym_image_rejected_map() explains why a map is not used. NULL: no directories.
	 */
	const char *const *relative_map_dirs;
	uint32_t flags; /**< enum sym_snapshot_flags */
	uint32_t jit;   /**< enum sym_jit_method */
	/** Fetches debug files that are not on this machine. NULL: none are fetched. */
	sym_fetch_fn *fetch;
	void *fetch_context; /**< passed to `fetch` */
	/**
	 * Directories of this machine with separate debug files, NULL terminated; copied.
	 * They are searched as /usr/lib/debug is, and before it: sym_image_each_debug_path().
	 * NULL: no directories.
	 */
	const char *const *debug_dirs;
	/** Limit for the snapshot and what is made from it; must outlive it. NULL: no limit. */
	struct sym_budget *budget;
};

/**
 * A process at one moment: its mappings, its images, its identity.
 *
 * A mapped file is opened when it is first needed, and only if it is the one that is mapped.
 * An open file remains usable after the process has ended.
 * A file that is not open by then is still found by its path.
 * If that was deleted, replaced or changed since, its addresses are SYM_STALE or SYM_UNREADABLE.
 * sym_snapshot_open_images() opens all files.
 */
struct sym_snapshot;

/**
 * Takes a snapshot of a process.
 *
 * @param pid  Process id as this machine counts; the id of a thread selects its process.
 * @param opts  Copied. NULL selects the defaults.
 * @param ret  The snapshot; close it with sym_snapshot_close().
 *
 * Errors: NOT_FOUND when there is no such process; PERMISSION; STALE when it ended or called
 * exec() during the call; ARGUMENT for unknown options.
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_snapshot_open(int32_t pid, const struct sym_snapshot_opts *opts, struct sym_snapshot **ret);

/**
 * Closes a snapshot.
 *
 * Destroy its resolvers first.
 *
 * @param snapshot  NULL is accepted.
 */
SYM_API void sym_snapshot_close(struct sym_snapshot *snapshot);

/**
 * Takes a snapshot of the process in a core file (x86-64).
 *
 * The snapshot is of the time when the core file was written.
 * A core file lacks most mapped files; they are read from disk, below sym_snapshot_opts.root if
 * that is set.
 * A file is not used when it is newer than the core file or differs from its contents.
 * Jitted code is named with SYM_JIT_CONTRACT, which needs the runtime's writable memory.
 * gcore, createdump --full and the kernel save that memory; other kinds of createdump do not.
 * sym_snapshot_jit() reports when it is missing.
 *
 * @param path  The core file.
 * @param opts  As for sym_snapshot_open().
 * @param ret  The snapshot; close it with sym_snapshot_close().
 *
 * Errors: FORMAT, UNSUPPORTED, LIMIT; ARGUMENT for SYM_JIT_RUNDOWN and SYM_JIT_PERF_MAP.
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_snapshot_open_core(const char *path, const struct sym_snapshot_opts *opts,
		       struct sym_snapshot **ret);

/**
 * Opens every mapped file that is not open yet.
 *
 * Then names are available after the process has ended.
 * Functions that list images, mappings or symbols call it themselves.
 * When it fails in such a function, the list is empty.
 * Resolving never needs it.
 * A file that cannot be opened is an image with a sym_image_problem().
 *
 * Errors: NO_MEMORY; it may be called again.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_snapshot_open_images(struct sym_snapshot *snapshot);

/**
 * Checks whether the process is still the one of the snapshot.
 *
 * Errors: STALE when it has ended, called exec(), or its PID belongs to another process.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_snapshot_check(const struct sym_snapshot *snapshot);

/**
 * Lists the ids of all visible processes, ascending.
 *
 * @param root  As sym_snapshot_opts.root.
 * @param ret  The ids; free() them.
 * @param count_ret  How many.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_process_ids(const char *root, int32_t **ret,
							 size_t *count_ret);

/* ------------------------------------------------------------------------
 * Resolving
 * ------------------------------------------------------------------------ */

/** The result of a look-up. */
enum sym_status {
	SYM_RESOLVED = 0,   /**< a symbol */
	SYM_UNMAPPED = 1,   /**< no mapping of the process contains it */
	SYM_NO_SYMBOLS = 2, /**< its image or memory has no symbols */
	SYM_NO_MATCH = 3,   /**< there are symbols, but none at the address */
	/** the file on disk is not the mapped one, or the process is another */
	SYM_STALE = 4,
	SYM_UNREADABLE = 5,  /**< the file could not be read completely, or memory ran out */
	SYM_BAD_FORMAT = 6,  /**< the file contradicts its format */
	SYM_UNSUPPORTED = 7, /**< code of a known kind that libsym does not read */
	/**
	 * A function of a native image without a symbol (a stripped file).
	 * Its bounds come from .eh_frame.
	 * `name` is IMAGE!0xVADDR: file name of the image, vaddr of the function's first byte.
	 * That serves for folding and for a later look-up; it is not a name.
	 */
	SYM_BOUNDS_ONLY = 8
};

/** Returns a few words for people; static. */
SYM_API const char *sym_status_text(enum sym_status status);

/** A function that the compiler inlined into another one. */
struct sym_inlined {
	const char *name;         /**< readable form; "" when unknown */
	const char *linkage_name; /**< mangled; NULL when `name` is that already */
	const char *call_file;    /**< source file of the call; NULL when unknown */
	uint32_t call_line;       /**< 0 when unknown */
	uint32_t call_column;     /**< 0 when unknown */
};

/**
 * The answer to one address.
 *
 * It lives until its result is used again.
 * Names live as long as the resolver; see sym_resolver_refresh() for exceptions.
 */
struct sym_answer {
	uint64_t address; /**< as passed in */
	enum sym_status status;
	enum sym_source_kind source; /**< SYM_SOURCE_NONE unless resolved or SYM_BOUNDS_ONLY */
	/** Full name without tier; the text of SYM_BOUNDS_ONLY; else NULL. */
	const char *name;
	const char *tier;      /**< NULL when there is none */
	uint64_t offset_bytes; /**< address minus start of the symbol */
	uint64_t size_bytes;   /**< of the symbol; 0 when unknown */
	/** The image that contains the address, with or without a name; NULL for none. */
	const struct sym_image *image;
	/** Path to print: the image's, or that of /proc/PID/maps ("[heap]", "/memfd:doublemapper");
	 * "" for anonymous memory. */
	const char *image_path;
	uint64_t image_position; /**< rva or vaddr in the image; UINT64_MAX without an image */
	const char *reason;      /**< more about the status; NULL when there is nothing more */
	enum sym_symbol_kind kind;
	/** enum sym_field: fields of sym_result_set_fields() that could not be read because memory
	 * ran out or libdw crashed (SYM_SNAPSHOT_FORK_FOR_DWARF). */
	uint32_t lost;
	/** The name in the symbol table, when `name` is its readable form (C++, Rust, D, OCaml);
	 * else NULL. Lives as long as `name`. */
	const char *linkage_name;
	/** With SYM_FIELD_LINES: source file of the address; NULL when unknown. */
	const char *file;
	uint32_t line;   /**< 0 when unknown */
	uint32_t column; /**< 0 when unknown */
	/**
	 * With SYM_FIELD_INLINED: the functions inlined at the address, innermost first; NULL:
	 * none. `file` and `line` lie in the first one, with all fields of managed code. Each was
	 * called from the next one; the last one from the function `name`. The array lives as long
	 * as the answer; its strings as long as `name`.
	 */
	const struct sym_inlined *inlined;
	size_t inlined_count;
	/**
	 * With SYM_FIELD_COMPONENT: simple name of the method's assembly in a composite image.
	 * It is the assembly whose metadata named the method.
	 * If the composite image records the assemblies it was compiled from, it is one of those;
	 * otherwise the method has no name.
	 * NULL for other images. Lives as long as `name`.
	 */
	const char *component;
	const char *component_mvid; /**< its MVID, 36 characters; NULL when `component` is */
	/**
	 * With SYM_FIELD_LINES: how certain `line` is (enum sym_line_quality).
	 * SYM_LINE_EXACT for lines of native code, too.
	 */
	uint32_t line_quality;
	/** With SYM_FIELD_LINES, managed code: offset into the IL of the method; UINT32_MAX when
	 * unknown. */
	uint32_t il_offset;
	/** With SYM_FIELD_LINES, managed code: 0x06000000 + row of the method; 0 when unknown. */
	uint32_t method_token;
	/** With SYM_FIELD_LINES: how certain `il_offset` is (enum sym_line_quality), with or
	 * without a line. */
	uint32_t il_quality;
	/** MVID of the module that has the method, 36 characters; NULL when `method_token` is 0.
	 * Lives as long as `name`. */
	const char *module_mvid;
	/** With SYM_FIELD_LINES: why managed code has no line, or with SYM_FIELD_INLINED why it has
	 * no inlined methods although the runtime recorded some; else NULL. Lives as long as
	 * `name`. */
	const char *line_reason;
	/** With SYM_FIELD_LINES: the PDB that has `file`; NULL for native code. Lives as long as
	 * `name`; see sym_pdb_source_link(). */
	const struct sym_pdb *pdb;
};

/** The answers to one batch of addresses; reuse it, so that look-ups allocate nothing. */
struct sym_result;

/**
 * Creates an empty result.
 *
 * @param ret  The result; free it with sym_result_destroy().
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_result_create(struct sym_result **ret);

/**
 * Frees a result.
 *
 * @param result  NULL is accepted.
 */
SYM_API void sym_result_destroy(struct sym_result *result);

/** Returns the number of answers of the last batch. */
SYM_API size_t sym_result_count(const struct sym_result *result);

/**
 * Returns the answer to an address of the last batch.
 *
 * @param index  From 0, in the order of the addresses.
 * @return It lives until the result is used again; NULL beyond the end.
 */
SYM_API const struct sym_answer *sym_result_at(const struct sym_result *result, size_t index);

/** Turns addresses into names. */
struct sym_resolver;

/**
 * Creates a resolver of a snapshot.
 *
 * Nothing is loaded before an address needs it.
 * What was loaded is kept, as are up to 2 MB of answers.
 *
 * @param snapshot  Borrowed; it must outlive the resolver.
 * @param ret  The resolver; free it with sym_resolver_destroy().
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_resolver_create(struct sym_snapshot *snapshot,
							     struct sym_resolver **ret);

/**
 * Frees a resolver.
 *
 * @param resolver  NULL is accepted.
 */
SYM_API void sym_resolver_destroy(struct sym_resolver *resolver);

/**
 * Resolves addresses of the process.
 *
 * For a caller's frame, look up `return_address - 1`.
 * If that has no symbol, or the instruction before is not a call, look up the address itself.
 * Use that result only if the symbol starts there.
 * Signal frames, OSR frames (.NET 11) and stack roots have exact addresses.
 *
 * @param addresses  Addresses in the process; `count` of them.
 * @param result  Receives the answers, in the same order.
 *
 * Errors: NO_MEMORY.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_resolver_resolve(struct sym_resolver *resolver,
							      const uint64_t *addresses,
							      size_t count,
							      struct sym_result *result);

/**
 * Resolves addresses that were seen at known times, such as the samples of a profile.
 *
 * A JIT uses memory again; a jitdump has the time of each piece of code.
 * An address gets the name of the code that was there at its time, even if it was freed since.
 * Other code is resolved as of now: perf maps have no times.
 *
 * @param addresses  As for sym_resolver_resolve().
 * @param times_ns  CLOCK_MONOTONIC (perf record -k mono) in ns, one for each address.
 *   0: unknown. NULL: all unknown.
 *   A time before the first record of the jitdump is from another clock, and ignored.
 *   All are ignored where the jitdump counts cycles.
 * @param result  As for sym_resolver_resolve().
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_resolver_resolve_at(struct sym_resolver *resolver, const uint64_t *addresses,
			const uint64_t *times_ns, size_t count, struct sym_result *result);

/**
 * Resolves the rows of the line tables of managed methods.
 *
 * A row is where the line may change.
 * Ask for SYM_FIELD_LINES; the line of an answer holds up to the next answer of the same method.
 * An answer's method ends at its address - offset_bytes + size_bytes.
 *
 * @param addresses  One address of each method, as for sym_resolver_resolve().
 * @param result  Receives the rows of all methods, ascending by address.
 *   A method without an IL map and native functions have none.
 *   SYM_FIELD_RETURN_ADDRESSES has no effect.
 *
 * Errors: NO_MEMORY, LIMIT.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_resolver_resolve_rows(struct sym_resolver *resolver,
								   const uint64_t *addresses,
								   size_t count,
								   struct sym_result *result);

/* ------------------------------------------------------------------------
 * Refreshing
 * ------------------------------------------------------------------------ */

/** The result of a refresh. */
enum sym_refresh {
	SYM_REFRESH_UNCHANGED = 0, /**< nothing new */
	/** New lines of the perf map or records of the jitdump; only those were read. Or other
	 * jitted code in the runtime; or other executable memory. */
	SYM_REFRESH_EXTENDED = 1,
	/** The perf map or the jitdump was replaced or cut; it was read again from its start. */
	SYM_REFRESH_REPLACED = 2,
	/** The process has ended, called exec(), or its PID belongs to another process.
	 * The resolver still answers. One refresh before this one returned the runtime's last
	 * events. */
	SYM_REFRESH_EXITED = 3,
	/** Libraries or assemblies were loaded, unloaded or overwritten. Other changes may have
	 * been found too. */
	SYM_REFRESH_REMAPPED = 4
};

/**
 * Brings a resolver up to date with its process.
 *
 * What it reads: new and removed mappings; code that the runtime has compiled; new lines of the
 * perf map; new records of the jitdump.
 * Files that are still mapped stay open, with everything that was read of them.
 * An incomplete last line or record waits for the next refresh.
 * What the process has not flushed yet is read from its stdio buffer (glibc, readable memory).
 *
 * The runtime is asked only after an address of its code was resolved.
 * It is asked with the method that sym_snapshot_jit() reports.
 *
 * SYM_JIT_CONTRACT: the first refresh reads all methods (8,700 methods: 50 ms of CPU).
 * Later ones read only what is new (3 ms).
 *
 * SYM_JIT_RUNDOWN: the first refresh requests a rundown and starts an event session.
 * The session lasts until the resolver is destroyed.
 * A thread (256 KiB of stack, all signals blocked) receives its events.
 * A method that was being compiled when the session started is in neither.
 * So another list is requested by the first refresh after 5 s, 50 s later, 500 s later, and so on.
 * All methods are requested again when events may have been lost: the runtime's buffer (16 MB)
 * was full, 2 MB arrived at once, or 64 MB were received between two refreshes.
 *
 * A stopped runtime is asked by the next refresh.
 * A runtime that did not answer in time is never asked again.
 *
 * Returned names stay valid, with two exceptions:
 * - Names and images of an unmapped file or a replaced perf map are freed at the second such
 *   change afterwards.
 * - Names of unloaded jitted code are freed once unused names have twice exceeded 16 MB and the
 *   names in use.
 *
 * The snapshot does not change; newer images belong to the resolver.
 * Other threads may resolve during the call; each address gets the old or the new answer.
 * On failure the old answers stay.
 *
 * @param ret  What was found; may be NULL.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_resolver_refresh(struct sym_resolver *resolver,
							      enum sym_refresh *ret);

/* ------------------------------------------------------------------------
 * Lines and inlined functions
 * ------------------------------------------------------------------------ */

/** Fields of an answer that are read on request. */
enum sym_field {
	/**
	 * Source file, line and column.
	 * From DWARF of native images, function tables of Go programs, and jitdumps (Node.js
	 * --perf-prof, LLVM, perf's agent for Java; .NET writes none).
	 * Lines of managed code come from portable PDBs; see sym_lines.h.
	 */
	SYM_FIELD_LINES = 1 << 0,
	/**
	 * Inlined functions: from DWARF, from function tables of Go programs, and for jitted code
	 * of .NET 10 and 11 from the runtime, if it was started with DOTNET_RichDebugInfo=1.
	 */
	SYM_FIELD_INLINED = 1 << 1,
	/** assembly of a method in a composite image, and its MVID */
	SYM_FIELD_COMPONENT = 1 << 2,
	/**
	 * Not a field: the addresses or positions are return addresses, as of callers in a stack.
	 * Each answer is that of the last byte before, which belongs to the call.
	 * `address`, `offset_bytes` and `image_position` remain those of the return address.
	 * The first address of a stack is that of an instruction; resolve it without this flag.
	 */
	SYM_FIELD_RETURN_ADDRESSES = 1 << 3
};

/**
 * Sets the optional fields of the answers in a result.
 *
 * DWARF is read unit by unit, under a lock: use it for some thousand addresses, not in a hot path.
 * With -gsplit-dwarf it is read from the .dwo files that the image names, or from FILE.dwp.
 * A file that was changed is not used.
 *
 * @param fields  enum sym_field; 0: names only, as in a new result.
 *
 * Errors: ARGUMENT for unknown flags.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_result_set_fields(struct sym_result *result,
							       uint32_t fields);

/* ------------------------------------------------------------------------
 * Positions in files
 * ------------------------------------------------------------------------ */

/** The file and the position in it that an address stands for. */
struct sym_position {
	uint64_t address; /**< as passed in */
	/** SYM_RESOLVED: in a file. SYM_UNMAPPED: not mapped. SYM_NO_SYMBOLS: in other memory. */
	enum sym_status status;
	uint32_t mapping_index;  /**< UINT32_MAX when not mapped */
	struct sym_image *image; /**< belongs to the snapshot; NULL outside images */
	/** Offset into the image's file; for an image inside another file into the image's own
	 * bytes. UINT64_MAX when unknown. */
	uint64_t offset;
	/**
	 * Rva or vaddr in the image.
	 * UINT64_MAX without an image, or when that part of the file is not loaded.
	 * Prefer a vaddr to an offset for a later look-up: a debug file has the same vaddrs, but
	 * mostly other offsets.
	 */
	uint64_t image_position;
};

/**
 * Finds the files and positions of addresses, to look up their names later or elsewhere.
 *
 * Save sym_position.image_position and sym_image_identity() of the image.
 * On another machine use sym_image_open_by_id() and sym_image_resolve().
 *
 *     struct sym_position position;
 *     struct sym_identity identity = { .size = sizeof(identity) };
 *
 *     error = sym_snapshot_normalize(snapshot, &address, 1, &position);
 *     if (!error && position.image)
 *             error = sym_image_identity(position.image, &identity);
 *
 * @param addresses  Addresses in the process; `count` of them.
 * @param ret  Room for `count` positions; they need no freeing.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_snapshot_normalize(struct sym_snapshot *snapshot,
								const uint64_t *addresses,
								size_t count,
								struct sym_position *ret);

/** The kinds of a position inside an image. */
enum sym_position_kind {
	SYM_POSITION_OFFSET = 0, /**< offset into the file */
	SYM_POSITION_RVA = 1,    /**< rva of a PE file */
	SYM_POSITION_VADDR = 2   /**< vaddr of a linked ELF file */
};

/**
 * Resolves positions inside one image, mapped or not.
 *
 * In an archive that sym_image_open() opened, an offset selects the stored member that contains it.
 *
 * @param positions  `count` of them.
 * @param result  Receives the answers, in the same order; sym_answer.address is the position.
 *
 * Errors: ARGUMENT for a kind that the image does not have.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_resolve(struct sym_image *image,
							   enum sym_position_kind kind,
							   const uint64_t *positions, size_t count,
							   struct sym_result *result);

/**
 * Resolves the rows of the line tables of methods of one image: sym_resolver_resolve_rows() for
 * precompiled code, mapped or not.
 *
 * @param positions  One position of each method.
 * @param result  Receives the rows of all methods, ascending; sym_answer.address is the position.
 *
 * Errors: those of sym_image_resolve(); LIMIT.
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_image_resolve_rows(struct sym_image *image, enum sym_position_kind kind,
		       const uint64_t *positions, size_t count, struct sym_result *result);

/* ------------------------------------------------------------------------
 * All symbols of a process
 * ------------------------------------------------------------------------ */

enum sym_snapshot_symbols_flags {
	/** methods of ReadyToRun images and their stub ranges; functions of a NativeAOT program */
	SYM_SYMBOLS_PRECOMPILED = 1 << 0,
	/** lines of the perf map, mapped now or not, except in images that are listed */
	SYM_SYMBOLS_PERF_MAP = 1 << 1,
	SYM_SYMBOLS_ELF = 1 << 2,     /**< native functions */
	SYM_SYMBOLS_RUNTIME = 1 << 3, /**< jitted code, from the runtime in the process */
	/** native functions without a symbol (SYM_SYMBOL_UNNAMED), and linkage stubs (NAME@plt) */
	SYM_SYMBOLS_UNNAMED = 1 << 4,
	/** native names as in the symbol table: mangled for C++, Rust, D, OCaml */
	SYM_SYMBOLS_LINKAGE_NAMES = 1 << 5,
	/** lines of a live process's perf map only where memory is executable */
	SYM_SYMBOLS_IN_CODE = 1 << 6
};

/**
 * Lists all symbols of a process by address, disjoint and sorted.
 *
 * Where symbols overlap: the image wins over the runtime, the runtime over a perf map, a later
 * line of a perf map over an earlier one, and all of them over SYM_SYMBOL_UNNAMED.
 * The rest of an unnamed function keeps the text of the whole function.
 * Perf map lines that are such texts are left out.
 * An image that cannot be read lacks its own symbols only; sym_image_problem() explains it.
 *
 * @param flags  enum sym_snapshot_symbols_flags; 0: PRECOMPILED | PERF_MAP | RUNTIME.
 * @param ret  The list; free it with sym_symbols_destroy().
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_snapshot_symbols(struct sym_snapshot *snapshot, uint32_t flags, struct sym_symbols **ret);

#ifdef __cplusplus
}
#endif

#endif
