/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Part of libsym.h: files with code, what they hold and by what they are known.
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

/* ------------------------------------------------------------------------
 * Images
 * ------------------------------------------------------------------------ */

/** What a file is. */
enum sym_image_kind {
	SYM_IMAGE_UNKNOWN = 0,
	SYM_IMAGE_ELF = 1,
	SYM_IMAGE_IL = 2,         /**< .NET assembly without precompiled code */
	SYM_IMAGE_READYTORUN = 3, /**< .NET assembly with precompiled code */
	SYM_IMAGE_COMPONENT = 4,  /**< .NET assembly whose code is in a composite image */
	SYM_IMAGE_COMPOSITE = 5,  /**< precompiled code of several assemblies */
	SYM_IMAGE_NGEN = 6,     /**< fragile native image (CoreLib up to .NET Core 2.2): its methods
				   cannot be listed */
	SYM_IMAGE_NATIVE_PE = 7 /**< PE file without a CLI header */
};

/** Short word for a kind: "elf", "il", "r2r", "component", "composite", "ngen", "pe", "unknown";
 * static. */
SYM_API const char *sym_image_kind_text(enum sym_image_kind kind);

/**
 * A file with code: opened by itself, or as a process has it mapped.
 * Images of a snapshot belong to the snapshot.
 */
struct sym_image;

/**
 * Opens a file without a process; where there is no such file, "ARCHIVE!/NAME" is the member NAME
 * of a zip archive (apk, jar), if it is stored as it is. What is packed is SYM_ERROR_UNSUPPORTED.
 * Of ARCHIVE itself sym_image_resolve() by SYM_POSITION_OFFSET finds the member that lies there.
 *
 * Its neighbours in the same directory are consulted for the names of other
 * assemblies when the image refers to them (composite images, larger version
 * bubbles).
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_open(const char *path, struct sym_image **ret);

/**
 * As sym_image_open(); where the image's directory does not have an assembly,
 * it is looked for in further ones (the framework's, usually), in their order.
 *
 * @param assembly_dirs NULL terminated; copied; NULL for none
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_image_open_among(const char *path, const char *const *assembly_dirs, struct sym_image **ret);
SYM_API void sym_image_close(struct sym_image *image);

/** Path as opened, or as /proc/PID/maps has it (without " (deleted)"); of an image inside another
 * file (an archive, a single-file application) "FILE!/NAME". */
SYM_API const char *sym_image_path(const struct sym_image *image);
SYM_API enum sym_image_kind sym_image_kind(const struct sym_image *image);

/** Simple name of the assembly; NULL when it is none. */
SYM_API const char *sym_image_assembly_name(const struct sym_image *image);

/** Module version id as 36 lower-case characters with dashes; NULL when there is none. */
SYM_API const char *sym_image_mvid(const struct sym_image *image);

/**
 * File name of the composite image that holds the code of this component
 * (SYM_IMAGE_COMPONENT); NULL for other kinds, and when it could not be read.
 */
SYM_API const char *sym_image_composite(const struct sym_image *image);

/**
 * 32 lower-case hex digits over the content of the file: equal only for equal
 * bytes, which MVID, time stamp and map signature are not. NULL when the
 * content could not be read.
 */
SYM_API const char *sym_image_content_key(const struct sym_image *image);

/**
 * Why the image cannot be used for names (replaced on disk, unreadable, ...); NULL when it can.
 * A file that was deleted or replaced is read through its mapping where that is permitted
 * (CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN), else put together from the memory of the process.
 */
SYM_API const char *sym_image_trouble(const struct sym_image *image);

/**
 * Why a relative map of this image that lies in one of sym_snapshot_opts.relative_map_dirs
 * is not used; NULL when there is none such, or when no symbol of the image was asked for yet.
 */
SYM_API const char *sym_image_refused_map(const struct sym_image *image);

/** Which file of an image is asked for. */
enum sym_fetch_kind {
	SYM_FETCH_DEBUG_FILE = 1, /**< what was split off when it was stripped: .symtab and DWARF */
	/** what debug files share (dwz, .gnu_debugaltlink); a server has it as debug file of its id
	 */
	SYM_FETCH_SHARED_FILE = 2
};

