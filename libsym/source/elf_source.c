/* SPDX-License-Identifier: MIT */
/*
 * Symbols of an ELF image by vaddr. Knows how far a symbol reaches: one with a
 * size as far as that, one without to the next symbol of its section, and what
 * has a size wins over what has not. An image that has only .dynsym is asked
 * for its separate debug file, then for .gnu_debugdata; where there is neither, other functions
 * lie between its symbols, and one without a size ends with the function of .eh_frame that it is
 * in, or where the next one begins.
 *
 * The first questions are answered by passes over the table (elf_glance.h); only when there are
 * more of them are all symbols sorted into an index.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/lazy.h"
#include "libsym/debugfile.h"
#include "libsym/demangle.h"
#include "libsym/elf_functions.h"
#include "libsym/elf_glance.h"
#include "libsym/elf_symbols.h"
#include "libsym/go_functions.h"
#include "libsym/index.h"
#include "libsym/limits.h"
#include "libsym/minidebug.h"
#include "libsym/source/source.h"

enum {
	MAX_TABLES = 2,
	/* Sorting a table takes as long as some hundred passes over it. */
	MAX_GLANCES = 32
};

/* All symbols. Made as a whole. */
struct elf_whole {
	/* Where tables are: the image itself or its debug file, and what .gnu_debugdata adds. */
	const struct image *images[MAX_TABLES];
	uint64_t distances[MAX_TABLES]; /* what their vaddrs lack, as the image was moved since */
	size_t image_count;
	struct image *debug_image; /* NULL: none */
	struct image *mini_image;  /* NULL: none */
	struct index *index;       /* NULL: there are no symbols */
	/* By number of the piece in the index: names as a person would write them, made when first
	 * asked for; `not_mangled` for those that are so already. */
	_Atomic(char *) *shown;
	bool is_complete;        /* there is a .symtab: every function has a symbol */
	const char *symbol_file; /* path of the image that has it; NULL: there are only exports */
};

/* An answer without the index; its strings are kept as long as the source. */
struct glanced {
	struct glanced *next;
	uint64_t position;
	enum elf_glance_outcome outcome;
	struct elf_symbol symbol;
	char *shown; /* as a person would write it; NULL: as it is */
	char name[];
};

struct elf_source {
	struct image *image;
	struct debugfile_roots roots;
	struct image *debug_image; /* that was found for the glance; NULL: look for one */
	struct lazy whole;         /* struct elf_whole */
	pthread_mutex_t glance_lock;
	struct elf_glance *glance;         /* NULL: the index has to be asked; under the lock */
	_Atomic(struct glanced *) glanced; /* the newest */
	size_t glance_count;
	bool is_complete; /* as of the whole */
	char *symbol_file;
};

/* With a piece of the index. */
enum {
	HAS_SIZE = 0,
	HAS_NO_SIZE = 1
};

static char not_mangled[1];

static void free_shown(struct elf_whole *elf)
{
	for (size_t i = 0; elf->shown && i < index_count(elf->index); i++) {
		char *name = atomic_load_explicit(&elf->shown[i], memory_order_relaxed);

		if (name != not_mangled)
			free(name);
	}
	free(elf->shown);
}

static void close_whole(struct elf_whole *elf)
{
	if (!elf)
		return;
	free_shown(elf);
	index_destroy(elf->index);
	image_close(elf->mini_image);
	image_close(elf->debug_image);
	free(elf);
}

DEFINE_GUARD(elf_whole, struct elf_whole *, close_whole)
#define AUTO_ELF_WHOLE GUARDED(elf_whole)

static void close_elf(void *source)
{
	struct elf_source *own = source;
	struct glanced *glanced;

	if (!own)
		return;
	glanced = atomic_load(&own->glanced);
	while (glanced) {
		struct glanced *next = glanced->next;

		free(glanced->shown);
		free(glanced);
		glanced = next;
	}
	elf_glance_close(own->glance);
	pthread_mutex_destroy(&own->glance_lock);
	image_close(own->debug_image);
	free(own->symbol_file);
	close_whole(lazy_deinit(&own->whole));
	free(own);
}

