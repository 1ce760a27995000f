/* SPDX-License-Identifier: MIT */
#include "mapgen/symfile/symfile_native.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"

/* Sections that are added behind those of the file. */
enum added_section {
	ADDED_SYMBOLS,
	ADDED_NAMES,
	ADDED_ID, /* of a file without it */
	ADDED_SECTIONS
};

static const char *const added_names[ADDED_SECTIONS] = { ".symtab", ".strtab",
							 ".note.gnu.build-id" };

struct id_note {
	Elf64_Nhdr header;
	char name[4];
	uint8_t id[SYMFILE_ID_BYTES];
};

static const char out_of_memory[] = "out of memory";
static const char no_elf[] = "its headers are not those of a 64-bit ELF file";

struct native_file {
	int fd;
	bool replaces; /* the symbol table of the file */
	Elf64_Ehdr header;
	Elf64_Shdr *sections; /* of the file, with room for those that are added */
	uint64_t end;         /* end of everything that the headers name */
	uint16_t id_section;  /* 0: the file has no build-id */
	uint64_t id_offset;   /* a build-id that has room for ours; 0: none */
};

/* ---- reading ------------------------------------------------------------------------------ */

static bool is_readable(const Elf64_Ehdr *header)
{
	static const uint8_t ident[] = { ELFMAG0,    ELFMAG1,     ELFMAG2,   ELFMAG3,
					 ELFCLASS64, ELFDATA2LSB, EV_CURRENT };
	static const uint16_t one = 1;

	return *(const uint8_t *)&one && !memcmp(header->e_ident, ident, sizeof(ident)) &&
	       header->e_phentsize == sizeof(Elf64_Phdr) &&
	       header->e_shentsize == sizeof(Elf64_Shdr) && header->e_shnum &&
	       header->e_shstrndx < header->e_shnum &&
	       header->e_shnum + ADDED_SECTIONS < SHN_LORESERVE;
}

static bool take_end(struct native_file *file, uint64_t offset, uint64_t size_bytes)
{
	uint64_t end;

	if (__builtin_add_overflow(offset, size_bytes, &end))
		return false;
	file->end = end > file->end ? end : file->end;
	return true;
}

static const char *trouble_of(const struct buf *buf)
{
	return buf->failure == BUF_TOO_BIG ? "it is too large" : out_of_memory;
}

static const char *read_segments(struct native_file *file)
{
	const Elf64_Ehdr *header = &file->header;
	uint64_t size_bytes = header->e_phnum * sizeof(Elf64_Phdr);
	Elf64_Phdr *segments AUTO_FREE = malloc(size_bytes + 1);

	if (!segments)
		return out_of_memory;
	if (!take_end(file, header->e_phoff, size_bytes) ||
	    path_read_at(file->fd, segments, size_bytes, header->e_phoff))
		return no_elf;
	for (size_t i = 0; i < header->e_phnum; i++)
		if (!take_end(file, segments[i].p_offset, segments[i].p_filesz))
			return no_elf;
	return NULL;
}

static const char *read_sections(struct native_file *file)
{
	const Elf64_Ehdr *header = &file->header;
	uint64_t size_bytes = header->e_shnum * sizeof(Elf64_Shdr);

	file->sections = calloc(header->e_shnum + ADDED_SECTIONS, sizeof(*file->sections));
	if (!file->sections)
		return out_of_memory;
	if (!take_end(file, header->e_shoff, size_bytes) ||
	    path_read_at(file->fd, file->sections, size_bytes, header->e_shoff))
		return no_elf;
	for (size_t i = 0; i < header->e_shnum; i++) {
		Elf64_Shdr *section = &file->sections[i];

		if (section->sh_type == SHT_SYMTAB && !file->replaces)
			return "it has a symbol table";
		/* Its bytes stay. perf looks at the name of a section. */
		if (section->sh_type == SHT_SYMTAB) {
			section->sh_type = SHT_PROGBITS;
			section->sh_name = section->sh_link = section->sh_info = 0;
		}
		if (section->sh_type != SHT_NOBITS &&
		    !take_end(file, section->sh_offset, section->sh_size))
			return no_elf;
	}
	return NULL;
}

