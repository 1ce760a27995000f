/* SPDX-License-Identifier: MIT */
/* The sections of an ELF file: libelf parses their headers from our memory; we check the bounds of
 * their bytes. Also reads the build-id note. */
#ifndef LIBSYM_ELF_ELF_SECTIONS_H
#define LIBSYM_ELF_ELF_SECTIONS_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/file/object_file.h"

struct elf_sections {
	const struct object_file *object; /* borrowed */
	struct sparse_file view;
	GElf_Shdr *items;
	size_t count;           /* 0 for a file without section headers */
	bool by_segment;        /* there are no headers; see elf_dynamic.h */
	size_t names_index;     /* the section of section names; 0: none */
	const GElf_Shdr *stubs; /* .iplt; for elf_symbols.c */
};

/* Errors: IO, STALE, FORMAT, NO_MEMORY. */
struct sym_error *elf_sections_read(const struct object_file *object, struct elf_sections *ret)
	__attribute__((warn_unused_result));
void elf_sections_deinit(struct elf_sections *sections);

/* The first section of a type (SHT_*), except section 0; NULL if there is none. */
const GElf_Shdr *elf_sections_find(const struct elf_sections *sections, GElf_Word type);

/* The first section of a name that has bytes in the file; NULL if there is none. */
const GElf_Shdr *elf_sections_find_named(struct elf_sections *sections, const char *name);

/* All bytes of a section, valid as long as `sections`. A section without bytes in the file is an
 * error. */
struct sym_error *elf_sections_bytes(struct elf_sections *sections, const GElf_Shdr *section,
				     struct reader *ret) __attribute__((warn_unused_result));

/*
 * A name of at most LIMIT_NAME_BYTES in a string table; NULL if it is empty, longer, or has no end.
 */
const char *elf_sections_string(const struct reader *strings, uint32_t offset);

/*
 * The number to add to vaddrs of a file that was split off from the object, because prelink has
 * moved the object since; usually 0. Returns false if their code sections lie differently: the
 * object was rewritten (BOLT keeps the build-id).
 */
bool elf_sections_distance(struct elf_sections *object, struct elf_sections *separate,
			   uint64_t *ret);

/* A FORMAT error about the file. */
struct sym_error *elf_sections_error(const struct elf_sections *sections, const char *what)
	__attribute__((warn_unused_result));

struct elf_build_id {
	uint8_t bytes[64];
	size_t size_bytes; /* 0: none that can be read */
};

struct elf_build_id elf_sections_build_id(struct elf_sections *sections);

static inline void guard_elf_sections(struct elf_sections *sections)
{
	elf_sections_deinit(sections);
}
#define AUTO_ELF_SECTIONS GUARDED(elf_sections)

#endif
