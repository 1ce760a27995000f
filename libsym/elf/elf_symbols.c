/* SPDX-License-Identifier: MIT */
/*
 * From symbol tables to functions, in these steps:
 *
 *   find_full_table()    is .symtab complete? Otherwise .dynsym is read as well
 *   read_table()         reads entries; make_symbol() keeps those that are functions in a section
 *   sort_symbols()       by vaddr; names for one vaddr by preference (rank_of())
 *   drop_repeated()      symbols that both tables contain
 *   settle_reach()       how far each symbol extends: its size, or up to the next one
 *
 * Untrusted input: sizes are cut at the section's end, and the total length of names is bounded
 * (name_in()).
 */
#include "libsym/elf/elf_symbols.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/huge_memory.h"
#include "libsym/index/index_sort.h"

enum {
	MANY_SECTIONS = 256 /* more than a linked file has */
};

void elf_symbols_deinit(struct elf_symbols *symbols)
{
	free(symbols->items);
	budget_release(symbols->account, symbols->charged_bytes);
	symbols->charged_bytes = 0;
	elf_sections_deinit(&symbols->sections);
	symbols->items = NULL;
	symbols->count = 0;
}

/* Reads an Elf64_Sym or an Elf32_Sym; zeros past the end of the table. */
static inline GElf_Sym read_symbol(struct reader *table, bool wide)
{
	const uint8_t *entry = reader_bytes(table, wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));

	if (!entry)
		return (GElf_Sym){ 0 };
	return wide ? (GElf_Sym){ .st_name = reader_u32_at(table, entry),
				  .st_info = entry[4],
				  .st_other = entry[5],
				  .st_shndx = reader_u16_at(table, entry + 6),
				  .st_value = reader_u64_at(table, entry + 8),
				  .st_size = reader_u64_at(table, entry + 16) }
		    : (GElf_Sym){ .st_name = reader_u32_at(table, entry),
				  .st_value = reader_u32_at(table, entry + 4),
				  .st_size = reader_u32_at(table, entry + 8),
				  .st_info = entry[12],
				  .st_other = entry[13],
				  .st_shndx = reader_u16_at(table, entry + 14) };
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
 * patchelf moves section headers, and old versions did not update the section numbers in .dynsym
 * (patchelf issue 10). So a function in a linked file is located by its vaddr if its section number
 * contradicts it.
 */
static const GElf_Shdr *section_at(const struct elf_sections *sections, const GElf_Sym *symbol,
				   const GElf_Shdr *named)
{
	unsigned int type = GELF_ST_TYPE(symbol->st_info);

	if ((type != STT_FUNC && type != STT_GNU_IFUNC) || !sections->object->segment_count ||
	    sections->count > MANY_SECTIONS ||
	    (symbol->st_value >= named->sh_addr &&
	     symbol->st_value - named->sh_addr < named->sh_size))
		return NULL;
	return find_code(sections, symbol->st_value);
}

/* The section that contains the symbol's code; NULL if there is none. */
static const GElf_Shdr *code_section(const struct elf_sections *sections, const GElf_Sym *symbol)
{
	const GElf_Shdr *section = NULL;

	if (sections->by_segment)
		return symbol->st_shndx != SHN_UNDEF && symbol->st_shndx < SHN_LORESERVE
			       ? find_code(sections, symbol->st_value)
			       : NULL;
	/* Linked files have fewer than SHN_LORESERVE sections. Higher numbers have special meanings
	 * (SHN_ABS, ...). */
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
		/* Functions written in assembler. On ARM, "$x" and the like mark kinds of bytes. */
		return name[0] != '$';
	case STT_OBJECT:
		/*
		 * In a code section: GHC marks its code as objects, because data comes before it.
		 */
		return symbol->st_size > 0;
	default:
		return false;
	}
}

/* Is it a name of an old interface, kept for old programs? NAME@VERSION; the current one is
 * NAME@@VERSION. */
static bool is_of_old_version(const char *name)
{
	const char *version = *name == '@' ? NULL : strchr(name, '@');

	return version && version[1] != '@';
}