/** What a sym_fetch_fn is asked for; it and all it points to end when the function returns. */
struct sym_fetch_request {
	uint32_t kind; /**< enum sym_fetch_kind; of one that you do not know there is no file */
	uint32_t build_id_size_bytes;
	/** GNU build-id of the image, with SHARED_FILE that of the file; 0 bytes: it has none */
	const uint8_t *build_id;
	const char *image_path; /**< as sym_image_path() */
	/** file name in its .gnu_debuglink, path in the .gnu_debugaltlink; NULL when there is none
	 */
	const char *debug_link;
	uint32_t debug_link_sum; /**< CRC-32 of that file; 0 without a name */
	uint32_t reserved;
};

/**
 * Brings a file that libsym does not find: from a debuginfod server, a store, a package.
 *
 * It is called when an address (or a list of its symbols, or lines) is asked for in an ELF image
 * and neither the image nor a debug file on this machine (below /usr/lib/debug by build-id, or by
 * .gnu_debuglink) has its name; never when a process or file is opened, never for an image with a
 * full .symtab, and once for an image, whatever the outcome. It is called by the thread that
 * asks, which it may keep waiting as long as it likes; others that ask about the same image wait
 * too, those that ask about another one call it at the same time. It must not use the snapshot,
 * image or resolver that it is called for. For the shared file it is called when the DWARF
 * that refers to it is read, and the file is neither where that says nor below /usr/lib/debug.
 *
 * What it brings is used only if it has the build-id of the image or, where one of them
 * has none, the sum that .gnu_debuglink says, and has its code where the image has. Else
 * sym_image_refused_debug_file() says both build-ids, and so does sym_answer.reason of addresses
 * without a name.
 *
 * @param context as given with the function
 * @param path_ret path of the file: heap, libsym ends it with free() and keeps the file open, so
 * that it may be removed afterwards. NULL, which it is before the call: there is no such file.
 * @return 0, or an errno value when it could not be found out
 */
typedef int sym_fetch_fn(void *context, const struct sym_fetch_request *request, char **path_ret);

/**
 * The same for a file that was opened by itself; for a process see sym_snapshot_opts.fetch. To be
 * said before anything is asked of the image, and before other threads know it: once a position was
 * resolved, methods were counted or its debug file was asked for that is SYM_ERROR_ARGUMENT, as for
 * an image of a snapshot.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_fetch_with(struct sym_image *image,
							      sym_fetch_fn *fetch, void *context);

/**
 * Says where debug files of a file that was opened by itself are looked for, too: `dirs` as
 * sym_snapshot_opts.debug_dirs, copied. When, and what fails: as sym_image_fetch_with(); and
 * SYM_ERROR_NO_MEMORY.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_look_in(struct sym_image *image,
							   const char *const *dirs);

/** Why the debug file that a sym_fetch_fn brought for the image is not used, or could not be
 * brought; NULL while there is nothing of that kind to tell. Lives as long as the image. */
SYM_API const char *sym_image_refused_debug_file(const struct sym_image *image);

/**
 * Path of the file with the symbol table of a native image: its own path, or that of the separate
 * debug file that is used for it (.dbg, .debug). NULL when neither is there, so that no more than
 * exports and bounds of functions are known; NULL for assemblies, which need none. Looks when first
 * asked.
 */
SYM_API const char *sym_image_symbol_file(struct sym_image *image);

enum sym_debug_place_flags {
	/** below the root directory of the image's process; otherwise below that of this machine */
	SYM_DEBUG_PLACE_IN_PROCESS_ROOT = 1 << 0,
	/** a file there is taken if it has the sum that .gnu_debuglink says; otherwise if it has
	 * the build-id of the image */
	SYM_DEBUG_PLACE_BY_LINK = 1 << 1
};

/** A place where the separate debug file of an image is looked for. */
struct sym_debug_place {
	const char *path; /**< of the file; ends when the function that it is told to returns */
	uint32_t flags;   /**< enum sym_debug_place_flags */
	uint32_t reserved;
};

/** Told one place after another; returns 0 to hear of the next one. */
typedef int sym_debug_place_fn(void *context, const struct sym_debug_place *place);

