/* SPDX-License-Identifier: MIT */
#include "libsym/elf_glance.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/limits.h"

enum {
	FEWEST_ENTRIES = 512, /* a smaller table is sorted in no time */
	MAX_COVERING = 16,    /* starts of symbols around one position; nested ones are rare */
	FIRST_NAME_BYTES = 256,
	WINDOW_BYTES = 24 << 10 /* of the table at once; stays in the nearest cache */
};

struct elf_glance {
	struct elf_sections sections; /* of the image whose table it is */
	const GElf_Shdr *table, *strings;
	const GElf_Shdr *versions; /* NULL: none, or none that can be read */
	const uint8_t *whole;      /* the table, once it was asked twice; NULL: by windows */
	const uint8_t *entries;    /* those at hand */
	size_t count;              /* of the table */
	bool wide;
	bool was_asked;
	bool is_complete;
	struct image *debug_image; /* NULL: the table is the image's own */
	uint8_t window[WINDOW_BYTES];
};

void elf_glance_close(struct elf_glance *glance)
{
	if (!glance)
		return;
	elf_sections_deinit(&glance->sections);
	image_close(glance->debug_image);
	free(glance);
}

static inline size_t entry_bytes_of(bool wide)
{
	return wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

static size_t entry_bytes(const struct elf_glance *glance)
{
	return entry_bytes_of(glance->wide);
}

/*
 * Takes entries of the table from `first` on to hand; how many, 0 behind the last and after a
 * failure. Most images are asked once: new pages for a table of a megabyte cost more than to read
 * it into old ones, even twice.
 */
static size_t window_at(struct elf_glance *glance, size_t first, bool *failed_ret)
{
	size_t bytes = entry_bytes(glance), count = glance->count - first;
	struct sym_error *error;

	if (*failed_ret)
		return 0;
	if (glance->whole) {
		glance->entries = glance->whole + first * bytes;
		return count;
	}
	if (count > WINDOW_BYTES / bytes)
		count = WINDOW_BYTES / bytes;
	if (!count)
		return 0;
	error = sparse_file_read_at(&glance->sections.view, glance->sections.image->path,
				    glance->window, count * bytes,
				    glance->table->sh_offset + first * bytes);
	sym_error_destroy(error);
	*failed_ret = error;
	glance->entries = glance->window;
	return error ? 0 : count;
}

/* `number`: among those at hand, as in all that follows. */
static GElf_Sym entry_at(const struct elf_glance *glance, size_t number)
{
	GElf_Sym symbol = { 0 };

	if (glance->wide) {
		Elf64_Sym raw;

		memcpy(&raw, glance->entries + number * sizeof(raw), sizeof(raw));
		symbol.st_name = le32toh(raw.st_name);
		symbol.st_info = raw.st_info;
		symbol.st_shndx = le16toh(raw.st_shndx);
		symbol.st_value = le64toh(raw.st_value);
		symbol.st_size = le64toh(raw.st_size);
	} else {
		Elf32_Sym raw;

		memcpy(&raw, glance->entries + number * sizeof(raw), sizeof(raw));
		symbol.st_name = le32toh(raw.st_name);
		symbol.st_info = raw.st_info;
		symbol.st_shndx = le16toh(raw.st_shndx);
		symbol.st_value = le32toh(raw.st_value);
		symbol.st_size = le32toh(raw.st_size);
	}
	return symbol;
}

/* The two fields by which nearly all entries are passed over. */
static inline __attribute__((always_inline)) uint64_t
field_of(const uint8_t *entry, bool wide, size_t wide_offset, size_t narrow_offset)
{
	uint64_t wide_field;
	uint32_t narrow_field;

	if (wide) {
		memcpy(&wide_field, entry + wide_offset, sizeof(wide_field));
		return le64toh(wide_field);
	}
	memcpy(&narrow_field, entry + narrow_offset, sizeof(narrow_field));
	return le32toh(narrow_field);
}

static inline __attribute__((always_inline)) uint64_t start_of(const uint8_t *entries, bool wide,
							       size_t number)
{
	return field_of(entries + number * entry_bytes_of(wide), wide,
			offsetof(Elf64_Sym, st_value), offsetof(Elf32_Sym, st_value));
}

static inline __attribute__((always_inline)) uint64_t size_of(const uint8_t *entries, bool wide,
							      size_t number)
{
	return field_of(entries + number * entry_bytes_of(wide), wide, offsetof(Elf64_Sym, st_size),
			offsetof(Elf32_Sym, st_size));
}

/* As elf_sections_string(), reading no more of the table than it takes. *failed_ret is set when
 * the file cannot be read. */
static const char *name_at(struct elf_glance *glance, uint32_t offset, bool *failed_ret)
{
	uint64_t most = offset < glance->strings->sh_size ? glance->strings->sh_size - offset : 0;
	uint64_t at = glance->strings->sh_offset + offset;

	if (most > LIMIT_NAME_BYTES + 1)
		most = LIMIT_NAME_BYTES + 1;
	for (uint64_t bytes = FIRST_NAME_BYTES; most; bytes *= 4) {
		uint64_t step = bytes < most ? bytes : most;
		struct sym_error *error = sparse_file_need(&glance->sections.view,
							   glance->sections.image->path, at, step);
		const char *name = (const char *)glance->sections.view.data + at;

		sym_error_destroy(error);
		*failed_ret |= error != NULL;
		if (error || !*name)
			return NULL;
		if (memchr(name, 0, step))
			return name;
		if (step == most)
			return NULL;
	}
	return NULL;
}

static bool may_be_function(const GElf_Sym *symbol)
{
	unsigned int type = GELF_ST_TYPE(symbol->st_info);

	return symbol->st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_NOTYPE ||
						 type == STT_GNU_IFUNC || type == STT_OBJECT);
}