/* A name that glibc gives a function for internal calls. */
static bool is_internal_alias(const char *name)
{
	return !strncmp(name, "__GI_", 5) || !strncmp(name, "__EI_", 5);
}

enum {
	RANK_INTERNAL = 1 << 21,
	RANK_OLD_VERSION = 1 << 20,
	STUB_BYTES = 16,        /* of an entry on x86 and AArch64 */
	HIDDEN_VERSION = 0x8000 /* a linker ignores the symbol for names without a version */
};

/* The preference among names for one vaddr, from the symbol's entry: functions first; then global,
 * weak, local. */
static uint32_t traits_of(const GElf_Sym *symbol)
{
	uint32_t type = GELF_ST_TYPE(symbol->st_info) == STT_NOTYPE ||
			GELF_ST_TYPE(symbol->st_info) == STT_OBJECT;
	uint32_t binding = 2;

	if (GELF_ST_BIND(symbol->st_info) == STB_GLOBAL ||
	    GELF_ST_BIND(symbol->st_info) == STB_GNU_UNIQUE)
		binding = 0;
	else if (GELF_ST_BIND(symbol->st_info) == STB_WEAK)
		binding = 1;
	return type << 24 | binding << 16;
}

/*
 * The full preference, computed only if there are several names: ordinary names before internal
 * aliases, current versions before old ones (free before cfree), fewer leading underscores first.
 */
static uint32_t rank_of(const struct elf_symbol *symbol)
{
	size_t underscores = strspn(symbol->name, "_");

	return symbol->traits | (is_internal_alias(symbol->name) ? RANK_INTERNAL : 0u) |
	       (is_of_old_version(symbol->name) ? RANK_OLD_VERSION : 0u) |
	       (underscores > 0xffff ? 0xffff : (uint32_t)underscores);
}

/* Orders names for one vaddr. */
static int compare_names(const void *left, const void *right)
{
	const struct elf_symbol *a = left, *b = right;
	uint32_t a_rank, b_rank;

	if (!a->size_bytes != !b->size_bytes)
		return a->size_bytes ? -1 : 1;
	a_rank = rank_of(a);
	b_rank = rank_of(b);
	if (a_rank != b_rank)
		return a_rank < b_rank ? -1 : 1;
	return a->name == b->name ? 0 : strcmp(a->name, b->name);
}

/* Returns false if out of memory. */
static bool sort_symbols(struct elf_symbols *symbols)
{
	struct elf_symbol *items = symbols->items;

	if (!index_sort_items(items, sizeof(*items), symbols->count))
		return false;
	for (size_t i = 0, end; i < symbols->count; i = end) {
		for (end = i + 1; end < symbols->count && items[end].vaddr == items[i].vaddr;)
			end++;
		if (end - i > 1)
			qsort(items + i, end - i, sizeof(*items), compare_names);
	}
	return true;
}

/* A size is trusted up to the end of the section. A symbol without a size extends to the next
 * symbol; a label inside a function only to the function's end, because padding follows. */
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
	/* A second name of a function with a size ends where the function does. */
	for (size_t i = 1; i < symbols->count; i++) {
		const struct elf_symbol *before = &symbols->items[i - 1];
		struct elf_symbol *symbol = &symbols->items[i];

		if (!symbol->size_bytes && before->vaddr == symbol->vaddr &&
		    before->reach_bytes < symbol->reach_bytes)
			symbol->reach_bytes = before->reach_bytes;
	}
}

/* Only names in .symtab have versions. A name that starts with '@' stays whole. */
size_t elf_symbols_name_bytes(const struct elf_symbol *symbol)
{
	return symbol->name[0] == '@' ? strlen(symbol->name) : strcspn(symbol->name, "@");
}

/*
 * For a function that is selected at start (STT_GNU_IFUNC) and whose address is taken, lld makes a
 * symbol at its entry in .iplt, without a size. It extends to the next entry, not over all others.
 */
static void find_stubs(struct elf_sections *sections)
{
	sections->stubs = elf_sections_find_named(sections, ".iplt");
}

/* The vaddr of a function in .symtab or .dynsym. On 32-bit ARM, bit 0 marks Thumb code; see ELF for
 * the Arm architecture, 5.5.3. */