DEFINE_GUARD(elf_source, struct elf_source *, close_elf)
#define AUTO_ELF_SOURCE GUARDED(elf_source)

static bool is_first_at_its_place(const struct elf_symbols *symbols, size_t i)
{
	return !i || symbols->items[i - 1].vaddr != symbols->items[i].vaddr;
}

/* Those without a size first: what is added later wins. */
static void add_symbols(struct index_builder *builder, const struct elf_symbols *symbols)
{
	for (int sized = 0; sized < 2; sized++)
		for (size_t i = 0; i < symbols->count; i++) {
			const struct elf_symbol *symbol = &symbols->items[i];

			if (is_first_at_its_place(symbols, i) && !!symbol->size_bytes == sized)
				index_builder_add(builder, symbol->vaddr, symbol->reach_bytes,
						  symbol->name, symbol->name_bytes,
						  sized ? HAS_SIZE : HAS_NO_SIZE);
		}
}

static void move(struct elf_symbols *symbols, uint64_t distance)
{
	for (size_t i = 0; i < symbols->count; i++)
		symbols->items[i].vaddr += distance;
}

/* The better of what the image and its debug file have; the image's own when that one has less. */
static struct sym_error *prefer_debug_file(struct elf_whole *elf, const struct elf_source *own,
					   struct elf_symbols *symbols)
{
	struct elf_symbols separate;
	struct sym_error *error = NULL;
	uint64_t distance = 0;

	if (own->debug_image)
		elf->debug_image = image_share(own->debug_image);
	else
		error = debugfile_find(&symbols->sections, &own->roots, &elf->debug_image,
				       &distance);
	if (error || !elf->debug_image)
		return error;
	error = elf_symbols_read(elf->debug_image, &separate);
	if (error && sym_error_code(error) != SYM_ERROR_NO_MEMORY) {
		/* A damaged debug file costs only itself. */
		image_note_trouble(own->image, error);
		sym_error_destroy(error);
		return NULL;
	}
	if (error)
		return error;
	if (separate.count > symbols->count) {
		move(&separate, distance);
		elf_symbols_deinit(symbols);
		*symbols = separate;
		elf->images[0] = elf->debug_image;
		elf->distances[0] = distance;
	} else {
		elf_symbols_deinit(&separate);
	}
	return NULL;
}

/* What .dynsym lacks, in a small file inside the image; only where there is no better. */
static struct sym_error *add_mini_symbols(struct elf_whole *elf, const struct image *image,
					  struct elf_symbols *symbols,
					  struct index_builder *builder)
{
	struct elf_symbols mini;
	struct sym_error *error;
	uint64_t distance;

	if (symbols->has_full_table)
		return NULL;
	error = minidebug_open(&symbols->sections, &elf->mini_image);
	if (error || !elf->mini_image || elf->mini_image->kind != SYM_IMAGE_ELF)
		return error;
	error = elf_symbols_read(elf->mini_image, &mini);
	if (error && sym_error_code(error) != SYM_ERROR_NO_MEMORY) {
		sym_error_destroy(error);
		return NULL;
	}
	if (error)
		return error;
	if (elf_sections_distance(&symbols->sections, &mini.sections, &distance))
		move(&mini, distance);
	else
		mini.count = 0;
	add_symbols(builder, &mini);
	if (mini.count) {
		elf->distances[elf->image_count] = distance;
		elf->images[elf->image_count++] = elf->mini_image;
		elf->symbol_file = image->path;
	}
	elf_symbols_deinit(&mini);
	return NULL;
}

/* .init and .fini, whose symbols often have no size, hold nothing else and are smaller. */
enum {
	LARGEST_SECTION_OF_ONE = 32
};

