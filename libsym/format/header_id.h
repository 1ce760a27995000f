/* SPDX-License-Identifier: MIT */
/*
 * Identities that stand in the first headers of a file: time stamp and size of
 * a PE image, signature of an r2rmap, UUID of a Mach-O file, build id of a
 * WebAssembly module. Reads nothing beyond those headers.
 *
 *   PE      e_lfanew at 0x3c; "PE\0\0", COFF header (stamp at +8), optional header (SizeOfImage at
 * +56) r2rmap  text; lines "FFFFFFFF LEN SIGNATURE" and "FFFFFFFE LEN VERSION" first Mach-O  magic,
 * cpu, ..., ncmds, sizeofcmds; load command 0x1b is the UUID wasm    "\0asm", version, sections
 * (id, LEB128 size); custom section "build_id"
 *
 * PE/COFF specification; dotnet/runtime R2R perf map format; mach-o/loader.h; WebAssembly tool
 * conventions.
 */
#ifndef LIBSYM_FORMAT_HEADER_ID_H
#define LIBSYM_FORMAT_HEADER_ID_H

#include "libsym/format/byte_source.h"

struct pe_header_id {
	uint32_t timestamp;
	uint32_t image_bytes;
	uint64_t needed_bytes; /* end of the last section's data in the file */
};

struct map_header_id {
	uint8_t signature[16];
	uint32_t version;
};

/* Each: false when the bytes are of another kind or contradict the format. */
bool pe_header_id_read(const struct byte_source *source, struct pe_header_id *ret);
bool map_header_id_read(const struct byte_source *source, struct map_header_id *ret);
bool macho_uuid_read(const struct byte_source *source, uint8_t uuid[16]);
/* At most 64 bytes. */
bool wasm_build_id_read(const struct byte_source *source, uint8_t *id, size_t *id_bytes_ret);

#endif