static uint64_t vaddr_of(const struct elf_sections *sections, const GElf_Sym *symbol)
{
	unsigned int type = GELF_ST_TYPE(symbol->st_info);

	if (sections->object->machine == EM_ARM && (type == STT_FUNC || type == STT_GNU_IFUNC))
		return symbol->st_value & ~(uint64_t)1;
	return symbol->st_value;
}

/* Makes a symbol. Returns false if it is not a function of this file. It extends at most to the end
 * of its section. */
static bool make_symbol(const struct elf_sections *sections, const GElf_Sym *symbol,
			const GElf_Shdr *section, const char *name, struct elf_symbol *ret)
{
	uint64_t left_bytes, vaddr = vaddr_of(sections, symbol);

	if (vaddr < section->sh_addr || !name || !is_function(symbol, name))
		return false;
	/* Without section headers the extent of a symbol is unknown, and also whether an object is
	 * code. */
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
		.traits = traits_of(symbol),
	};
	return true;
}

/* The versions of a table's names (.gnu.version: two bytes per entry); NULL if there are none. Only
 * .dynsym has such a section; .symtab has versions in its names. */
static const GElf_Shdr *find_versions(const struct elf_sections *sections, const GElf_Shdr *table)
{
	for (size_t i = 1; i < sections->count; i++) {
		const GElf_Shdr *section = &sections->items[i];

		if (section->sh_type == SHT_GNU_versym && section->sh_link < sections->count &&
		    &sections->items[section->sh_link] == table)
			return section;
	}
	return NULL;
}

/* A symbol table and its related sections, while it is read. */
struct table {
	struct reader entries, strings;
	struct reader versions;              /* empty: none that can be read */
	const GElf_Shdr *descriptor_section; /* .opd; NULL: none that can be read */
	struct reader descriptors;
	bool may_have_long_names; /* otherwise names need not be measured */
	uint64_t long_bytes;      /* how many bytes long names may still have */
};

enum {
	/* Each symbol with a longer name is counted. */
	SHORT_NAME_BYTES = 1024,
	/* Limit of the total length of long names, per byte of the string table. A linker stores a
	 * shared name once. */
	LONG_NAMES_SHARE = 4
};

/*
 * Returns false if each name has an end and at most SHORT_NAME_BYTES: a longer one would fill a
 * block of half that size. With fewer symbols than blocks, it costs less to measure each name.
 */
static bool may_have_long_names(const struct table *table)
{
	const size_t block_bytes = SHORT_NAME_BYTES / 2;
	const struct reader *strings = &table->strings;

	if (strings->size_bytes / block_bytes > table->entries.size_bytes / sizeof(Elf64_Sym))
		return true;
	for (size_t at = 0; at + block_bytes <= strings->size_bytes; at += block_bytes)
		if (!memchr(strings->data + at, 0, block_bytes))
			return true;
	return strings->size_bytes && strings->data[strings->size_bytes - 1];
}

/*
 * Any number of symbols may share a name, or its end: n symbols and a string of m bytes could make
 * n * m bytes of names. So the total length of long names is bounded by the size of the string
 * table. Past that, a symbol with a long name is dropped.
 */
static const char *name_in(struct table *table, uint32_t offset)
{
	struct reader strings = table->strings;
	uint64_t most_bytes =
		table->long_bytes > SHORT_NAME_BYTES ? table->long_bytes : SHORT_NAME_BYTES;
	const char *name;
	size_t bytes;

	if (!table->may_have_long_names)
		return offset < strings.size_bytes && strings.data[offset]
			       ? (const char *)strings.data + offset
			       : NULL;
	if (offset < strings.size_bytes && strings.size_bytes - offset > most_bytes + 1)
		strings.size_bytes = offset + most_bytes + 1;
	name = elf_sections_string(&strings, offset);
	bytes = name ? strlen(name) : 0;
	if (bytes > SHORT_NAME_BYTES)
		table->long_bytes -= bytes;
	return name;
}

/* 64-bit PowerPC ELF ABI 1.9, 3.2.1: a descriptor has entry point, TOC base, environment. */
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

