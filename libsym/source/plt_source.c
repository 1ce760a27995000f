/* SPDX-License-Identifier: MIT */
/*
 * Linkage table entries of an ELF image, as "function@plt".
 * They are read when the first address lies in one of the tables and has no symbol.
 */
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/lazy.h"
#include "libsym/elf/plt.h"
#include "libsym/limits.h"
#include "libsym/source/source.h"
#include "libsym/symbols/demangle.h"

/* Built as a whole, then never changed. */
struct entries {
	struct plt plt;
	struct entry_names {
		const char *shown, *linkage;
	} * names;
	struct name_pool pool;
};

struct plt_source {
	const struct object_file *object;
	struct lazy extents; /* struct plt_extents */
	struct lazy entries;
};

static void entries_destroy(void *made)
{
	struct entries *entries = made;

	if (!entries)
		return;
	name_pool_deinit(&entries->pool);
	free(entries->names);
	plt_deinit(&entries->plt);
	free(entries);
}

DEFINE_GUARD(entries, struct entries *, entries_destroy)
#define AUTO_ENTRIES GUARDED(entries)

static void close_source(void *source)
{
	struct plt_source *own = source;

	lazy_deinit(&own->extents);
	lazy_deinit(&own->entries);
	free(own);
}

static struct sym_error *open_source(const struct source_input *input, struct buf *why, void **ret)
{
	struct plt_source *own = calloc(1, sizeof(*own));

	(void)why;
	if (!own)
		return &sym_error_no_memory;
	own->object = input->object;
	lazy_init(&own->extents);
	lazy_init(&own->entries);
	*ret = own;
	return NULL;
}

static const char *add_name(struct entries *entries, struct buf *text)
{
	static const char suffix[] = "@plt";

	buf_append_string(text, suffix);
	return text->failure == BUF_OK ? name_pool_add(&entries->pool, text->data, text->size_bytes)
				       : NULL;
}

static bool make_name(struct entries *entries, const struct plt_entry *entry, struct buf *text,
		      struct entry_names *ret)
{
	char *target AUTO_FREE = strndup(entry->target, entry->target_bytes);

	if (!target)
		return false;
	buf_clear(text);
	buf_append_string(text, target);
	ret->linkage = add_name(entries, text);
	buf_clear(text);
	ret->shown = demangle(target, text) ? add_name(entries, text) : ret->linkage;
	return ret->shown && ret->linkage;
}

static bool make_names(struct entries *entries)
{
	struct buf text;
	bool made = true;

	buf_init(&text, 2 * LIMIT_NAME_BYTES);
	for (size_t i = 0; made && i < entries->plt.count; i++)
		made = make_name(entries, &entries->plt.items[i], &text, &entries->names[i]);
	buf_deinit(&text);
	return made;
}

/* A file that cannot be read has no entries. After a lack of memory it is tried again. */
static void *read_entries(const void *image)
{
	struct entries *entries AUTO_ENTRIES = calloc(1, sizeof(*entries));
	struct sym_error *error;
	bool again;

	if (!entries)
		return NULL;
	error = plt_read(image, &entries->plt);
	again = sym_error_is_no_memory(error);
	sym_error_destroy(error);
	if (again)
		return NULL;
	entries->names = calloc(entries->plt.count + 1, sizeof(*entries->names));
	if (!entries->names || !make_names(entries))
		return NULL;
	/* The entries point to copies. */
	elf_sections_deinit(&entries->plt.sections);
	elf_symbols_deinit(&entries->plt.indirect);
	return STEAL(entries);
}

static const struct entries *get_entries(struct plt_source *own)
{
	return lazy_get(&own->entries, read_entries, entries_destroy, own->object);
}

/* A file that cannot be read has no extents. After a lack of memory it is tried again. */
static void *read_extents(const void *image)
{
	struct plt_extents *extents = calloc(1, sizeof(*extents));
	struct sym_error *error = extents ? plt_extents_read(image, extents) : NULL;
	bool again = sym_error_is_no_memory(error);

	sym_error_destroy(error);
	if (!again)
		return extents;
	free(extents);
	return NULL;
}

static enum source_outcome plt_source_find(void *source, uint64_t position,
					   struct source_match *ret)
{
	struct plt_source *own = source;
	const struct plt_extents *extents =
		lazy_get(&own->extents, read_extents, free, own->object);
	const struct entries *entries;
	const struct entry_names *names;
	size_t number;

	if (!extents)
		return SOURCE_SHORT;
	if (!plt_extents_contain(extents, position))
		return SOURCE_MISS;
	entries = get_entries(own);
	if (!entries)
		return SOURCE_SHORT;
	number = plt_find(&entries->plt, position);
	if (number == PLT_NONE)
		return SOURCE_MISS;
	names = &entries->names[number];
	*ret = (struct source_match){
		.start = entries->plt.items[number].vaddr,
		.size_bytes = entries->plt.items[number].size_bytes,
		.name = names->shown,
		.linkage_name = names->linkage == names->shown ? NULL : names->linkage,
		.kind = SYM_SYMBOL_STUB,
	};
	return SOURCE_HIT;
}

static struct sym_error *plt_source_list(void *source, const struct source_sink *sink)
{
	const struct entries *entries = sink->stubs ? get_entries(source) : NULL;

	if (sink->stubs && !entries)
		return &sym_error_no_memory;
	for (size_t i = 0; entries && i < entries->plt.count; i++) {
		const struct entry_names *names = &entries->names[i];
		const char *name = sink->linkage_names ? names->linkage : names->shown;
		struct sym_symbol symbol = {
			.start = sink->base + entries->plt.items[i].vaddr,
			.size_bytes = entries->plt.items[i].size_bytes,
			.kind = SYM_SYMBOL_STUB,
			.source = SYM_SOURCE_ELF,
			.image_index = sink->image_index,
		};

		symbols_builder_add(sink->builder, &symbol, name, strlen(name));
	}
	return NULL;
}

const struct source_ops source_plt = {
	.kind = SYM_SOURCE_ELF,
	.for_elf = true,
	.is_extra = true,
	.open = open_source,
	.find = plt_source_find,
	.list = plt_source_list,
	.close = close_source,
};
