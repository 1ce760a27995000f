/* SPDX-License-Identifier: MIT */
#include "mapgen/symfile/symfile.h"

#include <elf.h>
#include <sha2.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/path.h"
#include "libsym/libsym.h"

const uint8_t symfile_id_mark[4] = { 'd', 'n', 'm', 'g' };

enum {
	MOST_SYMBOL_BYTES = 1 << 30,
	MOST_NAME_BYTES = 1 << 30,
	LONGEST_ORIGIN_BYTES = 4096,
	MAKER_NOTE_TYPE = 1
};

static const char maker[] = "dotnet-mapgen";
static const char maker_section[] = ".note.dotnet-mapgen";

enum section {
	SECTION_NONE,
	SECTION_MAKER,
	SECTION_ID,
	SECTION_TEXT,
	SECTION_SYMBOLS,
	SECTION_NAMES,
	SECTION_SECTION_NAMES,
	SECTION_ABBREVIATIONS, /* of lines; without lines of type SHT_NULL */
	SECTION_INFO,
	SECTION_LINES,
	SECTIONS /* sections of code follow */
};

static const char *const section_names[SECTIONS] = {
	"",        maker_section, ".note.gnu.build-id", ".text",       ".symtab",
	".strtab", ".shstrtab",   ".debug_abbrev",      ".debug_info", ".debug_line",
};

static const char code_section[] = ".code";

void symfile_init(struct symfile *elf)
{
	static const Elf64_Sym none = { 0 };

	*elf = (struct symfile){ .low = UINT64_MAX };
	buf_init(&elf->symbols, MOST_SYMBOL_BYTES);
	buf_init(&elf->names, MOST_NAME_BYTES);
	buf_init(&elf->code, SYMFILE_MOST_CODE_BYTES);
	buf_init(&elf->blocks, SYMFILE_MOST_CODE_BLOCKS * sizeof(struct symfile_code));
	symfile_lines_init(&elf->lines);
	buf_append(&elf->symbols, &none, sizeof(none));
	buf_append_char(&elf->names, '\0');
}

void symfile_deinit(struct symfile *elf)
{
	buf_deinit(&elf->symbols);
	buf_deinit(&elf->names);
	buf_deinit(&elf->code);
	buf_deinit(&elf->blocks);
	symfile_lines_deinit(&elf->lines);
}

