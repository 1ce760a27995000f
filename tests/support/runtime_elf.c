/* SPDX-License-Identifier: MIT */
#include "tests/support/runtime_elf.h"

#include <elf.h>
#include <string.h>

void runtime_elf_build(uint8_t room[RUNTIME_ELF_BYTES], const char *exported, const char *ident,
		       size_t mapped_file_check_offset)
{
	const char *name = exported ? exported : "main";
	Elf64_Ehdr header = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
	};
	Elf64_Phdr segments[2] = {
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_W,
		  .p_vaddr = RUNTIME_ELF_VADDR,
		  .p_filesz = RUNTIME_ELF_BYTES },
		{ .p_type = PT_DYNAMIC,
		  .p_offset = RUNTIME_ELF_DYNAMIC,
		  .p_vaddr = RUNTIME_ELF_VADDR + RUNTIME_ELF_DYNAMIC,
		  .p_filesz = 3 * sizeof(Elf64_Dyn) },
	};
	Elf64_Dyn dynamic[3] = {
		{ .d_tag = DT_STRTAB, .d_un.d_ptr = RUNTIME_ELF_VADDR + RUNTIME_ELF_STRINGS },
		{ .d_tag = DT_STRSZ, .d_un.d_val = strlen(name) + 2 },
		{ .d_tag = DT_NULL },
	};

	memset(room, 0, RUNTIME_ELF_BYTES);
	memcpy(room, &header, sizeof(header));
	memcpy(room + sizeof(header), segments, sizeof(segments));
	memcpy(room + RUNTIME_ELF_DYNAMIC, dynamic, sizeof(dynamic));
	memcpy(room + RUNTIME_ELF_STRINGS + 1, name, strlen(name));
	if (ident)
		memcpy(room + mapped_file_check_offset, ident, strlen(ident));
}
