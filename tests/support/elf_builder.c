/* SPDX-License-Identifier: MIT */
#include "tests/support/elf_builder.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	SECTION_NULL,
	SECTION_TEXT,
	SECTION_DATA,
	SECTION_SYMBOLS,
	SECTION_STRINGS,
	SECTION_NOTE,
	SECTION_LINK,
	SECTION_NAMES,
	SECTION_VERSIONS,
	SECTION_COUNT,
	NOTE_OFFSET = 0x200,
	NOTE_BYTES = 12 + 4 + 20,
	LINK_OFFSET = 0x300,
	LINK_BYTES = 0x100,
	NAMES_OFFSET = 0x400,
	VERSIONS_OFFSET = 0x500,
	DATA_OFFSET = ELF_BUILDER_TEXT_OFFSET + ELF_BUILDER_TEXT_BYTES,
	SYMBOLS_OFFSET = DATA_OFFSET + ELF_BUILDER_DATA_BYTES
};

static size_t strings_bytes(const struct elf_builder_symbol *symbols, size_t count)
{
	size_t bytes = 1;

	for (size_t i = 0; i < count; i++)
		bytes += strlen(symbols[i].name) + 1;
	return bytes;
}

static void write_symbols(uint8_t *file, const struct elf_builder_symbol *symbols, size_t count,
			  size_t strings_offset)
{
	Elf64_Sym *table = (Elf64_Sym *)(file + SYMBOLS_OFFSET);
	uint32_t name = 1;

	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(symbols[i].name) + 1;

		table[i + 1] = (Elf64_Sym){
			.st_name = name,
			.st_value = symbols[i].vaddr,
			.st_size = symbols[i].size_bytes,
			.st_info =
				(unsigned char)ELF64_ST_INFO(symbols[i].binding, symbols[i].type),
			.st_shndx = symbols[i].undefined ? SHN_UNDEF
				    : symbols[i].in_data ? SECTION_DATA
							 : SECTION_TEXT,
		};
		memcpy(file + strings_offset + name, symbols[i].name, length);
		name += (uint32_t)length;
	}
}

static void write_headers(uint8_t *file, struct elf_builder_options options, size_t sections_offset)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)file;
	Elf64_Phdr *segments = (Elf64_Phdr *)(file + sizeof(*header));

	*header = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = options.position_independent ? ET_DYN : ET_EXEC,
		.e_machine = options.machine ? options.machine : EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(*header),
		.e_shoff = sections_offset,
		.e_ehsize = sizeof(*header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SECTION_COUNT,
		.e_shstrndx = options.debug_link ? SECTION_NAMES : 0,
	};
	segments[0] = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = ELF_BUILDER_TEXT_OFFSET,
		.p_vaddr = ELF_BUILDER_TEXT_VADDR,
		.p_filesz = ELF_BUILDER_TEXT_BYTES,
		.p_memsz = ELF_BUILDER_TEXT_BYTES,
		.p_align = 0x1000,
	};
	segments[1] = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_W,
		.p_offset = DATA_OFFSET,
		.p_vaddr = ELF_BUILDER_DATA_VADDR,
		.p_filesz = ELF_BUILDER_DATA_BYTES,
		.p_memsz = ELF_BUILDER_DATA_BYTES,
		.p_align = 0x1000,
	};
}

/* A name, padded to 4 bytes, and a CRC-32. If present, .text has a name, too; otherwise no section
 * has one. */
static void write_link(uint8_t *file, struct elf_builder_options options, Elf64_Shdr *sections)
{
	static const char names[] = "\0.gnu_debuglink\0.text";
	size_t length = (strlen(options.debug_link) + 4) & ~(size_t)3;

	cr_assert_leq(length + 4, LINK_BYTES);
	memcpy(file + LINK_OFFSET, options.debug_link, strlen(options.debug_link));
	memcpy(file + LINK_OFFSET + length, &options.debug_link_sum, 4);
	memcpy(file + NAMES_OFFSET, names, sizeof(names));
	sections[SECTION_LINK] = (Elf64_Shdr){
		.sh_name = 1,
		.sh_type = SHT_PROGBITS,
		.sh_offset = LINK_OFFSET,
		.sh_size = length + 4,
	};
	sections[SECTION_TEXT].sh_name = (uint32_t)sizeof(".gnu_debuglink") + 1;
	sections[SECTION_NAMES] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB,
		.sh_offset = NAMES_OFFSET,
		.sh_size = sizeof(names),
	};
}