static inline void add_symbol(const struct elf_sections *sections, struct table *table,
			      struct elf_symbols *ret)
{
	GElf_Sym symbol = read_symbol(&table->entries, sections->object->is_64bit);
	uint16_t version = reader_left(&table->versions) ? reader_u16(&table->versions) : 0;
	struct elf_symbol *item = &ret->items[ret->count];
	const GElf_Shdr *section;

	follow_descriptor(sections, table, &symbol);
	if (ret->indirect_only && GELF_ST_TYPE(symbol.st_info) != STT_GNU_IFUNC)
		return;
	/* Most symbols of .dynsym are imports, whose names need not be read. */
	section = code_section(sections, &symbol);
	if (!section ||
	    !make_symbol(sections, &symbol, section, name_in(table, symbol.st_name), item))
		return;
	if (version & HIDDEN_VERSION)
		item->traits |= RANK_OLD_VERSION;
	ret->count++;
}

/* Leaves `ret` empty if the section is missing or cannot be read. */
static struct sym_error *open_if_there(struct elf_sections *sections, const GElf_Shdr *section,
				       struct reader *ret)
{
	struct sym_error *error = NULL;

	*ret = reader_over(NULL, 0);
	if (section)
		error = elf_sections_bytes(sections, section, ret);
	if (!error || sym_error_is_no_memory(error))
		return error;
	sym_error_destroy(error);
	*ret = reader_over(NULL, 0);
	return NULL;
}

/* 64-bit PowerPC: function symbols point into .opd, which contains the position of the code. */
static struct sym_error *open_descriptors(struct elf_sections *sections, struct table *ret)
{
	ret->descriptor_section = NULL;
	if (sections->object->machine == EM_PPC64)
		ret->descriptor_section = elf_sections_find_named(sections, ".opd");
	return open_if_there(sections, ret->descriptor_section, &ret->descriptors);
}

static struct sym_error *open_table(struct elf_sections *sections, const GElf_Shdr *section,
				    struct table *ret)
{
	const GElf_Shdr *strings = &sections->items[section->sh_link];
	/* First, because a huge page needs a range in which no page is used yet. */
	struct sym_error *error = elf_sections_bytes(sections, strings, &ret->strings);

	if (!error)
		error = elf_sections_bytes(sections, section, &ret->entries);
	ret->may_have_long_names = !error && may_have_long_names(ret);
	ret->long_bytes = LONG_NAMES_SHARE * (uint64_t)ret->strings.size_bytes;
	/* If the versions cannot be read, only the preference among names suffers. */
	if (!error)
		error = open_if_there(sections, find_versions(sections, section), &ret->versions);
	return error ? error : open_descriptors(sections, ret);
}

/* Charges room for `count` more symbols, twice, because the array is copied when it grows, and
 * sorting needs room. */
static struct sym_error *charge_items(struct elf_symbols *symbols, size_t count)
{
	const struct elf_sections *sections = &symbols->sections;
	uint64_t bytes = 2 * (uint64_t)count * sizeof(*symbols->items);
	struct sym_error *error = budget_check_time(sections->view.account, sections->object->path);

	if (!error)
		error = budget_charge(sections->view.account, bytes, sections->object->path);
	if (!error) {
		symbols->account = sections->view.account;
		symbols->charged_bytes += bytes;
	}
	return error;
}

/* Releases what is not used. */
static void release_unused_charge(struct elf_symbols *symbols)
{
	uint64_t bytes = symbols->count * sizeof(*symbols->items);
	struct elf_symbol *items =
		symbols->count ? reallocarray(symbols->items, symbols->count, sizeof(*items))
			       : NULL;

	if (items)
		symbols->items = items;
	if (bytes < symbols->charged_bytes) {
		budget_release(symbols->account, symbols->charged_bytes - bytes);
		symbols->charged_bytes = bytes;
	}
}