static bool may_reach_too_far(const struct elf_symbols *symbols)
{
	for (size_t i = 0; i < symbols->count; i++)
		if (!symbols->items[i].size_bytes &&
		    symbols->items[i].reach_bytes > LARGEST_SECTION_OF_ONE)
			return true;
	return false;
}

/*
 * ld -x leaves the functions of single files out of a full table, and tells nobody: another one
 * that begins behind that of the symbol has lost its name. Where the symbol's own ends is not
 * believed; what is written by hand may go on.
 */
static void bound_in_full_table(const struct elf_functions *functions, struct elf_symbols *symbols)
{
	for (size_t i = 0; i < symbols->count; i++) {
		struct elf_symbol *symbol = &symbols->items[i];
		uint64_t next = elf_functions_next_after(functions, symbol->vaddr);

		if (!symbol->size_bytes && next - symbol->vaddr < symbol->reach_bytes)
			symbol->reach_bytes = next - symbol->vaddr;
	}
}

/* Bounds of functions stop symbols that have no size. */
static struct sym_error *bound_reach(struct image *image, struct elf_symbols *symbols)
{
	const struct elf_functions *functions;
	struct go_functions *go;
	size_t kept = 0;

	if (!may_reach_too_far(symbols))
		return NULL;
	functions = elf_functions_of(image);
	if (!functions)
		return &sym_error_no_memory;
	if (symbols->has_full_table) {
		bound_in_full_table(functions, symbols);
		return NULL;
	}
	go = go_functions_of(image);
	if (!go)
		return &sym_error_no_memory;
	for (size_t i = 0; i < symbols->count; i++) {
		struct elf_symbol *symbol = &symbols->items[kept];
		uint64_t end, go_end;

		*symbol = symbols->items[i];
		end = elf_functions_end_of(functions, symbol->vaddr);
		go_end = go_functions_bound(go, symbol->vaddr);
		if (go_end < end)
			end = go_end;
		if (!symbol->size_bytes && end - symbol->vaddr < symbol->reach_bytes)
			symbol->reach_bytes = end - symbol->vaddr;
		/* A mark inside Go's code is no function. */
		kept += symbol->size_bytes || go_end > symbol->vaddr;
	}
	symbols->count = kept;
	return NULL;
}

/* Into one index, from which an image without any symbol has none. */
static struct sym_error *index_tables(struct elf_whole *elf, const struct image *image,
				      struct elf_symbols *symbols)
{
	struct index_builder *builder AUTO_INDEX_BUILDER = NULL;
	struct sym_error *error = index_builder_create(&builder);

	if (error)
		return error;
	elf->is_complete = symbols->has_full_table;
	if (symbols->has_full_table)
		elf->symbol_file = elf->images[0]->path;
	add_symbols(builder, symbols);
	error = add_mini_symbols(elf, image, symbols, builder);
	if (error || index_builder_is_empty(builder))
		return error;
	error = index_freeze(builder, &elf->index);
	if (error)
		return error;
	elf->shown = calloc(index_count(elf->index) + 1, sizeof(*elf->shown));
	return elf->shown ? NULL : &sym_error_no_memory;
}

static struct sym_error *read_whole(const struct elf_source *own, struct elf_whole **ret)
{
	struct image *image = own->image;
	struct elf_whole *elf AUTO_ELF_WHOLE = calloc(1, sizeof(*elf));
	struct elf_symbols symbols;
	struct sym_error *error;

	if (!elf)
		return &sym_error_no_memory;
	elf->images[elf->image_count++] = image;
	error = elf_symbols_read(image, &symbols);
	if (error)
		return error;
	if (!symbols.has_full_table)
		error = prefer_debug_file(elf, own, &symbols);
	if (!error)
		error = index_tables(elf, image, &symbols);
	elf_symbols_deinit(&symbols);
	if (!error)
		*ret = STEAL(elf);
	return error;
}

