/* SPDX-License-Identifier: MIT */
/*
 * Finds three things in a Go program:
 *
 *   function table   in .gopclntab; if the linker joined it with .data.rel.ro, by its header
 *   text start       since Go 1.26 not in the table's header, but in moduledata
 *   function data    the base of inlining trees, in moduledata
 *
 * moduledata has no symbol in a stripped program. It starts with a pointer to the function table,
 * so every word (or relocation) with that value is a candidate, and is_module() compares its other
 * words with the table.
 */
#include "libsym/elf/go_image.h"

#include <string.h>

enum {
	CHUNK_BYTES = 1 << 16,
	MAX_CANDIDATES = 16, /* places that point to a function table; a program has one */
	/* Word numbers in moduledata since Go 1.16. Its first words have not changed since. */
	MODULE_TABLE = 0,
	MODULE_PARTS = 1, /* five slices: data, length, capacity */
	MODULE_ROWS = 16, /* a slice */
	MODULE_FIRST_PC = 20,
	MODULE_TEXT = 22,
	MODULE_FUNCTION_DATA_1_18 = 38,
	MODULE_FUNCTION_DATA_1_20 = 40, /* after two words for coverage counters */
	MODULE_WORDS = 41
};

static const GElf_Shdr *find_plain(struct elf_sections *sections, const char *name)
{
	const GElf_Shdr *section = elf_sections_find_named(sections, name);

	return section && !(section->sh_flags & SHF_COMPRESSED) ? section : NULL;
}

/* ---- relocations ------------------------------------------------------------------------- */

/* Called for each position that gets the load base plus `value`. Returns false to stop. */
typedef bool relocation_fn(void *context, uint64_t vaddr, uint64_t value);

/* Only relocations with an addend. Others have the value in their place, where it is read. */
static struct sym_error *each_relocation(struct elf_sections *sections, relocation_fn *tell,
					 void *context)
{
	bool wide = sections->object->is_64bit, more = true;
	struct sym_error *error = NULL;

	for (size_t i = 1; !error && more && i < sections->count; i++) {
		const GElf_Shdr *section = &sections->items[i];
		struct reader table;

		if (section->sh_type != SHT_RELA || !(section->sh_flags & SHF_ALLOC))
			continue;
		error = elf_sections_bytes(sections, section, &table);
		while (!error && more && reader_left(&table) >= (wide ? 24 : 12)) {
			uint64_t vaddr = wide ? reader_u64(&table) : reader_u32(&table);
			uint64_t info = wide ? reader_u64(&table) : reader_u32(&table);
			uint64_t value = wide ? reader_u64(&table) : reader_u32(&table);

			/* Only relocations without a symbol. */
			if (!(wide ? info >> 32 : info >> 8))
				more = tell(context, vaddr, value);
		}
	}
	return error;
}

struct words {
	uint64_t vaddr;
	unsigned int word_bytes;
	uint64_t values[MODULE_WORDS];
	size_t count;
};

static bool record_relocation(void *context, uint64_t vaddr, uint64_t value)
{
	struct words *words = context;
	uint64_t distance = vaddr - words->vaddr;

	if (vaddr >= words->vaddr && distance / words->word_bytes < words->count &&
	    !(distance % words->word_bytes))
		words->values[distance / words->word_bytes] = value;
	return true;
}

static const GElf_Shdr *section_at(const struct elf_sections *sections, uint64_t vaddr,
				   uint64_t size_bytes)
{
	for (size_t i = 1; i < sections->count; i++) {
		const GElf_Shdr *section = &sections->items[i];

		if (section->sh_type == SHT_PROGBITS && section->sh_flags & SHF_ALLOC &&
		    !(section->sh_flags & SHF_COMPRESSED) && vaddr >= section->sh_addr &&
		    vaddr - section->sh_addr < section->sh_size &&
		    size_bytes <= section->sh_size - (vaddr - section->sh_addr))
			return section;
	}
	return NULL;
}

