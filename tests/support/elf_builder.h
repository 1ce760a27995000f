/* SPDX-License-Identifier: MIT */
/*
 * Small ELF files for tests: one .text, one symbol table, written from a list of
 * symbols so that a test shows the bytes that matter. 64-bit, little-endian.
 */
#ifndef TESTS_SUPPORT_ELF_BUILDER_H
#define TESTS_SUPPORT_ELF_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_builder_symbol {
	const char *name;
	uint64_t vaddr;
	uint64_t size_bytes;
	unsigned char binding; /* STB_* */
	unsigned char type;    /* STT_* */
	bool undefined;
	bool in_data; /* in .data instead of .text */
};

/* .text has this offset, vaddr and size; .data follows it in memory. */
enum {
	ELF_BUILDER_TEXT_OFFSET = 0x1000,
	ELF_BUILDER_TEXT_VADDR = 0x401000,
	ELF_BUILDER_TEXT_BYTES = 0x1000,
	ELF_BUILDER_DATA_VADDR = 0x402000,
	ELF_BUILDER_DATA_BYTES = 0x100
};

struct elf_builder_options {
	bool dynamic_only;         /* the table is .dynsym */
	uint8_t build_id;          /* every byte of a 20-byte build-id; 0: none */
	bool position_independent; /* ET_DYN; vaddrs stay the same */
	const char *debug_link;    /* file name in .gnu_debuglink; NULL: none */
	uint32_t debug_link_sum;
	uint16_t machine;         /* EM_*; 0: EM_X86_64 */
	const uint16_t *versions; /* .gnu.version, one per given symbol; NULL: none */
};

/* Makes the file; heap, for free(). */
uint8_t *elf_builder_make(const struct elf_builder_symbol *symbols, size_t count,
			  struct elf_builder_options options, size_t *size_bytes_ret);

/* A memfd with these bytes, for object_file_open(). Fails the test on error. */
int elf_builder_file(const void *bytes, size_t size_bytes);

#endif