static void append_printable(struct buf *buf, const char *text)
{
	for (; *text; text++)
		buf_append_char(buf, (unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
}

void symfile_add(struct symfile *elf, uint64_t value, uint64_t size_bytes, const char *name,
		 const char *tier)
{
	Elf64_Sym symbol = {
		.st_name = (Elf64_Word)elf->names.size_bytes,
		.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		.st_shndx = SECTION_TEXT,
		.st_value = value,
		.st_size = size_bytes,
	};

	if (!size_bytes || value > UINT64_MAX - size_bytes)
		return;
	buf_append(&elf->symbols, &symbol, sizeof(symbol));
	append_printable(&elf->names, name);
	if (tier) {
		buf_append_char(&elf->names, '[');
		append_printable(&elf->names, tier);
		buf_append_char(&elf->names, ']');
	}
	buf_append_char(&elf->names, '\0');
	if (value < elf->low)
		elf->low = value;
	if (value + size_bytes > elf->high)
		elf->high = value + size_bytes;
	elf->count++;
}

/* Does not change a full buffer. */
static bool has_room(const struct buf *buf, uint64_t bytes)
{
	return !buf->failure && bytes <= buf->max_bytes - buf->size_bytes;
}

void symfile_add_code(struct symfile *elf, const struct symfile_code_source *source, uint64_t start,
		      uint64_t end)
{
	struct symfile_code block = { .start = start };
	char *room;
	ssize_t got = 0;

	if (start >= end || !has_room(&elf->blocks, sizeof(block)) ||
	    !has_room(&elf->code, end - start))
		return;
	room = buf_reserve(&elf->code, end - start);
	while (room && block.size_bytes < end - start &&
	       (got = pread(source->fd, room + block.size_bytes, end - start - block.size_bytes,
			    (off_t)(start + block.size_bytes + source->shift))) > 0)
		block.size_bytes += (uint64_t)got;
	if (!room || !block.size_bytes)
		return;
	elf->code.size_bytes += block.size_bytes;
	buf_append(&elf->blocks, &block, sizeof(block));
}

/* ---- rendering -------------------------------------------------------------------- */

struct layout {
	Elf64_Shdr sections[SECTIONS];
	const void *bytes[SECTIONS]; /* NULL: none */
	uint64_t end;                /* of what has a place */
	char section_text[128];
	size_t section_text_bytes;
	size_t code_name; /* in it */
	size_t code_blocks;
	uint64_t code_offset;
	struct buf lines[3]; /* abbreviations, info, lines */
	uint8_t maker_note[sizeof(Elf64_Nhdr) + 16 + LONGEST_ORIGIN_BYTES];
	size_t maker_note_bytes;
	uint8_t id_note[sizeof(Elf64_Nhdr) + 4 + SYMFILE_ID_BYTES];
	size_t id_note_bytes; /* 0: without */
};

static size_t symfile_pad(size_t bytes, size_t to)
{
	return (bytes + to - 1) / to * to;
}

static size_t make_note(uint8_t *room, const char *name, uint32_t type, const void *bytes,
			size_t count)
{
	Elf64_Nhdr header = {
		.n_namesz = (Elf64_Word)strlen(name) + 1,
		.n_descsz = (Elf64_Word)count,
		.n_type = type,
	};
	size_t at = sizeof(header) + symfile_pad(header.n_namesz, 4);

	memset(room, 0, at);
	memcpy(room, &header, sizeof(header));
	memcpy(room + sizeof(header), name, header.n_namesz);
	memset(room + at, 0, symfile_pad(count, 4));
	memcpy(room + at, bytes, count);
	return at + symfile_pad(count, 4);
}

static void name_sections(struct layout *layout)
{
	for (size_t i = 0; i < SECTIONS; i++) {
		size_t bytes = strlen(section_names[i]) + 1;

		layout->sections[i].sh_name = (Elf64_Word)layout->section_text_bytes;
		memcpy(layout->section_text + layout->section_text_bytes, section_names[i], bytes);
		layout->section_text_bytes += bytes;
	}
	layout->code_name = layout->section_text_bytes;
	memcpy(layout->section_text + layout->code_name, code_section, sizeof(code_section));
	layout->section_text_bytes += sizeof(code_section);
}

static void symfile_place(struct layout *layout, size_t number, uint32_t type, uint64_t alignment,
			  const void *bytes, uint64_t size_bytes)
{
	Elf64_Shdr *section = &layout->sections[number];

	section->sh_type = size_bytes ? type : SHT_NULL;
	section->sh_offset = layout->end;
	section->sh_size = size_bytes;
	section->sh_addralign = size_bytes ? alignment : 0;
	layout->bytes[number] = bytes;
	layout->end = symfile_pad(layout->end + size_bytes, 8);
}

enum {
	SEGMENTS = 3,
	HEADERS_BYTES =
		sizeof(Elf64_Ehdr) + SEGMENTS * sizeof(Elf64_Phdr) + SECTIONS * sizeof(Elf64_Shdr)
};

static void lay_out(const struct symfile *elf, struct layout *layout)
{
	Elf64_Shdr *sections = layout->sections;

	layout->end = HEADERS_BYTES + layout->code_blocks * sizeof(*sections);
	name_sections(layout);
	symfile_place(layout, SECTION_MAKER, SHT_NOTE, 4, layout->maker_note,
		      layout->maker_note_bytes);
	symfile_place(layout, SECTION_ID, SHT_NOTE, 4, layout->id_note, layout->id_note_bytes);
	if (layout->id_note_bytes)
		sections[SECTION_ID].sh_flags = SHF_ALLOC;
	sections[SECTION_TEXT] = (Elf64_Shdr){
		.sh_name = sections[SECTION_TEXT].sh_name,
		.sh_type = SHT_NOBITS,
		.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		.sh_addr = elf->count ? elf->low : 0,
		.sh_offset = elf->count ? elf->low : 0,
		.sh_size = elf->count ? elf->high - elf->low : 0,
		.sh_addralign = 1,
	};
	symfile_place(layout, SECTION_SYMBOLS, SHT_SYMTAB, 8, elf->symbols.data,
		      elf->symbols.size_bytes);
	sections[SECTION_SYMBOLS].sh_link = SECTION_NAMES;
	sections[SECTION_SYMBOLS].sh_info = 1; /* the first symbol that is not local */
	sections[SECTION_SYMBOLS].sh_entsize = sizeof(Elf64_Sym);
	symfile_place(layout, SECTION_NAMES, SHT_STRTAB, 1, elf->names.data, elf->names.size_bytes);
	symfile_place(layout, SECTION_SECTION_NAMES, SHT_STRTAB, 1, layout->section_text,
		      layout->section_text_bytes);
	for (size_t i = 0; i < 3; i++)
		symfile_place(layout, SECTION_ABBREVIATIONS + i, SHT_PROGBITS, 1,
			      layout->lines[i].data, layout->lines[i].size_bytes);
	layout->code_offset = layout->end;
}

/* Not in .text, which has all symbols and no bytes. */
static void put_code_headers(const struct symfile *elf, const struct layout *layout,
			     struct buf *ret)
{
	uint64_t offset = layout->code_offset;

	for (size_t i = 0; i < layout->code_blocks; i++) {
		struct symfile_code block;
		Elf64_Shdr section;

		memcpy(&block, elf->blocks.data + i * sizeof(block), sizeof(block));
		section = (Elf64_Shdr){
			.sh_name = (Elf64_Word)layout->code_name,
			.sh_type = SHT_PROGBITS,
			.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			.sh_addr = block.start,
			.sh_offset = offset,
			.sh_size = block.size_bytes,
			.sh_addralign = 1,
		};
		buf_append(ret, &section, sizeof(section));
		offset += block.size_bytes;
	}
}

static void put_headers(const struct layout *layout, struct buf *ret)
{
	static const uint16_t one = 1;
	const Elf64_Shdr *text = &layout->sections[SECTION_TEXT];
	const Elf64_Shdr *notes[2] = { &layout->sections[SECTION_MAKER],
				       &layout->sections[SECTION_ID] };
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			     *(const uint8_t *)&one ? ELFDATA2LSB : ELFDATA2MSB, EV_CURRENT },
		.e_type = ET_DYN,
#if defined(__aarch64__)
		.e_machine = EM_AARCH64,
#else
		.e_machine = EM_X86_64,
#endif
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_shoff = sizeof(header) + SEGMENTS * sizeof(Elf64_Phdr),
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = SEGMENTS,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (Elf64_Half)(SECTIONS + layout->code_blocks),
		.e_shstrndx = SECTION_SECTION_NAMES,
	};
	Elf64_Phdr load = {
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = text->sh_offset,
		.p_vaddr = text->sh_addr,
		.p_paddr = text->sh_addr,
		.p_memsz = text->sh_size,
		.p_align = 1,
	};

	buf_append(ret, &header, sizeof(header));
	buf_append(ret, &load, sizeof(load));
	for (size_t i = 0; i < 2; i++) {
		Elf64_Phdr note = {
			.p_type = notes[i]->sh_size ? PT_NOTE : PT_NULL,
			.p_flags = PF_R,
			.p_offset = notes[i]->sh_offset,
			.p_filesz = notes[i]->sh_size,
			.p_align = 4,
		};

		buf_append(ret, &note, sizeof(note));
	}
	buf_append(ret, layout->sections, sizeof(layout->sections));
}

