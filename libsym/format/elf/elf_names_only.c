/* SPDX-License-Identifier: MIT */
/*
 * How a names-only file is made.
 *
 *   names_read_tables()   file header, program headers, section headers, section names
 *   names_choose()        which sections stay: loaded ones, and their new numbers
 *   names_read_symbols()  .symtab and .strtab of the debug file; functions are kept and sorted
 *   names_write()         header, program headers, build-id, symbols, names, section headers
 *
 * Tables keep the class and the byte order of the file: a kept header is copied, and single fields
 * are replaced. struct names_layout has the places of the fields for both classes.
 */
#include "libsym/format/elf/elf_names_only.h"

#include <elf.h>
#include <stdlib.h>

#include "libsym/base/cleanup.h"
#include "libsym/format/elf/elf_outline.h"

/* -ffunction-sections makes tens of thousands of sections, but not in a linked file. */
static const uint64_t most_names_sections = 65000;
static const uint64_t most_names_segments = 4096;
/* Chromium has 2 million symbols, 48 MB, and 200 MB of names. */
static const uint64_t most_names_table_bytes = UINT64_C(1) << 30;
static const uint64_t most_note_bytes = 4096;

/* Offsets and sizes of fields. */
struct names_field {
	uint8_t offset, size_bytes;
};

struct names_layout {
	uint8_t ehdr_bytes, phdr_bytes, shdr_bytes, sym_bytes;
	struct names_field phoff, shoff, phnum, shnum, shstrndx, phentsize, shentsize;
	struct names_field sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size, sh_link,
		sh_info, sh_align, sh_entsize;
	struct names_field st_name, st_info, st_shndx, st_value, st_size;
};

#define FIELD(type, field)                                                                         \
	{                                                                                          \
		offsetof(type, field), sizeof(((type *)NULL)->field)                               \
	}