/* Reads words as they are in a program that is loaded at its vaddrs; zero if the file has none. */
static struct sym_error *read_words(struct elf_sections *sections, struct words *words)
{
	uint64_t size_bytes = words->count * words->word_bytes;
	const GElf_Shdr *section = section_at(sections, words->vaddr, size_bytes);
	struct sym_error *error;
	struct reader bytes;

	memset(words->values, 0, sizeof(words->values));
	if (!section)
		return NULL;
	error = elf_sections_bytes(sections, section, &bytes);
	if (error)
		return error;
	reader_seek(&bytes, (size_t)(words->vaddr - section->sh_addr));
	for (size_t i = 0; i < words->count; i++)
		words->values[i] = words->word_bytes == 8 ? reader_u64(&bytes) : reader_u32(&bytes);
	if (sections->object->position_independent)
		error = each_relocation(sections, record_relocation, words);
	return error;
}

/* ---- the function table ------------------------------------------------------------------ */

static struct go_table_place place_in(const GElf_Shdr *section, uint64_t distance)
{
	return (struct go_table_place){
		.vaddr = section->sh_addr + distance,
		.offset = section->sh_offset + distance,
		.size_bytes = section->sh_size - distance,
	};
}

/* GNU ld joins all .data.rel.ro.*. Only a Go program has .go.buildinfo (since Go 1.13). The section
 * has all of the table, so it is read in pieces up to the header. */
static struct sym_error *find_joined(struct elf_sections *sections, struct go_table_place *ret)
{
	const GElf_Shdr *section = find_plain(sections, ".data.rel.ro");
	struct sym_error *error = NULL;
	struct reader bytes;

	if (!section || !find_plain(sections, ".go.buildinfo"))
		return NULL;
	for (uint64_t done = 0; !error && done < section->sh_size; done += CHUNK_BYTES) {
		GElf_Shdr piece = *section;

		piece.sh_offset += done;
		piece.sh_size = section->sh_size - done < CHUNK_BYTES ? section->sh_size - done
								      : CHUNK_BYTES;
		error = elf_sections_bytes(sections, &piece, &bytes);
		while (!error && reader_left(&bytes) >= GOPCLNTAB_HEADER_BYTES)
			if (gopclntab_recognise(reader_bytes(&bytes, GOPCLNTAB_HEADER_BYTES))) {
				*ret = place_in(section,
						done + bytes.position - GOPCLNTAB_HEADER_BYTES);
				return NULL;
			}
	}
	return error;
}

struct sym_error *go_image_find_table(struct elf_sections *sections, struct go_table_place *ret)
{
	static const char *const names[] = { ".gopclntab", ".data.rel.ro.gopclntab" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const GElf_Shdr *section = find_plain(sections, names[i]);

		if (section) {
			*ret = place_in(section, 0);
			return NULL;
		}
	}
	return find_joined(sections, ret);
}

/* ---- moduledata -------------------------------------------------------------------------- */

/* Places that point to the function table. */
struct candidates {
	uint64_t wanted;
	unsigned int word_bytes;
	uint64_t vaddrs[MAX_CANDIDATES];
	size_t count;
};

static bool add_candidate(struct candidates *candidates, uint64_t vaddr)
{
	candidates->vaddrs[candidates->count++] = vaddr;
	return candidates->count < MAX_CANDIDATES;
}

static bool search_relocation(void *context, uint64_t vaddr, uint64_t value)
{
	struct candidates *candidates = context;

	return value != candidates->wanted || add_candidate(candidates, vaddr);
}