static bool is_function(struct elf_glance *glance, const GElf_Sym *symbol, struct elf_symbol *ret,
			bool *failed_ret)
{
	return may_be_function(symbol) &&
	       elf_symbol_make(&glance->sections, symbol,
			       name_at(glance, symbol->st_name, failed_ret), ret);
}

/* The same for one that has a name, which is looked at only where it decides. */
static bool is_function_if_named(struct elf_glance *glance, const GElf_Sym *symbol,
				 struct elf_symbol *ret, bool *failed_ret)
{
	if (GELF_ST_TYPE(symbol->st_info) == STT_NOTYPE)
		return is_function(glance, symbol, ret, failed_ret);
	return may_be_function(symbol) && elf_symbol_make(&glance->sections, symbol, "any", ret);
}

/* As elf_symbols_read() does: what is not there is no version. */
static void take_version(struct elf_glance *glance, size_t index, struct elf_symbol *ret,
			 bool *failed_ret)
{
	uint64_t offset = (uint64_t)index * sizeof(uint16_t);
	struct reader version;
	struct sym_error *error;

	if (!glance->versions || glance->versions->sh_size < offset + sizeof(uint16_t))
		return;
	offset += glance->versions->sh_offset;
	error = sparse_file_need(&glance->sections.view, glance->sections.image->path, offset,
				 sizeof(uint16_t));
	sym_error_destroy(error);
	*failed_ret |= error != NULL;
	if (error)
		return;
	version = reader_over(glance->sections.view.data + offset, sizeof(uint16_t));
	elf_symbol_take_version(ret, reader_u16(&version));
}

/* ---- opening -------------------------------------------------------------------------- */

static bool is_whole(const struct elf_sections *sections, const GElf_Shdr *section)
{
	return section->sh_type != SHT_NOBITS && !(section->sh_flags & SHF_COMPRESSED) &&
	       section->sh_offset <= sections->view.size_bytes &&
	       section->sh_size <= sections->view.size_bytes - section->sh_offset;
}

/* False where the index should be asked instead. */
static bool use_table(struct elf_glance *glance, const GElf_Shdr *table)
{
	struct elf_sections *sections = &glance->sections;

	glance->wide = sections->image->is_64bit;
	/* Entries are passed over by the bytes of the table, which are no vaddrs there. */
	if (sections->image->marks_thumb || sections->image->is_big_endian)
		return false;
	if (!table || table->sh_link >= sections->count ||
	    table->sh_entsize != entry_bytes(glance) ||
	    table->sh_size / entry_bytes(glance) < FEWEST_ENTRIES)
		return false;
	glance->strings = &sections->items[table->sh_link];
	if (!is_whole(sections, table) || !is_whole(sections, glance->strings))
		return false;
	elf_symbols_find_stubs(sections);
	glance->table = table;
	glance->versions = elf_symbols_versions(sections, table);
	if (glance->versions && !is_whole(sections, glance->versions))
		glance->versions = NULL;
	glance->count = table->sh_size / entry_bytes(glance);
	glance->is_complete = table->sh_type == SHT_SYMTAB;
	return true;
}

