/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Part of libsym.h: source lines of managed code, and portable PDBs.
 *
 * How an address becomes a line:
 * 1. Native offset to IL offset: by the debug information of the precompiled image, the memory of
 *    the runtime (.NET 10, 11) or its events (.NET Core 3.1 to .NET 9).
 * 2. IL offset to line: by the portable PDB of the module.
 * SYM_FIELD_LINES does both. Nothing is read before an address asks.
 *
 * Without a PDB sym_answer has the module's MVID, the method's token and the IL offset.
 * They are the same on every machine and in every tier.
 * sym_pdb_find_line() turns them into a line later.
 */
#ifndef LIBSYM_SYM_LINES_H
#define LIBSYM_SYM_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/sym_error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sym_image;
struct sym_resolver;

/* ------------------------------------------------------------------------
 * Quality of a line
 * ------------------------------------------------------------------------ */

/** How certain a source line is. */
enum sym_line_quality {
	SYM_LINE_NONE = 0,  /**< no line; sym_answer.line_reason explains it */
	SYM_LINE_EXACT = 1, /**< the line of the instruction, as the compiler recorded it */
	/**
	 * Approximate; print it with a "~".
	 * The compiler recorded no line for the instruction.
	 * This is the line of the nearest instruction before it that has one.
	 */
	SYM_LINE_NEAREST = 2,
	/** The instruction sets up or ends the frame: first or last line of the method. */
	SYM_LINE_PROLOG = 3
};

/** Returns a short word: "none", "exact", "nearest", "prolog"; static. */
SYM_API const char *sym_line_quality_text(enum sym_line_quality quality);

/* ------------------------------------------------------------------------
 * Portable PDBs
 * ------------------------------------------------------------------------ */

/** The PDB that an image names. */
struct sym_pdb_reference {
	const char *path;               /**< as the compiler wrote it, often of another machine */
	const char *name;               /**< its last part, after the last '/' or '\\' */
	const uint8_t *checksum;        /**< of the PDB with its id zeroed; NULL: none recorded */
	const char *checksum_algorithm; /**< "SHA256", ...; NULL: none recorded */
	uint32_t checksum_size_bytes;
	uint32_t age;        /**< 1 for a portable PDB */
	uint32_t stamp;      /**< portable: the last four bytes of the id of the PDB */
	uint8_t guid[16];    /**< in the order of its text form */
	uint8_t is_portable; /**< 0: a Windows PDB, which libsym does not read */
	uint8_t is_embedded; /**< 1: the image contains it */
	uint8_t reserved[2];
};

/**
 * Returns which PDB an image names.
 *
 * @return It lives as long as the image; NULL when it names none, or could not be read.
 */
SYM_API const struct sym_pdb_reference *sym_image_pdb_reference(struct sym_image *image);

/** A portable PDB. It does not change; several threads may use it. */
struct sym_pdb;

/**
 * Opens a portable PDB.
 *
 * @param ret  Close it with sym_pdb_close().
 *
 * Errors: NOT_FOUND, PERMISSION, IO, FORMAT, LIMIT; UNSUPPORTED for a Windows PDB; ARGUMENT when it
 * is not a regular file.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_pdb_open(const char *path, struct sym_pdb **ret);

/**
 * Reads a portable PDB from an open file.
 *
 * @param fd  Of a regular file; not closed; read with pread().
 * @param ret  Close it with sym_pdb_close().
 *
 * Errors: those of sym_pdb_open().
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_pdb_read(int fd, struct sym_pdb **ret);

/**
 * Closes a PDB that sym_pdb_open() or sym_pdb_read() opened.
 *
 * @param pdb  NULL is accepted.
 */
SYM_API void sym_pdb_close(struct sym_pdb *pdb);

/**
 * Returns the PDB of an image; the first call searches for it.
 *
 * It is used only if its id is the one that the image names, and its checksum if one is recorded.
 * Places in their order: the image itself (embedded); beside the image, in the root directory of
 * its process; the bundle that contains the image; the path that the compiler wrote; the
 * directories of sym_snapshot_opts.debug_dirs and /usr/lib/debug, as NAME and as NAME/KEY/NAME; a
 * sym_fetch_fn.
 *
 * @param reason_ret  Why there is none; lives as long as the image; may be NULL.
 * @return It lives as long as the image; NULL when there is none.
 */
SYM_API const struct sym_pdb *sym_image_pdb(struct sym_image *image, const char **reason_ret);

/** Returns 1 when the PDB is the one that an image names: same id, same checksum if recorded. */
SYM_API int sym_pdb_matches(const struct sym_pdb *pdb, const struct sym_pdb_reference *reference);

/** A place in a source file. */
struct sym_source_line {
	const char *file; /**< as the compiler wrote it; lives as long as the PDB */
	uint32_t line;
	uint32_t column;
	uint32_t end_line;
	uint32_t end_column;
};

/**
 * Finds the line of an IL offset: that of the last visible sequence point at or before it.
 *
 * @param token  Of the method: 0x06000000 + row.
 * @param ret  Written only with 1.
 * @return 1 when there is a line.
 */
SYM_API int sym_pdb_find_line(const struct sym_pdb *pdb, uint32_t token, uint32_t il_offset,
			      struct sym_source_line *ret);

/**
 * Returns the token of the async or iterator method to which a state machine's method belongs.
 *
 * @param token  Of MoveNext.
 * @return 0 when it is not one.
 */
SYM_API uint32_t sym_pdb_kickoff(const struct sym_pdb *pdb, uint32_t token);

/** Returns the number of source files. */
SYM_API size_t sym_pdb_document_count(const struct sym_pdb *pdb);

/**
 * Returns the path of a source file by its index, from 0.
 *
 * @return It lives as long as the PDB; NULL beyond the end, or when its name is malformed.
 */
SYM_API const char *sym_pdb_document_at(const struct sym_pdb *pdb, size_t index);

/**
 * Returns the Source Link text: JSON that maps paths of source files to URLs.
 *
 * @param size_bytes_ret  Its length; there is no NUL.
 * @return It lives as long as the PDB; NULL when there is none.
 */
SYM_API const char *sym_pdb_source_link(const struct sym_pdb *pdb, size_t *size_bytes_ret);

#ifdef __cplusplus
}
#endif

#endif
