/* SPDX-License-Identifier: MIT */
/*
 * Finds the portable PDB that a module names, on this machine and through the caller's fetch
 * function. A file is used only if it has the recorded id, and the recorded checksum.
 */
#ifndef LIBSYM_IMAGE_PDB_SEARCH_H
#define LIBSYM_IMAGE_PDB_SEARCH_H

#include "libsym/elf/debugfile.h"
#include "libsym/file/pdb_file.h"

struct sym_image;

/* Places to search; borrowed. */
struct pdb_search {
	const char *image_path; /* of the module; "FILE!/NAME" inside a bundle */
	struct debugfile_roots roots;
	sym_fetch_fn *fetch; /* NULL: nothing is fetched */
	void *fetch_context;
	struct budget *budget;          /* NULL: none */
	struct budget_account *account; /* for an embedded PDB; NULL: none */
};

/* For the modules of an image, with the path of the image itself. */
struct pdb_search image_pdb_search(const struct sym_image *image);

/*
 * *ret is NULL when there is none. *reason_ret then has a reason for people (heap; NULL when out of
 * memory); else it is NULL.
 * Errors: NO_MEMORY.
 */
struct sym_error *pdb_search_find(const struct pdb_search *search, const struct pe_debug *debug,
				  struct sym_pdb **ret, char **reason_ret)
	__attribute__((warn_unused_result));

/* The PDB of an image; the first call searches for it. NULL: there is none, and *reason_ret says
 * why; it lives as long as the image. */
const struct sym_pdb *image_pdb_file(struct sym_image *image, const char **reason_ret);

#endif