/* Are there more than `few` functions? Names are not looked at. */
static bool has_more_functions(struct elf_glance *glance, size_t few)
{
	struct elf_symbol function;
	size_t found = 0, count;
	bool failed = false;

	for (size_t first = 0; found <= few; first += count) {
		count = window_at(glance, first, &failed);
		if (!count)
			return false;
		for (size_t i = 0; i < count && found <= few; i++) {
			GElf_Sym symbol = entry_at(glance, i);

			found += GELF_ST_TYPE(symbol.st_info) != STT_NOTYPE &&
				 is_function_if_named(glance, &symbol, &function, &failed);
		}
	}
	return true;
}

static bool open_table(struct elf_glance *glance, const struct image *image, GElf_Word type)
{
	struct sym_error *error = elf_sections_read(image, &glance->sections);

	sym_error_destroy(error);
	return !error && use_table(glance, elf_sections_find(&glance->sections, type));
}

/*
 * The debug file's table, if it certainly is the larger one. Anything else is for those who read
 * all of both: *found_ret and no table.
 */
static struct sym_error *open_debug_file(const struct debugfile_roots *roots,
					 struct elf_glance *exports, bool *found_ret,
					 struct elf_glance **ret)
{
	struct elf_glance *glance AUTO_ELF_GLANCE = calloc(1, sizeof(*glance));
	struct sym_error *error;
	uint64_t distance;

	if (!glance)
		return &sym_error_no_memory;
	error = debugfile_find(&exports->sections, roots, &glance->debug_image, &distance);
	if (error || !glance->debug_image)
		return error;
	*found_ret = true;
	if (!distance && open_table(glance, glance->debug_image, SHT_SYMTAB) &&
	    has_more_functions(glance, exports->count))
		*ret = STEAL(glance);
	return NULL;
}

/* Only want of memory is an error. */
static struct sym_error *only_no_memory(struct sym_error *error)
{
	if (!error || sym_error_code(error) == SYM_ERROR_NO_MEMORY)
		return error;
	sym_error_destroy(error);
	return NULL;
}

struct sym_error *elf_glance_open(struct image *image, const struct debugfile_roots *roots,
				  struct elf_glance **ret)
{
	struct elf_glance *glance AUTO_ELF_GLANCE = calloc(1, sizeof(*glance));
	const GElf_Shdr *table;
	bool has_debug_file = false;
	struct sym_error *error;

	*ret = NULL;
	if (!glance)
		return &sym_error_no_memory;
	error = elf_sections_read(image, &glance->sections);
	if (error)
		return only_no_memory(error);
	table = elf_symbols_full_table(&glance->sections);
	/* Two tables are for those who read all of both. */
	if (!table && (elf_sections_find(&glance->sections, SHT_SYMTAB) ||
		       elf_sections_find_named(&glance->sections, ".gnu_debugdata")))
		return NULL;
	if (!use_table(glance, table ? table : elf_sections_find(&glance->sections, SHT_DYNSYM)))
		return NULL;
	if (!table)
		error = open_debug_file(roots, glance, &has_debug_file, ret);
	if (!error && !has_debug_file && has_more_functions(glance, 0))
		*ret = STEAL(glance);
	return only_no_memory(error);
}

struct image *elf_glance_debug_image(const struct elf_glance *glance)
{
	return glance->debug_image;
}

bool elf_glance_is_complete(const struct elf_glance *glance)
{
	return glance->is_complete;
}

const char *elf_glance_path(const struct elf_glance *glance)
{
	return glance->sections.image->path;
}

/* ---- looking ---------------------------------------------------------------------------- */

/* What a pass over the table found around a position. */
struct surroundings {
	uint64_t position;
	uint64_t covering[MAX_COVERING]; /* starts of symbols whose size reaches it */
	size_t covering_count;
	bool any_below;
	uint64_t below, above;  /* the nearest starts, that of the position itself is `below` */
	uint32_t above_name;    /* of the one that begins there */
	struct elf_symbol last; /* of those that begin at `below` the best one */
	GElf_Sym last_entry;
	size_t last_index;     /* of it in the table */
	bool last_is_named;    /* `last` has its name: names lie all over the file */
	bool last_has_version; /* it has been looked up, as only one of several needs it */
	bool failed;
};