/* Number 0 belongs to the first symbol of every table. */
static void write_versions(uint8_t *file, const uint16_t *versions, size_t count,
			   Elf64_Shdr *section)
{
	size_t size_bytes = (count + 1) * sizeof(*versions);

	cr_assert_leq(size_bytes, ELF_BUILDER_TEXT_OFFSET - VERSIONS_OFFSET);
	memcpy(file + VERSIONS_OFFSET + sizeof(*versions), versions, count * sizeof(*versions));
	*section = (Elf64_Shdr){
		.sh_type = SHT_GNU_versym,
		.sh_offset = VERSIONS_OFFSET,
		.sh_size = size_bytes,
		.sh_link = SECTION_SYMBOLS,
		.sh_entsize = sizeof(*versions),
	};
}

static void write_sections(uint8_t *file, struct elf_builder_options options, size_t count,
			   size_t strings_offset, size_t sections_offset)
{
	Elf64_Shdr *sections = (Elf64_Shdr *)(file + sections_offset);

	sections[SECTION_TEXT] = (Elf64_Shdr){
		.sh_type = SHT_PROGBITS,
		.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		.sh_addr = ELF_BUILDER_TEXT_VADDR,
		.sh_offset = ELF_BUILDER_TEXT_OFFSET,
		.sh_size = ELF_BUILDER_TEXT_BYTES,
	};
	sections[SECTION_DATA] = (Elf64_Shdr){
		.sh_type = SHT_PROGBITS,
		.sh_flags = SHF_ALLOC | SHF_WRITE,
		.sh_addr = ELF_BUILDER_DATA_VADDR,
		.sh_offset = DATA_OFFSET,
		.sh_size = ELF_BUILDER_DATA_BYTES,
	};
	sections[SECTION_SYMBOLS] = (Elf64_Shdr){
		.sh_type = options.dynamic_only ? SHT_DYNSYM : SHT_SYMTAB,
		.sh_offset = SYMBOLS_OFFSET,
		.sh_size = (count + 1) * sizeof(Elf64_Sym),
		.sh_link = SECTION_STRINGS,
		.sh_entsize = sizeof(Elf64_Sym),
	};
	if (options.build_id) {
		static const uint32_t note[] = { 4, 20, NT_GNU_BUILD_ID };

		memcpy(file + NOTE_OFFSET, note, sizeof(note));
		memcpy(file + NOTE_OFFSET + 12, "GNU", 4);
		memset(file + NOTE_OFFSET + 16, options.build_id, 20);
		sections[SECTION_NOTE] = (Elf64_Shdr){
			.sh_type = SHT_NOTE,
			.sh_offset = NOTE_OFFSET,
			.sh_size = NOTE_BYTES,
		};
	}
	if (options.debug_link)
		write_link(file, options, sections);
	if (options.versions)
		write_versions(file, options.versions, count, &sections[SECTION_VERSIONS]);
	sections[SECTION_STRINGS] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB,
		.sh_offset = strings_offset,
		.sh_size = sections_offset - strings_offset,
	};
}

uint8_t *elf_builder_make(const struct elf_builder_symbol *symbols, size_t count,
			  struct elf_builder_options options, size_t *size_bytes_ret)
{
	size_t strings_offset = SYMBOLS_OFFSET + (count + 1) * sizeof(Elf64_Sym);
	size_t sections_offset = (strings_offset + strings_bytes(symbols, count) + 7) & ~(size_t)7;
	size_t size_bytes = sections_offset + SECTION_COUNT * sizeof(Elf64_Shdr);
	uint8_t *file = calloc(1, size_bytes);

	cr_assert_not_null(file);
	write_headers(file, options, sections_offset);
	write_symbols(file, symbols, count, strings_offset);
	write_sections(file, options, count, strings_offset, sections_offset);
	*size_bytes_ret = size_bytes;
	return file;
}

int elf_builder_file(const void *bytes, size_t size_bytes)
{
	int fd = memfd_create("elf_builder", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, bytes, size_bytes), (ssize_t)size_bytes);
	return fd;
}
