/* SPDX-License-Identifier: MIT */
/*
 * A core file: which memory it has, which files were mapped, its threads and the process it belongs
 * to. 64-bit little-endian files of x86-64 and arm64, as the kernel, gcore and createdump write
 * them. Does not read the memory of the process or the mapped files.
 *
 *   Elf64_Ehdr   e_type 4 at 16, e_machine 62 or 183 at 18, e_phoff 32, e_shoff 40, e_phentsize 54,
 *                e_phnum 56; e_phnum 0xffff: the count is sh_info (at 44) of section header 0
 *   PT_LOAD      p_flags 4, p_offset 8, p_vaddr 16, p_filesz 32, p_memsz 40
 *   PT_NOTE      { u32 name size, u32 size, u32 type, name, bytes }[], both padded to 4:
 *     NT_PRSTATUS (1)   one for each thread: tid at 32, registers (user_regs_struct) at 112
 *     NT_PRPSINFO (3)   uid 16, gid 20, pid 24, command of 16 bytes at 40
 *     NT_AUXV (6)       { u64 tag, u64 value }[]
 *     NT_FILE ("FILE")  u64 count, u64 page size, { u64 start, u64 end, u64 page }[count], paths
 *
 * System V ABI chapter 5; Linux fs/binfmt_elf.c.
 */
#ifndef LIBSYM_FORMAT_ELF_ELF_CORE_H
#define LIBSYM_FORMAT_ELF_ELF_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/format/file/byte_source.h"

struct elf_core_segment {
	uint64_t address;
	uint64_t memory_bytes;
	uint64_t offset;
	/* present in the file; fewer than in the header if the file is truncated */
	uint64_t file_bytes;
	uint32_t flags; /* PF_R, PF_W, PF_X */
};

struct elf_core_file {
	uint64_t start_address, end_address;
	uint64_t offset;  /* in bytes */
	const char *path; /* with " (deleted)" if the file was deleted */
};

/* One thread: its NT_PRSTATUS. */
struct elf_core_thread {
	int32_t tid;
	const uint8_t *registers; /* struct user_regs_struct; borrowed from the notes */
	size_t registers_bytes;
};

struct elf_core {
	/* ascending by address, disjoint; overlapping ones are dropped */
	struct elf_core_segment *segments;
	size_t segment_count;
	struct elf_core_file *files; /* ascending by address, disjoint */
	size_t file_count;
	int32_t pid; /* of the process; 0: unknown */
	uint32_t uid, gid;
	char command[17];
	uint64_t program_headers; /* address of the program's headers (AT_PHDR); 0: unknown */
	uint64_t vdso;            /* address of the vdso (AT_SYSINFO_EHDR); 0: unknown */
	struct elf_core_thread *threads; /* in the order of the file */
	size_t thread_count;
	uint64_t missing_bytes; /* in the headers but not in the file */
	/* private */
	char *notes;
};

/* Errors: FORMAT, UNSUPPORTED (another machine or kind of ELF file), LIMIT, IO, NO_MEMORY. `path`
 * is for messages. */
struct sym_error *elf_core_read(const struct byte_source *source, const char *path,
				struct elf_core *ret) __attribute__((warn_unused_result));
void elf_core_deinit(struct elf_core *core);

/* The segment that covers an address; NULL if none does. */
const struct elf_core_segment *elf_core_find(const struct elf_core *core, uint64_t address);
/* The mapped file that covers an address; NULL if none does. */
const struct elf_core_file *elf_core_find_file(const struct elf_core *core, uint64_t address);

#endif
