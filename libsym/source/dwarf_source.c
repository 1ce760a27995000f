/* SPDX-License-Identifier: MIT */
/*
 * DWARF of an ELF image or of its debug file.
 * It names functions only when neither has a symbol table, which is complete and cheaper.
 * Nothing is read before lines are requested or an address has no symbol.
 */
#include "libsym/source/dwarf_source.h"

#include <stdlib.h>

#include "libsym/base/lazy.h"
#include "libsym/elf/debug_fetch.h"
#include "libsym/elf/debugfile.h"
#include "libsym/elf/elf_sections.h"
#include "libsym/source/source.h"

/* Built as a whole. Afterwards only dwarf_info changes, which has its own lock. */
struct opened {
	struct object_file *debug_file; /* NULL: not needed, or none */
	struct dwarf_info *info;        /* NULL: no DWARF */
	bool has_table;                 /* there is a .symtab */
	uint64_t distance;              /* added to vaddrs of the DWARF to get those of the image */
};

struct dwarf_source {
	struct object_file *object;
	const char *path;
	struct debugfile_roots roots;
	struct debug_fetch *debug_fetch; /* may be NULL */
	bool forks;
	bool names_none; /* all functions have a symbol: it serves lines only */
	struct lazy opened;
	struct lazy fetched; /* struct opened of the fetched debug file */
};

static void opened_close(void *made)
{
	struct opened *opened = made;

	if (!opened)
		return;
	dwarf_info_close(opened->info);
	object_file_close(opened->debug_file);
	free(opened);
}

DEFINE_GUARD(opened, struct opened *, opened_close)
#define AUTO_OPENED GUARDED(opened)

static void close_source(void *source)
{
	struct dwarf_source *own = source;

	lazy_deinit(&own->opened);
	lazy_deinit(&own->fetched);
	free(own);
}

static struct sym_error *open_source(const struct source_input *input, struct buf *why, void **ret)
{
	struct dwarf_source *own = calloc(1, sizeof(*own));

	(void)why;
	if (!own)
		return &sym_error_no_memory;
	own->object = input->object;
	own->path = input->path;
	own->roots = input->roots;
	own->debug_fetch = input->debug_fetch;
	own->forks = input->forks_for_dwarf;
	own->names_none = input->has_all_symbols;
	lazy_init(&own->opened);
	lazy_init(&own->fetched);
	*ret = own;
	return NULL;
}

static bool has_table(const struct object_file *object)
{
	struct elf_sections sections AUTO_ELF_SECTIONS = { 0 };
	struct sym_error *error = elf_sections_read(object, &sections);

	sym_error_destroy(error);
	return !error && elf_sections_find(&sections, SHT_SYMTAB);
}

/* Opens the DWARF of the image or of its debug file. */
static struct sym_error *open_info(const struct dwarf_source *own, const struct object_file *object,
				   struct dwarf_info **ret)
{
	struct dwarf_fetch fetch = { .image_path = own->path, .rights = own->roots.rights };

	if (own->debug_fetch) {
		fetch.fetch = own->debug_fetch->fetch;
		fetch.context = own->debug_fetch->context;
	}
	return dwarf_info_open(object, &fetch, own->forks, ret);
}

static struct sym_error *open_parts(const struct dwarf_source *own, struct opened *opened)
{
	struct elf_sections sections AUTO_ELF_SECTIONS = { 0 };
	struct sym_error *error = open_info(own, own->object, &opened->info);

	opened->has_table = has_table(own->object);
	if (error || opened->info)
		return error;
	error = elf_sections_read(own->object, &sections);
	if (!error)
		error = debugfile_find(&sections, &own->roots, &opened->debug_file,
				       &opened->distance);
	if (error || !opened->debug_file)
		return error;
	opened->has_table |= has_table(opened->debug_file);
	return open_info(own, opened->debug_file, &opened->info);
}

static struct sym_error *open_fetched_parts(const struct dwarf_source *own, struct opened *opened)
{
	struct object_file *object;
	struct sym_error *error =
		debug_fetch_get(own->debug_fetch, own->object, own->path, &object);

	return object ? open_info(own, object, &opened->info) : error;
}

/* A file that cannot be read has no DWARF. After a lack of memory it is tried again. */
static void *open_with(struct sym_error *(*fill)(const struct dwarf_source *, struct opened *),
		       const struct dwarf_source *own)
{
	struct opened *opened AUTO_OPENED = calloc(1, sizeof(*opened));
	struct sym_error *error;
	bool again;

	if (!opened)
		return NULL;
	error = fill(own, opened);
	again = sym_error_is_no_memory(error);
	sym_error_destroy(error);
	return again ? NULL : STEAL(opened);
}

static void *open_now(const void *own)
{
	return open_with(open_parts, own);
}

static void *open_fetched_now(const void *own)
{
	return open_with(open_fetched_parts, own);
}

static const struct opened *get_opened(struct dwarf_source *own)
{
	return lazy_get(&own->opened, open_now, opened_close, own);
}

/*
 * Symbol tables have no lines, so a debug file is fetched when no file here has them. NULL when out
 * of memory.
 */
static const struct opened *get_with_info(struct dwarf_source *own)
{
	const struct opened *opened = get_opened(own);

	if (opened && !opened->info && own->debug_fetch)
		opened = lazy_get(&own->fetched, open_fetched_now, opened_close, own);
	return opened;
}

static bool find_at(const struct opened *opened, uint64_t vaddr, struct dwarf_place *ret,
		    struct sym_inlined *inlined, size_t inlined_max, size_t *inlined_count_ret)
{
	if (!dwarf_info_find(opened->info, vaddr - opened->distance, ret, inlined, inlined_max,
			     inlined_count_ret))
		return false;
	ret->start += opened->distance;
	return true;
}

bool dwarf_source_is_here(void *source)
{
	const struct opened *opened = get_opened(source);

	return opened && opened->info;
}

bool dwarf_source_describe(void *source, uint64_t vaddr, struct dwarf_place *ret,
			   struct sym_inlined inlined[DWARF_INFO_INLINED],
			   size_t *inlined_count_ret)
{
	const struct opened *opened = get_with_info(source);

	*ret = (struct dwarf_place){ .is_short = !opened };
	return opened && opened->info &&
	       find_at(opened, vaddr, ret, inlined, DWARF_INFO_INLINED, inlined_count_ret);
}

static enum source_outcome dwarf_source_find(void *source, uint64_t position,
					     struct source_match *ret)
{
	struct dwarf_source *own = source;
	const struct opened *opened;
	struct dwarf_place place;
	size_t count;

	if (own->names_none)
		return SOURCE_MISS;
	opened = get_opened(own);
	if (!opened)
		return SOURCE_SHORT;
	if (!opened->info || opened->has_table)
		return SOURCE_MISS;
	if (!find_at(opened, position, &place, NULL, 0, &count) || !place.name)
		return place.is_short ? SOURCE_SHORT : SOURCE_MISS;
	*ret = (struct source_match){
		.start = place.start,
		.size_bytes = place.size_bytes,
		.name = place.name,
		.linkage_name = place.linkage_name,
		.kind = SYM_SYMBOL_FUNCTION,
	};
	return SOURCE_HIT;
}

const struct source_ops source_dwarf = {
	.kind = SYM_SOURCE_DWARF,
	.for_elf = true,
	.is_extra = true,
	.open = open_source,
	.find = dwarf_source_find,
	.close = close_source,
};
