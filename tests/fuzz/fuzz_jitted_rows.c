/* SPDX-License-Identifier: MIT */
/* Unwind infos of jitted code in the memory of a process: six bytes say where the method starts,
 * how long it is and where in it the instruction is; the rest is the memory. A row uses a register
 * that exists. */
#include <stdlib.h>
#include <string.h>

#include "libsym/unwind/jitted_rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint64_t memory_address = 0x10000;

struct memory {
	const uint8_t *bytes;
	size_t size_bytes;
};

static size_t read_memory(const struct core *core, uint64_t address, void *room, size_t size_bytes)
{
	const struct memory *memory = (const struct memory *)core;
	uint64_t offset = address - memory_address;

	if (size_bytes > memory->size_bytes || offset > memory->size_bytes - size_bytes)
		return 0;
	memcpy(room, memory->bytes + offset, size_bytes);
	return size_bytes;
}

static const struct process_core_ops ops = { .read = read_memory };

static void check(const struct frame_row *row)
{
	if (row->cfa.kind != FRAME_REGISTER_OFFSET || row->cfa.reg >= FRAME_REGISTERS)
		abort();
	for (unsigned int i = 0; i < FRAME_REGISTERS; i++)
		if (row->registers[i].kind == FRAME_AT_REGISTER &&
		    row->registers[i].reg >= FRAME_REGISTERS)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory memory;
	struct process process = { .core = (struct core *)&memory, .core_ops = &ops };
	uint16_t numbers[3];
	uint64_t start;
	struct frame_row row;

	if (size < sizeof(numbers))
		return 0;
	memcpy(numbers, data, sizeof(numbers));
	memory = (struct memory){ data + sizeof(numbers), size - sizeof(numbers) };
	start = memory_address + numbers[0];
	for (int is_call = 0; is_call < 2; is_call++)
		if (jitted_row_find(&process, start, numbers[1], start + numbers[2], is_call, &row))
			check(&row);
	return 0;
}