/**
 * Tells where libsym looks for the separate debug file of an ELF image on this machine, in the
 * order in which it looks, whether a file is there or not: so that one who keeps what was made of
 * an image learns that its debug file has been installed. By build-id: DIR/.build-id/ab/cdef.debug
 * for each DIR of sym_snapshot_opts.debug_dirs, then for /usr/lib/debug; by .gnu_debuglink:
 * below each DIR with the path of the image, then beside the image, in .debug beside it, and below
 * /usr/lib/debug with its path. All but those of each DIR on this machine and, for an image of a
 * process, in the root directory of the process. For its names an image with a .symtab needs none
 * (sym_identity.contents), for lines it does. What a sym_fetch_fn brings has no place.
 *
 * @param tell is called before this function returns, by the same thread; must not close the image
 *
 * Nothing is told of an ELF image that has neither build-id nor link. Fails with
 * SYM_ERROR_UNSUPPORTED for an image that is no ELF file, SYM_ERROR_NOT_FOUND when its file is not
 * open (see sym_image_trouble()), SYM_ERROR_FORMAT or SYM_ERROR_IO when its sections cannot be
 * read.
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_image_debug_places(struct sym_image *image, sym_debug_place_fn *tell, void *context);

/** Address of rva 0 (PE) or of vaddr 0 (ELF) in the process; UINT64_MAX when not mapped or not
 * known. */
SYM_API uint64_t sym_image_load_base(const struct sym_image *image);

/** Number of precompiled methods, generic instances included; reads the tables when first asked. */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_method_count(struct sym_image *image,
								uint64_t *ret);

enum sym_image_symbols_flags {
	SYM_IMAGE_SYMBOLS_STUBS = 1 << 0, /**< also the stub ranges of the image */
	/** also functions of an ELF file that no symbol begins in: SYM_SYMBOL_UNNAMED */
	SYM_IMAGE_SYMBOLS_UNNAMED = 1 << 1,
	/** names of native functions as symbol tables have them: of C++, Rust, D, OCaml mangled */
	SYM_IMAGE_SYMBOLS_LINKAGE_NAMES = 1 << 2,
	/** by offset into the file (of a bundle or an archive: into that), as perf counts; disjoint
	 */
	SYM_IMAGE_SYMBOLS_BY_OFFSET = 1 << 3
};

/**
 * All symbols of one image: by rva for PE files, by vaddr for ELF files, or by offset.
 * Aliases (several methods at one start) are all listed. A method whose name
 * cannot be had, because it is told by metadata of another assembly that is
 * not there, is left out; sym_image_method_count() counts it.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_symbols(struct sym_image *image, uint32_t flags,
							   struct sym_symbols **ret);

/**
 * The relative map of one image with precompiled code, as its compiler would
 * have written it: a row for each method, generic instances included, by rva.
 * Methods without a name are left out, as in sym_image_symbols(); sym_image_unnamed_methods()
 * says how many, and why.
 *
 * @param format SYM_MAP_RELATIVE or SYM_MAP_R2RMAP
 * @param text_ret, size_bytes_ret as for sym_symbols_format()
 *
 * Fails with SYM_ERROR_UNSUPPORTED for an image without precompiled code, and
 * with SYM_MAP_R2RMAP for a composite image of .NET 5, which does not say its
 * signature.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_map(struct sym_image *image,
						       enum sym_map_format format, char **text_ret,
						       size_t *size_bytes_ret);

/**
 * Counts the precompiled methods of which the image itself does not tell a name in this format,
 * so that sym_image_map() has no row for them. Makes every name once more.
 *
 * @param format SYM_MAP_RELATIVE or SYM_MAP_R2RMAP
 * @param why_ret static text: why the first of them has none; NULL when all have one
 *
 * Fails as sym_image_map().
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_unnamed_methods(struct sym_image *image,
								   enum sym_map_format format,
								   uint64_t *count_ret,
								   const char **why_ret);

/**
 * File name under which tools look for such a map of the image: "NAME.ni.{MVID}.map", or what
 * the image itself calls its r2rmap, else "NAME.ni.r2rmap". Contains no directory.
 *
 * @param name_ret heap string, to be ended with free()
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_image_map_name(struct sym_image *image, enum sym_map_format format, char **name_ret);

/* ------------------------------------------------------------------------
 * File identity
 * ------------------------------------------------------------------------ */

