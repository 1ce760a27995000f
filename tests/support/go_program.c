/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <elf.h>
#include <stdlib.h>

#include "tests/support/byte_writer.h"
#include "tests/support/elf_builder.h"
#include "tests/support/go_table.h"

/* Bytes of the file are at BASE and their offset. */
enum {
	BASE = 0x400000,
	HEADERS_BYTES = 0x1000,
	MOST_SECTIONS = 12,
	MODULE_WORDS = 48,
	MODULE_TEXT = 22,
	JOINED_BEFORE = 0x140 /* other data in .data.rel.ro */
};

struct writing {
	const struct go_table_program *program;
	struct buf file;
	struct buf names;
	struct buf relocations;
	Elf64_Shdr sections[MOST_SECTIONS];
	size_t section_count;
	struct go_table_layout layout;
	uint64_t table_vaddr, table_bytes, inlined_vaddr;
};

static uint64_t here(const struct writing *writing)
{
	return BASE + writing->file.size_bytes;
}

static Elf64_Shdr *add_section(struct writing *writing, const char *name, uint32_t type,
			       uint64_t flags, uint64_t vaddr, uint64_t end)
{
	Elf64_Shdr *section = &writing->sections[writing->section_count++];

	cr_assert_leq(writing->section_count, MOST_SECTIONS);
	*section = (Elf64_Shdr){
		.sh_name = (uint32_t)writing->names.size_bytes,
		.sh_type = type,
		.sh_flags = flags,
		.sh_addr = flags & SHF_ALLOC ? vaddr : 0,
		.sh_offset = vaddr - BASE,
		.sh_size = end - vaddr,
	};
	buf_append(&writing->names, name, strlen(name) + 1);
	return section;
}

/* Writes a pointer, in place or as a relocation. */
static void put_place(struct writing *writing, uint64_t value)
{
	if (writing->program->relocated) {
		put_u64(&writing->relocations, here(writing));
		put_u64(&writing->relocations, R_X86_64_RELATIVE);
		put_u64(&writing->relocations, value);
		value = 0;
	}
	put_u64(&writing->file, value);
}

static void write_table(struct writing *writing)
{
	const struct go_table_program *program = writing->program;
	struct go_table table = program->table;
	uint64_t start = here(writing);
	struct buf bytes;

	if (program->joined)
		put_zeros(&writing->file, JOINED_BEFORE);
	writing->table_vaddr = here(writing);
	if (program->relocated && table.stated_text_start) {
		put_u64(&writing->relocations, writing->table_vaddr + 24);
		put_u64(&writing->relocations, R_X86_64_RELATIVE);
		put_u64(&writing->relocations, table.stated_text_start);
		table.stated_text_start = 0;
	}
	buf_init(&bytes, 1 << 24);
	go_table_write(&table, &bytes, &writing->layout);
	buf_append(&writing->file, bytes.data, bytes.size_bytes);
	writing->table_bytes = bytes.size_bytes;
	buf_deinit(&bytes);
	put_padding(&writing->file, 8);
	add_section(writing, program->joined ? ".data.rel.ro" : ".gopclntab", SHT_PROGBITS,
		    SHF_ALLOC, start, here(writing));
	start = here(writing);
	put_zeros(&writing->file, 32);
	add_section(writing, ".go.buildinfo", SHT_PROGBITS, SHF_ALLOC, start, here(writing));
}

static void put_slice(struct writing *writing, uint64_t vaddr, uint64_t count)
{
	put_place(writing, vaddr);
	put_u64(&writing->file, count);
	put_u64(&writing->file, count);
}

static void write_module(struct writing *writing)
{
	const struct go_table *table = &writing->program->table;
	bool has_counters = table->version == GO_TABLE_1_20;
	uint64_t start = here(writing);

	if (!writing->program->in_section)
		put_zeros(&writing->file, 0x60);
	put_place(writing, writing->table_vaddr);
	for (size_t i = 0; i < 5; i++)
		put_slice(writing, writing->table_vaddr + writing->layout.parts[i], 1);
	put_slice(writing, writing->table_vaddr + writing->layout.rows, table->count + 1);
	put_u64(&writing->file, 0);
	put_place(writing, table->text_start + table->functions[0].distance);
	put_place(writing, table->text_start + table->end_distance);
	put_place(writing, table->text_start);
	for (size_t i = MODULE_TEXT + 1; i < (has_counters ? 40 : 38); i++)
		put_u64(&writing->file, 0);
	put_place(writing, writing->inlined_vaddr);
	put_zeros(&writing->file, 0x80);
	add_section(writing, writing->program->in_section ? ".go.module" : ".noptrdata",
		    SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, start, here(writing));
}