/* Linkers put the build-id into a section of its own. */
static void find_id(struct native_file *file)
{
	struct id_note note;

	for (uint16_t i = 1; i < file->header.e_shnum && !file->id_section; i++) {
		const Elf64_Shdr *section = &file->sections[i];

		if (section->sh_type != SHT_NOTE ||
		    section->sh_size < offsetof(struct id_note, id) ||
		    path_read_at(file->fd, &note, offsetof(struct id_note, id),
				 section->sh_offset) ||
		    note.header.n_type != NT_GNU_BUILD_ID ||
		    note.header.n_namesz != sizeof(note.name) ||
		    memcmp(note.name, "GNU", sizeof(note.name)))
			continue;
		file->id_section = i;
		if (note.header.n_descsz == SYMFILE_ID_BYTES && section->sh_size >= sizeof(note))
			file->id_offset = section->sh_offset + offsetof(struct id_note, id);
	}
}

static const char *read_file(struct native_file *file)
{
	const char *failure;

	if (path_read_at(file->fd, &file->header, sizeof(file->header), 0) ||
	    !is_readable(&file->header))
		return no_elf;
	failure = read_segments(file);
	if (!failure)
		failure = read_sections(file);
	if (!failure)
		find_id(file);
	return failure;
}

/* ---- rendering ---------------------------------------------------------------------------- */

/* Readers of a symbol table skip symbols of no section. */
static uint16_t section_of(const struct native_file *file, uint64_t vaddr)
{
	for (uint16_t i = 1; i < file->header.e_shnum; i++)
		if (file->sections[i].sh_flags & SHF_EXECINSTR &&
		    vaddr - file->sections[i].sh_addr < file->sections[i].sh_size)
			return i;
	return SHN_UNDEF;
}

/* The lengths of `call` on x86-64: relative, to a pointer at a relative address, to a register, to
 * a pointer in memory. */
static bool ends_in_call(const uint8_t *end, uint64_t size_bytes)
{
	return (size_bytes >= 5 && end[-5] == 0xe8) ||
	       (size_bytes >= 6 && end[-6] == 0xff &&
		(end[-5] == 0x15 || (end[-5] & 0xf8) == 0x90)) ||
	       (size_bytes >= 2 && end[-2] == 0xff && (end[-1] & 0xf8) == 0xd0) ||
	       (size_bytes >= 3 && end[-3] == 0xff && (end[-2] & 0xf8) == 0x50);
}

/*
 * When a function ends with a call that does not return, call chains have the address behind the
 * function, and perf looks up that address.
 */
static bool is_called_from_its_end(const struct native_file *file, const Elf64_Sym *symbol,
				   const struct buf *ret)
{
	const Elf64_Shdr *section = &file->sections[symbol->st_shndx];
	uint64_t end = symbol->st_value - section->sh_addr + symbol->st_size;

	return file->header.e_machine == EM_X86_64 && symbol->st_shndx &&
	       section->sh_type == SHT_PROGBITS && end <= section->sh_size &&
	       ends_in_call((const uint8_t *)ret->data + section->sh_offset + end, symbol->st_size);
}

static void symfile_native_place(Elf64_Shdr *section, uint32_t type, const struct buf *ret,
				 uint64_t offset)
{
	section->sh_type = type;
	section->sh_offset = offset;
	section->sh_size = ret->size_bytes - offset;
}

static void append_symbols(struct native_file *file, const struct symfile *elf, struct buf *ret)
{
	Elf64_Shdr *added = &file->sections[file->header.e_shnum];
	const char *symbols = elf->symbols.data;
	uint64_t offset = ret->size_bytes;

	for (size_t i = 0; i <= elf->count; i++) {
		Elf64_Sym symbol, next = { .st_value = UINT64_MAX };

		memcpy(&symbol, symbols + i * sizeof(symbol), sizeof(symbol));
		if (i < elf->count)
			memcpy(&next, symbols + (i + 1) * sizeof(next), sizeof(next));
		symbol.st_shndx = i ? section_of(file, symbol.st_value) : SHN_UNDEF;
		if (next.st_value > symbol.st_value + symbol.st_size &&
		    is_called_from_its_end(file, &symbol, ret))
			symbol.st_size++;
		buf_append(ret, &symbol, sizeof(symbol));
	}
	symfile_native_place(&added[ADDED_SYMBOLS], SHT_SYMTAB, ret, offset);
	added[ADDED_SYMBOLS].sh_link = file->header.e_shnum + ADDED_NAMES;
	added[ADDED_SYMBOLS].sh_info = 1; /* the first symbol that is not local */
	added[ADDED_SYMBOLS].sh_entsize = sizeof(Elf64_Sym);
	added[ADDED_SYMBOLS].sh_addralign = 8;
	offset = ret->size_bytes;
	buf_append(ret, elf->names.data, elf->names.size_bytes);
	symfile_native_place(&added[ADDED_NAMES], SHT_STRTAB, ret, offset);
	added[ADDED_NAMES].sh_addralign = 1;
}

