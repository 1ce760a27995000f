/* SPDX-License-Identifier: MIT */
#include "libsym/elf_symbols.h"

#include <stdlib.h>
#include <string.h>

enum {
	MANY_SECTIONS = 256, /* more than a linked file has */
	ENTRIES_AT_ONCE = 64
};

void elf_symbols_deinit(struct elf_symbols *symbols)
{
	free(symbols->items);
	elf_sections_deinit(&symbols->sections);
	symbols->items = NULL;
	symbols->count = 0;
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

static bool holds_code_at(const GElf_Shdr *section, uint64_t vaddr)
{
	return section->sh_flags & SHF_EXECINSTR && vaddr >= section->sh_addr &&
	       vaddr - section->sh_addr < section->sh_size;
}

static const GElf_Shdr *find_code(const struct elf_sections *sections, uint64_t vaddr)
{
	for (size_t i = 1; i < sections->count; i++)
		if (holds_code_at(&sections->items[i], vaddr))
			return &sections->items[i];
	return NULL;
}

/*
 * patchelf moves section headers, and old ones left the numbers in .dynsym as they were (its
 * issue 10): of a function in a linked file the place counts where the number contradicts it.
 */
static const GElf_Shdr *section_at(const struct elf_sections *sections, const GElf_Sym *symbol,
				   const GElf_Shdr *named)
{
	unsigned int type = GELF_ST_TYPE(symbol->st_info);

	if ((type != STT_FUNC && type != STT_GNU_IFUNC) || !sections->image->segment_count ||
	    sections->count > MANY_SECTIONS ||
	    (symbol->st_value >= named->sh_addr &&
	     symbol->st_value - named->sh_addr < named->sh_size))
		return NULL;
	return find_code(sections, symbol->st_value);
}

/* The section that holds the symbol's code, or NULL when it is none of ours. */
static const GElf_Shdr *code_section(const struct elf_sections *sections, const GElf_Sym *symbol)
{
	const GElf_Shdr *section = NULL;

	if (sections->by_segment)
		return symbol->st_shndx != SHN_UNDEF && symbol->st_shndx < SHN_LORESERVE
			       ? find_code(sections, symbol->st_value)
			       : NULL;
	/* Linked files stay below SHN_LORESERVE sections; above are no places of code (SHN_ABS,
	 * ...). */
	if (symbol->st_shndx != SHN_UNDEF && symbol->st_shndx < SHN_LORESERVE &&
	    symbol->st_shndx < sections->count)
		section = &sections->items[symbol->st_shndx];
	if (!section || holds_code_at(section, symbol->st_value))
		return section;
	return section_at(sections, symbol, section);
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
	case STT_OBJECT:
		/* In a section of code: GHC calls its code an object (its data comes before it). */
		return symbol->st_size > 0;
	default:
		return false;
	}
}

/* A name of an old interface, kept for old programs: NAME@VERSION, where NAME@@VERSION is today's.
 */
static bool is_of_old_version(const char *name)
{
	const char *version = *name == '@' ? NULL : strchr(name, '@');

	return version && version[1] != '@';
}

/* A name that glibc gives a function for calls from within itself. */
static bool is_internal_alias(const char *name)
{
	return !strncmp(name, "__GI_", 5) || !strncmp(name, "__EI_", 5);
}

enum {
	RANK_INTERNAL = 1 << 21,
	RANK_OLD_VERSION = 1 << 20,
	STUB_BYTES = 16,        /* of an entry, on x86 and AArch64 */
	HIDDEN_VERSION = 0x8000 /* a linker does not take it for a name without a version */
};

/* Among names for one place: functions before others, what people write before internal aliases,
 * today's before old versions' (free before cfree), global, weak, local, fewer leading
 * underscores. */
static uint32_t rank_of(const GElf_Sym *symbol, const char *name)
{
	uint32_t type = GELF_ST_TYPE(symbol->st_info) == STT_NOTYPE ||
			GELF_ST_TYPE(symbol->st_info) == STT_OBJECT;
	uint32_t underscores = (uint32_t)strspn(name, "_");
	uint32_t binding = 2;

	if (GELF_ST_BIND(symbol->st_info) == STB_GLOBAL ||
	    GELF_ST_BIND(symbol->st_info) == STB_GNU_UNIQUE)
		binding = 0;
	else if (GELF_ST_BIND(symbol->st_info) == STB_WEAK)
		binding = 1;
	return type << 24 | (is_internal_alias(name) ? RANK_INTERNAL : 0u) |
	       (is_of_old_version(name) ? RANK_OLD_VERSION : 0u) | binding << 16 |
	       (underscores > 0xffff ? 0xffff : underscores);
}

