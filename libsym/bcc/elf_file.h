/* SPDX-License-Identifier: MIT */
/* An open ELF file, and the separate debug file that belongs to it by libbcc's rules. */
#ifndef LIBSYM_BCC_ELF_FILE_H
#define LIBSYM_BCC_ELF_FILE_H

#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	ELF_FILE_BUILD_ID_BYTES = 20,
};

struct elf_file {
	int fd;
	Elf *elf;
};

/* False when it is not an ELF file; then there is nothing to close. */
bool elf_file_open(struct elf_file *file, const char *path);
void elf_file_close(struct elf_file *file);

/* NULL when there is no section of that name. */
Elf_Scn *elf_file_section(const struct elf_file *file, const char *name, GElf_Shdr *ret);

/* Writes ELF_FILE_BUILD_ID_BYTES; false when there is no build-id of that length. */
bool elf_file_build_id(const struct elf_file *file, uint8_t *ret);

struct wanted_name {
	const char *name;
	uint64_t start; /* 0: not found */
};

/* A bcc_elf_symcb: finds the first symbol with the name; `payload` is a struct wanted_name. */
int elf_file_match_name(const char *name, uint64_t start, uint64_t size_bytes, void *payload);

/*
 * Opens the debug file of `file`, which was opened as `path` (see debug_link.c for the order).
 * False when there is none.
 */
bool debug_file_open(struct elf_file *ret, const struct elf_file *file, const char *path,
		     int check_crc);

#endif