/* A file that cannot be read any more has no symbols; want of memory or descriptors is tried again.
 */
static void *make_whole(const void *context)
{
	const struct elf_source *own = context;
	struct elf_whole *whole = NULL;
	struct sym_error *error = read_whole(own, &whole);

	if (error && sym_error_code(error) != SYM_ERROR_NO_MEMORY && !sym_error_is_shortage(error))
		whole = calloc(1, sizeof(*whole));
	sym_error_destroy(error);
	return whole;
}

static const struct elf_whole *get_whole(struct elf_source *own)
{
	return lazy_get(&own->whole, make_whole, own);
}

static struct sym_error *note_table(struct elf_source *own, bool is_complete,
				    const char *symbol_file)
{
	own->is_complete = is_complete;
	own->symbol_file = symbol_file ? strdup(symbol_file) : NULL;
	return symbol_file && !own->symbol_file ? &sym_error_no_memory : NULL;
}

/* All symbols at once, where there are few, or it takes more than a glance. */
static struct sym_error *open_whole(struct elf_source *own, struct buf *why, bool *any_ret)
{
	struct elf_whole *whole;
	struct sym_error *error = read_whole(own, &whole);

	if (error)
		return error;
	lazy_set(&own->whole, whole);
	*any_ret = whole->index;
	if (!whole->index)
		buf_append_string(why, "it has no symbol table");
	return note_table(own, whole->is_complete, whole->symbol_file);
}

static struct sym_error *note_glance(struct elf_source *own)
{
	struct image *debug_image = elf_glance_debug_image(own->glance);
	bool is_complete = elf_glance_is_complete(own->glance);

	if (debug_image)
		own->debug_image = image_share(debug_image);
	return note_table(own, is_complete, is_complete ? elf_glance_path(own->glance) : NULL);
}

static struct sym_error *open_elf(const struct source_input *input, struct buf *why, void **ret)
{
	struct elf_source *own AUTO_ELF_SOURCE = NULL;
	struct sym_error *error;
	bool any = true;

	*ret = NULL;
	if (input->image->kind != SYM_IMAGE_ELF)
		return NULL;
	own = calloc(1, sizeof(*own));
	if (!own)
		return &sym_error_no_memory;
	own->image = input->image;
	own->roots = input->roots;
	lazy_init(&own->whole);
	pthread_mutex_init(&own->glance_lock, NULL);
	error = elf_glance_open(own->image, &own->roots, &own->glance);
	if (!error && !own->glance)
		error = open_whole(own, why, &any);
	else if (!error)
		error = note_glance(own);
	if (!error && any)
		*ret = STEAL(own);
	return error;
}

/* NULL where the name is no mangled one, or for want of memory. */
static const char *shown_name(const struct elf_whole *elf, size_t number, const char *name)
{
	_Atomic(char *) *place = &elf->shown[number];
	char *made, *none = NULL;
	struct buf text;

	if (!demangle_is_candidate(name))
		return NULL;
	made = atomic_load_explicit(place, memory_order_acquire);
	if (!made) {
		buf_init(&text, LIMIT_NAME_BYTES + 1);
		if (demangle(name, &text))
			made = buf_steal(&text, NULL);
		else
			made = text.failure == BUF_NO_MEMORY ? NULL : not_mangled;
		buf_deinit(&text);
		if (made && !atomic_compare_exchange_strong(place, &none, made)) {
			if (made != not_mangled)
				free(made);
			made = none;
		}
	}
	return made == not_mangled ? NULL : made;
}

/* Does a symbol without a size reach the position: does no function end, and no other one begin,
 * between its start and there? */
static enum source_outcome reaches(struct elf_source *own, uint64_t start, uint64_t position)
{
	const struct elf_functions *functions;
	struct go_functions *go;
	uint64_t end;

