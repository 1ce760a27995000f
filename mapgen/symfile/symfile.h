/* SPDX-License-Identifier: MIT */
/*
 * Writes an ELF file that has names, and machine code where there is any: what perf and others read
 * in place of a file that they cannot read. The same symbols give the same bytes,
 * and the build-id is made from these bytes.
 *
 *   ELF64, ET_DYN, machine of the host; PT_LOAD with vaddr == offset; .text NOBITS
 *   with address == offset; .symtab of GLOBAL FUNC symbols in .text whose values are
 *   offsets into the mapped file, or addresses; a note that names the maker; a
 *   build-id note if asked for; line tables if there are lines (symfile_lines.h); .code sections
 * with machine code, if there is any, at the same places, for those who disassemble.
 *
 * perf takes st_value - (p_vaddr - p_offset) for the place of a symbol and looks
 * up address - start + offset of the mapping; it drops symbols of no section, and a
 * file whose build-id is not the one that was recorded.
 */
#ifndef MAPGEN_SYMFILE_SYMFILE_H
#define MAPGEN_SYMFILE_SYMFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "mapgen/symfile/symfile_lines.h"

enum {
	SYMFILE_ID_BYTES = 20
};

struct symfile_code {
	uint64_t start, size_bytes;
};

struct symfile {
	struct buf symbols;
	struct buf names;
	uint64_t low, high; /* of everything that was added */
	size_t count;
	struct buf code;   /* of all blocks */
	struct buf blocks; /* struct symfile_code */
	struct symfile_lines lines;
};

void symfile_init(struct symfile *elf);
void symfile_deinit(struct symfile *elf);

/* Adds a symbol; `tier` may be NULL. Symbols are added in ascending order of `value`. */
void symfile_add(struct symfile *elf, uint64_t value, uint64_t size_bytes, const char *name,
		 const char *tier);

enum {
	SYMFILE_MOST_CODE_BLOCKS = 4096,
	SYMFILE_MOST_CODE_BYTES = 256 << 20
};

/* Where machine code can be read: a place plus `shift` (modulo 2^64) is its offset in a file. */
struct symfile_code_source {
	int fd; /* negative: none */
	uint64_t shift;
};

/*
 * Copies the machine code of [start, end), as far as it can be read; ranges are added in ascending
 * order, without overlaps. The rest beyond the limits above is left out.
 */
void symfile_add_code(struct symfile *elf, const struct symfile_code_source *source, uint64_t start,
		      uint64_t end);

/*
 * Writes the file to `ret` (empty, with a maximum). `origin`: a line that says which file it is
 * for. `id_ret` NULL: without a build-id. False when memory or the maximum did not suffice.
 */
bool symfile_finish(struct symfile *elf, const char *origin, struct buf *ret,
		    uint8_t id_ret[SYMFILE_ID_BYTES]);

/* A build-id that is a digest of the bytes of its file. */
void symfile_make_id(const struct buf *file, uint8_t id[SYMFILE_ID_BYTES]);

/* First bytes of every build-id made here: "dnmg". No linker makes such ids, so symbol servers need
 * not be asked for them. */
extern const uint8_t symfile_id_mark[4];

/*
 * True when this program wrote the file behind `fd`; then `origin` is its line, cut to its room.
 */
bool symfile_recognise(int fd, char *origin, size_t room_bytes);

#endif
