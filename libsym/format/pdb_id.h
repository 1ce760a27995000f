/* SPDX-License-Identifier: MIT */
/*
 * The identity of a PDB, and nothing else of it. Three containers:
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
#ifndef LIBSYM_FORMAT_PDB_ID_H
#define LIBSYM_FORMAT_PDB_ID_H

#include "libsym/format/byte_source.h"

enum pdb_container {
	PDB_MSF = 1,
	PDB_MSFZ,
	PDB_PORTABLE,
};

struct pdb_id {
	enum pdb_container container;
	uint8_t guid[16]; /* in the order in which it is written down: the first three fields
			     big-endian */
	uint32_t age;   /* the DBI stream's where that can be read, else the PDB stream's; portable:
			   0xffffffff */
	uint32_t stamp; /* portable: last four bytes of the id */
	uint64_t needed_bytes; /* length a whole file has at least */
};

/* True when the first bytes are those of one of the three. */
bool pdb_recognise(const struct byte_source *source);

/* False when the bytes contradict the format; *failure_ret then says why (static text). */
bool pdb_id_read(const struct byte_source *source, struct pdb_id *ret, const char **failure_ret);

#endif
