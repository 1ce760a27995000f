/* SPDX-License-Identifier: MIT */
/*
 * The identity of a PDB, in any of its three containers:
 *
 *   MSF           "Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0", page size, free map,
 *                 page count, directory bytes, 0, page of the directory's page list;
 *                 directory: stream count, sizes, then the pages of every stream.
 *                 Stream 1: version, signature, age, GUID. Stream 3 (DBI): -1, version, age.
 *   MSFZ          "Microsoft MSFZ Container\r\n\x1aALD\0\0", version 0, directory offset, ...;
 *                 directory: for each stream (size, 64-bit place)* 0; the same streams
 *   portable PDB  "BSJB" metadata root, stream "#Pdb" begins with GUID and time stamp
 *
 * LLVM "The PDB File Format"; microsoft/pdb-rs msfz; Portable PDB v1.0 "#Pdb stream".
 */
#ifndef LIBSYM_FORMAT_FILE_PDB_ID_H
#define LIBSYM_FORMAT_FILE_PDB_ID_H

#include "libsym/format/file/byte_source.h"

enum pdb_container {
	PDB_MSF = 1,
	PDB_MSFZ,
	PDB_PORTABLE,
};

struct pdb_id {
	enum pdb_container container;
	uint8_t guid[16]; /* in printed order: the first three fields big-endian */
	/* of the DBI stream if it can be read, else of the PDB stream; portable: 0xffffffff */
	uint32_t age;
	uint32_t stamp;        /* portable: last four bytes of the id */
	uint64_t needed_bytes; /* minimum length of the whole file */
};

/* The bytes of a GUID in the order of its text: the first three parts are numbers. */
void pdb_id_order_guid(uint8_t guid[16], const uint8_t *bytes);

/* Do the first bytes belong to one of the three containers? */
bool pdb_id_recognise(const struct byte_source *source);

/* Returns false if the bytes contradict the format; *failure_ret is then a static text. */
bool pdb_id_read(const struct byte_source *source, struct pdb_id *ret, const char **failure_ret);

#endif
