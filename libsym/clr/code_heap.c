/* SPDX-License-Identifier: MIT */
/*
 * Walks the code range map and the nibble maps.
 * All pointers come from a process that keeps running.
 * So every list is bounded, every extent is compared with that of its section, and contradictions
 * are left out and counted.
 */
#include "libsym/clr/code_heap.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/grow.h"
#include "libsym/limits.h"

#define MAP_LEVELS  5
#define MAP_ENTRIES 256

static const size_t max_nodes = 65536;
static const size_t max_fragments = 1
				    << 20; /* one for each 128 KiB of a section: 128 GiB of code */
static const size_t max_unwind_infos = 4096;
static const uint64_t max_heap_bytes = (uint64_t)4 << 30;
static const uint64_t most_section_bytes = (uint64_t)4 << 30;

/* ---- the range map ---------------------------------------------------------- */

/* A section as its fragment describes it. */
struct claim {
	uint64_t section, begin_address, end_address;
};

struct claims {
	struct claim *items;
	size_t count, capacity;
};

struct range_walk {
	struct remote_memory *memory;
	const struct layout *layout;
	struct claims claims; /* with repetitions */
	size_t nodes, fragments;
	bool pending, no_memory, too_many;
};

static bool claims_add(struct claims *claims, const struct claim *claim)
{
	if (!grow_items((void **)&claims->items, &claims->capacity, claims->count,
			sizeof(*claims->items)))
		return false;
	claims->items[claims->count++] = *claim;
	return true;
}

static void walk_fragments(struct range_walk *walk, uint64_t address)
{
	const struct layout *layout = walk->layout;
	uint64_t last = 0;

	while (address && !walk->no_memory && !walk->too_many) {
		struct claim claim;

		if (++walk->fragments > max_fragments) {
			walk->too_many = true;
			return;
		}
		remote_begin(walk->memory);
		claim.section = remote_u64(walk->memory, address + layout->fragment.range_section);
		claim.begin_address =
			remote_u64(walk->memory, address + layout->fragment.range_begin);
		claim.end_address =
			remote_u64(walk->memory, address + layout->fragment.range_end_open);
		address = remote_u64(walk->memory, address + layout->fragment.next) & ~(uint64_t)1;
		if (remote_state(walk->memory) == REMOTE_PENDING)
			walk->pending = true;
		if (remote_state(walk->memory) != REMOTE_OK)
			return;
		if (claim.section != last && !claims_add(&walk->claims, &claim))
			walk->no_memory = true;
		last = claim.section;
	}
}

static void walk_node(struct range_walk *walk, uint64_t address, unsigned int level)
{
	uint64_t entries[MAP_ENTRIES];

	if (++walk->nodes > max_nodes)
		walk->too_many = true;
	remote_begin(walk->memory);
	if (!remote_read(walk->memory, address, entries, sizeof(entries))) {
		if (remote_state(walk->memory) == REMOTE_PENDING)
			walk->pending = true;
		return;
	}
	for (size_t i = 0; i < MAP_ENTRIES && !walk->too_many && !walk->no_memory; i++) {
		uint64_t next = entries[i] & ~(uint64_t)1;

		if (next && level > 1)
			walk_node(walk, next, level - 1);
		else if (next)
			walk_fragments(walk, next);
	}
}

static int compare_claims(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct claim));
}

static void claims_unique(struct claims *claims)
{
	size_t kept = 0;

	if (claims->count)
		qsort(claims->items, claims->count, sizeof(*claims->items), compare_claims);
	for (size_t i = 0; i < claims->count; i++)
		if (!kept || compare_claims(&claims->items[kept - 1], &claims->items[i]))
			claims->items[kept++] = claims->items[i];
	claims->count = kept;
}

/* Walks the whole tree again after each fetch. Cached pages cost next to nothing. */
static struct sym_error *walk_range_map(struct range_walk *walk)
{
	uint64_t top =
		walk->layout->range_map_address + walk->layout->range_section_map.top_level_data;

