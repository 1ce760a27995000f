/* SPDX-License-Identifier: MIT */
/*
 * The little of an ELF file that tells whether a .NET runtime is inside: where
 * its segments lie in the file and where its dynamic string table is. 64-bit
 * little-endian files only. Bytes in, offsets out; knows no symbols: those are
 * read with libelf, which would map or read a whole file to say so much.
 * System V ABI, chapters 4 and 5.
 *
 *   0   Elf64_Ehdr: e_phoff at 32, e_phentsize at 54, e_phnum at 56
 *   e_phoff  Elf64_Phdr[]: p_type 0, p_flags 4, p_offset 8, p_vaddr 16, p_filesz 32
 *   PT_DYNAMIC: { d_tag, d_val }[], up to DT_NULL
 */
#ifndef LIBSYM_FORMAT_ELF_BRIEF_H
#define LIBSYM_FORMAT_ELF_BRIEF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offsets into the file; size 0 when there is none. */
struct elf_range {
	uint64_t offset;
	uint64_t size_bytes;
};

enum {
	ELF_BRIEF_LOADS = 16, /* linkers make 4 to 6; more are not looked at */
	ELF_BRIEF_HEAD_BYTES =
		4096, /* program headers follow the ELF header at once in whatever can be run */
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

/* From the first bytes of a file (up to ELF_BRIEF_HEAD_BYTES); false when it is no such file. */
bool elf_brief_parse(const void *head, size_t size_bytes, struct elf_brief *ret);

/* Where the dynamic strings are, from the bytes of brief->dynamic; false when that cannot be told.
 */
bool elf_brief_strings(const struct elf_brief *brief, const void *dynamic, size_t size_bytes,
		       struct elf_range *ret);

/*
 * The bytes of brief->dynamic as a process has them, that of a file that was loaded `bias_bytes`
 * above its vaddrs: addresses become vaddrs again. The C library makes some of them addresses,
 * where the section can be written to.
 */
void elf_brief_unrelocate(const struct elf_brief *brief, uint64_t bias_bytes, void *dynamic,
			  size_t size_bytes);

/* The vaddr of what lies at an offset of the file; false when no segment has it. */
bool elf_brief_vaddr(const struct elf_brief *brief, uint64_t offset, uint64_t *ret);

#endif
