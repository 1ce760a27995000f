/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Part of libsym.h: files that contain code, their symbols and their identity.
 */
#ifndef LIBSYM_SYM_IMAGE_H
#define LIBSYM_SYM_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/sym_error.h"
#include "libsym/sym_symbols.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sym_budget;
struct sym_pdb_reference;

/* ------------------------------------------------------------------------
 * Images
 * ------------------------------------------------------------------------ */

/** The kind of an image. */
enum sym_image_kind {
	SYM_IMAGE_UNKNOWN = 0,
	SYM_IMAGE_ELF = 1,
	SYM_IMAGE_IL = 2,         /**< .NET assembly without precompiled code */
	SYM_IMAGE_READYTORUN = 3, /**< .NET assembly with precompiled code */
	SYM_IMAGE_COMPONENT = 4,  /**< .NET assembly whose code is in a composite image */
	SYM_IMAGE_COMPOSITE = 5,  /**< precompiled code of several assemblies */
	/** fragile native image (CoreLib up to .NET Core 2.2); its methods cannot be listed */
	SYM_IMAGE_NGEN = 6,
	SYM_IMAGE_NATIVE_PE = 7 /**< PE file without a CLI header */
};

/**
 * Returns a short word for a kind; static.
 *
 * The words: "elf", "il", "r2r", "component", "composite", "ngen", "pe", "unknown".
 */
SYM_API const char *sym_image_kind_text(enum sym_image_kind kind);

/**
 * A file with code: opened by its path, or as a process has it mapped.
 *
 * Images of a snapshot belong to the snapshot.
 */
struct sym_image;

/** Options of sym_image_open_with(); 0 in a field selects the default. */
struct sym_image_opts {
	size_t size; /**< sizeof(struct sym_image_opts) */
	/** Further directories with assemblies, NULL terminated; copied. NULL: none.
	 * They are searched in their order, after the directory of the image. */
	const char *const *assembly_dirs;
	/** Limit for this file and the files that belong to it; must outlive the image.
	 * NULL: no such limit. */
	struct sym_budget *budget;
};

/**
 * Opens a file without a process.
 *
 * Composite images and larger version bubbles refer to other assemblies.
 * Their names are read from the assemblies in the same directory.
 *
 * @param path  A file; or "ARCHIVE!/NAME", a stored member of a zip archive (apk, jar).
 *   The second form is tried when no file has that path.
 * @param ret  The image; close it with sym_image_close().
 *
 * Errors: NOT_FOUND, PERMISSION, IO; ARGUMENT when it is not a regular file; UNSUPPORTED for a
 * compressed member of an archive; LIMIT; NO_MEMORY.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_open(const char *path, struct sym_image **ret);

/**
 * Opens a file as sym_image_open() does, with options.
 *
 * @param opts  Copied. NULL selects the defaults.
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_image_open_with(const char *path, const struct sym_image_opts *opts, struct sym_image **ret);

/**
 * Closes an image that one of the functions above opened.
 *
 * Never pass an image of a snapshot.
 *
 * @param image  NULL is accepted.
 */
SYM_API void sym_image_close(struct sym_image *image);

/**
 * Returns the path of an image.
 *
 * It is the path as opened, or as in /proc/PID/maps without " (deleted)".
 * An image inside another file (archive, single-file application) has "FILE!/NAME".
 * It lives as long as the image.
 */
SYM_API const char *sym_image_path(const struct sym_image *image);

/** Returns the kind of an image; SYM_IMAGE_UNKNOWN when its file is not open. */
SYM_API enum sym_image_kind sym_image_kind(const struct sym_image *image);

/** Returns the simple name of the assembly; NULL when the image is not an assembly. */
SYM_API const char *sym_image_assembly_name(const struct sym_image *image);

/** Returns the module version id: 36 lower-case characters with dashes; NULL when there is none. */
SYM_API const char *sym_image_mvid(const struct sym_image *image);

