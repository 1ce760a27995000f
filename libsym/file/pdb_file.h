/* SPDX-License-Identifier: MIT */
/*
 * A portable PDB in memory, from a file or from the image that contains it.
 * Path names of documents are made when they are first needed, and kept.
 */
#ifndef LIBSYM_FILE_PDB_FILE_H
#define LIBSYM_FILE_PDB_FILE_H

#include "libsym/budget_api.h"
#include "libsym/error.h"
#include "libsym/format/dotnet/pe_debug.h"
#include "libsym/format/dotnet/portable_pdb.h"

/* A path to open; see foreign_file.h. */
struct pdb_place {
	const char *path;
	int root_fd;
	const struct rights *rights;
};

/*
 * Opens a file. Memory is charged to the account of `budget` (NULL: none) for its owner.
 * Errors: those of sym_pdb_open().
 */
struct sym_error *pdb_file_open(struct budget *budget, const struct pdb_place *place,
				struct sym_pdb **ret) __attribute__((warn_unused_result));

/* Unpacks and opens the PDB that an image contains. Errors: FORMAT, LIMIT, NO_MEMORY. */
struct sym_error *pdb_file_open_embedded(struct budget_account *account,
					 const struct pe_debug *debug, struct sym_pdb **ret)
	__attribute__((warn_unused_result));

/* NULL is accepted. */
void pdb_file_close(struct sym_pdb *pdb);

const struct portable_pdb *pdb_file_tables(const struct sym_pdb *pdb);

/* Why it is not the PDB that an image names; static; NULL: it is. */
const char *pdb_file_mismatch(const struct sym_pdb *pdb, const struct pe_debug *debug);

/* The path of a document; it lives as long as the PDB. NULL: malformed, or out of memory. */
const char *pdb_file_document(const struct sym_pdb *pdb, uint32_t rid);

DEFINE_GUARD(pdb_file, struct sym_pdb *, pdb_file_close)
#define AUTO_PDB_FILE GUARDED(pdb_file)

#endif