static size_t added_count(const struct native_file *file)
{
	return file->id_section ? ADDED_ID : ADDED_SECTIONS;
}

/* A note with room for our build-id, instead of one without. */
static void append_id(struct native_file *file, struct buf *ret)
{
	static const struct id_note note = { { 4, SYMFILE_ID_BYTES, NT_GNU_BUILD_ID },
					     "GNU",
					     { 0 } };
	Elf64_Shdr *section = &file->sections[file->id_section ? file->id_section
							       : file->header.e_shnum + ADDED_ID];
	uint64_t offset = ret->size_bytes;

	buf_append(ret, &note, sizeof(note));
	symfile_native_place(section, SHT_NOTE, ret, offset);
	section->sh_flags = 0; /* the section is not mapped */
	section->sh_addr = 0;
	section->sh_addralign = 4;
	file->id_offset = offset + offsetof(struct id_note, id);
}

/* The names of sections again, with ours behind them. */
static const char *append_section_names(struct native_file *file, struct buf *ret)
{
	Elf64_Shdr *names = &file->sections[file->header.e_shstrndx];
	Elf64_Shdr *added = &file->sections[file->header.e_shnum];
	uint64_t offset = ret->size_bytes;
	char *room = buf_reserve(ret, names->sh_size + 1);

	if (!room)
		return trouble_of(ret);
	if (names->sh_type != SHT_STRTAB ||
	    path_read_at(file->fd, room, names->sh_size, names->sh_offset))
		return no_elf;
	room[names->sh_size] = '\0';
	ret->size_bytes += names->sh_size + 1;
	for (size_t i = 0; i < added_count(file); i++) {
		added[i].sh_name = (Elf64_Word)(ret->size_bytes - offset);
		buf_append(ret, added_names[i], strlen(added_names[i]) + 1);
	}
	symfile_native_place(names, SHT_STRTAB, ret, offset);
	return NULL;
}

static void symfile_native_align(struct buf *ret)
{
	static const char zeroes[8];

	buf_append(ret, zeroes, -ret->size_bytes % sizeof(zeroes));
}

static const char *symfile_native_render_all(struct native_file *file, const struct symfile *elf,
					     struct buf *ret)
{
	char *room = buf_reserve(ret, file->end);
	const char *failure;

	if (!room)
		return trouble_of(ret);
	if (path_read_at(file->fd, room, file->end, 0))
		return no_elf;
	ret->size_bytes = file->end;
	symfile_native_align(ret);
	append_symbols(file, elf, ret);
	symfile_native_align(ret);
	if (!file->id_offset)
		append_id(file, ret);
	failure = append_section_names(file, ret);
	if (failure)
		return failure;
	symfile_native_align(ret);
	file->header.e_shoff = ret->size_bytes;
	file->header.e_shnum += added_count(file);
	buf_append(ret, file->sections, file->header.e_shnum * sizeof(*file->sections));
	if (ret->failure)
		return trouble_of(ret);
	memcpy(ret->data, &file->header, sizeof(file->header));
	return NULL;
}

const char *symfile_native_finish(const struct symfile *elf, int fd, bool replaces, struct buf *ret,
				  uint8_t id_ret[SYMFILE_ID_BYTES], uint64_t *end_ret)
{
	struct native_file file = { .fd = fd, .replaces = replaces };
	const char *failure;

	if (elf->symbols.failure)
		return trouble_of(&elf->symbols);
	if (elf->names.failure)
		return trouble_of(&elf->names);
	failure = read_file(&file);
	if (!failure)
		failure = symfile_native_render_all(&file, elf, ret);
	free(file.sections);
	if (failure)
		return failure;
	symfile_make_id(ret, id_ret);
	memcpy(ret->data + file.id_offset, id_ret, SYMFILE_ID_BYTES);
	*end_ret = file.end;
	return NULL;
}