/**
 * Returns the file name of the composite image that contains the code of a component.
 *
 * @return NULL when the kind is not SYM_IMAGE_COMPONENT, or when it could not be read.
 */
SYM_API const char *sym_image_composite(const struct sym_image *image);

/**
 * Returns a key of the content of the file, as 64 lower-case hex digits.
 *
 * It is the first half of the SHA-512 of the bytes.
 * Different bytes have different keys; MVID, time stamp and map signature do not ensure that.
 * Another user cannot make a file with the same key.
 *
 * @return NULL when the content could not be read.
 */
SYM_API const char *sym_image_content_key(const struct sym_image *image);

/**
 * Returns why the image cannot be used for names: replaced on disk, unreadable, ...
 *
 * A deleted or replaced file is read through its mapping where that is permitted
 * (CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN).
 * Otherwise it is rebuilt from the memory of the process.
 *
 * @return NULL when it can be used.
 */
SYM_API const char *sym_image_problem(const struct sym_image *image);

/**
 * Returns the address of rva 0 (PE) or vaddr 0 (ELF) in the process.
 *
 * @return UINT64_MAX when the image is not mapped, or the address is unknown.
 */
SYM_API uint64_t sym_image_load_base(const struct sym_image *image);

/* ------------------------------------------------------------------------
 * Symbols of an image
 * ------------------------------------------------------------------------ */

enum sym_image_symbols_flags {
	SYM_IMAGE_SYMBOLS_STUBS = 1 << 0, /**< also the stub ranges of the image */
	/** also functions of an ELF file without a symbol: SYM_SYMBOL_UNNAMED */
	SYM_IMAGE_SYMBOLS_UNNAMED = 1 << 1,
	/** native names as in the symbol table: mangled for C++, Rust, D, OCaml */
	SYM_IMAGE_SYMBOLS_LINKAGE_NAMES = 1 << 2,
	/** by offset into the file, as perf counts, and disjoint; for an image inside a bundle or
	 * an archive the offset is into that */
	SYM_IMAGE_SYMBOLS_BY_OFFSET = 1 << 3
};

/**
 * Lists all symbols of an image: by rva for PE files, by vaddr for ELF files, or by offset.
 *
 * Aliases (several methods with the same start) are all listed, except by offset.
 * A method is left out when its name needs metadata of an assembly that was not found.
 * sym_image_method_count() counts such methods too.
 *
 * @param flags  enum sym_image_symbols_flags.
 * @param ret  The list; free it with sym_symbols_destroy().
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_symbols(struct sym_image *image, uint32_t flags,
							   struct sym_symbols **ret);

/**
 * Counts the precompiled methods of an image, generic instances included.
 *
 * The first call reads the tables.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_method_count(struct sym_image *image,
								uint64_t *ret);

/* ------------------------------------------------------------------------
 * Relative maps
 * ------------------------------------------------------------------------ */

/**
 * Writes the relative map of an image, as its compiler would have written it.
 *
 * There is one row for each precompiled method, generic instances included, by rva.
 * Methods without a name are left out, as in sym_image_symbols().
 * sym_image_unnamed_methods() counts them.
 *
 * @param format  SYM_MAP_RELATIVE or SYM_MAP_R2RMAP.
 * @param text_ret  The map and a NUL; free() it.
 * @param size_bytes_ret  Length of the text without the NUL.
 *
 * Errors: UNSUPPORTED for an image without precompiled code, and with SYM_MAP_R2RMAP for a
 * composite image of .NET 5, which does not contain its signature.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_map(struct sym_image *image,
						       enum sym_map_format format, char **text_ret,
						       size_t *size_bytes_ret);

/**
 * Counts the precompiled methods for which sym_image_map() has no row.
 *
 * The image itself does not contain their names.
 * The function builds every name again.
 *
 * @param format  SYM_MAP_RELATIVE or SYM_MAP_R2RMAP.
 * @param why_ret  Why the first of them has no name, static; NULL when all have one.
 *
 * Errors: as for sym_image_map().
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_unnamed_methods(struct sym_image *image,
								   enum sym_map_format format,
								   uint64_t *count_ret,
								   const char **why_ret);

/**
 * Makes the file name under which tools look for the relative map of an image.
 *
 * SYM_MAP_RELATIVE: "NAME.ni.{MVID}.map".
 * SYM_MAP_R2RMAP: the name of the r2rmap in the image, else "NAME.ni.r2rmap".
 * It contains no directory.
 *
 * @param name_ret  The name; free() it.
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_image_map_name(struct sym_image *image, enum sym_map_format format, char **name_ret);

/**
 * Returns why a relative map in sym_snapshot_opts.relative_map_dirs is not used for an image.
 *
 * @return NULL when there is no such map, or no symbol of the image was looked up yet.
 */
