/* SPDX-License-Identifier: MIT */
/*
 * The sections of an ELF file: their headers, checked by libelf on bytes of our
 * own, and their bytes, checked by us. Knows the build-id note and nothing else
 * of what is in a section.
 */
#ifndef LIBSYM_ELF_SECTIONS_H
#define LIBSYM_ELF_SECTIONS_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/image.h"

struct elf_sections {
	const struct image *image; /* borrowed */
	struct sparse_file view;
	GElf_Shdr *items;
	size_t count;           /* 0 for a file without section headers */
	bool by_segment;        /* there are no headers; see elf_dynamic.h */
	size_t names_index;     /* of the section that has the names; 0: none */
	const GElf_Shdr *stubs; /* .iplt; see elf_symbols_find_stubs() */
};

/* Errors: IO, STALE, FORMAT, NO_MEMORY. */
struct sym_error *elf_sections_read(const struct image *image, struct elf_sections *ret)
	__attribute__((warn_unused_result));
void elf_sections_deinit(struct elf_sections *sections);

/* The first section of a type (SHT_*) after number 0, or NULL. */
const GElf_Shdr *elf_sections_find(const struct elf_sections *sections, GElf_Word type);

/* The first section of a name that has bytes in the file, or NULL. */
const GElf_Shdr *elf_sections_find_named(struct elf_sections *sections, const char *name);

/* All bytes of a section; they stay as long as `sections`. A section without bytes in the file is
 * an error. */
struct sym_error *elf_sections_bytes(struct elf_sections *sections, const GElf_Shdr *section,
				     struct reader *ret) __attribute__((warn_unused_result));

/* A name of at most LIMIT_NAME_BYTES in a string table; NULL for one that is empty, longer or
 * without an end. */
const char *elf_sections_string(const struct reader *strings, uint32_t offset);

/*
 * What is to be added to vaddrs of a file that was split off the image, because prelink has moved
 * the image since; mostly 0. False when their sections of code do not lie alike: the image was
 * rewritten (BOLT keeps the build-id).
 */
bool elf_sections_distance(struct elf_sections *image, struct elf_sections *separate,
			   uint64_t *ret);

/* A FORMAT error about the file. */
struct sym_error *elf_sections_error(const struct elf_sections *sections, const char *what)
	__attribute__((warn_unused_result));

struct elf_build_id {
	uint8_t bytes[64];
	size_t size_bytes; /* 0: the file has none that can be read */
};

struct elf_build_id elf_sections_build_id(struct elf_sections *sections);

static inline void guard_elf_sections(struct elf_sections *sections)
{
	elf_sections_deinit(sections);
}
#define AUTO_ELF_SECTIONS GUARDED(elf_sections)

#endif
