/* SPDX-License-Identifier: MIT */
#include "libsym/elf_symbols.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/limits.h"

DEFINE_GUARD(elf, Elf *, elf_end)
#define AUTO_ELF GUARDED(elf)

struct table_reader {
	const struct image *image;
	struct sparse_file *view;
	Elf *elf;
	size_t section_count;
	GElf_Shdr *sections;
};

void elf_symbols_deinit(struct elf_symbols *symbols)
{
	free(symbols->items);
	sparse_file_deinit(&symbols->view);
	*symbols = (struct elf_symbols){ 0 };
}

static struct sym_error *format_error(const struct image *image, const char *what)
{
	return sym_error_create_path(SYM_ERROR_FORMAT, image->path, SYM_OFFSET_UNKNOWN, "%s", what);
}

/* libelf reads the section headers from our bytes, so they must be there before it is asked. */
static struct sym_error *need_section_headers(struct table_reader *reader, bool *any_ret)
{
	struct reader header = reader_over(reader->view->data, reader->view->size_bytes);
	bool wide = reader->image->is_64bit;
	uint64_t offset, entry_bytes, count;
	struct sym_error *error;

	reader_seek(&header, wide ? 40 : 32);
	offset = wide ? reader_u64(&header) : reader_u32(&header);
	reader_seek(&header, wide ? 58 : 46);
	entry_bytes = reader_u16(&header);
	count = reader_u16(&header);
	*any_ret = offset && offset < reader->view->size_bytes;
	if (!*any_ret)
		return NULL;
	error = sparse_file_need(reader->view, reader->image->path, offset, entry_bytes);
	if (error || count)
		return error ? error
			     : sparse_file_need(reader->view, reader->image->path, offset,
						entry_bytes * count);
	/* More than 65,279 sections: the first one's size is their number. */
	header = reader_over(reader->view->data, reader->view->size_bytes);
	reader_seek(&header, (size_t)offset + (wide ? 32 : 20));
	count = wide ? reader_u64(&header) : reader_u32(&header);
	if (entry_bytes && count > reader->view->size_bytes / entry_bytes)
		return format_error(reader->image, "more section headers than the file can hold");
	return sparse_file_need(reader->view, reader->image->path, offset, entry_bytes * count);
}

static struct sym_error *read_sections(struct table_reader *reader)
{
	size_t count;

	if (elf_getshdrnum(reader->elf, &count))
		return format_error(reader->image, elf_errmsg(-1));
	reader->sections = calloc(count + 1, sizeof(*reader->sections));
	if (!reader->sections)
		return &sym_error_no_memory;
	for (size_t i = 0; i < count; i++) {
		Elf_Scn *section = elf_getscn(reader->elf, i);

		if (!section || !gelf_getshdr(section, &reader->sections[i]))
			return format_error(reader->image, elf_errmsg(-1));
	}
	reader->section_count = count;
	return NULL;
}

static const GElf_Shdr *find_table(const struct table_reader *reader, GElf_Word type)
{
	for (size_t i = 1; i < reader->section_count; i++)
		if (reader->sections[i].sh_type == type && reader->sections[i].sh_entsize)
			return &reader->sections[i];
	return NULL;
}

/* A section's bytes, bounds checked; NULL in the reader's data when it is not all there. */
static struct sym_error *section_bytes(struct table_reader *reader, const GElf_Shdr *section,
				       struct reader *ret)
{
	struct reader whole;
	struct sym_error *error;

	if (section->sh_type == SHT_NOBITS || (section->sh_flags & SHF_COMPRESSED))
		return format_error(reader->image, "a symbol table without bytes");
	error = sparse_file_need(reader->view, reader->image->path, section->sh_offset,
				 section->sh_size);
	if (error)
		return error;
	whole = reader_over(reader->view->data, reader->view->size_bytes);
	*ret = reader_part(&whole, section->sh_offset, section->sh_size);
	return reader_ok(ret) ? NULL
			      : format_error(reader->image, "a symbol table ends beyond the file");
}

static GElf_Sym read_symbol(struct reader *table, bool wide)
{
	GElf_Sym symbol;

	symbol.st_name = reader_u32(table);
	if (!wide) {
		symbol.st_value = reader_u32(table);
		symbol.st_size = reader_u32(table);
	}
	symbol.st_info = reader_u8(table);
	symbol.st_other = reader_u8(table);
	symbol.st_shndx = reader_u16(table);
	if (wide) {
		symbol.st_value = reader_u64(table);
		symbol.st_size = reader_u64(table);
	}
	return symbol;
}

/* The section that holds the symbol's code, or NULL when it is none of ours. */
static const GElf_Shdr *code_section(const struct table_reader *reader, const GElf_Sym *symbol)
{
	const GElf_Shdr *section = NULL;

	/* Linked files stay below SHN_LORESERVE sections; above are no places of code (SHN_ABS,
	 * ...). */
	if (symbol->st_shndx != SHN_UNDEF && symbol->st_shndx < SHN_LORESERVE &&
	    symbol->st_shndx < reader->section_count)
		section = &reader->sections[symbol->st_shndx];
	if (!section || !(section->sh_flags & SHF_EXECINSTR) ||
	    symbol->st_value < section->sh_addr ||
	    symbol->st_value - section->sh_addr >= section->sh_size)
		return NULL;
	return section;
}

