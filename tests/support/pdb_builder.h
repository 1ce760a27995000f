/* SPDX-License-Identifier: MIT */
/*
 * Makes a small portable PDB by the specification, independently of the reader under test: two
 * documents, the given sequence point blobs, one state machine method, a Source Link text.
 */
#ifndef TESTS_SUPPORT_PDB_BUILDER_H
#define TESTS_SUPPORT_PDB_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"

enum {
	PDB_BUILDER_METHODS = 8
};

struct pdb_recipe {
	uint8_t id[20];
	uint32_t type_row_counts[2]; /* of TypeDef and MethodDef, as "#Pdb" has them */
	const char *documents[2];    /* '/' separates parts */
	struct {
		uint16_t document;  /* rid; 0: in the blob */
		const void *points; /* NULL: none */
		size_t points_bytes;
	} methods[PDB_BUILDER_METHODS];
	size_t method_count;
	uint32_t move_next, kickoff; /* rids; 0: no row */
	const char *source_link;     /* NULL: none */
	uint32_t more_rows;          /* lies: rows of MethodDebugInformation beyond those */
	uint32_t left_out;           /* lies: rows of Document that are there and not counted */
};

/* Appends the PDB to `out`. */
void build_pdb(const struct pdb_recipe *recipe, struct buf *out);

#endif
