/* SPDX-License-Identifier: MIT */
#include "libsym/clr/stub_scan.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/clr/runtime_stub.h"
#include "libsym/format/linux/mapping_name.h"

enum {
	/* Single executable pages to check for the write barrier; a process has few. */
	MOST_PAGES = 256,
	CHUNK_BYTES = 1 << 16,
};

static const uint64_t most_bytes = 256 << 20;

bool stub_scan_is_of_runtime(const struct sym_mapping *mapping)
{
	return mapping_name_is_doublemapper(mapping->path);
}

static bool may_have_stubs(const struct sym_mapping *mapping)
{
	return mapping->protection & SYM_EXECUTE &&
	       (!*mapping->path || stub_scan_is_of_runtime(mapping));
}

static bool read_memory(const struct process *process, uint64_t address, uint8_t *room,
			size_t bytes)
{
	struct sym_error *error = process_read_memory(process, address, room, bytes);

	sym_error_destroy(error);
	return !error;
}

/* Target of the jump: mov rax, target; jmp rax, or ldr x16, target; br x16; 0: not such a jump. */
static uint64_t far_jump_target(const uint8_t code[16])
{
	static const uint8_t arm64[] = { 0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6 };
	uint64_t target;

	if (!memcmp(code, arm64, sizeof(arm64)))
		memcpy(&target, code + sizeof(arm64), sizeof(target));
	else if (code[0] == 0x48 && code[1] == 0xb8 && code[10] == 0xff && code[11] == 0xe0)
		memcpy(&target, code + 2, sizeof(target));
	else
		return 0;
	return le64toh(target);
}

bool stub_scan_is_code_heap(const struct process *process, const struct address_space *space,
			    const struct sym_mapping *mapping, const char *runtime)
{
	uint8_t code[16];
	size_t found;

	if (!read_memory(process, mapping->start_address, code, sizeof(code)))
		return false;
	found = address_space_find(space, far_jump_target(code));
	return found != ADDRESS_SPACE_NONE && !strcmp(space->mappings[found].path, runtime);
}

void stub_scan_find_barrier(const struct process *process, const struct address_space *space,
			    struct write_barrier *ret)
{
	const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	size_t asked = 0;

	for (size_t i = 0; i < space->mapping_count && asked < MOST_PAGES; i++) {
		const struct sym_mapping *mapping = &space->mappings[i];
		uint8_t page[WRITE_BARRIER_PAGE_BYTES];

		if (!may_have_stubs(mapping) ||
		    mapping->end_address - mapping->start_address != page_bytes)
			continue;
		asked++;
		if (read_memory(process, mapping->start_address, page, sizeof(page)) &&
		    write_barrier_recognise(page, mapping->start_address, ret))
			return;
	}
}

/* Adds the stubs that start in a chunk of the mapping; *at_ret is after the last one. */
static bool stub_scan_chunk(const struct sym_mapping *mapping, uint64_t address,
			    const uint8_t *chunk, size_t bytes, uint64_t *at_ret,
			    struct address_ranges *ret)
{
	size_t at = 0;

	while (at + RUNTIME_STUB_BYTES <= bytes) {
		size_t size = runtime_stub_size(chunk + at);
		uint64_t start = address + at, left = mapping->end_address - start;

		if (size && !address_ranges_append(ret, start, start + (size < left ? size : left)))
			return false;
		at += size ? (size + RUNTIME_STUB_ALIGNMENT - 1) & -RUNTIME_STUB_ALIGNMENT
			   : RUNTIME_STUB_ALIGNMENT;
	}
	*at_ret = address + at;
	return true;
}

static bool scan_mapping(const struct process *process, const struct sym_mapping *mapping,
			 uint8_t *chunk, struct address_ranges *ret)
{
	uint64_t end = mapping->end_address, address = mapping->start_address;

	while (address < end && end - address >= RUNTIME_STUB_BYTES) {
		size_t bytes = end - address < CHUNK_BYTES ? (size_t)(end - address) : CHUNK_BYTES;

		if (!read_memory(process, address, chunk, bytes))
			break;
		if (!stub_scan_chunk(mapping, address, chunk, bytes, &address, ret))
			return false;
	}
	return true;
}

struct sym_error *stub_scan_find(const struct process *process, const struct address_space *space,
				 struct address_ranges *ret)
{
	uint8_t *chunk AUTO_FREE = malloc(CHUNK_BYTES);
	uint64_t left = most_bytes;

	if (!chunk)
		return &sym_error_no_memory;
	for (size_t i = 0; i < space->mapping_count; i++) {
		const struct sym_mapping *mapping = &space->mappings[i];

		uint64_t bytes = mapping->end_address - mapping->start_address;

		if (!may_have_stubs(mapping) || bytes > left)
			continue;
		left -= bytes;
		if (!scan_mapping(process, mapping, chunk, ret))
			return &sym_error_no_memory;
	}
	return NULL;
}