	for (unsigned int round = 0; round < LIMIT_REMOTE_ROUNDS; round++) {
		struct sym_error *error;
		bool again;

		walk->claims.count = 0;
		walk->nodes = walk->fragments = 0;
		walk->pending = false;
		walk_node(walk, top, MAP_LEVELS);
		if (walk->no_memory)
			return &sym_error_no_memory;
		if (walk->too_many)
			break;
		if (!walk->pending) {
			claims_unique(&walk->claims);
			return NULL;
		}
		error = remote_memory_fetch(walk->memory, &again);
		if (error)
			return error;
	}
	return sym_error_create(SYM_ERROR_LIMIT, "the runtime's code range map has no end");
}

/* ---- sections ----------------------------------------------------------------- */

/*
 * Assemblies can be unloaded during the reading. A freed section has a link of the allocator in
 * place of its begin, and would cover terabytes. It then differs from its fragment.
 */
static bool is_as_claimed(const struct code_section *section, const struct claim *claim)
{
	return section->begin_address == claim->begin_address &&
	       section->end_address == claim->end_address &&
	       section->begin_address < section->end_address &&
	       section->end_address - section->begin_address <= most_section_bytes;
}

static enum remote_state read_section(struct remote_memory *memory, const struct layout *layout,
				      uint64_t address, struct code_section *ret)
{
	remote_begin(memory);
	ret->begin_address = remote_u64(memory, address + layout->range_section.range_begin);
	ret->end_address = remote_u64(memory, address + layout->range_section.range_end_open);
	ret->flags = remote_u32(memory, address + layout->range_section.flags);
	ret->heap_list = remote_u64(memory, address + layout->range_section.heap_list);
	return remote_state(memory);
}

static int compare_sections(const void *a, const void *b)
{
	const struct code_section *left = a, *right = b;

	return left->begin_address < right->begin_address
		       ? -1
		       : left->begin_address > right->begin_address;
}

static void drop_overlapping_sections(struct code_map *map)
{
	size_t kept = 0;

	if (map->section_count)
		qsort(map->sections, map->section_count, sizeof(*map->sections), compare_sections);
	for (size_t i = 0; i < map->section_count; i++) {
		const struct code_section *section = &map->sections[i];

		if (kept && map->sections[kept - 1].end_address > section->begin_address)
			map->bad_sections++;
		else
			map->sections[kept++] = *section;
	}
	map->section_count = kept;
}

static struct sym_error *read_sections(struct remote_memory *memory, const struct layout *layout,
				       const struct claims *claims, struct code_map *map)
{
	map->sections = calloc(claims->count + 1, sizeof(*map->sections));
	if (!map->sections)
		return &sym_error_no_memory;
	for (bool again = true; again;) {
		struct sym_error *error;

		map->section_count = map->bad_sections = 0;
		for (size_t i = 0; i < claims->count; i++) {
			struct code_section *section = &map->sections[map->section_count];
			enum remote_state state =
				read_section(memory, layout, claims->items[i].section, section);

			if (state == REMOTE_OK && is_as_claimed(section, &claims->items[i]))
				map->section_count++;
			else if (state != REMOTE_PENDING)
				map->bad_sections++;
		}
		error = remote_memory_fetch(memory, &again);
		if (error)
			return error;
	}
	drop_overlapping_sections(map);
	return NULL;
}

/* ---- nibble maps ---------------------------------------------------------------- */

struct heap_walk {
	struct code_map *map;
	size_t block_capacity;
	bool no_memory;
};

static void add_block(struct heap_walk *walk, uint64_t start, uint64_t heap_end, uint32_t section)
{
	struct code_map *map = walk->map;

	if (!grow_items((void **)&map->blocks, &walk->block_capacity, map->block_count,
			sizeof(*map->blocks))) {
		walk->no_memory = true;
		return;
	}
	if (map->block_count && map->blocks[map->block_count - 1].section == section)
		map->blocks[map->block_count - 1].limit_address = start;
	map->blocks[map->block_count++] = (struct code_block){
		.start_address = start,
		.limit_address = heap_end,
		.section = section,
	};
}

/* Reads the starts in one unit, which covers 256 bytes from `base`. */
static void read_unit(struct heap_walk *walk, uint32_t unit, uint64_t base, uint64_t heap_start,
		      uint64_t heap_end, uint32_t section)
{
	if ((unit & 15) > 8)
		return;
	/* Nibbles from the most significant one on. Most units have one or none. */
	while (unit) {
		unsigned int i = (unsigned int)__builtin_clz(unit) / 4;
		uint32_t nibble = unit >> (28 - 4 * i) & 15;
		uint64_t start = base + 32 * i + 4 * (nibble - 1);

		if (nibble <= 8 && start >= heap_start + 8 && start < heap_end)
			add_block(walk, start, heap_end, section);
		unit &= (uint32_t)(((uint64_t)1 << (28 - 4 * i)) - 1);
	}
}