	if (!own->is_complete) {
		/* The code of a Go program has no records in .eh_frame. */
		go = go_functions_of(own->image);
		if (!go)
			return SOURCE_SHORT;
		if (go_functions_bound(go, start) <= position)
			return SOURCE_MISS;
	}
	if (position == start)
		return SOURCE_HIT;
	functions = elf_functions_of(own->image);
	if (!functions)
		return SOURCE_SHORT;
	end = own->is_complete ? elf_functions_next_after(functions, start)
			       : elf_functions_end_of(functions, start);
	return end <= position ? SOURCE_MISS : SOURCE_HIT;
}

static enum source_outcome find_in_whole(struct elf_source *own, const struct elf_whole *elf,
					 uint64_t position, struct source_match *ret)
{
	struct index_entry entry;
	size_t found = elf->index ? index_look_up(elf->index, position, &entry) : INDEX_NONE;
	enum source_outcome outcome = found == INDEX_NONE ? SOURCE_MISS : SOURCE_HIT;
	const char *shown;

	if (found != INDEX_NONE && entry.value == HAS_NO_SIZE)
		outcome = reaches(own, entry.symbol_start, position);
	if (outcome != SOURCE_HIT)
		return outcome;
	shown = shown_name(elf, found, entry.name);
	*ret = (struct source_match){
		.start = entry.symbol_start,
		/* How far one without a size really reaches is not known. */
		.size_bytes = entry.value == HAS_NO_SIZE && !own->is_complete
				      ? 0
				      : entry.symbol_size_bytes,
		.name = shown ? shown : entry.name,
		.linkage_name = shown ? entry.name : NULL,
		.kind = SYM_SYMBOL_FUNCTION,
	};
	return SOURCE_HIT;
}

static const struct glanced *find_glanced(const struct elf_source *own, uint64_t position)
{
	const struct glanced *glanced =
		atomic_load_explicit(&((struct elf_source *)own)->glanced, memory_order_acquire);

	while (glanced && glanced->position != position)
		glanced = glanced->next;
	return glanced;
}

/* With the lock held. NULL: the index has to be asked. */
static const struct glanced *glance_at(struct elf_source *own, uint64_t position)
{
	const struct glanced *known = find_glanced(own, position);
	struct elf_symbol symbol = { .name = "" };
	enum elf_glance_outcome outcome;
	struct glanced *glanced;
	struct buf text;

	if (known || !own->glance)
		return known;
	outcome = own->glance_count++ < MAX_GLANCES
			  ? elf_glance_find(own->glance, position, &symbol)
			  : ELF_GLANCE_UNABLE;
	glanced = outcome == ELF_GLANCE_UNABLE
			  ? NULL
			  : calloc(1, sizeof(*glanced) + symbol.name_bytes + 1);
	if (!glanced) {
		elf_glance_close(STEAL(own->glance));
		return NULL;
	}
	memcpy(glanced->name, symbol.name, symbol.name_bytes);
	glanced->position = position;
	glanced->outcome = outcome;
	glanced->symbol = symbol;
	buf_init(&text, LIMIT_NAME_BYTES + 1);
	if (demangle_is_candidate(glanced->name) && demangle(glanced->name, &text))
		glanced->shown = buf_steal(&text, NULL);
	buf_deinit(&text);
	glanced->next = atomic_load(&own->glanced);
	atomic_store_explicit(&own->glanced, glanced, memory_order_release);
	return glanced;
}

static enum source_outcome take_glanced(struct elf_source *own, const struct glanced *glanced,
					struct source_match *ret)
{
	const struct elf_symbol *symbol = &glanced->symbol;
	enum source_outcome outcome =
		glanced->outcome == ELF_GLANCE_MISS ? SOURCE_MISS : SOURCE_HIT;