static void put_at(struct buf *ret, uint64_t offset, const void *bytes, uint64_t size_bytes)
{
	static const uint8_t zeroes[8];

	if (!bytes || !size_bytes)
		return;
	buf_append(ret, zeroes, offset - ret->size_bytes);
	buf_append(ret, bytes, size_bytes);
}

void symfile_make_id(const struct buf *file, uint8_t id[SYMFILE_ID_BYTES])
{
	uint8_t digest[SHA512_DIGEST_LENGTH];
	SHA2_CTX state;

	SHA512Init(&state);
	SHA512Update(&state, (const uint8_t *)file->data, file->size_bytes);
	SHA512Final(digest, &state);
	memcpy(id, symfile_id_mark, sizeof(symfile_id_mark));
	memcpy(id + sizeof(symfile_id_mark), digest, SYMFILE_ID_BYTES - sizeof(symfile_id_mark));
}

bool symfile_finish(struct symfile *elf, const char *origin, struct buf *ret,
		    uint8_t id_ret[SYMFILE_ID_BYTES])
{
	static const uint8_t no_id[SYMFILE_ID_BYTES];
	struct layout layout = { 0 };
	size_t origin_bytes = strnlen(origin, LONGEST_ORIGIN_BYTES - 1);
	char line[LONGEST_ORIGIN_BYTES] = "";
	size_t id_at;

	if (elf->symbols.failure || elf->names.failure)
		return false;
	memcpy(line, origin, origin_bytes);
	layout.maker_note_bytes =
		make_note(layout.maker_note, maker, MAKER_NOTE_TYPE, line, origin_bytes + 1);
	if (id_ret)
		layout.id_note_bytes =
			make_note(layout.id_note, "GNU", NT_GNU_BUILD_ID, no_id, sizeof(no_id));
	layout.code_blocks = elf->blocks.size_bytes / sizeof(struct symfile_code);
	for (size_t i = 0; i < 3; i++)
		buf_init(&layout.lines[i], MOST_NAME_BYTES);
	symfile_lines_write(&elf->lines, layout.lines);
	lay_out(elf, &layout);
	put_headers(&layout, ret);
	put_code_headers(elf, &layout, ret);
	for (size_t i = 0; i < SECTIONS; i++)
		put_at(ret, layout.sections[i].sh_offset, layout.bytes[i],
		       layout.sections[i].sh_size);
	if (layout.code_blocks)
		put_at(ret, layout.code_offset, elf->code.data, elf->code.size_bytes);
	for (size_t i = 0; i < 3; i++) {
		if (layout.lines[i].failure)
			ret->failure = layout.lines[i].failure;
		buf_deinit(&layout.lines[i]);
	}
	if (ret->failure)
		return false;
	if (!id_ret)
		return true;
	symfile_make_id(ret, id_ret);
	id_at = layout.sections[SECTION_ID].sh_offset + sizeof(Elf64_Nhdr) + 4;
	memcpy(ret->data + id_at, id_ret, SYMFILE_ID_BYTES);
	return true;
}

bool symfile_recognise(int fd, char *origin, size_t room_bytes)
{
	uint8_t note[sizeof(Elf64_Nhdr) + 16];
	uint64_t offset, size_bytes;
	Elf64_Nhdr header;
	size_t bytes;
	struct sym_error *error =
		sym_elf_section_find(fd, UINT64_MAX, maker_section, &offset, &size_bytes);

	if (error) {
		sym_error_destroy(error);
		return false;
	}
	if (size_bytes < sizeof(note) || path_read_at(fd, note, sizeof(note), offset))
		return false;
	memcpy(&header, note, sizeof(header));
	if (header.n_namesz != sizeof(maker) || header.n_type != MAKER_NOTE_TYPE ||
	    memcmp(note + sizeof(header), maker, sizeof(maker)) ||
	    header.n_descsz > size_bytes - sizeof(note) || !room_bytes)
		return false;
	bytes = header.n_descsz < room_bytes ? header.n_descsz : room_bytes - 1;
	if (path_read_at(fd, origin, bytes, offset + sizeof(note)))
		return false;
	origin[bytes] = '\0';
	return true;
}