/* A heap that contradicts its section is counted and has no blocks. */
static void read_heap(struct remote_memory *memory, const struct layout *layout,
		      struct heap_walk *walk, uint32_t section_index)
{
	const struct code_section *section = &walk->map->sections[section_index];
	uint64_t start, end, base, units, nibbles, first, last;
	size_t blocks_before = walk->map->block_count;

	remote_begin(memory);
	start = remote_u64(memory, section->heap_list + layout->code_heap.start_address);
	end = remote_u64(memory, section->heap_list + layout->code_heap.end_address);
	base = remote_u64(memory, section->heap_list + layout->code_heap.map_base);
	nibbles = remote_u64(memory, section->heap_list + layout->code_heap.header_map);
	if (remote_state(memory) == REMOTE_PENDING)
		return;
	if (remote_state(memory) == REMOTE_UNREADABLE || start < section->begin_address ||
	    end > section->end_address || start > end || base != (start & ~(uint64_t)4095) ||
	    end - start > max_heap_bytes) {
		walk->map->bad_sections++;
		return;
	}
	first = (start - base) >> 8;
	last = (end - base) >> 8;
	remote_want(memory, nibbles + first * 4, (last - first + 1) * 4);
	for (units = first; units <= last && !walk->no_memory; units += 256) {
		uint32_t chunk[256];
		size_t count = last - units + 1 < 256 ? (size_t)(last - units + 1) : 256;

		if (!remote_read(memory, nibbles + units * 4, chunk, count * 4))
			break;
		for (size_t i = 0; i < count; i++)
			if (chunk[i])
				read_unit(walk, le32toh(chunk[i]), base + (units + i) * 256, start,
					  end, section_index);
	}
	if (remote_state(memory) != REMOTE_OK)
		walk->map->block_count = blocks_before;
	if (remote_state(memory) == REMOTE_UNREADABLE)
		walk->map->bad_sections++;
}

static struct sym_error *read_heaps(struct remote_memory *memory, const struct layout *layout,
				    struct code_map *map)
{
	const uint32_t kinds = CODE_SECTION_HEAP | CODE_SECTION_INTERPRETER;
	struct heap_walk walk = { .map = map };
	size_t bad_before = map->bad_sections;

	for (bool again = true; again;) {
		struct sym_error *error;

		map->block_count = 0;
		map->bad_sections = bad_before;
		for (size_t i = 0; i < map->section_count && !walk.no_memory; i++)
			if ((map->sections[i].flags & kinds) == CODE_SECTION_HEAP)
				read_heap(memory, layout, &walk, (uint32_t)i);
		if (walk.no_memory)
			return &sym_error_no_memory;
		error = remote_memory_fetch(memory, &again);
		if (error)
			return error;
	}
	return NULL;
}

struct sym_error *code_map_read(struct remote_memory *memory, const struct layout *layout,
				struct code_map *ret)
{
	struct range_walk walk = { .memory = memory, .layout = layout };
	struct code_map map = { 0 };
	struct sym_error *error = walk_range_map(&walk);

	if (!error)
		error = read_sections(memory, layout, &walk.claims, &map);
	if (!error)
		error = read_heaps(memory, layout, &map);
	free(walk.claims.items);
	if (error)
		code_map_deinit(&map);
	else
		*ret = map;
	return error;
}

void code_map_deinit(struct code_map *map)
{
	free(map->sections);
	free(map->blocks);
	*map = (struct code_map){ 0 };
}

/* ---- blocks ------------------------------------------------------------------------ */

/* End of a piece that starts at `begin`, relative to the section; 0 while it is unknown. */
static uint64_t piece_end(struct remote_memory *memory, const struct layout *layout,
			  const struct code_section *section, uint64_t begin, uint32_t last)
{
	uint32_t words;

	if (!layout->runtime_function.is_unwind_data)
		return last;
	/* Instructions are words. Without an unwind record the flags contain the size. */
	words = last & 3 ? last >> 2 & 0x7ff
			 : remote_u32(memory, section->begin_address + last) & 0x3ffff;
	return remote_state(memory) == REMOTE_OK ? begin + 4 * (uint64_t)words : 0;
}

