/* SPDX-License-Identifier: MIT */
/*
 * A file to fetch: the debug file of a native image, or the portable PDB of an assembly. They
 * differ in the URL on a server, the place in the tree, and when an answer fits.
 *
 *   debug file   SERVER/buildid/ID/debuginfo (or symtab), SERVER/_.debug/elf-buildid-sym-ID/_.debug
 *                TREE/.build-id/xx/yyyy.debug
 *   PDB          SERVER/NAME.pdb/GUIDFFFFFFFF/NAME.pdb
 *                TREE/NAME.pdb/GUIDFFFFFFFF/NAME.pdb
 */
#ifndef MAPGEN_DEBUGINFO_WANTED_FILE_H
#define MAPGEN_DEBUGINFO_WANTED_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/libsym.h"

struct wanted_file {
	const struct sym_identity *identity; /* of an ELF file with a build-id; NULL: a PDB */
	uint32_t contents; /* enum sym_content: a debug file must have one of these */
	bool names_only;   /* a debug file with a symbol table alone, which only symsrv has */
	const struct sym_pdb_reference *pdb;
};

/* Protocols of servers, from 0 on. */
enum {
	WANTED_PROTOCOLS = 2,
};

/* NULL when the open file is what is wanted; else why not: static. */
const char *wanted_file_objection(const struct wanted_file *wanted, int fd,
				  uint64_t *size_bytes_ret);

/* Heap; NULL when it has no URL in that protocol, or out of memory. */
char *wanted_file_url(const struct wanted_file *wanted, const char *server, unsigned int protocol);

/* A header of the request, heap; NULL: none. */
char *wanted_file_header(const struct wanted_file *wanted);

/* Heap; NULL: out of memory. */
char *wanted_file_path(const struct wanted_file *wanted, const char *tree);

/* Can a PDB of this name be asked for and kept? */
bool wanted_file_has_plain_name(const struct sym_pdb_reference *pdb);

#endif
