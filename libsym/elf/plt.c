/* SPDX-License-Identifier: MIT */
/*
 * An entry of a PLT has no symbol; its name is that of the function it jumps to:
 *
 *   entry --(instruction)--> slot in .got --(relocation)--> symbol in .dynsym, or a selecting
 * function
 *
 * read_slots() collects the relocations that fill slots, sorted by vaddr. read_x86() and
 * read_aarch64() then decode each entry, find the slot it jumps through, and look the slot up.
 */
#include "libsym/elf/plt.h"
#include "libsym/base/ascending.h"
#include "libsym/base/grow.h"

#include <stdlib.h>
#include <string.h>

/* The value that a relocation writes to a slot of the GOT. */
struct slot {
	uint64_t vaddr;
	uint64_t chooser; /* vaddr of the selecting function; valid if `symbol` is 0 */
	uint32_t symbol;  /* index in .dynsym */
};

enum {
	NO_SECTION = 0 /* no section has this number */
};

static const char *const section_names[PLT_SECTIONS] = { ".plt", ".plt.sec", ".plt.got", ".iplt" };

struct plt_reading {
	struct plt *plt;
	unsigned int machine;
	uint64_t got_vaddr; /* base of position-independent i386 code */
	struct slot *slots; /* ascending by vaddr */
	size_t slot_count, slot_capacity;
	size_t entry_capacity;
	size_t symbols_index; /* section number of .dynsym */
	bool any_chooser;
	struct reader symbols, strings;
};

void plt_deinit(struct plt *plt)
{
	free(plt->items);
	elf_sections_deinit(&plt->sections);
	elf_symbols_deinit(&plt->indirect);
	plt->items = NULL;
	plt->count = 0;
}

/* ---- relocations ------------------------------------------------------------- */

/* Is it R_*_GLOB_DAT or R_*_JUMP_SLOT? */
static bool fills_slot(unsigned int machine, uint32_t type)
{
	if (machine == EM_AARCH64)
		return type == R_AARCH64_GLOB_DAT || type == R_AARCH64_JUMP_SLOT;
	/* the values for i386 are equal */
	return type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT;
}

static bool is_chosen(unsigned int machine, uint32_t type)
{
	if (machine == EM_AARCH64)
		return type == R_AARCH64_IRELATIVE;
	return type == (machine == EM_386 ? R_386_IRELATIVE : R_X86_64_IRELATIVE);
}

static bool add_slot(struct plt_reading *reading, const struct slot *slot)
{
	if (!grow_items((void **)&reading->slots, &reading->slot_capacity, reading->slot_count,
			sizeof(*reading->slots)))
		return false;
	reading->slots[reading->slot_count++] = *slot;
	return true;
}

/* A relocation without an addend has it in the slot. */
static uint64_t word_in_slot(struct plt_reading *reading, uint64_t vaddr)
{
	struct elf_sections *sections = &reading->plt->sections;
	bool wide = sections->object->is_64bit;

	for (size_t i = 1; i < sections->count; i++) {
		const GElf_Shdr *section = &sections->items[i];
		struct sym_error *error;
		struct reader bytes;
		uint64_t word;

		if (section->sh_type != SHT_PROGBITS || !(section->sh_flags & SHF_ALLOC) ||
		    vaddr < section->sh_addr || vaddr - section->sh_addr >= section->sh_size)
			continue;
		error = elf_sections_bytes(sections, section, &bytes);
		sym_error_destroy(error);
		if (error)
			return 0;
		reader_seek(&bytes, (size_t)(vaddr - section->sh_addr));
		word = wide ? reader_u64(&bytes) : reader_u32(&bytes);
		return reader_ok(&bytes) ? word : 0;
	}
	return 0;
}

static struct sym_error *read_relocations(struct plt_reading *reading, const GElf_Shdr *section)
{
	bool wide = reading->plt->sections.object->is_64bit;
	bool addends = section->sh_type == SHT_RELA;
	struct reader table;
	struct sym_error *error = elf_sections_bytes(&reading->plt->sections, section, &table);