static bool is_function(const GElf_Sym *symbol, const char *name)
{
	switch (GELF_ST_TYPE(symbol->st_info)) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return true;
	case STT_NOTYPE:
		/* Hand-written assembly. "$x" and the like mark kinds of bytes on ARM. */
		return name[0] != '$';
	default:
		return false;
	}
}

/* Among names for one place: typed before untyped, global, weak, local, fewer leading underscores.
 */
static uint32_t rank_of(const GElf_Sym *symbol, const char *name)
{
	uint32_t type = GELF_ST_TYPE(symbol->st_info) == STT_NOTYPE;
	uint32_t underscores = (uint32_t)strspn(name, "_");
	uint32_t binding = 2;

	if (GELF_ST_BIND(symbol->st_info) == STB_GLOBAL ||
	    GELF_ST_BIND(symbol->st_info) == STB_GNU_UNIQUE)
		binding = 0;
	else if (GELF_ST_BIND(symbol->st_info) == STB_WEAK)
		binding = 1;
	return type << 24 | binding << 16 | (underscores > 0xffff ? 0xffff : underscores);
}

static int compare(const void *left, const void *right)
{
	const struct elf_symbol *a = left, *b = right;

	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	if (!a->size_bytes != !b->size_bytes)
		return a->size_bytes ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* A size is believed up to the end of the section; without one a symbol reaches to the next. */
static void settle_reach(struct elf_symbols *symbols)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = symbols->count; i-- > 0;) {
		struct elf_symbol *symbol = &symbols->items[i];

		if (i + 1 < symbols->count && symbols->items[i + 1].vaddr != symbol->vaddr)
			next = symbols->items[i + 1].vaddr;
		if (symbol->size_bytes && symbol->size_bytes < symbol->reach_bytes)
			symbol->reach_bytes = symbol->size_bytes;
		else if (!symbol->size_bytes && next - symbol->vaddr < symbol->reach_bytes)
			symbol->reach_bytes = next - symbol->vaddr;
	}
}

static void take_symbol(const struct table_reader *reader, struct reader *table,
			struct reader strings, struct elf_symbols *ret)
{
	GElf_Sym symbol = read_symbol(table, reader->image->is_64bit);
	const GElf_Shdr *section = code_section(reader, &symbol);
	const char *name;

	if (!section)
		return;
	reader_seek(&strings, symbol.st_name);
	name = reader_string(&strings);
	if (!name || !*name || strlen(name) > LIMIT_NAME_BYTES || !is_function(&symbol, name))
		return;
	ret->items[ret->count++] = (struct elf_symbol){
		.vaddr = symbol.st_value,
		.size_bytes = symbol.st_size,
		.reach_bytes = section->sh_size - (symbol.st_value - section->sh_addr),
		.name = name,
		.rank = rank_of(&symbol, name),
	};
}

static struct sym_error *read_table(struct table_reader *reader, const GElf_Shdr *table,
				    struct elf_symbols *ret)
{
	size_t entry_bytes = reader->image->is_64bit ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	struct reader entries, strings;
	struct sym_error *error;
	size_t count;

	if (table->sh_link >= reader->section_count)
		return format_error(reader->image, "a symbol table without a string table");
	if (table->sh_entsize != entry_bytes)
		return format_error(reader->image, "symbols of an unknown size");
	error = section_bytes(reader, table, &entries);
	if (!error)
		error = section_bytes(reader, &reader->sections[table->sh_link], &strings);
	if (error)
		return error;
	count = entries.size_bytes / entry_bytes;
	ret->items = calloc(count + 1, sizeof(*ret->items));
	if (!ret->items)
		return &sym_error_no_memory;
	for (size_t i = 0; i < count; i++)
		take_symbol(reader, &entries, strings, ret);
	qsort(ret->items, ret->count, sizeof(*ret->items), compare);
	settle_reach(ret);
	return NULL;
}

static struct sym_error *read_best_table(struct table_reader *reader, struct elf_symbols *ret)
{
	const GElf_Shdr *table;
	struct sym_error *error = read_sections(reader);

	if (error)
		return error;
	table = find_table(reader, SHT_SYMTAB);
	if (!table)
		table = find_table(reader, SHT_DYNSYM);
	return table ? read_table(reader, table, ret) : NULL;
}

struct sym_error *elf_symbols_read(const struct image *image, struct elf_symbols *ret)
{
	struct elf_symbols symbols = { .view = image_view(image) };
	struct table_reader reader = { .image = image, .view = &symbols.view };
	struct sym_error *error;
	bool any = false;

	elf_version(EV_CURRENT);
	error = sparse_file_need(&symbols.view, image->path, 0, sizeof(Elf64_Ehdr));
	if (!error)
		error = need_section_headers(&reader, &any);
	if (!error && any) {
		Elf *elf AUTO_ELF = elf_memory((char *)symbols.view.data, symbols.view.size_bytes);

		reader.elf = elf;
		error = elf ? read_best_table(&reader, &symbols)
			    : format_error(image, elf_errmsg(-1));
	}
	free(reader.sections);
	if (error)
		elf_symbols_deinit(&symbols);
	else
		*ret = symbols;
	return error;
}