static bool add_covering(struct surroundings *around, uint64_t vaddr)
{
	for (size_t i = 0; i < around->covering_count; i++)
		if (around->covering[i] == vaddr)
			return true;
	if (around->covering_count == MAX_COVERING)
		return false;
	around->covering[around->covering_count++] = vaddr;
	return true;
}

/*
 * The first entry from `number` on that covers the position, or begins no farther from it than what
 * was found; `count` if there is none. How far behind an entry's start the position is counts
 * modulo 2^64, so that what begins above it is very far: one comparison for both sides.
 */
static inline __attribute__((always_inline)) size_t pass_over_of(const uint8_t *entries, bool wide,
								 size_t number, size_t count,
								 const struct surroundings *around)
{
	uint64_t position = around->position, gap = around->above - position - 1;
	uint64_t near = position - (around->any_below ? around->below : 0) + gap;

	for (; number < count; number++) {
		uint64_t behind = position - start_of(entries, wide, number);

		if (behind < size_of(entries, wide, number) || behind + gap <= near)
			break;
	}
	return number;
}

static size_t pass_over(const struct elf_glance *glance, size_t number, size_t count,
			const struct surroundings *around)
{
	return glance->wide ? pass_over_of(glance->entries, true, number, count, around)
			    : pass_over_of(glance->entries, false, number, count, around);
}

/* With its name; an entry without one is for the index. */
static void name_function(struct elf_glance *glance, const GElf_Sym *entry,
			  struct elf_symbol *function, struct surroundings *around)
{
	if (!is_function(glance, entry, function, &around->failed))
		around->failed = true;
}

static void name_last(struct elf_glance *glance, struct surroundings *around)
{
	if (around->any_below && !around->last_is_named)
		name_function(glance, &around->last_entry, &around->last, around);
	around->last_is_named = true;
}

/* A function that begins at or below the position, and not below another that does. */
static void take_last(struct elf_glance *glance, size_t index, const GElf_Sym *entry,
		      struct elf_symbol *function, struct surroundings *around)
{
	bool is_nearer = !around->any_below || function->vaddr != around->below;

	if (!is_nearer) {
		name_last(glance, around);
		name_function(glance, entry, function, around);
		if (around->failed)
			return;
		if (!around->last_has_version)
			take_version(glance, around->last_index, &around->last, &around->failed);
		around->last_has_version = true;
		take_version(glance, index, function, &around->failed);
		if (elf_symbol_compare(function, &around->last) >= 0)
			return;
	}
	around->last = *function;
	around->last_entry = *entry;
	around->last_index = index;
	around->last_is_named = !is_nearer;
	around->last_has_version = !is_nearer;
	around->any_below = true;
	around->below = function->vaddr;
}

/* `index` in the table, `number` among those at hand. */
static void look_at(struct elf_glance *glance, size_t index, size_t number,
		    struct surroundings *around)
{
	GElf_Sym symbol = entry_at(glance, number);
	uint64_t start = symbol.st_value, position = around->position;
	bool covers = start <= position && position - start < symbol.st_size;
	bool is_near = start <= position ? !around->any_below || start >= around->below
					 : start < around->above;
	struct elf_symbol function;

	if (!is_function_if_named(glance, &symbol, &function, &around->failed))
		return;
	if (covers && !add_covering(around, symbol.st_value))
		around->failed = true;
	if (start > position) {
		around->above = start;
		around->above_name = symbol.st_name;
	} else if (is_near) {
		take_last(glance, index, &symbol, &function, around);
	}
}

static void look_around(struct elf_glance *glance, struct surroundings *around)
{
	size_t count;

	around->above = UINT64_MAX;
	for (size_t first = 0; (count = window_at(glance, first, &around->failed)); first += count)
		for (size_t i = 0;
		     !around->failed && (i = pass_over(glance, i, count, around)) < count; i++)
			look_at(glance, first + i, i, around);
	name_last(glance, around);
}

