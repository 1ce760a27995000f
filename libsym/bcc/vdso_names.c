/* SPDX-License-Identifier: MIT */
#include "libsym/bcc/vdso_names.h"

#include <string.h>

struct wanted_position {
	uint64_t position;
	const char *name; /* inside the vDSO, which stays mapped */
	uint64_t offset;
};

static int vdso_names_match(const char *name, uint64_t start, uint64_t size_bytes, void *payload)
{
	struct wanted_position *wanted = payload;

	if (wanted->position < start || wanted->position - start >= size_bytes)
		return 0;
	wanted->name = name;
	wanted->offset = wanted->position - start;
	return -1;
}

/* The mapping "[vdso]" that contains the address. */
static const struct sym_mapping *find_mapping(const struct sym_snapshot *snapshot, uint64_t address)
{
	size_t count = sym_snapshot_mapping_count(snapshot);

	for (size_t i = 0; i < count; i++) {
		const struct sym_mapping *mapping = sym_snapshot_mapping_at(snapshot, i);

		if (address >= mapping->start_address && address < mapping->end_address)
			return mapping;
	}
	return NULL;
}

bool vdso_names_find(const struct sym_snapshot *snapshot, const struct sym_answer *answer,
		     struct bcc_symbol *sym)
{
	struct wanted_position wanted = { 0 };
	const struct sym_mapping *mapping;

	if (strcmp(answer->image_path, "[vdso]") != 0)
		return false;
	mapping = find_mapping(snapshot, answer->address);
	/* A 32-bit process has another vDSO. */
	if (!mapping || mapping->start_address >> 32 == 0)
		return false;
	wanted.position = answer->address - mapping->start_address;
	if (bcc_elf_foreach_vdso_sym(vdso_names_match, &wanted) < 0 || !wanted.name)
		return false;
	sym->name = wanted.name;
	sym->module = answer->image_path;
	sym->offset = wanted.offset;
	return true;
}