	if (outcome == SOURCE_HIT && !symbol->size_bytes)
		outcome = reaches(own, symbol->vaddr, glanced->position);
	if (outcome != SOURCE_HIT)
		return outcome;
	*ret = (struct source_match){
		.start = symbol->vaddr,
		.size_bytes = symbol->size_bytes || own->is_complete ? symbol->reach_bytes : 0,
		.name = glanced->shown ? glanced->shown : glanced->name,
		.linkage_name = glanced->shown ? glanced->name : NULL,
		.kind = SYM_SYMBOL_FUNCTION,
	};
	return SOURCE_HIT;
}

static enum source_outcome find_symbol(void *source, uint64_t position, struct source_match *ret)
{
	struct elf_source *own = source;
	const struct elf_whole *whole = lazy_peek(&own->whole);
	const struct glanced *glanced = NULL;

	if (whole)
		return find_in_whole(own, whole, position, ret);
	pthread_mutex_lock(&own->glance_lock);
	glanced = glance_at(own, position);
	pthread_mutex_unlock(&own->glance_lock);
	if (glanced)
		return take_glanced(own, glanced, ret);
	whole = get_whole(own);
	return whole ? find_in_whole(own, whole, position, ret) : SOURCE_SHORT;
}

static void list_symbol(const struct elf_symbol *item, const struct source_sink *sink,
			struct buf *text)
{
	struct sym_symbol symbol = {
		.start = sink->base + item->vaddr,
		.size_bytes = item->reach_bytes,
		.kind = SYM_SYMBOL_FUNCTION,
		.source = SYM_SOURCE_ELF,
		.image_index = sink->image_index,
	};

	buf_clear(text);
	/* A version ends the name, and mangled names have none in .dynsym. */
	if (!sink->linkage_names && demangle_is_candidate(item->name) &&
	    !item->name[item->name_bytes] && demangle(item->name, text))
		symbols_builder_add(sink->builder, &symbol, text->data, text->size_bytes);
	else
		symbols_builder_add(sink->builder, &symbol, item->name, item->name_bytes);
}

/* In the order of add_symbols(): a label inside a function hides nothing of it. */
static void list_table(const struct elf_symbols *symbols, const struct source_sink *sink)
{
	struct buf text;

	buf_init(&text, 2 * LIMIT_NAME_BYTES);
	for (int sized = 0; sized < 2; sized++)
		for (size_t i = 0; i < symbols->count; i++)
			if (!!symbols->items[i].size_bytes == sized)
				list_symbol(&symbols->items[i], sink, &text);
	buf_deinit(&text);
}

/* The index keeps one name for a place; a list has them all, so the tables are read again. */
static struct sym_error *list_symbols(void *source, const struct source_sink *sink)
{
	struct elf_source *own = source;
	struct elf_whole *read AUTO_ELF_WHOLE = NULL;
	const struct elf_whole *elf = lazy_peek(&own->whole);

	if (!elf || !elf->image_count) {
		struct sym_error *error = read_whole(own, &read);

		if (error)
			return error;
		elf = read;
	}
	for (size_t i = 0; i < elf->image_count; i++) {
		struct elf_symbols symbols;
		struct sym_error *error = elf_symbols_read(elf->images[i], &symbols);

		if (error)
			return error;
		move(&symbols, elf->distances[i]);
		if (!i)
			error = bound_reach(own->image, &symbols);
		if (!error)
			list_table(&symbols, sink);
		elf_symbols_deinit(&symbols);
		if (error)
			return error;
	}
	return NULL;
}

static bool is_complete(const void *source)
{
	const struct elf_source *elf = source;

	return elf->is_complete;
}

static const char *symbol_file(const void *source)
{
	return ((const struct elf_source *)source)->symbol_file;
}

const struct source_ops source_elf = {
	.kind = SYM_SOURCE_ELF,
	.open = open_elf,
	.find = find_symbol,
	.is_complete = is_complete,
	.list = list_symbols,
	.close = close_elf,
	.symbol_file = symbol_file,
};