/* Go 1.26 has moduledata in a section of its own. */
static struct sym_error *find_candidates(struct elf_sections *sections,
					 struct candidates *candidates)
{
	static const char *const names[] = { ".go.module", ".noptrdata", ".data" };
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && !candidates->count && i < sizeof(names) / sizeof(names[0]);
	     i++) {
		const GElf_Shdr *section = find_plain(sections, names[i]);
		struct reader bytes = reader_over(NULL, 0);
		bool more = true;

		if (section)
			error = elf_sections_bytes(sections, section, &bytes);
		while (!error && more && reader_left(&bytes) >= candidates->word_bytes) {
			uint64_t vaddr = section->sh_addr + bytes.position;

			if ((candidates->word_bytes == 8
				     ? reader_u64(&bytes)
				     : reader_u32(&bytes)) == candidates->wanted)
				more = add_candidate(candidates, vaddr);
		}
	}
	if (!error && !candidates->count && sections->object->position_independent)
		error = each_relocation(sections, search_relocation, candidates);
	return error;
}

static bool is_module(const struct words *words, const struct gopclntab *table, uint64_t vaddr)
{
	uint64_t parts[GOPCLNTAB_PARTS], first;

	gopclntab_parts(table, parts);
	if (words->values[MODULE_TABLE] != vaddr ||
	    words->values[MODULE_ROWS] != vaddr + parts[GOPCLNTAB_PARTS - 1] ||
	    words->values[MODULE_ROWS + 1] != table->function_count + 1)
		return false;
	for (size_t i = 0; i < GOPCLNTAB_PARTS; i++)
		if (words->values[MODULE_PARTS + 3 * i] != vaddr + parts[i])
			return false;
	/* The text start of the table may be unknown yet. */
	return gopclntab_start(table, 0, &first) &&
	       words->values[MODULE_FIRST_PC] ==
		       words->values[MODULE_TEXT] + (first - table->text_start);
}

/* *found_ret is false if no candidate matches. */
static struct sym_error *find_module(struct elf_sections *sections, const struct gopclntab *table,
				     uint64_t vaddr, struct words *ret, bool *found_ret)
{
	struct candidates candidates = { .wanted = vaddr, .word_bytes = table->pointer_bytes };
	struct sym_error *error = find_candidates(sections, &candidates);

	*found_ret = false;
	for (size_t i = 0; !error && !*found_ret && i < candidates.count; i++) {
		*ret = (struct words){
			.vaddr = candidates.vaddrs[i],
			.word_bytes = table->pointer_bytes,
			.count = MODULE_WORDS,
		};
		error = read_words(sections, ret);
		*found_ret = !error && is_module(ret, table, vaddr);
	}
	return error;
}

struct sym_error *go_image_text_start(struct elf_sections *sections, const struct gopclntab *table,
				      uint64_t vaddr, uint64_t *ret)
{
	struct words words = { .word_bytes = table->pointer_bytes, .count = 1 };
	struct sym_error *error = NULL;
	bool found = false;

	*ret = table->text_start;
	if (*ret || table->version < GOPCLNTAB_1_18)
		return NULL;
	words.vaddr = vaddr + gopclntab_text_start_offset(table);
	if (sections->object->position_independent)
		error = each_relocation(sections, record_relocation, &words);
	if (!error && !words.values[0])
		error = find_module(sections, table, vaddr, &words, &found);
	if (!error)
		*ret = found ? words.values[MODULE_TEXT] : words.values[0];
	return error;
}

struct sym_error *go_image_function_data(struct elf_sections *sections,
					 const struct gopclntab *table, uint64_t vaddr,
					 uint64_t *ret)
{
	struct words words;
	struct sym_error *error;
	bool found = false;

	*ret = 0;
	if (table->version < GOPCLNTAB_1_18)
		return NULL;
	error = find_module(sections, table, vaddr, &words, &found);
	if (!error && found && words.values[MODULE_TEXT] == table->text_start)
		*ret = words.values[table->version == GOPCLNTAB_1_18 ? MODULE_FUNCTION_DATA_1_18
								     : MODULE_FUNCTION_DATA_1_20];
	return error;
}
