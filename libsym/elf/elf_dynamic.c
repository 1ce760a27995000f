/* SPDX-License-Identifier: MIT */
#include "libsym/elf/elf_dynamic.h"

#include <stdlib.h>

/* Values of PT_DYNAMIC: vaddrs, and one size. */
struct tables {
	uint64_t symbols, strings, string_bytes, versions, hash, gnu_hash;
};

enum {
	MAX_DYNAMIC_BYTES = 1 << 16
};

static uint64_t read_word(const struct elf_sections *sections, struct reader *reader)
{
	return sections->object->is_64bit ? reader_u64(reader) : reader_u32(reader);
}

static struct tables parse_tables(const struct elf_sections *sections, struct reader dynamic)
{
	struct tables tables = { 0 };
	const struct {
		uint64_t tag, *value;
	} wanted[] = {
		{ DT_SYMTAB, &tables.symbols },     { DT_STRTAB, &tables.strings },
		{ DT_STRSZ, &tables.string_bytes }, { DT_VERSYM, &tables.versions },
		{ DT_HASH, &tables.hash },          { DT_GNU_HASH, &tables.gnu_hash },
	};
	uint64_t tag = 1;

	while (tag != DT_NULL && reader_left(&dynamic)) {
		uint64_t value;

		tag = read_word(sections, &dynamic);
		value = read_word(sections, &dynamic);
		for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
			if (reader_ok(&dynamic) && tag == wanted[i].tag)
				*wanted[i].value = value;
	}
	return tables;
}

/* { u32 buckets, first, bloom words, shift, words, u32 buckets, u32 chain from `first` on }. The
 * last chain ends with a hash whose bit 0 is set. */
static uint64_t count_of_gnu_hash(const struct elf_sections *sections, struct reader hash)
{
	uint32_t buckets = reader_u32(&hash), first = reader_u32(&hash), words = reader_u32(&hash);
	uint32_t last = 0;

	reader_skip(&hash, 4 + (size_t)words * (sections->object->is_64bit ? 8 : 4));
	for (uint32_t i = 0; i < buckets && reader_ok(&hash); i++) {
		uint32_t symbol = reader_u32(&hash);

		if (symbol > last)
			last = symbol;
	}
	if (!reader_ok(&hash) || last < first || !last)
		return 0;
	reader_skip(&hash, (size_t)(last - first) * 4);
	while (reader_left(&hash) && !(reader_u32(&hash) & 1))
		last++;
	return reader_ok(&hash) ? (uint64_t)last + 1 : 0;
}

static struct sym_error *count_symbols(struct elf_sections *sections, const struct tables *tables,
				       uint64_t *ret)
{
	struct sym_error *error;
	struct reader hash;

	*ret = 0;
	if (!tables->hash && !tables->gnu_hash)
		return NULL;
	/* On some machines (s390x) the words of DT_HASH have 64 bits. */
	error = object_file_read_in_view(sections->object, &sections->view,
					 tables->gnu_hash ? tables->gnu_hash : tables->hash,
					 UINT64_MAX, &hash);
	if (error)
		return error;
	if (tables->gnu_hash) {
		*ret = count_of_gnu_hash(sections, hash);
	} else {
		reader_skip(&hash, 4); /* the number of buckets */
		*ret = reader_u32(&hash);
	}
	return NULL;
}

static void elf_dynamic_add_section(struct elf_sections *sections, GElf_Shdr section)
{
	uint64_t left = section.sh_size;

	if (section.sh_type != SHT_PROGBITS &&
	    (!object_file_position_in_view(sections->object, section.sh_addr, &section.sh_offset,
					   &left) ||
	     left < section.sh_size))
		return;
	sections->items[sections->count++] = section;
}

/* Each table refers to the one before it. */
static void add_tables(struct elf_sections *sections, const struct tables *tables, uint64_t count)
{
	size_t before = sections->count;
	bool wide = sections->object->is_64bit;

	elf_dynamic_add_section(sections, (GElf_Shdr){ .sh_type = SHT_STRTAB,
						       .sh_addr = tables->strings,
						       .sh_size = tables->string_bytes });
	if (sections->count == before)
		return;
	elf_dynamic_add_section(
		sections,
		(GElf_Shdr){ .sh_type = SHT_DYNSYM,
			     .sh_addr = tables->symbols,
			     .sh_size = count * (wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym)),
			     .sh_entsize = wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym),
			     .sh_link = (GElf_Word)before });
	if (sections->count == before + 2 && tables->versions)
		elf_dynamic_add_section(sections, (GElf_Shdr){ .sh_type = SHT_GNU_versym,
							       .sh_addr = tables->versions,
							       .sh_size = count * 2,
							       .sh_entsize = 2,
							       .sh_link = (GElf_Word)before + 1 });
}

struct sym_error *elf_dynamic_read(struct elf_sections *sections)
{
	const struct object_file *object = sections->object;
	struct sym_error *error;
	struct tables tables;
	struct reader dynamic;
	uint64_t count;

	if (!object->dynamic_bytes)
		return NULL;
	error = object_file_read_in_view(sections->object, &sections->view, object->dynamic_vaddr,
					 object->dynamic_bytes < MAX_DYNAMIC_BYTES
						 ? object->dynamic_bytes
						 : MAX_DYNAMIC_BYTES,
					 &dynamic);
	if (error)
		return error;
	tables = parse_tables(sections, dynamic);
	error = count_symbols(sections, &tables, &count);
	if (error || !count)
		return error;
	sections->items = calloc(object->segment_count + 4, sizeof(*sections->items));
	if (!sections->items)
		return &sym_error_no_memory;
	sections->count = 1;
	sections->by_segment = true;
	for (size_t i = 0; i < object->segment_count; i++)
		if (object->segments[i].executable)
			elf_dynamic_add_section(
				sections, (GElf_Shdr){ .sh_type = SHT_PROGBITS,
						       .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
						       .sh_addr = object->segments[i].position,
						       .sh_offset = object->segments[i].offset,
						       .sh_size = object->segments[i].size_bytes });
	add_tables(sections, &tables, count);
	return NULL;
}