#define LAYOUT(bits)                                                                               \
	{                                                                                          \
		.ehdr_bytes = sizeof(Elf##bits##_Ehdr), .phdr_bytes = sizeof(Elf##bits##_Phdr),    \
		.shdr_bytes = sizeof(Elf##bits##_Shdr), .sym_bytes = sizeof(Elf##bits##_Sym),      \
		.phoff = FIELD(Elf##bits##_Ehdr, e_phoff),                                         \
		.shoff = FIELD(Elf##bits##_Ehdr, e_shoff),                                         \
		.phnum = FIELD(Elf##bits##_Ehdr, e_phnum),                                         \
		.shnum = FIELD(Elf##bits##_Ehdr, e_shnum),                                         \
		.shstrndx = FIELD(Elf##bits##_Ehdr, e_shstrndx),                                   \
		.phentsize = FIELD(Elf##bits##_Ehdr, e_phentsize),                                 \
		.shentsize = FIELD(Elf##bits##_Ehdr, e_shentsize),                                 \
		.sh_name = FIELD(Elf##bits##_Shdr, sh_name),                                       \
		.sh_type = FIELD(Elf##bits##_Shdr, sh_type),                                       \
		.sh_flags = FIELD(Elf##bits##_Shdr, sh_flags),                                     \
		.sh_addr = FIELD(Elf##bits##_Shdr, sh_addr),                                       \
		.sh_offset = FIELD(Elf##bits##_Shdr, sh_offset),                                   \
		.sh_size = FIELD(Elf##bits##_Shdr, sh_size),                                       \
		.sh_link = FIELD(Elf##bits##_Shdr, sh_link),                                       \
		.sh_info = FIELD(Elf##bits##_Shdr, sh_info),                                       \
		.sh_align = FIELD(Elf##bits##_Shdr, sh_addralign),                                 \
		.sh_entsize = FIELD(Elf##bits##_Shdr, sh_entsize),                                 \
		.st_name = FIELD(Elf##bits##_Sym, st_name),                                        \
		.st_info = FIELD(Elf##bits##_Sym, st_info),                                        \
		.st_shndx = FIELD(Elf##bits##_Sym, st_shndx),                                      \
		.st_value = FIELD(Elf##bits##_Sym, st_value),                                      \
		.st_size = FIELD(Elf##bits##_Sym, st_size),                                        \
	}

static const struct names_layout layout_32 = LAYOUT(32), layout_64 = LAYOUT(64);

/* A symbol that is kept. */
struct names_symbol {
	uint64_t vaddr;
	uint32_t index; /* in the table of the file: keeps the order of names for one vaddr */
	uint32_t name;  /* offset in the names of the file; later in the new ones */
	bool is_global;
};

struct names {
	const struct byte_source *source;
	const struct names_layout *layout;
	bool is_big_endian;
	const char *failure;
	uint8_t header[sizeof(Elf64_Ehdr)];
	uint8_t *segments; /* program headers as they are */
	uint64_t segment_count;
	uint8_t *sections;
	uint64_t section_count;
	char *section_names;
	uint64_t section_names_bytes;
	uint16_t *numbers; /* new numbers of the sections; 0: dropped */
	uint16_t kept_count;
	uint16_t note;  /* number of the section with the build-id */
	uint64_t table; /* number of .symtab */
	uint8_t *table_bytes;
	uint64_t table_count;
	char *strings;
	uint64_t strings_bytes;
	struct names_symbol *symbols;
	uint64_t symbol_count, local_count;
};

static bool names_fail(struct names *names, const char *failure)
{
	names->failure = failure;
	return false;
}

static uint64_t names_get(const struct names *names, const uint8_t *record,
			  struct names_field field)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < field.size_bytes; i++)
		value |= (uint64_t)record[field.offset +
					  (names->is_big_endian ? field.size_bytes - 1 - i : i)]
			 << (8 * i);
	return value;
}

static void names_set(const struct names *names, uint8_t *record, struct names_field field,
		      uint64_t value)
{
	for (unsigned int i = 0; i < field.size_bytes; i++)
		record[field.offset + (names->is_big_endian ? field.size_bytes - 1 - i : i)] =
			(uint8_t)(value >> (8 * i));
}

/* ---- reading ---- */

/* Heap, with a NUL behind it; NULL with a failure. */
static void *names_load(struct names *names, uint64_t offset, uint64_t size_bytes)
{
	char *bytes;

	if (size_bytes > most_names_table_bytes ||
	    !byte_source_covers(names->source, offset, size_bytes)) {
		names_fail(names, "a table lies beyond the end of the file");
		return NULL;
	}
	bytes = malloc(size_bytes + 1);
	if (bytes && byte_source_read(names->source, bytes, size_bytes, offset)) {
		bytes[size_bytes] = 0;
		return bytes;
	}
	names_fail(names, bytes ? "the file cannot be read" : "out of memory");
	free(bytes);
	return NULL;
}

static uint8_t *section_at(const struct names *names, uint64_t number)
{
	return names->sections + number * names->layout->shdr_bytes;
}

static const char *name_of_section(const struct names *names, const uint8_t *section)
{
	uint64_t offset = names_get(names, section, names->layout->sh_name);

	return offset < names->section_names_bytes ? names->section_names + offset : "";
}

static bool read_names_header(struct names *names)
{
	uint8_t *header = names->header;

	if (!byte_source_read(names->source, header, EI_NIDENT, 0) ||
	    memcmp(header, ELFMAG, SELFMAG) != 0)
		return names_fail(names, "not an ELF file");
	if ((header[EI_CLASS] != ELFCLASS32 && header[EI_CLASS] != ELFCLASS64) ||
	    (header[EI_DATA] != ELFDATA2LSB && header[EI_DATA] != ELFDATA2MSB))
		return names_fail(names, "unknown ELF class or byte order");
	names->layout = header[EI_CLASS] == ELFCLASS64 ? &layout_64 : &layout_32;
	names->is_big_endian = header[EI_DATA] == ELFDATA2MSB;
	if (!byte_source_read(names->source, header, names->layout->ehdr_bytes, 0))
		return names_fail(names, "the ELF header is truncated");
	return true;
}

static bool names_read_tables(struct names *names)
{
	const struct names_layout *layout;
	uint64_t strings;

	if (!read_names_header(names))
		return false;
	layout = names->layout;
	names->segment_count = names_get(names, names->header, layout->phnum);
	names->section_count = names_get(names, names->header, layout->shnum);
	strings = names_get(names, names->header, layout->shstrndx);
	if (names->segment_count > most_names_segments || !names->section_count ||
	    names->section_count > most_names_sections || strings >= names->section_count)
		return names_fail(names, "its headers are not those of a linked file");
	if (names_get(names, names->header, layout->shentsize) != layout->shdr_bytes ||
	    (names->segment_count &&
	     names_get(names, names->header, layout->phentsize) != layout->phdr_bytes))
		return names_fail(names, "headers of unknown size");
	names->segments = names_load(names, names_get(names, names->header, layout->phoff),
				     names->segment_count * layout->phdr_bytes);
	names->sections = names_load(names, names_get(names, names->header, layout->shoff),
				     names->section_count * layout->shdr_bytes);
	if (!names->segments || !names->sections)
		return false;
	names->section_names_bytes = names_get(names, section_at(names, strings), layout->sh_size);
	names->section_names =
		names_load(names, names_get(names, section_at(names, strings), layout->sh_offset),
			   names->section_names_bytes);
	return names->section_names != NULL;
}

/* Whether a section of notes has the build-id. */
static bool has_build_id(struct names *names, const uint8_t *section)
{
	uint64_t size_bytes = names_get(names, section, names->layout->sh_size);
	uint8_t *bytes AUTO_FREE = NULL, id[ELF_OUTLINE_MAX_BUILD_ID];
	struct reader notes;

	if (size_bytes > most_note_bytes)
		return false;
	bytes = names_load(names, names_get(names, section, names->layout->sh_offset), size_bytes);
	notes = reader_over(bytes, bytes ? size_bytes : 0);
	notes.is_big_endian = names->is_big_endian;
	return elf_note_build_id(notes, id);
}

/* Numbers the sections that stay, from 1 on. */
static bool names_choose(struct names *names)
{
	const struct names_layout *layout = names->layout;

	names->numbers = calloc(names->section_count, sizeof(*names->numbers));
	if (!names->numbers)
		return names_fail(names, "out of memory");
	for (uint64_t i = 1; i < names->section_count; i++) {
		const uint8_t *section = section_at(names, i);
		uint64_t type = names_get(names, section, layout->sh_type);

		if (type == SHT_SYMTAB)
			names->table = i;
		/* Its symbols are in a table of descriptors, and names alone do not have that. */
		if (!strcmp(name_of_section(names, section), ".opd"))
			return names_fail(names, "its functions have descriptors");
		if (!(names_get(names, section, layout->sh_flags) & SHF_ALLOC) || type == SHT_NULL)
			continue;
		names->numbers[i] = ++names->kept_count;
		/* A kernel has it in a section of all notes. */
		if (type == SHT_NOTE && !names->note && has_build_id(names, section))
			names->note = names->kept_count;
	}
	if (!names->note)
		return names_fail(names, "without a build-id");
	return names->table || names_fail(names, "without a symbol table");
}

static bool is_code_section(const struct names *names, uint64_t number)
{
	uint64_t flags;

	if (!number || number >= names->section_count || !names->numbers[number])
		return false;
	flags = names_get(names, section_at(names, number), names->layout->sh_flags);
	return flags & SHF_EXECINSTR;
}

/* The same rule as in libsym and elfutils; libsym/elf/elf_symbols.c has the reasons. */
static bool is_named_function(const struct names *names, const uint8_t *symbol)
{
	const struct names_layout *layout = names->layout;
	unsigned int type = ELF64_ST_TYPE(names_get(names, symbol, layout->st_info));
	uint64_t name = names_get(names, symbol, layout->st_name);

	if (!name || name >= names->strings_bytes || !names->strings[name] ||
	    !is_code_section(names, names_get(names, symbol, layout->st_shndx)))
		return false;
	switch (type) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return true;
	case STT_NOTYPE:
		return names->strings[name] != '$';
	case STT_OBJECT:
		return names_get(names, symbol, layout->st_size) > 0;
	default:
		return false;
	}
}

static int compare_names_symbols(const void *left, const void *right)
{
	const struct names_symbol *a = left, *b = right;

	if (a->is_global != b->is_global)
		return a->is_global ? 1 : -1;
	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static bool load_symbols(struct names *names)
{
	const struct names_layout *layout = names->layout;
	const uint8_t *table = section_at(names, names->table);
	uint64_t strings = names_get(names, table, layout->sh_link);

	if (names_get(names, table, layout->sh_flags) & SHF_COMPRESSED ||
	    strings >= names->section_count ||
	    names_get(names, section_at(names, strings), layout->sh_type) != SHT_STRTAB)
		return names_fail(names, "a symbol table without its names");
	names->table_count = names_get(names, table, layout->sh_size) / layout->sym_bytes;
	names->table_bytes = names_load(names, names_get(names, table, layout->sh_offset),
					names->table_count * layout->sym_bytes);
	names->strings_bytes = names_get(names, section_at(names, strings), layout->sh_size);
	names->strings =
		names_load(names, names_get(names, section_at(names, strings), layout->sh_offset),
			   names->strings_bytes);
	return names->table_bytes && names->strings;
}

static bool names_read_symbols(struct names *names)
{
	const struct names_layout *layout = names->layout;

	if (!load_symbols(names))
		return false;
	names->symbols = reallocarray(NULL, names->table_count + 1, sizeof(*names->symbols));
	if (!names->symbols)
		return names_fail(names, "out of memory");
	for (uint64_t i = 0; i < names->table_count; i++) {
		const uint8_t *symbol = names->table_bytes + i * layout->sym_bytes;
		bool is_global =
			ELF64_ST_BIND(names_get(names, symbol, layout->st_info)) != STB_LOCAL;

		if (!is_named_function(names, symbol))
			continue;
		names->local_count += !is_global;
		names->symbols[names->symbol_count++] = (struct names_symbol){
			.vaddr = names_get(names, symbol, layout->st_value),
			.index = (uint32_t)i,
			.name = (uint32_t)names_get(names, symbol, layout->st_name),
			.is_global = is_global,
		};
	}
	if (!names->symbol_count)
		return names_fail(names, "its symbol table has no functions");
	qsort(names->symbols, names->symbol_count, sizeof(*names->symbols), compare_names_symbols);
	return true;
}

/* ---- writing ---- */

static int compare_names_by_offset(const void *left, const void *right)
{
	const struct names_symbol *a = *(const struct names_symbol *const *)left,
				  *b = *(const struct names_symbol *const *)right;

	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* For each symbol the first one with the same name; NULL: out of memory. */
static uint64_t *first_of_names(const struct names *names)
{
	const struct names_symbol **order AUTO_FREE =
		reallocarray(NULL, names->symbol_count, sizeof(*order));
	uint64_t *first = reallocarray(NULL, names->symbol_count, sizeof(*first));

	if (!order || !first) {
		free(first);
		return NULL;
	}
	for (uint64_t i = 0; i < names->symbol_count; i++)
		order[i] = &names->symbols[i];
	qsort(order, names->symbol_count, sizeof(*order), compare_names_by_offset);
	for (uint64_t i = 0; i < names->symbol_count; i++) {
		uint64_t number = (uint64_t)(order[i] - names->symbols);
		bool is_same = i && order[i]->name == order[i - 1]->name;

		first[number] = is_same ? first[order[i - 1] - names->symbols] : number;
	}
	return first;
}

/* Appends each name once, in the order of the symbols, which compresses best, and sets the new
 * offsets. */
static bool write_strings(struct names *names, struct buf *buf)
{
	uint64_t *first AUTO_FREE = first_of_names(names);

	if (!first)
		return names_fail(names, "out of memory");
	buf_append_char(buf, 0);
	for (uint64_t i = 0; i < names->symbol_count; i++) {
		struct names_symbol *symbol = &names->symbols[i];
		const char *name = names->strings + symbol->name;

		symbol->name =
			first[i] < i ? names->symbols[first[i]].name : (uint32_t)buf->size_bytes;
		if (first[i] == i)
			buf_append(buf, name, strlen(name) + 1);
	}
	return true;
}

static void write_symbols(const struct names *names, struct buf *buf)
{
	const struct names_layout *layout = names->layout;
	uint8_t symbol[sizeof(Elf64_Sym)] = { 0 };

	buf_append(buf, symbol, layout->sym_bytes);
	for (uint64_t i = 0; i < names->symbol_count; i++) {
		uint64_t number;

		memcpy(symbol, names->table_bytes + names->symbols[i].index * layout->sym_bytes,
		       layout->sym_bytes);
		number = names_get(names, symbol, layout->st_shndx);
		names_set(names, symbol, layout->st_shndx, names->numbers[number]);
		names_set(names, symbol, layout->st_name, names->symbols[i].name);
		buf_append(buf, symbol, layout->sym_bytes);
	}
}

/* Where the parts of the new file lie. */
struct names_parts {
	uint64_t note, note_bytes, symbols, symbols_bytes, strings, strings_bytes, titles,
		titles_bytes, headers;
};

static void align_part(struct buf *buf)
{
	while (buf->size_bytes % 8 && !buf->failure)
		buf_append_char(buf, 0);
}

static bool write_note(struct names *names, uint64_t number, struct buf *buf,
		       struct names_parts *parts)
{
	const uint8_t *section = section_at(names, number);
	uint8_t *bytes AUTO_FREE = NULL;

	parts->note_bytes = names_get(names, section, names->layout->sh_size);
	if (parts->note_bytes > most_note_bytes)
		return names_fail(names, "a build-id of unknown form");
	bytes = names_load(names, names_get(names, section, names->layout->sh_offset),
			   parts->note_bytes);
	if (!bytes)
		return false;
	parts->note = buf->size_bytes;
	buf_append(buf, bytes, parts->note_bytes);
	align_part(buf);
	return true;
}

/* A section header of the file, with a new name; its bytes are not there. */
static void write_kept(const struct names *names, uint64_t number, const struct names_parts *parts,
		       uint64_t title, struct buf *buf)
{
	const struct names_layout *layout = names->layout;
	uint8_t header[sizeof(Elf64_Shdr)];

	memcpy(header, section_at(names, number), layout->shdr_bytes);
	names_set(names, header, layout->sh_name, title);
	names_set(names, header, layout->sh_link, 0);
	names_set(names, header, layout->sh_info, 0);
	if (names->numbers[number] == names->note) {
		names_set(names, header, layout->sh_offset, parts->note);
	} else {
		names_set(names, header, layout->sh_type, SHT_NOBITS);
		names_set(names, header, layout->sh_offset, parts->symbols);
	}
	names_set(names, header, layout->sh_flags,
		  names_get(names, header, layout->sh_flags) & ~(uint64_t)SHF_INFO_LINK);
	buf_append(buf, header, layout->shdr_bytes);
}

struct names_table {
	uint32_t type;
	uint64_t title, offset, size_bytes, link, info, align, entry_bytes;
};

static void write_table_header(const struct names *names, const struct names_table *table,
			       struct buf *buf)
{
	const struct names_layout *layout = names->layout;
	uint8_t header[sizeof(Elf64_Shdr)] = { 0 };

	names_set(names, header, layout->sh_name, table->title);
	names_set(names, header, layout->sh_type, table->type);
	names_set(names, header, layout->sh_offset, table->offset);
	names_set(names, header, layout->sh_size, table->size_bytes);
	names_set(names, header, layout->sh_link, table->link);
	names_set(names, header, layout->sh_info, table->info);
	names_set(names, header, layout->sh_align, table->align);
	names_set(names, header, layout->sh_entsize, table->entry_bytes);
	buf_append(buf, header, layout->shdr_bytes);
}

static const char table_titles[] = "\0.symtab\0.strtab\0.shstrtab";

/* The names of sections: of the tables, then of the kept sections, in their order. */
static void write_titles(const struct names *names, struct buf *buf)
{
	buf_append(buf, table_titles, sizeof(table_titles));
	for (uint64_t i = 1; i < names->section_count; i++)
		if (names->numbers[i]) {
			const char *name = name_of_section(names, section_at(names, i));

			buf_append(buf, name, strlen(name) + 1);
		}
}

static void write_headers(const struct names *names, const struct names_parts *parts,
			  struct buf *buf)
{
	uint64_t title = sizeof(table_titles);
	uint16_t kept = names->kept_count;

	write_table_header(names, &(struct names_table){ .type = SHT_NULL }, buf);
	for (uint64_t i = 1; i < names->section_count; i++)
		if (names->numbers[i]) {
			write_kept(names, i, parts, title, buf);
			title += strlen(name_of_section(names, section_at(names, i))) + 1;
		}
	write_table_header(names,
			   &(struct names_table){
				   SHT_SYMTAB, 1, parts->symbols, parts->symbols_bytes, kept + 2u,
				   names->local_count + 1, 8, names->layout->sym_bytes },
			   buf);
	write_table_header(names,
			   &(struct names_table){ SHT_STRTAB, 9, parts->strings,
						  parts->strings_bytes, 0, 0, 1, 0 },
			   buf);
	write_table_header(names,
			   &(struct names_table){ SHT_STRTAB, 17, parts->titles,
						  parts->titles_bytes, 0, 0, 1, 0 },
			   buf);
}

static uint64_t number_of_note(const struct names *names)
{
	uint64_t number = 1;

	while (names->numbers[number] != names->note)
		number++;
	return number;
}

static bool names_write(struct names *names, struct buf *buf)
{
	const struct names_layout *layout = names->layout;
	struct names_parts parts = { 0 };
	uint8_t *header = names->header;
	struct buf strings;

	/* The new offsets of names are known once the names are written. */
	buf_init(&strings, most_names_table_bytes);
	if (!write_strings(names, &strings) || strings.failure) {
		buf_deinit(&strings);
		return names_fail(names, "out of memory");
	}
	buf_append(buf, header, layout->ehdr_bytes);
	buf_append(buf, names->segments, names->segment_count * layout->phdr_bytes);
	align_part(buf);
	if (!write_note(names, number_of_note(names), buf, &parts)) {
		buf_deinit(&strings);
		return false;
	}
	parts.symbols = buf->size_bytes;
	write_symbols(names, buf);
	parts.symbols_bytes = buf->size_bytes - parts.symbols;
	parts.strings = buf->size_bytes;
	buf_append(buf, strings.data, strings.size_bytes);
	parts.strings_bytes = strings.size_bytes;
	buf_deinit(&strings);
	parts.titles = buf->size_bytes;
	write_titles(names, buf);
	parts.titles_bytes = buf->size_bytes - parts.titles;
	align_part(buf);
	parts.headers = buf->size_bytes;
	write_headers(names, &parts, buf);
	if (buf->failure)
		return names_fail(names, "out of memory");
	names_set(names, header, layout->phoff, names->segment_count ? layout->ehdr_bytes : 0);
	names_set(names, header, layout->shoff, parts.headers);
	names_set(names, header, layout->shnum, names->kept_count + 4u);
	names_set(names, header, layout->shstrndx, names->kept_count + 3u);
	memcpy(buf->data, header, layout->ehdr_bytes);
	return true;
}

bool elf_names_only_make(const struct byte_source *source, struct buf *ret,
			 const char **failure_ret)
{
	struct names names = { .source = source };

	if (names_read_tables(&names) && names_choose(&names) && names_read_symbols(&names))
		names_write(&names, ret);
	free(names.segments);
	free(names.sections);
	free(names.section_names);
	free(names.numbers);
	free(names.table_bytes);
	free(names.strings);
	free(names.symbols);
	*failure_ret = names.failure;
	return !names.failure;
}