SYM_API const char *sym_image_rejected_map(const struct sym_image *image);

/* ------------------------------------------------------------------------
 * Debug files
 * ------------------------------------------------------------------------ */

/** Which file is to be fetched. */
enum sym_fetch_kind {
	/** what was split off when the image was stripped: .symtab and DWARF */
	SYM_FETCH_DEBUG_FILE = 1,
	/** what several debug files share (dwz, .gnu_debugaltlink); servers have it as a debug file
	 */
	SYM_FETCH_SHARED_FILE = 2,
	SYM_FETCH_PDB = 3 /**< the portable PDB of an assembly; see sym_fetch_request.pdb */
};

/** The argument of a sym_fetch_fn; valid during the call. */
struct sym_fetch_request {
	uint32_t kind;                /**< enum sym_fetch_kind; no file for an unknown kind */
	uint32_t build_id_size_bytes; /**< 0: no build-id */
	/** GNU build-id of the image; for SYM_FETCH_SHARED_FILE that of the shared file */
	const uint8_t *build_id;
	const char *image_path; /**< as sym_image_path() */
	/** file name in .gnu_debuglink, or path in .gnu_debugaltlink; NULL when there is none */
	const char *debug_link;
	uint32_t debug_link_sum; /**< CRC-32 of the file in .gnu_debuglink; 0 without a name */
	uint32_t reserved;
	/** SYM_FETCH_PDB: which one; NULL for other kinds */
	const struct sym_pdb_reference *pdb;
};

/**
 * Fetches a file that libsym did not find: from a debuginfod server, a store, a package.
 *
 * When it is called:
 * - An address, a list of symbols or a source line of an ELF image is looked up.
 * - Neither the image nor a debug file on this machine names it.
 * - At most once for each image, whatever the outcome.
 * - Never when a process or file is opened, and never for an image with a full .symtab.
 * - For a shared file: when the DWARF that refers to it is read, and it is not on this machine.
 * - For a PDB: when a line of an assembly is looked up; see sym_image_pdb().
 *
 * How it is called:
 * - By the thread that looks up, which waits for it.
 * - Other threads wait if they need the same image; for other images they may call it too.
 * - It must not use the snapshot, image or resolver of the call.
 *
 * Which files are used:
 * - Those with the build-id of the image.
 * - Where one of both has no build-id: those with the checksum in .gnu_debuglink.
 * - A PDB as sym_pdb_matches() says.
 * - In both cases the code must be laid out as in the image.
 * - For other files sym_image_rejected_debug_file() and sym_answer.reason have both build-ids.
 *
 * @param context  As given with the function.
 * @param path_ret  Path of the file, from malloc(); libsym calls free().
 *   It is NULL before the call; NULL: no such file.
 *   libsym keeps the file open, so it may be deleted afterwards.
 * @return 0, or an errno value when the search failed.
 */
typedef int sym_fetch_fn(void *context, const struct sym_fetch_request *request, char **path_ret);

