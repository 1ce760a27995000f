/* SPDX-License-Identifier: MIT */
#include "libsym/clr/precode.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/grow.h"

enum {
	MAX_PRECODE_BYTES = 24, /* the most that the runtime describes */
	PIECE_BYTES = 4096,
};

/* The precodes of the machine. */
struct machine {
	uint32_t page_bytes;
	uint8_t fixup_bytes, stub_bytes; /* sizes */
	uint8_t fixup[MAX_PRECODE_BYTES], fixup_ignored[MAX_PRECODE_BYTES];
	uint8_t stub[MAX_PRECODE_BYTES], stub_ignored[MAX_PRECODE_BYTES];
	uint8_t stub_type, import_type, return_buffer_type;
};

struct walk {
	struct remote_memory *memory;
	const struct layout_precodes *layout;
	struct machine machine;
	struct precodes precodes;
	size_t capacity;
	bool no_memory;
};

static struct sym_error *read_machine(struct walk *walk)
{
	const struct layout_precodes *layout = walk->layout;
	struct machine *machine = &walk->machine;
	uint8_t bytes[4096];
	uint64_t at = layout->metadata_address + layout->machine;
	uint32_t last = layout->return_buffer_type;
	struct sym_error *error;

	if (last < layout->stub_ignored + MAX_PRECODE_BYTES)
		last = layout->stub_ignored + MAX_PRECODE_BYTES;
	if (last < layout->fixup_ignored + MAX_PRECODE_BYTES)
		last = layout->fixup_ignored + MAX_PRECODE_BYTES;
	if (last >= sizeof(bytes) || layout->code_page_size > last || layout->fixup_bytes > last ||
	    layout->stub_bytes > last || layout->fixup_size > last || layout->stub_size > last ||
	    layout->stub_type > last || layout->import_type > last)
		return sym_error_create(
			SYM_ERROR_UNSUPPORTED,
			"data contract of the runtime: PrecodeMachineDescriptor makes no sense");
	error = remote_read_now(walk->memory, at, bytes, last + 1, "the description of precodes");
	if (error)
		return error;
	memcpy(&machine->page_bytes, bytes + layout->code_page_size, sizeof(machine->page_bytes));
	machine->fixup_bytes = bytes[layout->fixup_size];
	machine->stub_bytes = bytes[layout->stub_size];
	memcpy(machine->fixup, bytes + layout->fixup_bytes, MAX_PRECODE_BYTES);
	memcpy(machine->fixup_ignored, bytes + layout->fixup_ignored, MAX_PRECODE_BYTES);
	memcpy(machine->stub, bytes + layout->stub_bytes, MAX_PRECODE_BYTES);
	memcpy(machine->stub_ignored, bytes + layout->stub_ignored, MAX_PRECODE_BYTES);
	machine->stub_type = bytes[layout->stub_type];
	machine->import_type = bytes[layout->import_type];
	machine->return_buffer_type = bytes[layout->return_buffer_type];
	if (!machine->page_bytes && !machine->fixup_bytes && !machine->stub_bytes)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"data contract of the runtime: it runs no .NET code yet "
					"(just begun, or suspended until a tool resumes it)");
	if (machine->page_bytes < 4096 || machine->page_bytes > 1 << 20 ||
	    machine->page_bytes % 4096 || !machine->fixup_bytes ||
	    machine->fixup_bytes > MAX_PRECODE_BYTES || !machine->stub_bytes ||
	    machine->stub_bytes > MAX_PRECODE_BYTES)
		return sym_error_create(
			SYM_ERROR_UNSUPPORTED,
			"data contract of the runtime: sizes of precodes make no sense");
	return NULL;
}

static void precode_add(struct walk *walk, uint64_t address, uint32_t size_bytes,
			uint64_t method_desc)
{
	walk->no_memory |= !grow_items((void **)&walk->precodes.items, &walk->capacity,
				       walk->precodes.count, sizeof(*walk->precodes.items));
	if (walk->no_memory)
		return;
	walk->precodes.items[walk->precodes.count++] =
		(struct precode){ address, size_bytes, method_desc };
}

static bool looks_like(const uint8_t *code, const uint8_t *bytes, const uint8_t *ignored,
		       size_t size_bytes)
{
	for (size_t i = 0; i < size_bytes; i++)
		if (!ignored[i] && code[i] != bytes[i])
			return false;
	return true;
}

/* The method of the stub whose data is at `data`; 0: none. */
static uint64_t stub_method(struct walk *walk, uint64_t data)
{
	uint8_t type = remote_u8(walk->memory, data + walk->layout->type);

	if (type == walk->machine.stub_type || type == walk->machine.import_type)
		return remote_u64(walk->memory, data + walk->layout->secret);
	if (type == walk->machine.return_buffer_type)
		return remote_u64(walk->memory, data + walk->layout->return_buffer_method_desc);
	return 0;
}

/* Reads one page of code, which has entries of one kind from its start. */
static void read_page(struct walk *walk, uint64_t page)
{
	const struct machine *machine = &walk->machine;
	uint64_t data = page + machine->page_bytes, end = page + machine->page_bytes;
	uint8_t code[MAX_PRECODE_BYTES];
	uint32_t step;
	bool is_fixup;

	remote_begin(walk->memory);
	remote_want(walk->memory, page, 2 * (size_t)machine->page_bytes);
	if (!remote_read(walk->memory, page, code, sizeof(code)))
		return;
	is_fixup = looks_like(code, machine->fixup, machine->fixup_ignored, machine->fixup_bytes);
	step = is_fixup ? machine->fixup_bytes : machine->stub_bytes;
	precode_add(walk, page, machine->page_bytes, 0);
	for (uint64_t at = page; at + step <= end && !walk->no_memory; at += step) {
		uint64_t method_desc = 0, own_data = data + (at - page);

		if (!remote_read(walk->memory, at, code, step))
			return;
		if (is_fixup && looks_like(code, machine->fixup, machine->fixup_ignored, step))
			method_desc = remote_u64(walk->memory,
						 own_data + walk->layout->fixup_method_desc);
		else if (!is_fixup && looks_like(code, machine->stub, machine->stub_ignored, step))
			method_desc = stub_method(walk, own_data);
		if (remote_state(walk->memory) != REMOTE_OK)
			return;
		if (method_desc && !(method_desc & 7))
			precode_add(walk, at, step, method_desc);
	}
}

static void read_section(struct walk *walk, const struct code_section *section)
{
	uint64_t pair_bytes = 2 * (uint64_t)walk->machine.page_bytes;

	for (uint64_t page = section->begin_address;
	     section->end_address - page >= pair_bytes && !walk->no_memory; page += pair_bytes)
		read_page(walk, page);
}

struct sym_error *precodes_read(struct remote_memory *memory, const struct layout_precodes *layout,
				const struct code_map *map, struct precodes *ret)
{
	struct walk walk = { .memory = memory, .layout = layout };
	struct sym_error *error = read_machine(&walk);

	for (bool again = true; !error && again;) {
		walk.precodes.count = 0;
		for (size_t i = 0; i < map->section_count && !walk.no_memory; i++)
			if (map->sections[i].flags & CODE_SECTION_RANGE_LIST)
				read_section(&walk, &map->sections[i]);
		error = walk.no_memory ? &sym_error_no_memory : remote_memory_fetch(memory, &again);
	}
	if (error)
		precodes_deinit(&walk.precodes);
	else
		*ret = walk.precodes;
	return error;
}

void precodes_deinit(struct precodes *precodes)
{
	free(precodes->items);
	*precodes = (struct precodes){ 0 };
}
