/* SPDX-License-Identifier: MIT */
/* Portable PDBs: lines of all methods, names of all documents. */
#include "libsym/format/dotnet/portable_pdb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_PORTABLE_PDB struct portable_pdb *pdb = NULL;
	struct sym_error *error = portable_pdb_open(data, size, &pdb);
	volatile size_t sum = 0;
	struct pdb_point point;
	struct buf name;

	sym_error_destroy(error);
	if (error)
		return 0;
	for (uint32_t rid = 0; rid < 300; rid++) {
		for (uint32_t il = 0; il < 40; il += 13)
			if (portable_pdb_find(pdb, rid, il, &point) == PDB_FOUND)
				sum = sum + point.line;
		sum = sum + portable_pdb_kickoff(pdb, rid);
		buf_init(&name, 1 << 18);
		sum = sum + portable_pdb_write_document(pdb, rid, &name);
		buf_deinit(&name);
	}
	sum = sum + portable_pdb_source_link(pdb).size_bytes;
	return 0;
}