	if (error)
		return error;
	while (reader_left(&table)) {
		struct slot slot = { .vaddr = wide ? reader_u64(&table) : reader_u32(&table) };
		uint64_t info = wide ? reader_u64(&table) : reader_u32(&table);
		uint32_t type = wide ? (uint32_t)info : (uint32_t)info & 0xff;
		bool chosen = is_chosen(reading->machine, type);

		slot.symbol = wide ? (uint32_t)(info >> 32) : (uint32_t)info >> 8;
		if (addends)
			slot.chooser = wide ? reader_u64(&table) : reader_u32(&table);
		else if (chosen)
			slot.chooser = word_in_slot(reading, slot.vaddr);
		if (!reader_ok(&table))
			break;
		chosen &= !slot.symbol;
		reading->any_chooser |= chosen;
		if ((chosen || (slot.symbol && fills_slot(reading->machine, type))) &&
		    !add_slot(reading, &slot))
			return &sym_error_no_memory;
	}
	return NULL;
}

/* A static program has no .dynsym and only these relocations. */
static bool may_fill_slots(const struct plt_reading *reading, const GElf_Shdr *section)
{
	if (section->sh_type != SHT_RELA && section->sh_type != SHT_REL)
		return false;
	return reading->symbols_index == NO_SECTION ? section->sh_flags & SHF_ALLOC
						    : section->sh_link == reading->symbols_index;
}

/* Reads the slots. Data has many relocations; they are needed only for .plt.got. */
static struct sym_error *read_slots(struct plt_reading *reading)
{
	struct elf_sections *sections = &reading->plt->sections;
	bool all = elf_sections_find_named(sections, ".plt.got") ||
		   elf_sections_find_named(sections, ".iplt");
	const GElf_Shdr *got = elf_sections_find_named(sections, ".got.plt");
	struct sym_error *error = NULL;

	if (!got)
		got = elf_sections_find_named(sections, ".got");
	reading->got_vaddr = got ? got->sh_addr : 0;
	for (size_t i = 1; !error && i < sections->count; i++) {
		const GElf_Shdr *section = &sections->items[i];

		/* Relocations of a PLT name the section of its slots. */
		if (may_fill_slots(reading, section) &&
		    (all || section->sh_info || reading->symbols_index == NO_SECTION))
			error = read_relocations(reading, section);
	}
	if (!error && reading->any_chooser)
		error = elf_symbols_read_indirect(sections->object, &reading->plt->indirect);
	ascending_sort_items(reading->slots, reading->slot_count, sizeof(*reading->slots));
	return error;
}

static const struct slot *find_slot(const struct plt_reading *reading, uint64_t vaddr)
{
	return reading->slot_count ? bsearch(&vaddr, reading->slots, reading->slot_count,
					     sizeof(*reading->slots), ascending_compare)
				   : NULL;
}

/* ---- entries ----------------------------------------------------------------- */

/* The preferred name of the function that the one at `vaddr` selects: the first at that vaddr. */
static const struct elf_symbol *chosen_by(const struct elf_symbols *indirect, uint64_t vaddr)
{
	size_t low = ascending_items_below(indirect->items, indirect->count,
					   sizeof(*indirect->items), vaddr);

	return low < indirect->count && indirect->items[low].vaddr == vaddr ? &indirect->items[low]
									    : NULL;
}

static bool find_target(const struct plt_reading *reading, const struct slot *slot,
			struct plt_entry *ret)
{
	bool wide = reading->plt->sections.object->is_64bit;
	struct reader symbols = reading->symbols;

	if (!slot->symbol) {
		const struct elf_symbol *chosen = chosen_by(&reading->plt->indirect, slot->chooser);

		ret->target = chosen ? chosen->name : NULL;
		ret->target_bytes = chosen ? elf_symbols_name_bytes(chosen) : 0;
		return chosen;
	}
	reader_seek(&symbols,
		    (size_t)slot->symbol * (wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym)));
	ret->target = elf_sections_string(&reading->strings, reader_u32(&symbols));
	ret->target_bytes = ret->target ? (uint32_t)strlen(ret->target) : 0;
	return ret->target;
}

