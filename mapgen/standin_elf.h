/* SPDX-License-Identifier: MIT */
/*
 * Writes an ELF file that has names, and machine code where there is any: what perf and others read
 * in place of a file that they cannot read. The same symbols give the same bytes,
 * and the build-id is made from these bytes.
 *
 *   ELF64, ET_DYN, machine of the host; PT_LOAD with vaddr == offset; .text NOBITS
 *   with address == offset; .symtab of GLOBAL FUNC symbols in .text whose values are
 *   offsets into the mapped file, or addresses; a note that names the maker; a
 *   build-id note if asked for; .code sections with machine code, if there is any, at the
 *   same places, for those who disassemble.
 *
 * perf takes st_value - (p_vaddr - p_offset) for the place of a symbol and looks
 * up address - start + offset of the mapping; it drops symbols of no section, and a
 * file whose build-id is not the one that was recorded.
 */
#ifndef MAPGEN_STANDIN_ELF_H
#define MAPGEN_STANDIN_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"

enum {
	STANDIN_ID_BYTES = 20
};

struct standin_code {
	uint64_t start, size_bytes;
};

struct standin_elf {
	struct buf symbols;
	struct buf names;
	uint64_t low, high; /* of what was added */
	size_t count;
	struct buf code;   /* of all blocks */
	struct buf blocks; /* struct standin_code */
};

void standin_elf_init(struct standin_elf *elf);
void standin_elf_deinit(struct standin_elf *elf);

/* Adds a symbol; `tier` may be NULL. Symbols come in ascending order of `value`. */
void standin_elf_add(struct standin_elf *elf, uint64_t value, uint64_t size_bytes, const char *name,
		     const char *tier);

enum {
	STANDIN_MOST_CODE_BLOCKS = 4096,
	STANDIN_MOST_CODE_BYTES = 256 << 20
};

/* Where machine code can be read: that of a place `shift` (modulo 2^64) behind it in a file. */
struct standin_code_source {
	int fd; /* negative: nowhere */
	uint64_t shift;
};

/*
 * Takes the machine code of [start, end), as far as it can be read; ranges come in ascending order
 * and apart. Beyond the limits above the rest is left out.
 */
void standin_elf_add_code(struct standin_elf *elf, const struct standin_code_source *source,
			  uint64_t start, uint64_t end);

/*
 * Renders the file to `ret` (empty, with a maximum). `origin`: a line about what it stands for.
 * `id_ret` NULL: without a build-id. False when memory or the maximum did not do.
 */
bool standin_elf_finish(struct standin_elf *elf, const char *origin, struct buf *ret,
			uint8_t id_ret[STANDIN_ID_BYTES]);

/* A build-id made from the bytes of a file that is to have it. */
void standin_elf_make_id(const struct buf *file, uint8_t id[STANDIN_ID_BYTES]);

/* First bytes of every build-id made here: "dnmg". No linker makes such ids, so servers of symbols
 * need not be asked for them. */
extern const uint8_t standin_id_mark[4];

/*
 * True when the file behind `fd` was written here; then `origin` is its line, cut to its room.
 */
bool standin_elf_recognise(int fd, char *origin, size_t room_bytes);

#endif