/*
 * Checks that the pieces after the first, which ends at `last_end`, ascend and stay inside the
 * section. Returns the end of the last one; 0 if they do not.
 */
static uint64_t read_more_pieces(struct remote_memory *memory, const struct layout *layout,
				 const struct code_section *section, uint64_t infos, uint32_t count,
				 uint64_t last_end)
{
	uint64_t section_bytes = section->end_address - section->begin_address;

	remote_want(memory, infos, count * (size_t)layout->runtime_function.size_bytes);
	for (uint32_t i = 1; i < count; i++) {
		uint64_t at = infos + (uint64_t)i * layout->runtime_function.size_bytes;
		uint64_t begin = remote_u32(memory, at + layout->runtime_function.begin);
		uint32_t last = remote_u32(memory, at + layout->runtime_function.last);
		uint64_t end = piece_end(memory, layout, section, begin, last);

		if (remote_state(memory) != REMOTE_OK || end <= begin || end > section_bytes ||
		    begin < last_end)
			return 0;
		last_end = end;
	}
	return last_end;
}

enum code_block_kind code_block_read_head(struct remote_memory *memory, const struct layout *layout,
					  const struct code_block *block, uint64_t *ret)
{
	remote_begin(memory);
	*ret = remote_u64(memory, block->start_address - 8);
	if (remote_state(memory) != REMOTE_OK)
		return remote_state(memory) == REMOTE_PENDING ? CODE_BLOCK_PENDING : CODE_BLOCK_BAD;
	if (*ret <= layout->stub_kind_last)
		return CODE_BLOCK_STUB;
	remote_want(memory, *ret, layout->code_header.read_bytes);
	return CODE_BLOCK_METHOD;
}

enum code_block_kind code_block_read_method(struct remote_memory *memory,
					    const struct layout *layout, const struct code_map *map,
					    const struct code_block *block, uint64_t header,
					    struct code_method *ret)
{
	const struct code_section *section = &map->sections[block->section];
	uint64_t section_bytes = section->end_address - section->begin_address;
	uint32_t infos = layout->code_header.unwind_infos, count;
	uint8_t room[REMOTE_STRUCTURE_BYTES];
	const uint8_t *bytes;
	uint64_t begin, end;
	uint32_t last;

	remote_begin(memory);
	bytes = remote_structure(memory, header, room, layout->code_header.read_bytes);
	ret->start_address = block->start_address;
	ret->method_desc = structure_u64(bytes, layout->code_header.method_desc);
	ret->piece_count = count = structure_u32(bytes, layout->code_header.unwind_count);
	begin = structure_u32(bytes, infos + layout->runtime_function.begin);
	last = structure_u32(bytes, infos + layout->runtime_function.last);
	if (remote_state(memory) == REMOTE_PENDING)
		return CODE_BLOCK_PENDING;
	end = piece_end(memory, layout, section, begin, last);
	if (remote_state(memory) == REMOTE_PENDING)
		return CODE_BLOCK_PENDING;
	/* Fields that could not be read are 0. */
	if (!count || count >= max_unwind_infos || ret->method_desc & 7 ||
	    section->begin_address + begin != block->start_address || end <= begin ||
	    end > section_bytes)
		return CODE_BLOCK_BAD;
	if (count > 1)
		end = read_more_pieces(memory, layout, section, header + infos, count, end);
	if (remote_state(memory) == REMOTE_PENDING)
		return CODE_BLOCK_PENDING;
	ret->size_bytes = section->begin_address + end - block->start_address;
	return end ? CODE_BLOCK_METHOD : CODE_BLOCK_BAD;
}

const char *code_stub_name(uint32_t stub_kind)
{
	static const char *const names[] = {
		[1] = "<JumpStub>",        [2] = "<Precode>",        [3] = "<DynamicHelper>",
		[4] = "<StubPrecode>",     [5] = "<FixupPrecode>",   [6] = "<VSD_DispatchStub>",
		[7] = "<VSD_ResolveStub>", [8] = "<VSD_LookupStub>", [9] = "<VSD_VTableStub>",
	};

	return stub_kind < sizeof(names) / sizeof(names[0]) ? names[stub_kind] : NULL;
}