/* Appends the functions of a table. */
static struct sym_error *read_table(struct elf_sections *sections, const GElf_Shdr *section,
				    struct elf_symbols *ret)
{
	size_t entry_bytes = sections->object->is_64bit ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
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
	error = charge_items(ret, count);
	if (error)
		return error;
	items = huge_memory_allocate((ret->count + count + 1) * sizeof(*ret->items));
	if (!items)
		return &sym_error_no_memory;
	if (ret->count)
		memcpy(items, ret->items, ret->count * sizeof(*items));
	free(ret->items);
	ret->items = items;
	for (size_t i = 0; i < count; i++)
		add_symbol(sections, &table, ret);
	return NULL;
}

static bool has_same_name(const struct elf_symbol *a, const struct elf_symbol *b)
{
	size_t bytes = elf_symbols_name_bytes(a);

	return bytes == elf_symbols_name_bytes(b) && !memcmp(a->name, b->name, bytes);
}

/* Drops symbols that both tables contain. */
static void drop_repeated(struct elf_symbols *symbols)
{
	size_t kept = 0;

	for (size_t i = 0; i < symbols->count; i++) {
		const struct elf_symbol *last = kept ? &symbols->items[kept - 1] : NULL;
		const struct elf_symbol *item = &symbols->items[i];

		if (!last || last->vaddr != item->vaddr || last->size_bytes != item->size_bytes ||
		    !has_same_name(last, item))
			symbols->items[kept++] = *item;
	}
	symbols->count = kept;
}

/* Is there a function that is local to one source file, or hidden? strip -x leaves none. Returns
 * true if the table cannot be read; the full read then reports that. */
static bool has_local_function(struct elf_sections *sections, const GElf_Shdr *table)
{
	bool wide = sections->object->is_64bit;
	struct reader entries;
	struct sym_error *error = elf_sections_bytes(sections, table, &entries);

	sym_error_destroy(error);
	if (error || !table->sh_info)
		return true;
	/* Local symbols come first. */
	for (uint32_t i = 0; i < table->sh_info && reader_left(&entries); i++) {
		GElf_Sym symbol = read_symbol(&entries, wide);

		if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC &&
		    GELF_ST_BIND(symbol.st_info) == STB_LOCAL)
			return true;
	}
	return false;
}

/*
 * .symtab if it is complete. NULL if there is none, or if strip has left little of it or no local
 * functions. A complete one is at least as large as .dynsym and has at least the local functions of
 * crtbegin.o.
 */
static const GElf_Shdr *find_full_table(struct elf_sections *sections)
{
	const GElf_Shdr *table = elf_sections_find(sections, SHT_SYMTAB);
	const GElf_Shdr *exports = elf_sections_find(sections, SHT_DYNSYM);

	if (!table || (exports && table->sh_size < exports->sh_size) ||
	    !has_local_function(sections, table))
		return NULL;
	return table;
}

/* Reads .dynsym in addition to .symtab. If it cannot be read, .symtab alone is used. */
static struct sym_error *read_exports(struct elf_sections *sections, struct elf_symbols *ret)
{
	const GElf_Shdr *exports = elf_sections_find(sections, SHT_DYNSYM);
	struct sym_error *error = exports ? read_table(sections, exports, ret) : NULL;

	if (!error || sym_error_is_no_memory(error) || !ret->items)
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
	if (!sort_symbols(ret))
		return &sym_error_no_memory;
	if (table && !ret->has_full_table)
		drop_repeated(ret);
	settle_reach(ret);
	release_unused_charge(ret);
	return NULL;
}

static struct sym_error *read_symbols(const struct object_file *object, bool indirect_only,
				      struct elf_symbols *ret)
{
	struct elf_symbols symbols = { .indirect_only = indirect_only };
	struct sym_error *error = elf_sections_read(object, &symbols.sections);

	if (error)
		return error;
	symbols.has_full_table = find_full_table(&symbols.sections);
	symbols.build_id = elf_sections_build_id(&symbols.sections);
	find_stubs(&symbols.sections);
	error = read_tables(&symbols);
	if (error)
		elf_symbols_deinit(&symbols);
	else
		*ret = symbols;
	return error;
}

struct sym_error *elf_symbols_read(const struct object_file *object, struct elf_symbols *ret)
{
	return read_symbols(object, false, ret);
}

struct sym_error *elf_symbols_read_indirect(const struct object_file *object,
					    struct elf_symbols *ret)
{
	return read_symbols(object, true, ret);
}