static void write_export(struct writing *writing)
{
	static const char names[] = "\0exported";
	const Elf64_Sym symbols[] = {
		{ 0 },
		{ .st_name = 1,
		  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		  .st_shndx = 1,
		  .st_value = writing->program->export_vaddr,
		  .st_size = writing->program->export_bytes },
	};
	uint64_t start = here(writing);
	Elf64_Shdr *section;

	buf_append(&writing->file, symbols, sizeof(symbols));
	section = add_section(writing, ".dynsym", SHT_DYNSYM, SHF_ALLOC, start, here(writing));
	section->sh_entsize = sizeof(*symbols);
	section->sh_link = (uint32_t)writing->section_count;
	start = here(writing);
	buf_append(&writing->file, names, sizeof(names));
	put_padding(&writing->file, 8);
	add_section(writing, ".dynstr", SHT_STRTAB, SHF_ALLOC, start, here(writing));
}

static void write_relocations(struct writing *writing)
{
	uint64_t start = here(writing);

	buf_append(&writing->file, writing->relocations.data, writing->relocations.size_bytes);
	add_section(writing, ".rela.dyn", SHT_RELA, SHF_ALLOC, start, here(writing))->sh_entsize =
		sizeof(Elf64_Rela);
}

static void write_headers(struct writing *writing, uint64_t data_vaddr, uint64_t end_vaddr)
{
	const Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = writing->program->relocated ? ET_DYN : ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_shoff = here(writing) - BASE,
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (uint16_t)writing->section_count,
		.e_shstrndx = (uint16_t)writing->section_count - 1,
	};
	const Elf64_Phdr segments[] = {
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_vaddr = BASE,
		  .p_filesz = data_vaddr - BASE,
		  .p_memsz = data_vaddr - BASE },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_W,
		  .p_offset = data_vaddr - BASE,
		  .p_vaddr = data_vaddr,
		  .p_filesz = end_vaddr - data_vaddr,
		  .p_memsz = end_vaddr - data_vaddr },
	};

	buf_append(&writing->file, writing->sections,
		   writing->section_count * sizeof(*writing->sections));
	memcpy(writing->file.data, &header, sizeof(header));
	memcpy(writing->file.data + sizeof(header), segments, sizeof(segments));
}

int go_table_file(const struct go_table_program *program)
{
	struct writing writing = { .program = program, .section_count = 1 };
	uint64_t data, end;
	int fd;

	buf_init(&writing.file, 1 << 26);
	buf_init(&writing.names, 1 << 12);
	buf_init(&writing.relocations, 1 << 16);
	put_u8(&writing.names, 0);
	put_zeros(&writing.file, HEADERS_BYTES);
	put_zeros(&writing.file, 2 * GO_TABLE_TEXT_BYTES);
	add_section(&writing, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
		    GO_TABLE_TEXT - GO_TABLE_TEXT_BYTES, here(&writing));
	data = here(&writing);
	write_table(&writing);
	writing.inlined_vaddr = here(&writing);
	go_table_write_inlined(&program->table, &writing.file);
	put_padding(&writing.file, 8);
	if (program->described)
		write_module(&writing);
	if (program->export_vaddr)
		write_export(&writing);
	write_relocations(&writing);
	end = here(&writing);
	add_section(&writing, ".shstrtab", SHT_STRTAB, 0, end, end + writing.names.size_bytes);
	writing.sections[writing.section_count - 1].sh_size = writing.names.size_bytes;
	buf_append(&writing.file, writing.names.data, writing.names.size_bytes);
	put_padding(&writing.file, 8);
	write_headers(&writing, data, end);
	fd = elf_builder_file(writing.file.data, writing.file.size_bytes);
	buf_deinit(&writing.file);
	buf_deinit(&writing.names);
	buf_deinit(&writing.relocations);
	return fd;
}
