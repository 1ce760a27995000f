/* SPDX-License-Identifier: MIT */
/*
 * Facts from the headers of an ELF file of either class and byte order: build-id, kinds of content,
 * the length of the whole file, where a section lies. Reads headers and notes only, whatever the
 * size of the file.
 *
 *   file header   e_phoff/e_phnum -> program headers, e_shoff/e_shnum -> section headers
 *   section 0     carries the counts that do not fit into the file header
 *   note          namesz, descsz, type, name padded to 4, desc padded to 4;
 *                 name "GNU", type 3 is the build-id
 *
 * System V ABI, chapters 4 and 5; gABI "Extended section numbering".
 */
#ifndef LIBSYM_FORMAT_ELF_ELF_OUTLINE_H
#define LIBSYM_FORMAT_ELF_ELF_OUTLINE_H

#include "libsym/base/reader.h"
#include "libsym/format/file/byte_source.h"

#define ELF_OUTLINE_MAX_BUILD_ID 64

struct elf_outline {
	uint8_t build_id[ELF_OUTLINE_MAX_BUILD_ID];
	size_t build_id_bytes; /* 0: none */
	uint64_t needed_bytes; /* minimum length of the whole file */
	bool has_code;         /* allocated bytes are in the file */
	bool has_symbol_table; /* a full .symtab is in the file */
	bool has_debug_info;   /* .debug_info or .zdebug_info is in the file */
};

/* Copies the build-id from the notes of a section or segment, and returns its size; 0: none. */
size_t elf_note_build_id(struct reader notes, uint8_t ret[ELF_OUTLINE_MAX_BUILD_ID]);

struct elf_section_place {
	uint64_t offset;
	uint64_t size_bytes;
};

/* Returns false if the bytes are not an ELF file or contradict the format; *failure_ret is then a
 * static text. */
bool elf_outline_read(const struct byte_source *source, struct elf_outline *ret,
		      const char **failure_ret);

/* Finds a section with bytes in the file by name. Returns false with *failure_ret NULL if there is
 * none. */
bool elf_outline_find_section(const struct byte_source *source, const char *name,
			      struct elf_section_place *ret, const char **failure_ret);

#endif
