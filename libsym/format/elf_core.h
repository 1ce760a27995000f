/* SPDX-License-Identifier: MIT */
/*
 * A core file: which memory it has, which files were mapped, whose it is. 64-bit little-endian
 * x86-64 ones, as the kernel, gcore and createdump write them. Bytes in, records out; reads no
 * memory of the process and no mapped file.
 *
 *   Elf64_Ehdr: e_type 4 at 16, e_machine 62 at 18, e_phoff 32, e_shoff 40, e_phentsize 54, e_phnum
 *56; e_phnum 0xffff: the count is sh_info (at 44) of the first section header PT_LOAD: p_flags 4,
 *p_offset 8, p_vaddr 16, p_filesz 32, p_memsz 40 PT_NOTE: { u32 name size, u32 size, u32 type,
 *name, bytes }[], both padded to 4 NT_PRSTATUS (1): pid at 32, one for each thread NT_PRPSINFO (3):
 *uid 16, gid 20, pid 24, command of 16 bytes at 40 NT_AUXV (6): { u64 tag, u64 value }[] NT_FILE
 *("FILE"): u64 count, u64 page size, { u64 start, u64 end, u64 page }[count], paths
 *
 * System V ABI chapter 5; Linux fs/binfmt_elf.c.
 */
#ifndef LIBSYM_FORMAT_ELF_CORE_H
#define LIBSYM_FORMAT_ELF_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/format/byte_source.h"

struct elf_core_segment {
	uint64_t address;
	uint64_t memory_bytes;
	uint64_t offset;
	uint64_t file_bytes; /* that are in the file; a truncated one has fewer than it says */
	uint32_t flags;      /* PF_R, PF_W, PF_X */
};

struct elf_core_file {
	uint64_t start_address, end_address;
	uint64_t offset;  /* in bytes */
	const char *path; /* with " (deleted)" where it was */
};

struct elf_core {
	struct elf_core_segment *segments; /* by address, disjoint; others are left out */
	size_t segment_count;
	struct elf_core_file *files; /* as segments */
	size_t file_count;
	int32_t pid; /* of the process; 0 when it is not told */
	uint32_t uid, gid;
	char command[17];
	uint64_t program_headers; /* address of the program's (AT_PHDR); 0 when not told */
	uint64_t vdso;            /* address of the kernel's (AT_SYSINFO_EHDR); 0 when not told */
	size_t thread_count;
	uint64_t missing_bytes; /* that the headers promise and the file does not have */
	/* private */
	char *notes;
};

/* Errors: FORMAT, UNSUPPORTED (another machine or kind of ELF file), LIMIT, IO, NO_MEMORY. `path`
 * is for messages. */
struct sym_error *elf_core_read(const struct byte_source *source, const char *path,
				struct elf_core *ret) __attribute__((warn_unused_result));
void elf_core_deinit(struct elf_core *core);

/* The segment that covers an address; NULL when none does. */
const struct elf_core_segment *elf_core_find(const struct elf_core *core, uint64_t address);
/* The same of a file. */
const struct elf_core_file *elf_core_find_file(const struct elf_core *core, uint64_t address);

#endif
