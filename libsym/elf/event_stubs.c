/* SPDX-License-Identifier: MIT */
/*
 * A runtime that was built with LTTng has a section __tracepoints with one entry of 56 bytes for
 * each event (lttng-ust, tracepoint-types.h):
 *
 *   +0 char *name   "DotNETRuntime:GCStart_V2"; a relocation fills it in
 *   +8 int state    not 0 while LTTng records the event
 *
 * FireEtXplatGCStart_V2() begins with "if (state)". The runtime calls it for each event that it has
 * written to EventPipe, whatever the state is. So each event passes this code:
 *
 *   83 3d disp32 00   cmpl $0, state(%rip)
 *   74 / 75 / 0f 84   je, jne
 *
 * EventXplatEnabledGCStart_V2() has the same comparison and then "setne": that is not the place.
 * With .NET 8, 9 and 10 each of some 445 tracepoints has one such place; with .NET 11 those that
 * are fired at all have one (11.0.0). The jump is the place of the probe: the kernel emulates
 * jumps, and single-steps comparisons, which costs ten times as much.
 */
#include "libsym/elf/event_stubs.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/elf/elf_sections.h"

enum {
	ENTRY_BYTES = 56,
	STATE_OFFSET = 8,
	COMPARE_BYTES = 7,
};

static const char provider[] = "DotNETRuntime:";

struct stub_search {
	const char *const *names;
	size_t count;
	uint64_t *places;         /* vaddr of the jump; 0: not found, UINT64_MAX: several */
	const GElf_Shdr *entries; /* __tracepoints */
	size_t entry_count;
	size_t *entry_names; /* number of the name of each entry; SIZE_MAX: not wanted */
	struct reader strings;
	const GElf_Shdr *string_section;
};

static void note_entry(struct stub_search *search, size_t entry, uint64_t name_vaddr)
{
	uint64_t offset = name_vaddr - search->string_section->sh_addr;
	const char *name;

	if (name_vaddr < search->string_section->sh_addr || offset > UINT32_MAX)
		return;
	name = elf_sections_string(&search->strings, (uint32_t)offset);
	if (!name || strncmp(name, provider, sizeof(provider) - 1) != 0)
		return;
	for (size_t i = 0; i < search->count; i++)
		if (!strcmp(name + sizeof(provider) - 1, search->names[i]))
			search->entry_names[entry] = i;
}

/* Elf64_Rela: u64 offset, u64 info, i64 addend. The names are filled in by R_X86_64_RELATIVE. */
static void read_names(struct stub_search *search, struct reader relocations)
{
	uint64_t begin = search->entries->sh_addr;

	while (reader_left(&relocations) >= sizeof(Elf64_Rela)) {
		uint64_t offset = reader_u64(&relocations), info = reader_u64(&relocations),
			 addend = reader_u64(&relocations);

		if (ELF64_R_TYPE(info) == R_X86_64_RELATIVE && offset >= begin &&
		    (offset - begin) / ENTRY_BYTES < search->entry_count &&
		    !((offset - begin) % ENTRY_BYTES))
			note_entry(search, (size_t)((offset - begin) / ENTRY_BYTES), addend);
	}
}

static bool is_conditional_jump(const uint8_t *code)
{
	return (code[0] & 0xf0) == 0x70 || (code[0] == 0x0f && (code[1] & 0xf0) == 0x80);
}

/* `code`: a comparison, and two bytes behind it. */
static void note_comparison(struct stub_search *search, const uint8_t *code, uint64_t vaddr)
{
	uint64_t begin = search->entries->sh_addr + STATE_OFFSET, state;
	size_t entry, name;
	int32_t distance;

	memcpy(&distance, code + 2, sizeof(distance));
	state = vaddr + COMPARE_BYTES + (uint64_t)(int64_t)distance;
	entry = state < begin ? SIZE_MAX : (size_t)((state - begin) / ENTRY_BYTES);
	if (entry >= search->entry_count || (state - begin) % ENTRY_BYTES ||
	    !is_conditional_jump(code + COMPARE_BYTES))
		return;
	name = search->entry_names[entry];
	if (name != SIZE_MAX)
		search->places[name] = search->places[name] ? UINT64_MAX : vaddr + COMPARE_BYTES;
}

static void scan(struct stub_search *search, const struct reader *text, uint64_t vaddr)
{
	const uint8_t *begin = text->data, *end = begin + text->size_bytes, *at = begin;

	while (end - at >= COMPARE_BYTES + 2) {
		at = memchr(at, 0x83, (size_t)(end - at) - COMPARE_BYTES - 1);
		if (!at)
			return;
		if (at[1] == 0x3d && !at[COMPARE_BYTES - 1])
			note_comparison(search, at, vaddr + (uint64_t)(at - begin));
		at++;
	}
}

static struct sym_error *search_sections(struct stub_search *search, struct elf_sections *sections)
{
	const GElf_Shdr *relocation_section = elf_sections_find_named(sections, ".rela.dyn");
	const GElf_Shdr *text_section = elf_sections_find_named(sections, ".text");
	struct reader relocations, text;
	struct sym_error *error;

	if (!relocation_section || !text_section || !search->string_section)
		return NULL;
	error = elf_sections_bytes(sections, search->string_section, &search->strings);
	if (!error)
		error = elf_sections_bytes(sections, relocation_section, &relocations);
	if (!error)
		error = elf_sections_bytes(sections, text_section, &text);
	if (error)
		return error;
	read_names(search, relocations);
	scan(search, &text, text_section->sh_addr);
	return NULL;
}

static struct sym_error *search_object(struct stub_search *search, const struct object_file *object)
{
	struct elf_sections sections AUTO_ELF_SECTIONS = { 0 };
	struct sym_error *error = elf_sections_read(object, &sections);

	if (error)
		return error;
	search->entries = elf_sections_find_named(&sections, "__tracepoints");
	search->string_section = elf_sections_find_named(&sections, "__tracepoints_strings");
	if (!search->entries)
		return NULL;
	search->entry_count = (size_t)(search->entries->sh_size / ENTRY_BYTES);
	search->entry_names = calloc(search->entry_count + 1, sizeof(*search->entry_names));
	if (!search->entry_names)
		return &sym_error_no_memory;
	for (size_t i = 0; i < search->entry_count; i++)
		search->entry_names[i] = SIZE_MAX;
	error = search_sections(search, &sections);
	free(search->entry_names);
	return error;
}

struct sym_error *event_stubs_find(const struct object_file *object, const char *const *names,
				   size_t count, uint64_t *offsets_ret)
{
	struct stub_search search = { .names = names, .count = count, .places = offsets_ret };
	struct sym_error *error = NULL;

	memset(offsets_ret, 0, count * sizeof(*offsets_ret));
	if (object->kind == SYM_IMAGE_ELF && object->is_64bit && !object->is_big_endian)
		error = search_object(&search, object);
	for (size_t i = 0; i < count; i++) {
		uint64_t place = offsets_ret[i], left;

		if (error || !place || place == UINT64_MAX ||
		    !object_file_position_to_offset(object, place, &offsets_ret[i], &left))
			offsets_ret[i] = UINT64_MAX;
	}
	return error;
}
