/* SPDX-License-Identifier: MIT */
/*
 * Portable PDBs: IL offset of a method to document, line and column.
 *
 *   root: 'BSJB', version string, stream headers {offset, size, name}
 *   "#Pdb": id of 20 bytes, u32 entry point, u64 set of type system tables, their row counts
 *   "#~": debug tables 0x30 to 0x37; references to type system tables have widths by "#Pdb"
 *   MethodDebugInformation: a row for each MethodDef: document, sequence points
 *   sequence points: signature token, [document], then {IL delta, lines, columns, [line, column]}
 * Portable PDB v1.0, dotnet/runtime docs/design/specs/PortablePdb-Metadata.md.
 *
 * Nothing is copied: the file is read in place, with bounds checks. A method with a malformed blob
 * has no lines at all.
 */
#ifndef LIBSYM_FORMAT_DOTNET_PORTABLE_PDB_H
#define LIBSYM_FORMAT_DOTNET_PORTABLE_PDB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/error.h"
#include "libsym/format/dotnet/metadata.h"

struct portable_pdb;

enum {
	PORTABLE_PDB_ID_BYTES = 20 /* GUID as Guid.ToByteArray(), then a time stamp */
};

/*
 * `data` is borrowed and must outlive the object.
 * Errors: UNSUPPORTED for a Windows PDB; FORMAT; NO_MEMORY.
 */
struct sym_error *portable_pdb_open(const void *data, size_t size_bytes, struct portable_pdb **ret)
	__attribute__((warn_unused_result));
void portable_pdb_close(struct portable_pdb *pdb);

const uint8_t *portable_pdb_id(const struct portable_pdb *pdb);
/* Where the id is in the file. A checksum of the file has zeros there. */
size_t portable_pdb_id_offset(const struct portable_pdb *pdb);

/* A sequence point. Hidden ones have no line. */
struct pdb_point {
	uint32_t il_offset;
	uint32_t document; /* rid */
	uint32_t line, column, end_line, end_column;
	bool is_hidden;
};

enum pdb_outcome {
	PDB_FOUND = 0,
	PDB_NO_METHOD, /* no such row */
	PDB_NO_POINTS, /* the compiler gave this method, or this part of it, no lines */
	PDB_BAD_POINTS /* the blob is malformed */
};

/* The last point that is not hidden and not after `il_offset`, as StackTrace has it. `ret` is valid
 * only if the result is PDB_FOUND: the whole blob is then well-formed. */
enum pdb_outcome portable_pdb_find(const struct portable_pdb *pdb, uint32_t rid, uint32_t il_offset,
				   struct pdb_point *ret);

/* Appends the path of a document. Returns false if it is malformed, or without memory. */
bool portable_pdb_write_document(const struct portable_pdb *pdb, uint32_t rid, struct buf *buf);
uint32_t portable_pdb_document_count(const struct portable_pdb *pdb);

/* MethodDef rid of the async or iterator method whose state machine runs in `rid`; 0: none. */
uint32_t portable_pdb_kickoff(const struct portable_pdb *pdb, uint32_t rid);

/* The Source Link text of the module (JSON); no data when there is none. */
struct metadata_blob portable_pdb_source_link(const struct portable_pdb *pdb);

DEFINE_GUARD(portable_pdb, struct portable_pdb *, portable_pdb_close)
#define AUTO_PORTABLE_PDB GUARDED(portable_pdb)

#endif