int elf_symbol_compare(const void *left, const void *right)
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

/* A size is believed up to the end of the section; without one a symbol reaches to the next, but a
 * label within a function not beyond it: padding follows. */
static void settle_reach(struct elf_symbols *symbols)
{
	uint64_t next = UINT64_MAX, end = 0;

	for (size_t i = symbols->count; i-- > 0;) {
		struct elf_symbol *symbol = &symbols->items[i];

		if (i + 1 < symbols->count && symbols->items[i + 1].vaddr != symbol->vaddr)
			next = symbols->items[i + 1].vaddr;
		if (!symbol->size_bytes && next - symbol->vaddr < symbol->reach_bytes)
			symbol->reach_bytes = next - symbol->vaddr;
	}
	for (size_t i = 0; i < symbols->count; i++) {
		struct elf_symbol *symbol = &symbols->items[i];

		if (symbol->size_bytes && symbol->vaddr + symbol->reach_bytes > end)
			end = symbol->vaddr + symbol->reach_bytes;
		else if (!symbol->size_bytes && symbol->vaddr < end &&
			 end - symbol->vaddr < symbol->reach_bytes)
			symbol->reach_bytes = end - symbol->vaddr;
	}
	/* Another name of a function whose size is known ends with it. */
	for (size_t i = 1; i < symbols->count; i++) {
		const struct elf_symbol *before = &symbols->items[i - 1];
		struct elf_symbol *symbol = &symbols->items[i];

		if (!symbol->size_bytes && before->vaddr == symbol->vaddr &&
		    before->reach_bytes < symbol->reach_bytes)
			symbol->reach_bytes = before->reach_bytes;
	}
}

/* Only .symtab has versions in names; a name that begins with '@' is left alone. */
static size_t unversioned_bytes(const char *name)
{
	return name[0] == '@' ? strlen(name) : strcspn(name, "@");
}

void elf_symbols_find_stubs(struct elf_sections *sections)
{
	sections->stubs = elf_sections_find_named(sections, ".iplt");
}

/* ELF for the Arm architecture, 5.5.3: the addresses of functions in .symtab and .dynsym. */
static uint64_t vaddr_of(const struct elf_sections *sections, const GElf_Sym *symbol)
{
	unsigned int type = GELF_ST_TYPE(symbol->st_info);

	if (sections->image->marks_thumb && (type == STT_FUNC || type == STT_GNU_IFUNC))
		return symbol->st_value & ~(uint64_t)1;
	return symbol->st_value;
}

bool elf_symbol_make(const struct elf_sections *sections, const GElf_Sym *symbol, const char *name,
		     struct elf_symbol *ret)
{
	const GElf_Shdr *section = code_section(sections, symbol);
	uint64_t left_bytes, vaddr = vaddr_of(sections, symbol);

	if (!section || vaddr < section->sh_addr || !name || !is_function(symbol, name))
		return false;
	/* Where nobody says what sections there are, nobody knows how far it reaches, or whether an
	 * object is code. */
	if (sections->by_segment &&
	    (!symbol->st_size || GELF_ST_TYPE(symbol->st_info) == STT_OBJECT))
		return false;
	left_bytes = section->sh_size - (vaddr - section->sh_addr);
	if (section == sections->stubs && left_bytes > STUB_BYTES)
		left_bytes = STUB_BYTES;
	*ret = (struct elf_symbol){
		.vaddr = vaddr,
		.size_bytes = symbol->st_size,
		.reach_bytes = symbol->st_size && symbol->st_size < left_bytes ? symbol->st_size
									       : left_bytes,
		.name = name,
		.name_bytes = (uint32_t)unversioned_bytes(name),
		.rank = rank_of(symbol, name),
	};
	return true;
}

const GElf_Shdr *elf_symbols_versions(const struct elf_sections *sections, const GElf_Shdr *table)
{
	for (size_t i = 1; i < sections->count; i++) {
		const GElf_Shdr *section = &sections->items[i];

		if (section->sh_type == SHT_GNU_versym && section->sh_link < sections->count &&
		    &sections->items[section->sh_link] == table)
			return section;
	}
	return NULL;
}

