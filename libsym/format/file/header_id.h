/* SPDX-License-Identifier: MIT */
/*
 * Identities in the first headers of a file: time stamp and size of a PE image, signature of an
 * r2rmap, UUID of a Mach-O file, build id of a WebAssembly module. Reads nothing else.
 *
 *   PE      e_lfanew at 0x3c; "PE\0\0", COFF header (stamp at +8), optional header (SizeOfImage at
 * +56) r2rmap  text; first the rows "FFFFFFFF LEN SIGNATURE" and "FFFFFFFE LEN VERSION" Mach-O
 * magic, cpu, ..., ncmds, sizeofcmds; load command 0x1b is the UUID wasm    "\0asm", version,
 * sections (id, LEB128 size); custom section "build_id"
 *
 * PE/COFF specification; dotnet/runtime R2R perf map format; mach-o/loader.h; WebAssembly tool
 * conventions.
 */
#ifndef LIBSYM_FORMAT_FILE_HEADER_ID_H
#define LIBSYM_FORMAT_FILE_HEADER_ID_H

#include "libsym/format/file/byte_source.h"

struct pe_header_id {
	uint32_t timestamp;
	uint32_t image_bytes;
	uint64_t needed_bytes; /* end of the last section's data in the file */
};

struct r2rmap_header_id {
	uint8_t signature[16];
	uint32_t version;
};

/* The r2rmap that belongs to a PE image: its entry of type 21 in the debug directory. */
struct pe_r2rmap_id {
	struct r2rmap_header_id id;
	char name[256]; /* of its file, as in the image: not a safe path */
};

/* The PDB of a PE image: its entry of type 2 in the debug directory. */
struct pe_pdb_id {
	uint8_t guid[16]; /* in the order of its text form */
	bool is_portable; /* else a Windows PDB */
};

/* Return false if the bytes are of another kind or contradict the format. */
bool header_id_read_pe(const struct byte_source *source, struct pe_header_id *ret);
bool header_id_read_pe_r2rmap(const struct byte_source *source, struct pe_r2rmap_id *ret);
/* A portable PDB wins over another one. */
bool header_id_read_pe_pdb(const struct byte_source *source, struct pe_pdb_id *ret);
bool header_id_read_r2rmap(const struct byte_source *source, struct r2rmap_header_id *ret);
bool header_id_read_macho(const struct byte_source *source, uint8_t uuid[16]);
/* `id` has room for 64 bytes. */
bool header_id_read_wasm(const struct byte_source *source, uint8_t *id, size_t *id_bytes_ret);

#endif
