/* SPDX-License-Identifier: MIT */
/*
 * The executable memory of a runtime: the sections of its code range map, and where every block in
 * its code heaps starts.
 * It has extents and kinds, no names.
 *
 * Range map: a tree of five levels of 256 pointers. The leaves are lists of fragments, which point
 * to their section. Bit 0 of each pointer is a flag.
 * Nibble map: an array of u32. Unit i covers 256 bytes of the heap in 8 nibbles of 32 bytes, the
 * most significant first.
 * Nibble n in 1..8: a block starts at its 32 bytes + 4 * (n - 1).
 * A unit whose lowest nibble is 9 to 12 is inside a block that began earlier, and has no start.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, version 2.
 */
#ifndef LIBSYM_CLR_CODE_HEAP_H
#define LIBSYM_CLR_CODE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/clr/layout.h"
#include "libsym/process/remote_memory.h"

enum code_section_flags {
	CODE_SECTION_COLLECTIBLE = 1 << 0, /* may be unloaded; contains dynamic methods */
	CODE_SECTION_HEAP = 1 << 1,
	CODE_SECTION_RANGE_LIST = 1 << 2,  /* stubs and precodes */
	CODE_SECTION_INTERPRETER = 1 << 3, /* byte code of an interpreter, which is not read */
};

struct code_section {
	uint64_t begin_address, end_address;
	uint64_t heap_list; /* address of the heap's node; heaps only */
	uint32_t flags;
};

struct code_block {
	uint64_t start_address;
	uint64_t limit_address; /* start of the next block, or end of the used part of the heap */
	uint32_t section;       /* index */
};

struct code_map {
	struct code_section *sections; /* by address, disjoint */
	size_t section_count;
	struct code_block *blocks; /* by address */
	size_t block_count;
	size_t bad_sections; /* left out: unreadable or inconsistent */
};

/*
 * Reads the map. Errors: those of reading; LIMIT for a tree or list without an end; NO_MEMORY.
 */
struct sym_error *code_map_read(struct remote_memory *memory, const struct layout *layout,
				struct code_map *ret);
void code_map_deinit(struct code_map *map);

/* The code of one method, as its header describes it. */
struct code_method {
	uint64_t start_address;
	uint64_t size_bytes; /* funclets included */
	uint64_t method_desc;
	uint32_t piece_count; /* 1 + number of funclets */
};

enum code_block_kind {
	CODE_BLOCK_PENDING = 0, /* fetch, then call again */
	CODE_BLOCK_METHOD,
	CODE_BLOCK_STUB,
	CODE_BLOCK_BAD, /* inconsistent */
};

/*
 * Reads the word before the start of a block: the kind of a stub, or the address of a method's
 * header, which is requested for the next fetch.
 */
enum code_block_kind code_block_read_head(struct remote_memory *memory, const struct layout *layout,
					  const struct code_block *block, uint64_t *ret);

/*
 * Reads that header. The first piece must start at the block; the pieces must ascend and end inside
 * the section.
 */
enum code_block_kind code_block_read_method(struct remote_memory *memory,
					    const struct layout *layout, const struct code_map *map,
					    const struct code_block *block, uint64_t header,
					    struct code_method *ret);

/*
 * Name of a kind of stub block as in the runtime's own map, "<kind>"; static. NULL for an unknown
 * kind: new runtimes have more.
 */
const char *code_stub_name(uint32_t stub_kind);

#endif