void elf_symbol_take_version(struct elf_symbol *symbol, uint16_t version)
{
	if (version & HIDDEN_VERSION)
		symbol->rank |= RANK_OLD_VERSION;
}

/* One table and what belongs to it, while it is read. */
struct table {
	struct reader entries, strings;
	struct reader versions;              /* empty: there are none, or none that can be read */
	const GElf_Shdr *descriptor_section; /* .opd; NULL: there is none that can be read */
	struct reader descriptors;
};

/* 64-bit PowerPC ELF ABI 1.9, 3.2.1: entry point, TOC base, environment. */
static void follow_descriptor(const struct elf_sections *sections, const struct table *table,
			      GElf_Sym *symbol)
{
	const GElf_Shdr *section = table->descriptor_section;
	struct reader entry = table->descriptors;

	if (!section || symbol->st_shndx >= sections->count ||
	    &sections->items[symbol->st_shndx] != section || symbol->st_value < section->sh_addr)
		return;
	reader_seek(&entry, (size_t)(symbol->st_value - section->sh_addr));
	symbol->st_value = reader_u64(&entry);
}

static void take_symbol(const struct elf_sections *sections, struct table *table,
			struct elf_symbols *ret)
{
	GElf_Sym symbol = read_symbol(&table->entries, sections->image->is_64bit);
	uint16_t version = reader_left(&table->versions) ? reader_u16(&table->versions) : 0;
	struct elf_symbol *item = &ret->items[ret->count];

	follow_descriptor(sections, table, &symbol);
	if (ret->indirect_only && GELF_ST_TYPE(symbol.st_info) != STT_GNU_IFUNC)
		return;
	/* Most of a table of exports is imports: their names need not be looked at. */
	if (!code_section(sections, &symbol) ||
	    !elf_symbol_make(sections, &symbol,
			     elf_sections_string(&table->strings, symbol.st_name), item))
		return;
	elf_symbol_take_version(item, version);
	ret->count++;
}

/* No bytes where there are none that can be read. */
static struct sym_error *open_if_there(struct elf_sections *sections, const GElf_Shdr *section,
				       struct reader *ret)
{
	struct sym_error *error = NULL;

	*ret = reader_over(NULL, 0);
	if (section)
		error = elf_sections_bytes(sections, section, ret);
	if (!error || sym_error_code(error) == SYM_ERROR_NO_MEMORY)
		return error;
	sym_error_destroy(error);
	*ret = reader_over(NULL, 0);
	return NULL;
}

static struct sym_error *open_descriptors(struct elf_sections *sections, struct table *ret)
{
	ret->descriptor_section = NULL;
	if (sections->image->has_descriptors)
		ret->descriptor_section = elf_sections_find_named(sections, ".opd");
	return open_if_there(sections, ret->descriptor_section, &ret->descriptors);
}

static struct sym_error *open_table(struct elf_sections *sections, const GElf_Shdr *section,
				    struct table *ret)
{
	struct sym_error *error = elf_sections_bytes(sections, section, &ret->entries);

	if (!error)
		error = elf_sections_bytes(sections, &sections->items[section->sh_link],
					   &ret->strings);
	/* Versions that cannot be read cost only the better of several names. */
	if (!error)
		error = open_if_there(sections, elf_symbols_versions(sections, section),
				      &ret->versions);
	return error ? error : open_descriptors(sections, ret);
}

/* Adds the functions of a table to what there is. */
static struct sym_error *read_table(struct elf_sections *sections, const GElf_Shdr *section,
				    struct elf_symbols *ret)
{
	size_t entry_bytes = sections->image->is_64bit ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	struct elf_symbol *items;
	struct sym_error *error;
	struct table table;
	size_t count;

	if (section->sh_link >= sections->count)
		return elf_sections_error(sections, "a symbol table without a string table");
	if (section->sh_entsize != entry_bytes)
		return elf_sections_error(sections, "symbols of an unknown size");
	error = open_table(sections, section, &table);
	if (error)
		return error;
	count = table.entries.size_bytes / entry_bytes;
	items = reallocarray(ret->items, ret->count + count + 1, sizeof(*ret->items));
	if (!items)
		return &sym_error_no_memory;
	ret->items = items;
	for (size_t i = 0; i < count; i++)
		take_symbol(sections, &table, ret);
	return NULL;
}

