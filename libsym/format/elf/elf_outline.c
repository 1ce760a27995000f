/* SPDX-License-Identifier: MIT */
/*
 * Reads an ELF file through a byte_source, which fetches only what is asked for. read_header()
 * finds the two header tables, read_sections() and read_segments() walk them. Each of them extends
 * `needed_bytes`, the minimum length of a complete file. Notes are searched for the build-id, in at
 * most most_note_areas areas. All sums are checked against the file's size first, so they cannot
 * overflow.
 */
#include "libsym/format/elf/elf_outline.h"

#include <elf.h>
#include <stdlib.h>

#include "libsym/base/cleanup.h"

/* -ffunction-sections makes tens of thousands; ELF's own 16-bit count ends at 65,279. */
static const uint64_t most_sections = 1 << 20;
static const uint64_t most_segments = 65536;
/* A build-id note has 36 bytes; the notes of a kernel have some hundreds. */
static const uint64_t longest_notes_bytes = 64 << 10;
static const unsigned int most_note_areas = 64;

struct elf_reader {
	const struct byte_source *source;
	bool is_64bit;
	bool is_big_endian;
	uint64_t segments_offset;
	uint64_t segment_count;
	uint64_t segment_bytes; /* size of one header */
	uint64_t sections_offset;
	uint64_t section_count;
	uint64_t section_bytes;
	uint64_t names_offset; /* the section names; 0: there are none */
	uint64_t names_bytes;
	unsigned int note_areas_read;
	const char *failure;
};

struct elf_section {
	uint32_t name;
	uint32_t type;
	uint64_t flags;
	uint64_t offset;
	uint64_t size_bytes;
	uint32_t link;
	uint32_t info;
};

static uint64_t load_number(const struct elf_reader *elf, const uint8_t *bytes, unsigned int count)
{
	uint64_t value = 0;
	unsigned int i;

	for (i = 0; i < count; i++)
		value |= (uint64_t)bytes[elf->is_big_endian ? count - 1 - i : i] << (8 * i);
	return value;
}

static bool elf_outline_fail(struct elf_reader *elf, const char *failure)
{
	if (!elf->failure)
		elf->failure = failure;
	return false;
}

static bool read_section(struct elf_reader *elf, uint64_t index, struct elf_section *ret)
{
	uint8_t bytes[sizeof(Elf64_Shdr)];
	size_t count = elf->is_64bit ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);

	if (!byte_source_read(elf->source, bytes, count,
			      elf->sections_offset + index * elf->section_bytes))
		return elf_outline_fail(elf, "section headers lie beyond the end of the file");
	ret->name = (uint32_t)load_number(elf, bytes, 4);
	ret->type = (uint32_t)load_number(elf, bytes + 4, 4);
	if (elf->is_64bit) {
		ret->flags = load_number(elf, bytes + 8, 8);
		ret->offset = load_number(elf, bytes + 24, 8);
		ret->size_bytes = load_number(elf, bytes + 32, 8);
		ret->link = (uint32_t)load_number(elf, bytes + 40, 4);
		ret->info = (uint32_t)load_number(elf, bytes + 44, 4);
	} else {
		ret->flags = load_number(elf, bytes + 8, 4);
		ret->offset = load_number(elf, bytes + 16, 4);
		ret->size_bytes = load_number(elf, bytes + 20, 4);
		ret->link = (uint32_t)load_number(elf, bytes + 24, 4);
		ret->info = (uint32_t)load_number(elf, bytes + 28, 4);
	}
	return true;
}

/* Reads the counts and the section of names. Section 0 contains the values that do not fit into 16
 * bits. */
static bool read_counts(struct elf_reader *elf, uint64_t segments, uint64_t sections,
			uint64_t names_index)
{
	struct elf_section section;

	elf->segment_count = segments;
	elf->section_count = elf->sections_offset ? sections : 0;
	if (elf->sections_offset &&
	    (!sections || names_index == SHN_XINDEX || segments == PN_XNUM)) {
		if (!read_section(elf, 0, &section))
			return false;
		if (!sections)
			elf->section_count = section.size_bytes;
		if (names_index == SHN_XINDEX)
			names_index = section.link;
		if (segments == PN_XNUM)
			elf->segment_count = section.info;
	}
	if (elf->section_count > most_sections || elf->segment_count > most_segments)
		return elf_outline_fail(elf, "more headers than any real file has");
	if (!names_index || names_index >= elf->section_count)
		return true;
	if (!read_section(elf, names_index, &section))
		return false;
	if (section.type != SHT_NOBITS) {
		elf->names_offset = section.offset;
		elf->names_bytes = section.size_bytes;
	}
	return true;
}