/** By what a file is known to symbol servers and debuggers. */
enum sym_identity_kind {
	SYM_IDENTITY_NONE = 0,           /**< of no kind that is read here */
	SYM_IDENTITY_ELF = 1,            /**< id: GNU build-id; none when id_size_bytes is 0 */
	SYM_IDENTITY_PE = 2,             /**< timestamp and image_size_bytes */
	SYM_IDENTITY_PDB = 3,            /**< Windows PDB; id: GUID, and age */
	SYM_IDENTITY_COMPRESSED_PDB = 4, /**< the same in an MSFZ container */
	SYM_IDENTITY_PORTABLE_PDB =
		5, /**< id: GUID; timestamp: the last 4 bytes of its 20-byte id */
	SYM_IDENTITY_RELATIVE_MAP = 6, /**< r2rmap; id: signature; age: format version */
	SYM_IDENTITY_MACHO = 7,        /**< id: UUID */
	SYM_IDENTITY_WASM = 8          /**< id: build id */
};

/** What is in a file beside its identity. */
enum sym_content {
	SYM_CONTENT_CODE = 1 << 0,         /**< loadable bytes */
	SYM_CONTENT_SYMBOL_TABLE = 1 << 1, /**< names of all functions: a full .symtab, a PDB */
	SYM_CONTENT_DEBUG_INFO = 1 << 2    /**< DWARF .debug_info, or a PDB */
};

struct sym_identity {
	size_t size;
	uint64_t file_size_bytes;
	uint32_t kind;     /**< enum sym_identity_kind */
	uint32_t contents; /**< enum sym_content */
	uint32_t timestamp;
	uint32_t image_size_bytes;
	uint32_t age;
	uint32_t id_size_bytes; /**< of `id`; 0: none */
	/** In the order in which it is written down: of a GUID the first three fields are
	 * big-endian. */
	uint8_t id[64];
};

/**
 * Reads by what a file is known, from its headers, whatever its name.
 *
 * @param fd open for reading; not closed; read with pread()
 * @param size_bytes only that many bytes of the file count; UINT64_MAX: all
 *
 * A file of an unknown kind is no error. Fails with SYM_ERROR_FORMAT when the
 * headers contradict themselves or speak of more bytes than there are.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_identity_read(int fd, uint64_t size_bytes,
							   struct sym_identity *identity);

/**
 * The same for an image: what identifies the file that is mapped, also when its
 * path leads to another one by now; of an image inside another file its own bytes.
 *
 * Fails with SYM_ERROR_NOT_FOUND when the image's file is not open (see
 * sym_image_trouble()).
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_identity(struct sym_image *image,
							    struct sym_identity *identity);

/**
 * Opens the file of this identity, wherever among `dirs` it is. In each
 * directory are tried .build-id/xx/yyyy and .build-id/xx/yyyy.debug (as below
 * /usr/lib/debug), yyyyyy/executable and yyyyyy/debuginfo (as debuginfod's clients keep them),
 * NAME/KEY/NAME (as symbol servers keep them; PE files only so), and NAME itself. A file is taken
 * only if it has the identity.
 *
 * @param identity of kind SYM_IDENTITY_ELF with a build-id, or SYM_IDENTITY_PE
 * @param name file name of the image; NULL when unknown
 * @param dirs NULL terminated
 *
 * Fails with SYM_ERROR_NOT_FOUND when there is none.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_open_by_id(const struct sym_identity *identity,
							      const char *name,
							      const char *const *dirs,
							      struct sym_image **ret);

/**
 * Finds the bytes of an ELF section by name; fails with SYM_ERROR_NOT_FOUND
 * when there is none, or one without bytes in the file.
 *
 * @param fd, size_bytes as for sym_identity_read()
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_elf_section_find(int fd, uint64_t size_bytes,
							      const char *name,
							      uint64_t *offset_ret,
							      uint64_t *size_bytes_ret);

#ifdef __cplusplus
}
#endif

#endif