/* Takes the entry if it has a better name. */
static bool take_better(struct elf_glance *glance, size_t index, size_t number, bool any,
			struct elf_symbol *ret, bool *failed)
{
	GElf_Sym symbol = entry_at(glance, number);
	struct elf_symbol function;

	if (!is_function(glance, &symbol, &function, failed))
		return any;
	take_version(glance, index, &function, failed);
	if (!any || elf_symbol_compare(&function, ret) < 0)
		*ret = function;
	return true;
}

/* Of the names for one place the best one; there is one, or the file changes. Nearly always that
 * place is the last start, and nothing has to be read again. */
static bool best_at(struct elf_glance *glance, uint64_t vaddr, struct surroundings *around,
		    struct elf_symbol *ret)
{
	bool any = false;
	size_t count;

	if (around->any_below && vaddr == around->below) {
		*ret = around->last;
		return true;
	}
	for (size_t first = 0; (count = window_at(glance, first, &around->failed)); first += count)
		for (size_t i = 0; !around->failed && i < count; i++)
			if (start_of(glance->entries, glance->wide, i) == vaddr)
				any = take_better(glance, first + i, i, any, ret, &around->failed);
	return any && !around->failed;
}

/* Does the size of an earlier entry reach this place? Then a label there ends with that function,
 * which is for the index to find. */
static bool lies_within_another(struct elf_glance *glance, uint64_t vaddr, bool *failed)
{
	size_t count;

	for (size_t first = 0; (count = window_at(glance, first, failed)); first += count)
		for (size_t i = 0; i < count; i++) {
			uint64_t behind = vaddr - start_of(glance->entries, glance->wide, i);

			if (behind && behind < size_of(glance->entries, glance->wide, i))
				return true;
		}
	return false;
}

static int descending(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a < b) - (a > b);
}

static enum elf_glance_outcome find(struct elf_glance *glance, uint64_t vaddr,
				    struct elf_symbol *ret)
{
	struct surroundings around = { .position = vaddr };
	struct elf_symbol best = { 0 };

	look_around(glance, &around);
	qsort(around.covering, around.covering_count, sizeof(*around.covering), descending);
	/* Of those with a size the one that begins last holds. */
	for (size_t i = 0; !around.failed && i < around.covering_count; i++) {
		if (!best_at(glance, around.covering[i], &around, &best))
			return ELF_GLANCE_UNABLE;
		if (best.size_bytes && vaddr - best.vaddr < best.reach_bytes) {
			*ret = best;
			return ELF_GLANCE_HIT;
		}
	}
	if (around.failed)
		return ELF_GLANCE_UNABLE;
	best = around.last;
	/* One without a size reaches to the next of any kind. */
	if (!around.any_below || best.size_bytes)
		return ELF_GLANCE_MISS;
	if (around.above != UINT64_MAX && !name_at(glance, around.above_name, &around.failed))
		return ELF_GLANCE_UNABLE;
	if (around.above - best.vaddr < best.reach_bytes)
		best.reach_bytes = around.above - best.vaddr;
	if (vaddr - best.vaddr >= best.reach_bytes)
		return ELF_GLANCE_MISS;
	if (lies_within_another(glance, best.vaddr, &around.failed) || around.failed)
		return ELF_GLANCE_UNABLE;
	*ret = best;
	return ELF_GLANCE_HIT;
}

/* Whoever asks twice will ask more often. */
static bool take_whole(struct elf_glance *glance)
{
	struct reader entries;
	struct sym_error *error;

	if (glance->whole || !glance->was_asked) {
		glance->was_asked = true;
		return true;
	}
	error = elf_sections_bytes(&glance->sections, glance->table, &entries);
	sym_error_destroy(error);
	if (error)
		return false;
	glance->whole = entries.data;
	return true;
}

enum elf_glance_outcome elf_glance_find(struct elf_glance *glance, uint64_t vaddr,
					struct elf_symbol *ret)
{
	enum elf_glance_outcome outcome;
	struct sym_error *changed;

	if (!take_whole(glance))
		return ELF_GLANCE_UNABLE;
	outcome = find(glance, vaddr, ret);
	/* Windows were read one after the other. */
	changed = glance->whole
			  ? NULL
			  : sparse_file_check(&glance->sections.view, glance->sections.image->path);
	sym_error_destroy(changed);
	return changed ? ELF_GLANCE_UNABLE : outcome;
}