/**
 * Sets the fetch function of an image that sym_image_open() opened.
 *
 * For a process see sym_snapshot_opts.fetch.
 * Call it before the image is used, and before other threads have it.
 *
 * Errors: ARGUMENT when a position was resolved, methods were counted, the debug file was looked
 * up, or the image belongs to a snapshot.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_set_fetch(struct sym_image *image,
							     sym_fetch_fn *fetch, void *context);

/**
 * Sets directories with separate debug files of an image that sym_image_open() opened.
 *
 * Call it when sym_image_set_fetch() may be called.
 *
 * @param dirs  As sym_snapshot_opts.debug_dirs; copied.
 *
 * Errors: as for sym_image_set_fetch(); NO_MEMORY.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_set_debug_dirs(struct sym_image *image,
								  const char *const *dirs);

/**
 * Reads DWARF of an image in a child process, as SYM_SNAPSHOT_FORK_FOR_DWARF does.
 *
 * Call it when sym_image_set_fetch() may be called.
 *
 * Errors: as for sym_image_set_fetch().
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_fork_for_dwarf(struct sym_image *image);

/**
 * Returns why the fetched debug file is not used, or why fetching failed.
 *
 * It lives as long as the image.
 *
 * @return NULL when nothing was fetched yet, or the file is used.
 */
SYM_API const char *sym_image_rejected_debug_file(const struct sym_image *image);

/**
 * Returns the path of the file with the symbol table of a native image.
 *
 * That is its own path, or that of its separate debug file (.dbg, .debug).
 * The first call searches for it.
 *
 * @return NULL when there is none: only exports and bounds of functions are known.
 *   NULL for assemblies, which need none.
 */
SYM_API const char *sym_image_symbol_file(const struct sym_image *image);

enum sym_debug_path_flags {
	/** relative to the root directory of the image's process; otherwise to this machine's */
	SYM_DEBUG_PATH_IN_PROCESS_ROOT = 1 << 0,
	/** the file must have the checksum in .gnu_debuglink; otherwise the image's build-id */
	SYM_DEBUG_PATH_BY_LINK = 1 << 1
};

/** A path where libsym looks for a separate debug file. */
struct sym_debug_path {
	const char *path; /**< valid during the call of the callback */
	uint32_t flags;   /**< enum sym_debug_path_flags */
	uint32_t reserved;
};

/** Receives one path; returns 0 to continue. */
typedef int sym_debug_path_fn(void *context, const struct sym_debug_path *path);

/**
 * Lists the paths where libsym looks for the separate debug file of an ELF image.
 *
 * They come in the order of the search, whether a file exists or not.
 * A cache can use them to find out that a debug file was installed.
 *
 * 1. By build-id: DIR/.build-id/ab/cdef.debug for each DIR of sym_snapshot_opts.debug_dirs, then
 *    for /usr/lib/debug.
 * 2. By .gnu_debuglink: DIR and the path of the image, for each DIR; beside the image; in .debug
 *    beside the image; /usr/lib/debug and the path of the image.
 *
 * Each DIR is on this machine.
 * The other paths are tried in the root directory of the image's process and on this machine.
 * An image with neither build-id nor link has no paths.
 * An image with a .symtab (sym_identity.contents) needs a debug file for lines only.
 * Files from a sym_fetch_fn are not listed.
 *
 * @param callback  Called by this thread before the function returns; must not close the image.
 *
 * Errors: UNSUPPORTED when the image is not an ELF file; NOT_FOUND when its file is not open (see
 * sym_image_problem()); FORMAT or IO when its sections cannot be read.
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_image_each_debug_path(struct sym_image *image, sym_debug_path_fn *callback, void *context);

/* ------------------------------------------------------------------------
 * File identity
 * ------------------------------------------------------------------------ */

