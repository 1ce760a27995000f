/* SPDX-License-Identifier: MIT */
/*
 * The parts of an ELF file that show whether a .NET runtime is inside: where its segments lie in
 * the file, and where its dynamic string table is. 64-bit little-endian files only. libelf would
 * map or read the whole file for this. System V ABI, chapters 4 and 5.
 *
 *   0   Elf64_Ehdr: e_phoff at 32, e_phentsize at 54, e_phnum at 56
 *   e_phoff  Elf64_Phdr[]: p_type 0, p_flags 4, p_offset 8, p_vaddr 16, p_filesz 32
 *   PT_DYNAMIC: { d_tag, d_val }[], up to DT_NULL
 */
#ifndef LIBSYM_FORMAT_ELF_ELF_BRIEF_H
#define LIBSYM_FORMAT_ELF_ELF_BRIEF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offsets into the file; size 0 if absent. */
struct elf_range {
	uint64_t offset;
	uint64_t size_bytes;
};

enum {
	ELF_BRIEF_LOADS = 16, /* linkers make 4 to 6; further ones are ignored */
	ELF_BRIEF_HEAD_BYTES =
		4096, /* program headers directly follow the ELF header in every executable file */
};

struct elf_brief {
	struct elf_brief_load {
		uint64_t vaddr;
		struct elf_range file;
		bool writable;
	} loads[ELF_BRIEF_LOADS];
	size_t load_count;
	struct elf_range dynamic;
};

/* Parses the first bytes of a file (up to ELF_BRIEF_HEAD_BYTES). Returns false if it is not such a
 * file. */
bool elf_brief_parse(const void *head, size_t size_bytes, struct elf_brief *ret);

/* Finds the dynamic string table, from the bytes of brief->dynamic. Returns false if it cannot be
 * found. */
bool elf_brief_strings(const struct elf_brief *brief, const void *dynamic, size_t size_bytes,
		       struct elf_range *ret);

/*
 * Converts addresses in the bytes of brief->dynamic back to vaddrs. The bytes come from a process,
 * where the file was loaded `bias_bytes` above its vaddrs. The C library relocates some of them if
 * the section is writable.
 */
void elf_brief_unrelocate(const struct elf_brief *brief, uint64_t bias_bytes, void *dynamic,
			  size_t size_bytes);

/* The vaddr of a file offset. Returns false if no segment contains it. */
bool elf_brief_vaddr(const struct elf_brief *brief, uint64_t offset, uint64_t *ret);

#endif