static bool read_header(struct elf_reader *elf)
{
	uint8_t bytes[sizeof(Elf64_Ehdr)] = { 0 };
	size_t count;
	bool wide;

	if (!byte_source_read(elf->source, bytes, EI_NIDENT, 0) || memcmp(bytes, ELFMAG, SELFMAG))
		return elf_outline_fail(elf, "not an ELF file");
	if ((bytes[EI_CLASS] != ELFCLASS32 && bytes[EI_CLASS] != ELFCLASS64) ||
	    (bytes[EI_DATA] != ELFDATA2LSB && bytes[EI_DATA] != ELFDATA2MSB))
		return elf_outline_fail(elf, "unknown ELF class or byte order");
	wide = elf->is_64bit = bytes[EI_CLASS] == ELFCLASS64;
	elf->is_big_endian = bytes[EI_DATA] == ELFDATA2MSB;
	count = wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
	if (!byte_source_read(elf->source, bytes, count, 0))
		return elf_outline_fail(elf, "the ELF header is truncated");
	elf->segments_offset =
		wide ? load_number(elf, bytes + 32, 8) : load_number(elf, bytes + 28, 4);
	elf->sections_offset =
		wide ? load_number(elf, bytes + 40, 8) : load_number(elf, bytes + 32, 4);
	elf->segment_bytes = load_number(elf, bytes + (wide ? 54 : 42), 2);
	elf->section_bytes = load_number(elf, bytes + (wide ? 58 : 46), 2);
	/* Offsets near 2^64 would overflow in the sums below. */
	if (elf->segments_offset > elf->source->size_bytes ||
	    elf->sections_offset > elf->source->size_bytes)
		return elf_outline_fail(elf, "headers lie beyond the end of the file");
	if (elf->sections_offset &&
	    elf->section_bytes != (wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)))
		return elf_outline_fail(elf, "section headers of unknown size");
	if (elf->segments_offset &&
	    elf->segment_bytes != (wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
		return elf_outline_fail(elf, "program headers of unknown size");
	return read_counts(elf,
			   elf->segments_offset ? load_number(elf, bytes + (wide ? 56 : 44), 2) : 0,
			   load_number(elf, bytes + (wide ? 60 : 48), 2),
			   load_number(elf, bytes + (wide ? 62 : 50), 2));
}

/* Is this the name of the section? */
static bool has_name(const struct elf_reader *elf, const struct elf_section *section,
		     const char *name)
{
	char text[256];
	size_t length = strlen(name) + 1;

	if (length > sizeof(text) || section->name >= elf->names_bytes ||
	    length > elf->names_bytes - section->name)
		return false;
	if (elf->names_offset > UINT64_MAX - section->name ||
	    !byte_source_read(elf->source, text, length, elf->names_offset + section->name))
		return false;
	return !memcmp(text, name, length);
}

size_t elf_note_build_id(struct reader notes, uint8_t ret[ELF_OUTLINE_MAX_BUILD_ID])
{
	while (reader_left(&notes) >= 12) {
		uint32_t name_bytes = reader_u32(&notes);
		uint32_t content_bytes = reader_u32(&notes);
		uint32_t type = reader_u32(&notes);
		const uint8_t *name = reader_bytes(&notes, ((size_t)name_bytes + 3) & ~(size_t)3);
		const uint8_t *content = reader_bytes(&notes, content_bytes);

		if (!name || !content)
			break;
		if (type == NT_GNU_BUILD_ID && name_bytes == 4 && !memcmp(name, "GNU", 4) &&
		    content_bytes && content_bytes <= ELF_OUTLINE_MAX_BUILD_ID) {
			memcpy(ret, content, content_bytes);
			return content_bytes;
		}
		reader_skip(&notes, -content_bytes & 3);
	}
	return 0;
}

static void read_notes(struct elf_reader *elf, uint64_t offset, uint64_t size_bytes,
		       struct elf_outline *ret)
{
	uint8_t *room AUTO_FREE = NULL;
	struct reader notes;

	if (ret->build_id_bytes || size_bytes > longest_notes_bytes ||
	    elf->note_areas_read++ >= most_note_areas)
		return;
	room = malloc(size_bytes + 1);
	if (!room || !byte_source_read(elf->source, room, size_bytes, offset))
		return;
	notes = reader_over(room, size_bytes);
	notes.is_big_endian = elf->is_big_endian;
	ret->build_id_bytes = elf_note_build_id(notes, ret->build_id);
}

static void extend_needed_bytes(struct elf_outline *outline, uint64_t offset, uint64_t size_bytes)
{
	uint64_t end = offset > UINT64_MAX - size_bytes ? UINT64_MAX : offset + size_bytes;

	if (end > outline->needed_bytes)
		outline->needed_bytes = end;
}

static bool read_sections(struct elf_reader *elf, struct elf_outline *ret)
{
	uint64_t symbols_bytes = 0, exports_bytes = 0, i;
	struct elf_section section;

	for (i = 1; i < elf->section_count; i++) {
		if (!read_section(elf, i, &section))
			return false;
		if (section.type == SHT_NULL || section.type == SHT_NOBITS || !section.size_bytes)
			continue;
		extend_needed_bytes(ret, section.offset, section.size_bytes);
		if (section.type == SHT_NOTE)
			read_notes(elf, section.offset, section.size_bytes, ret);
		else if (section.type == SHT_SYMTAB)
			symbols_bytes = section.size_bytes;
		else if (section.type == SHT_DYNSYM)
			exports_bytes = section.size_bytes;
		else if (section.type == SHT_PROGBITS && section.flags & SHF_ALLOC)
			ret->has_code = true;
		else if (!ret->has_debug_info && section.type == SHT_PROGBITS)
			ret->has_debug_info = has_name(elf, &section, ".debug_info") ||
					      has_name(elf, &section, ".zdebug_info");
	}
	/* A full table repeats the exports; strip may leave a few symbols of a table. */
	ret->has_symbol_table = symbols_bytes && symbols_bytes >= exports_bytes;
	extend_needed_bytes(ret, elf->sections_offset, elf->section_count * elf->section_bytes);
	return true;
}

/* The segments of a debug file refer to bytes that were removed. So segments determine the file's
 * length only if there are no sections. */
static bool read_segments(struct elf_reader *elf, struct elf_outline *ret)
{
	uint8_t bytes[sizeof(Elf64_Phdr)];
	bool wide = elf->is_64bit;
	uint64_t i;

	for (i = 0; i < elf->segment_count; i++) {
		uint64_t type, offset, size_bytes;

		if (!byte_source_read(elf->source, bytes, elf->segment_bytes,
				      elf->segments_offset + i * elf->segment_bytes))
			return elf_outline_fail(elf,
						"program headers lie beyond the end of the file");
		type = load_number(elf, bytes, 4);
		offset = wide ? load_number(elf, bytes + 8, 8) : load_number(elf, bytes + 4, 4);
		size_bytes =
			wide ? load_number(elf, bytes + 32, 8) : load_number(elf, bytes + 16, 4);
		if (type == PT_NOTE)
			read_notes(elf, offset, size_bytes, ret);
		if (!elf->section_count && size_bytes) {
			extend_needed_bytes(ret, offset, size_bytes);
			ret->has_code |= type == PT_LOAD;
		}
	}
	return true;
}

bool elf_outline_read(const struct byte_source *source, struct elf_outline *ret,
		      const char **failure_ret)
{
	struct elf_reader elf = { .source = source };
	struct elf_outline outline = { 0 };

	if (read_header(&elf) && read_sections(&elf, &outline) && read_segments(&elf, &outline))
		*ret = outline;
	*failure_ret = elf.failure;
	return !elf.failure;
}

bool elf_outline_find_section(const struct byte_source *source, const char *name,
			      struct elf_section_place *ret, const char **failure_ret)
{
	struct elf_reader elf = { .source = source };
	struct elf_section section;
	bool found = false;
	uint64_t i;

	if (read_header(&elf)) {
		for (i = 1; i < elf.section_count && !found; i++) {
			if (!read_section(&elf, i, &section))
				break;
			found = section.type != SHT_NULL && section.type != SHT_NOBITS &&
				has_name(&elf, &section, name);
		}
	}
	if (found && !byte_source_covers(source, section.offset, section.size_bytes))
		found = elf_outline_fail(&elf, "the section lies beyond the end of the file");
	if (found)
		*ret = (struct elf_section_place){ section.offset, section.size_bytes };
	*failure_ret = elf.failure;
	return found;
}