/** How symbol servers and debuggers identify a file. */
enum sym_identity_kind {
	SYM_IDENTITY_NONE = 0,           /**< of no supported kind */
	SYM_IDENTITY_ELF = 1,            /**< id: GNU build-id; none when id_size_bytes is 0 */
	SYM_IDENTITY_PE = 2,             /**< timestamp and image_size_bytes */
	SYM_IDENTITY_PDB = 3,            /**< Windows PDB; id: GUID; and age */
	SYM_IDENTITY_COMPRESSED_PDB = 4, /**< as SYM_IDENTITY_PDB, in an MSFZ container */
	/** id: GUID; timestamp: the last 4 bytes of its 20-byte id */
	SYM_IDENTITY_PORTABLE_PDB = 5,
	SYM_IDENTITY_RELATIVE_MAP = 6, /**< r2rmap; id: signature; age: format version */
	SYM_IDENTITY_MACHO = 7,        /**< id: UUID */
	SYM_IDENTITY_WASM = 8          /**< id: build id */
};

/** Contents of a file beside its identity. */
enum sym_content {
	SYM_CONTENT_CODE = 1 << 0,         /**< loadable bytes */
	SYM_CONTENT_SYMBOL_TABLE = 1 << 1, /**< names of all functions: a full .symtab, a PDB */
	SYM_CONTENT_DEBUG_INFO = 1 << 2    /**< DWARF .debug_info, or a PDB */
};

/** The identity of a file; fields that its kind does not have are 0. */
struct sym_identity {
	size_t size; /**< sizeof(struct sym_identity), set by the caller */
	uint64_t file_size_bytes;
	uint32_t kind;     /**< enum sym_identity_kind */
	uint32_t contents; /**< enum sym_content */
	uint32_t timestamp;
	uint32_t image_size_bytes;
	uint32_t age;
	uint32_t id_size_bytes; /**< of `id`; 0: none */
	/** In the order of its text form: the first three fields of a GUID are big-endian. */
	uint8_t id[64];
};

/**
 * Reads the identity of a file from its headers; the file name does not matter.
 *
 * A file of an unknown kind is not an error.
 *
 * @param fd  Open for reading; not closed; read with pread().
 * @param size_bytes  Size of the part that counts; UINT64_MAX: the whole file.
 * @param ret  The identity; set its `size` first.
 *
 * Errors: FORMAT when the headers contradict each other or exceed the file.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_identity_read(int fd, uint64_t size_bytes,
							   struct sym_identity *ret);

/**
 * Reads the identity of the file of an image.
 *
 * It is that of the mapped file, even if its path leads to another file now.
 * For an image inside another file only its own bytes count.
 *
 * @param ret  The identity; set its `size` first.
 *
 * Errors: NOT_FOUND when the file is not open (see sym_image_problem()); those of
 * sym_identity_read().
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_identity(struct sym_image *image,
							    struct sym_identity *ret);

/**
 * Finds the file with an identity in a list of directories and opens it.
 *
 * A file is used only if it has the identity.
 * In each directory these paths are tried:
 * - ELF: .build-id/xx/yyyy and .build-id/xx/yyyy.debug, as below /usr/lib/debug.
 * - ELF: xxyyyy/executable and xxyyyy/debuginfo, as in caches of debuginfod clients.
 * - Both: NAME.
 * - PE: NAME/KEY/NAME, as on symbol servers.
 *
 * @param identity  SYM_IDENTITY_ELF with a build-id, or SYM_IDENTITY_PE.
 * @param name  File name of the image; NULL when unknown.
 * @param dirs  NULL terminated.
 * @param ret  The image; close it with sym_image_close().
 *
 * Errors: NOT_FOUND when there is no such file; ARGUMENT for another identity, or a name that is
 * not a file name.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_open_by_id(const struct sym_identity *identity,
							      const char *name,
							      const char *const *dirs,
							      struct sym_image **ret);

/**
 * Finds the bytes of an ELF section by its name.
 *
 * @param fd  As for sym_identity_read().
 * @param size_bytes  As for sym_identity_read().
 * @param offset_ret  Offset into the file.
 * @param size_bytes_ret  Size of the section in the file.
 *
 * Errors: NOT_FOUND when there is no such section, or it has no bytes in the file.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_elf_section_find(int fd, uint64_t size_bytes,
							      const char *name,
							      uint64_t *offset_ret,
							      uint64_t *size_bytes_ret);

#ifdef __cplusplus
}
#endif

#endif