static struct sym_error *add_entry(struct plt_reading *reading, uint64_t vaddr, uint32_t size_bytes,
				   uint64_t slot_vaddr)
{
	const struct slot *slot = find_slot(reading, slot_vaddr);
	struct plt_entry entry = { .vaddr = vaddr, .size_bytes = size_bytes };
	struct plt *plt = reading->plt;

	if (!slot || !find_target(reading, slot, &entry))
		return NULL;
	if (!grow_items((void **)&plt->items, &reading->entry_capacity, plt->count,
			sizeof(*plt->items)))
		return &sym_error_no_memory;
	plt->items[plt->count++] = entry;
	return NULL;
}

static uint32_t word_at(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

/* Finds the slot through which an entry jumps. ff 25 disp32 is jmp *disp32(%rip), on i386 jmp
 * *disp32; ff a3 disp32 is jmp *disp32(%ebx). endbr or bnd can come first. */
static bool find_x86_slot(const struct plt_reading *reading, const uint8_t *entry,
			  size_t size_bytes, uint64_t vaddr, uint64_t *ret)
{
	for (size_t i = 0; i + 6 <= size_bytes; i++) {
		uint32_t displacement = word_at(entry + i + 2);

		if (entry[i] != 0xff || (entry[i + 1] != 0x25 && entry[i + 1] != 0xa3))
			continue;
		if (reading->machine == EM_X86_64 && entry[i + 1] == 0x25)
			*ret = vaddr + i + 6 + (uint64_t)(int64_t)(int32_t)displacement;
		else if (reading->machine == EM_386 && entry[i + 1] == 0x25)
			*ret = displacement;
		else if (reading->machine == EM_386)
			*ret = (uint32_t)(reading->got_vaddr + displacement);
		else
			continue;
		return true;
	}
	return false;
}

/* For a static program, ld leaves the entry size 0. Two jumps in succession show it: 6 bytes and 2
 * of padding each. */
static size_t x86_entry_bytes(const GElf_Shdr *section, const struct reader *code)
{
	static const uint8_t jump[] = { 0xff, 0x25 };

	if (section->sh_entsize)
		return section->sh_entsize == 8 ? 8 : 16;
	return code->size_bytes >= 8 && !memcmp(code->data, jump, sizeof(jump)) &&
			       (code->size_bytes < 16 ||
				!memcmp(code->data + 8, jump, sizeof(jump)))
		       ? 8
		       : 16;
}

static struct sym_error *read_x86(struct plt_reading *reading, const GElf_Shdr *section,
				  const struct reader *code)
{
	size_t entry_bytes = x86_entry_bytes(section, code);
	struct sym_error *error = NULL;

	for (size_t at = 0; !error && at + entry_bytes <= code->size_bytes; at += entry_bytes) {
		uint64_t vaddr = section->sh_addr + at, slot;

		if (find_x86_slot(reading, code->data + at, entry_bytes, vaddr, &slot))
			error = add_entry(reading, vaddr, (uint32_t)entry_bytes, slot);
	}
	return error;
}

/* adrp x16, PAGE; ldr x17, [x16, OFFSET]; add x16, x16, OFFSET; br x17. bti can come first. */
static struct sym_error *read_aarch64(struct plt_reading *reading, const GElf_Shdr *section,
				      const struct reader *code)
{
	static const uint32_t bti = 0xd503245f;
	struct sym_error *error = NULL;

	for (size_t at = 0; !error && at + 16 <= code->size_bytes; at += 4) {
		uint32_t adrp = word_at(code->data + at), ldr = word_at(code->data + at + 4);
		uint64_t page, vaddr = section->sh_addr + at;
		bool marked = at >= 4 && word_at(code->data + at - 4) == bti;

		if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		page = (adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);
		page = (page ^ 0x100000) - 0x100000; /* sign-extends 21 bits */
		page = (vaddr & ~(uint64_t)0xfff) + (page << 12);
		error = add_entry(reading, marked ? vaddr - 4 : vaddr, marked ? 20 : 16,
				  page + (ldr >> 10 & 0xfff) * 8);
	}
	return error;
}

static struct sym_error *read_entries(struct plt_reading *reading, const char *name)
{
	const GElf_Shdr *section = elf_sections_find_named(&reading->plt->sections, name);
	struct sym_error *error;
	struct reader code;

	if (!section || !(section->sh_flags & SHF_EXECINSTR))
		return NULL;
	error = elf_sections_bytes(&reading->plt->sections, section, &code);
	if (error)
		return error;
	return reading->machine == EM_AARCH64 ? read_aarch64(reading, section, &code)
					      : read_x86(reading, section, &code);
}

/* Sections of a malformed file can overlap. */
static void make_disjoint(struct plt *plt)
{
	size_t kept = 0;

	ascending_sort_items(plt->items, plt->count, sizeof(*plt->items));
	for (size_t i = 0; i < plt->count; i++)
		if (!kept || plt->items[i].vaddr - plt->items[kept - 1].vaddr >=
				     plt->items[kept - 1].size_bytes)
			plt->items[kept++] = plt->items[i];
	plt->count = kept;
}

/* The names of imports; a static program has none. */
static struct sym_error *read_symbols(struct plt_reading *reading)
{
	struct elf_sections *sections = &reading->plt->sections;
	const GElf_Shdr *symbols = elf_sections_find(sections, SHT_DYNSYM);
	struct sym_error *error;

	reading->symbols = reading->strings = reader_over(NULL, 0);
	if (!symbols)
		return NULL;
	reading->symbols_index = (size_t)(symbols - sections->items);
	if (symbols->sh_link >= sections->count)
		return elf_sections_error(sections, "a symbol table without a string table");
	error = elf_sections_bytes(sections, symbols, &reading->symbols);
	return error ? error
		     : elf_sections_bytes(sections, &sections->items[symbols->sh_link],
					  &reading->strings);
}

static struct sym_error *read_tables(struct plt_reading *reading)
{
	struct elf_sections *sections = &reading->plt->sections;
	struct sym_error *error;

	reading->machine = sections->object->machine;
	if (sections->object->is_big_endian ||
	    (reading->machine != EM_X86_64 && reading->machine != EM_386 &&
	     reading->machine != EM_AARCH64))
		return NULL;
	error = read_symbols(reading);
	if (!error)
		error = read_slots(reading);
	for (size_t i = 0; !error && i < PLT_SECTIONS; i++)
		error = read_entries(reading, section_names[i]);
	return error;
}

struct sym_error *plt_read(const struct object_file *object, struct plt *ret)
{
	struct plt plt = { 0 };
	struct plt_reading reading = { .plt = &plt };
	struct sym_error *error = elf_sections_read(object, &plt.sections);

	if (!error)
		error = read_tables(&reading);
	free(reading.slots);
	make_disjoint(&plt);
	if (error)
		plt_deinit(&plt);
	else
		*ret = plt;
	return error;
}

struct sym_error *plt_extents_read(const struct object_file *object, struct plt_extents *ret)
{
	struct elf_sections sections AUTO_ELF_SECTIONS = { 0 };
	struct sym_error *error = elf_sections_read(object, &sections);

	if (error)
		return error;
	ret->count = 0;
	for (size_t i = 0; i < PLT_SECTIONS; i++) {
		const GElf_Shdr *section = elf_sections_find_named(&sections, section_names[i]);

		if (section)
			ret->items[ret->count++] =
				(struct plt_extent){ section->sh_addr, section->sh_size };
	}
	return NULL;
}

bool plt_extents_contain(const struct plt_extents *extents, uint64_t vaddr)
{
	for (size_t i = 0; i < extents->count; i++)
		if (vaddr - extents->items[i].vaddr < extents->items[i].size_bytes)
			return true;
	return false;
}

size_t plt_find(const struct plt *plt, uint64_t vaddr)
{
	size_t low = ascending_items_up_to(plt->items, plt->count, sizeof(*plt->items), vaddr);

	return low && vaddr - plt->items[low - 1].vaddr < plt->items[low - 1].size_bytes ? low - 1
											 : PLT_NONE;
}