/* What both tables have counts once. */
static void leave_out_repeated(struct elf_symbols *symbols)
{
	size_t kept = 0;

	for (size_t i = 0; i < symbols->count; i++) {
		const struct elf_symbol *last = kept ? &symbols->items[kept - 1] : NULL;
		const struct elf_symbol *item = &symbols->items[i];

		if (!last || last->vaddr != item->vaddr || last->size_bytes != item->size_bytes ||
		    last->name_bytes != item->name_bytes ||
		    memcmp(last->name, item->name, item->name_bytes))
			symbols->items[kept++] = *item;
	}
	symbols->count = kept;
}

/*
 * Is there a function that only one file of the source knew, or that was hidden? strip -x leaves
 * none. True where it cannot be read: that is for those who read all.
 */
static bool has_local_function(const struct elf_sections *sections, const GElf_Shdr *table)
{
	size_t entry_bytes = sections->image->is_64bit ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	uint64_t count = table->sh_size / entry_bytes, step;
	uint8_t room[ENTRIES_AT_ONCE * sizeof(Elf64_Sym)];

	/* Those that are local come first, and number 0 is one of them. */
	if (!table->sh_info)
		return true;
	if (table->sh_info < count)
		count = table->sh_info;
	for (uint64_t first = 1; first < count; first += step) {
		struct reader entries = image_reader(sections->image, room, sizeof(room));
		struct sym_error *error;

		step = count - first < ENTRIES_AT_ONCE ? count - first : ENTRIES_AT_ONCE;
		error = sparse_file_read_at(&sections->view, sections->image->path, room,
					    (size_t)step * entry_bytes,
					    table->sh_offset + first * entry_bytes);
		sym_error_destroy(error);
		if (error)
			return true;
		for (uint64_t i = 0; i < step; i++) {
			GElf_Sym symbol = read_symbol(&entries, sections->image->is_64bit);

			if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC &&
			    GELF_ST_BIND(symbol.st_info) == STB_LOCAL)
				return true;
		}
	}
	return false;
}

const GElf_Shdr *elf_symbols_full_table(const struct elf_sections *sections)
{
	const GElf_Shdr *table = elf_sections_find(sections, SHT_SYMTAB);
	const GElf_Shdr *exports = elf_sections_find(sections, SHT_DYNSYM);

	if (!table || (exports && table->sh_size < exports->sh_size) ||
	    !has_local_function(sections, table))
		return NULL;
	return table;
}

/* Exports beside a .symtab: a table that cannot be read costs only itself. */
static struct sym_error *read_exports(struct elf_sections *sections, struct elf_symbols *ret)
{
	const GElf_Shdr *exports = elf_sections_find(sections, SHT_DYNSYM);
	struct sym_error *error = exports ? read_table(sections, exports, ret) : NULL;

	if (!error || sym_error_code(error) == SYM_ERROR_NO_MEMORY || !ret->items)
		return error;
	sym_error_destroy(error);
	return NULL;
}

static struct sym_error *read_tables(struct elf_symbols *ret)
{
	const GElf_Shdr *table = elf_sections_find(&ret->sections, SHT_SYMTAB);
	struct sym_error *error = table ? read_table(&ret->sections, table, ret) : NULL;

	if (!error && !ret->has_full_table)
		error = read_exports(&ret->sections, ret);
	if (error || !ret->count)
		return error;
	qsort(ret->items, ret->count, sizeof(*ret->items), elf_symbol_compare);
	if (table && !ret->has_full_table)
		leave_out_repeated(ret);
	settle_reach(ret);
	return NULL;
}

static struct sym_error *read_symbols(const struct image *image, bool indirect_only,
				      struct elf_symbols *ret)
{
	struct elf_symbols symbols = { .indirect_only = indirect_only };
	struct sym_error *error = elf_sections_read(image, &symbols.sections);

	if (error)
		return error;
	symbols.has_full_table = elf_symbols_full_table(&symbols.sections);
	symbols.build_id = elf_sections_build_id(&symbols.sections);
	elf_symbols_find_stubs(&symbols.sections);
	error = read_tables(&symbols);
	if (error)
		elf_symbols_deinit(&symbols);
	else
		*ret = symbols;
	return error;
}

struct sym_error *elf_symbols_read(const struct image *image, struct elf_symbols *ret)
{
	return read_symbols(image, false, ret);
}

struct sym_error *elf_symbols_read_indirect(const struct image *image, struct elf_symbols *ret)
{
	return read_symbols(image, true, ret);
}
