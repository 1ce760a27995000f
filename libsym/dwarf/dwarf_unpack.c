/* SPDX-License-Identifier: MIT */
#include "libsym/dwarf/dwarf_unpack.h"

#include <elf.h>
#include <gelf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "libsym/limits.h"

/* elf.h defines it since glibc 2.37. */
static const uint32_t packed_with_zstandard = 2;

/* A block of 4 bytes expands to at most 128 KiB, so a section that declares more is rejected. */
static const uint64_t most_per_byte = 1 << 16;

void dwarf_unpacked_deinit(struct dwarf_unpacked *unpacked)
{
	for (size_t i = 0; i < unpacked->count; i++)
		free(unpacked->parts[i]);
	*unpacked = (struct dwarf_unpacked){ 0 };
}

static bool is_wanted(const char *name)
{
	static const char *const names[] = {
		".debug_abbrev",   ".debug_addr", ".debug_aranges",     ".debug_info",
		".debug_cu_index", ".debug_line", ".debug_line_str",    ".debug_ranges",
		".debug_rnglists", ".debug_str",  ".debug_str_offsets", ".debug_types"
	};

	size_t bytes = name ? strlen(name) : 0;

	if (bytes > 4 && !strcmp(name + bytes - 4, ".dwo"))
		bytes -= 4;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (bytes == strlen(names[i]) && !strncmp(name, names[i], bytes))
			return true;
	return false;
}

/* The declared size of the section; 0: it is not decompressed here. */
static uint64_t declared_bytes(const struct dwarf_unpacked *unpacked, Elf_Scn *section,
			       const GElf_Shdr *header, const char *name)
{
	GElf_Chdr packed;

	if (header->sh_type == SHT_NOBITS || !(header->sh_flags & SHF_COMPRESSED) ||
	    !is_wanted(name) || unpacked->count == DWARF_UNPACK_MOST ||
	    !gelf_getchdr(section, &packed) || packed.ch_type != packed_with_zstandard ||
	    packed.ch_size > LIMIT_DEBUG_SECTION_BYTES - unpacked->size_bytes ||
	    packed.ch_size / most_per_byte > header->sh_size)
		return 0;
	return packed.ch_size;
}

/* Decompresses a section. Returns false if its size is not the declared one. */
static bool decompress_into(const Elf_Data *data, size_t head_bytes, void *room, size_t size_bytes)
{
	return data->d_buf && data->d_size > head_bytes &&
	       ZSTD_decompress(room, size_bytes, (const uint8_t *)data->d_buf + head_bytes,
			       data->d_size - head_bytes) == size_bytes;
}

/* libelf returns the same Elf_Data for a section each time, so it can be changed here. */
static struct sym_error *unpack_section(Elf *elf, Elf_Scn *section, GElf_Shdr *header,
					size_t size_bytes, struct dwarf_unpacked *ret)
{
	size_t head_bytes =
		gelf_getclass(elf) == ELFCLASS32 ? sizeof(Elf32_Chdr) : sizeof(Elf64_Chdr);
	Elf_Data *data = elf_getdata(section, NULL);
	void *room;

	if (!data)
		return NULL;
	room = malloc(size_bytes);
	if (!room)
		return &sym_error_no_memory;
	header->sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
	header->sh_size = size_bytes;
	if (!decompress_into(data, head_bytes, room, size_bytes) ||
	    !gelf_update_shdr(section, header)) {
		free(room);
		return NULL;
	}
	data->d_buf = room;
	data->d_size = size_bytes;
	ret->parts[ret->count++] = room;
	ret->size_bytes += size_bytes;
	return NULL;
}

struct sym_error *dwarf_unpack(Elf *elf, struct dwarf_charge *charge, struct dwarf_unpacked *ret)
{
	Elf_Scn *section = NULL;
	struct sym_error *error = NULL;
	size_t names;

	if (elf_kind(elf) != ELF_K_ELF || elf_getshdrstrndx(elf, &names))
		return NULL;
	while (!error && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		uint64_t size_bytes;

		if (!gelf_getshdr(section, &header))
			continue;
		size_bytes = declared_bytes(ret, section, &header,
					    elf_strptr(elf, names, header.sh_name));
		if (size_bytes && dwarf_files_charge(charge, size_bytes))
			error = unpack_section(elf, section, &header, size_bytes, ret);
	}
	return error;
}
