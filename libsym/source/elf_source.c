/* SPDX-License-Identifier: MIT */
/*
 * Symbols of an ELF image, by vaddr.
 *
 * Where a symbol ends:
 * - With a size: after that many bytes. Such a symbol wins over one without a size.
 * - Without a size: at the next symbol of its section.
 *
 * Where symbols come from:
 * - .symtab of the image.
 * - With .dynsym only: its separate debug file, then .gnu_debugdata.
 * - With neither: exports only, and unnamed functions lie between them. A symbol without a size
 *   then ends with its function in .eh_frame.
 * - Without such a function it has the bytes of function_bounds_own_end(). Unnamed code after them
 *   stays unnamed.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/elf/debugfile.h"
#include "libsym/elf/elf_symbols.h"
#include "libsym/elf/function_bounds.h"
#include "libsym/elf/go_functions.h"
#include "libsym/elf/minidebug.h"
#include "libsym/index/index.h"
#include "libsym/limits.h"
#include "libsym/source/source.h"
#include "libsym/symbols/demangle.h"

enum {
	MAX_TABLES = 2
};

struct elf_source {
	struct object_file *object;
	struct debugfile_roots roots;
	/* Files with tables: the image or its debug file, and .gnu_debugdata. */
	const struct object_file *files[MAX_TABLES];
	uint64_t distances[MAX_TABLES]; /* added to their vaddrs: the image was moved after the
					   split */
	size_t file_count;
	struct object_file *debug_file;         /* NULL: none */
	struct object_file *mini_debug_file;    /* NULL: none */
	struct elf_sections tables[MAX_TABLES]; /* the names are in them */
	struct index *index;                    /* NULL: there are no symbols */
	const char **names;                     /* by symbol number in the index */
	size_t name_count;
	/*
	 * By the same number: the readable name, made when it is first needed. If the name has a
	 * version, the linkage name without it follows. `as_it_is` when the name is readable
	 * already.
	 */
	_Atomic(char *) *shown;
	bool is_complete;               /* a .symtab exists: every function has a symbol */
	const char *symbol_file;        /* path of the file that contains it; NULL: only exports */
	struct budget_account *account; /* of the image */
	uint64_t charged_bytes;         /* for `shown` and its texts */
};

/* Value of an index entry. */
enum {
	HAS_SIZE = 0,
	HAS_NO_SIZE = 1
};

static char as_it_is[1];

static void free_shown(struct elf_source *elf)
{
	for (size_t i = 0; elf->shown && i < elf->name_count; i++) {
		char *name = atomic_load_explicit(&elf->shown[i], memory_order_relaxed);

		if (name != as_it_is)
			free(name);
	}
	free(elf->shown);
}

static void close_elf(void *source)
{
	struct elf_source *elf = source;

	if (!elf)
		return;
	free_shown(elf);
	index_destroy(elf->index);
	free(elf->names);
	for (size_t i = 0; i < MAX_TABLES; i++)
		if (elf->tables[i].object)
			elf_sections_deinit(&elf->tables[i]);
	budget_release(elf->account, elf->charged_bytes);
	object_file_close(elf->mini_debug_file);
	object_file_close(elf->debug_file);
	free(elf);
}

DEFINE_GUARD(elf_source, struct elf_source *, close_elf)
#define AUTO_ELF_SOURCE GUARDED(elf_source)

static bool is_first_at_its_place(const struct elf_symbols *symbols, size_t i)
{
	return !i || symbols->items[i - 1].vaddr != symbols->items[i].vaddr;
}

/*
 * In ascending order, without labels inside a function: they would hide parts of it, because what
 * is added later wins. The names are not copied.
 */
static struct sym_error *add_symbols(struct elf_source *elf, struct index_builder *builder,
				     struct elf_symbols *symbols)
{
	size_t first = elf->name_count, table = !!elf->tables[0].object;
	uint64_t end = 0; /* of the functions with a size */
	const char **names = reallocarray(elf->names, first + symbols->count + 1, sizeof(*names));

	if (!names)
		return &sym_error_no_memory;
	elf->names = names;
	index_builder_reserve(builder, symbols->count, 0);
	for (size_t i = 0; i < symbols->count; i++)
		elf->names[first + i] = symbols->items[i].name;
	elf->name_count += symbols->count;
	for (size_t i = 0; i < symbols->count; i++) {
		const struct elf_symbol *symbol = &symbols->items[i];

		if (!is_first_at_its_place(symbols, i) ||
		    (!symbol->size_bytes && symbol->vaddr < end))
			continue;
		index_builder_add_number(builder, symbol->vaddr, symbol->reach_bytes,
					 (uint32_t)(first + i),
					 symbol->size_bytes ? HAS_SIZE : HAS_NO_SIZE);
		if (symbol->size_bytes && symbol->vaddr + symbol->reach_bytes > end)
			end = symbol->vaddr + symbol->reach_bytes;
	}
	elf->tables[table] = symbols->sections;
	symbols->sections = (struct elf_sections){ 0 };
	return NULL;
}

static void elf_source_move_symbols(struct elf_symbols *symbols, uint64_t distance)
{
	for (size_t i = 0; i < symbols->count; i++)
		symbols->items[i].vaddr += distance;
}

/* Chooses the symbols of the debug file, or the image's own if that has more. */
static struct sym_error *prefer_debug_file(struct elf_source *elf, struct elf_symbols *symbols)
{
	struct elf_symbols separate;
	struct sym_error *error;
	uint64_t distance = 0;

	error = debugfile_find(&symbols->sections, &elf->roots, &elf->debug_file, &distance);
	if (error || !elf->debug_file)
		return error;
	error = elf_symbols_read(elf->debug_file, &separate);
	if (error && !sym_error_is_no_memory(error)) {
		/* A damaged debug file makes only itself unusable. */
		object_file_record_problem(elf->object, error);
		debugfile_record_unused(elf->object, sym_error_message(error));
		sym_error_destroy(error);
		return NULL;
	}
	if (error)
		return error;
	if (separate.count > symbols->count) {
		elf_source_move_symbols(&separate, distance);
		elf_symbols_deinit(symbols);
		*symbols = separate;
		elf->files[0] = elf->debug_file;
		elf->distances[0] = distance;
	} else {
		elf_symbols_deinit(&separate);
	}
	return NULL;
}

/* Adds the symbols of .gnu_debugdata, if there is nothing better. */
static struct sym_error *add_mini_symbols(struct elf_source *elf, struct index_builder *builder)
{
	struct elf_sections *sections = &elf->tables[0];
	struct elf_symbols mini;
	struct sym_error *error;
	uint64_t distance;

	if (elf->is_complete)
		return NULL;
	error = minidebug_open(sections, &elf->mini_debug_file);
	if (error || !elf->mini_debug_file || elf->mini_debug_file->kind != SYM_IMAGE_ELF)
		return error;
	error = elf_symbols_read(elf->mini_debug_file, &mini);
	if (error)
		return sym_error_only_no_memory(error);
	if (elf_sections_distance(sections, &mini.sections, &distance))
		elf_source_move_symbols(&mini, distance);
	else
		mini.count = 0;
	error = add_symbols(elf, builder, &mini);
	if (!error && mini.count) {
		elf->distances[elf->file_count] = distance;
		elf->files[elf->file_count++] = elf->mini_debug_file;
		elf->symbol_file = elf->object->path;
	}
	elf_symbols_deinit(&mini);
	return error;
}

static bool has_sizeless(const struct elf_symbols *symbols)
{
	for (size_t i = 0; i < symbols->count; i++)
		if (!symbols->items[i].size_bytes)
			return true;
	return false;
}

/*
 * ld -x silently drops local functions from a full table.
 * If another function starts after the one of the symbol, it has lost its name, so the symbol ends
 * there.
 * The end of the symbol's own function is not used: assembly code can continue after it.
 */
static void bound_in_full_table(const struct function_bounds *functions,
				struct elf_symbols *symbols)
{
	for (size_t i = 0; i < symbols->count; i++) {
		struct elf_symbol *symbol = &symbols->items[i];
		uint64_t next = function_bounds_next_after(functions, symbol->vaddr);

		if (!symbol->size_bytes && next - symbol->vaddr < symbol->reach_bytes)
			symbol->reach_bytes = next - symbol->vaddr;
	}
}

/* Bounds of functions end symbols that have no size. */
static struct sym_error *bound_reach(struct object_file *object, struct elf_symbols *symbols)
{
	const struct function_bounds *functions;
	struct go_functions *go;
	size_t kept = 0;

	if (!has_sizeless(symbols))
		return NULL;
	functions = function_bounds_of(object);
	if (!functions)
		return &sym_error_no_memory;
	if (symbols->has_full_table) {
		bound_in_full_table(functions, symbols);
		return NULL;
	}
	go = go_functions_of(object);
	if (!go)
		return &sym_error_no_memory;
	for (size_t i = 0; i < symbols->count; i++) {
		struct elf_symbol *symbol = &symbols->items[kept];
		uint64_t end, go_end;

		*symbol = symbols->items[i];
		go_end = go_functions_bound(go, symbol->vaddr);
		end = symbol->vaddr + symbol->reach_bytes;
		end = function_bounds_own_end(functions, symbol->vaddr,
					      go_end < end ? go_end : end);
		if (go_end < end)
			end = go_end;
		if (!symbol->size_bytes && end - symbol->vaddr < symbol->reach_bytes)
			symbol->reach_bytes = end - symbol->vaddr;
		/* A label inside Go code is not a function. */
		kept += symbol->size_bytes || go_end > symbol->vaddr;
	}
	symbols->count = kept;
	return NULL;
}

/* Builds one index. An image without any symbol has no index. */
static struct sym_error *index_tables(struct elf_source *elf, struct elf_symbols *symbols)
{
	const char *path = elf->object->path;
	struct index_builder *builder AUTO_INDEX_BUILDER = NULL;
	struct sym_error *error = index_builder_create_numbered(&builder);
	uint64_t shown_bytes;

	if (error)
		return error;
	index_builder_charge(builder, elf->account, path);
	elf->is_complete = symbols->has_full_table;
	if (symbols->has_full_table)
		elf->symbol_file = elf->files[0]->path;
	error = add_symbols(elf, builder, symbols);
	if (!error)
		error = add_mini_symbols(elf, builder);
	if (error || index_builder_is_empty(builder))
		return error;
	error = index_freeze(builder, &elf->index);
	if (error)
		return error;
	/* Includes `names`. */
	shown_bytes = 2 * (elf->name_count + 1) * sizeof(*elf->shown);
	error = budget_charge(elf->account, shown_bytes, path);
	if (error)
		return error;
	elf->charged_bytes = shown_bytes;
	elf->shown = calloc(elf->name_count + 1, sizeof(*elf->shown));
	return elf->shown ? NULL : &sym_error_no_memory;
}

static struct sym_error *open_elf(const struct source_input *input, struct buf *why, void **ret)
{
	struct elf_source *elf AUTO_ELF_SOURCE = calloc(1, sizeof(*elf));
	struct elf_symbols symbols;
	struct sym_error *error;

	if (!elf)
		return &sym_error_no_memory;
	elf->object = input->object;
	elf->roots = input->roots;
	elf->account = object_file_account(elf->object);
	elf->files[elf->file_count++] = elf->object;
	error = elf_symbols_read(elf->object, &symbols);
	if (error)
		return error;
	if (!symbols.has_full_table)
		error = prefer_debug_file(elf, &symbols);
	if (!error)
		error = index_tables(elf, &symbols);
	elf_symbols_deinit(&symbols);
	if (error)
		return error;
	if (elf->index)
		*ret = STEAL(elf);
	else
		buf_append_string(why, "it has no symbol table");
	return NULL;
}

/*
 * Makes the readable name. If the name in the table has a version, the linkage name without it
 * follows after the NUL, empty when it is the same.
 * NULL: the name is readable already. `*failed_ret`: out of memory.
 */
static char *make_shown(const char *name, bool *failed_ret)
{
	const struct elf_symbol symbol = { .name = name };
	size_t bytes = elf_symbols_name_bytes(&symbol);
	char *linkage AUTO_FREE = strndup(name, bytes);
	struct buf text;
	bool is_mangled;

	buf_init(&text, 2 * (LIMIT_NAME_BYTES + 1));
	*failed_ret = !linkage;
	if (linkage && demangle_is_candidate(linkage))
		demangle(linkage, &text);
	is_mangled = text.size_bytes;
	if (linkage && name[bytes]) {
		if (!is_mangled)
			buf_append(&text, linkage, bytes);
		buf_append(&text, "", 1);
		buf_append(&text, linkage, is_mangled ? bytes : 0);
	}
	*failed_ret |= text.failure == BUF_NO_MEMORY;
	if (text.failure || !text.size_bytes) {
		buf_deinit(&text);
		return NULL;
	}
	return buf_steal(&text, NULL);
}

/* The readable name, and its linkage name; NULL when both are the same. */
static const char *shown_name(const struct elf_source *elf, uint32_t number,
			      const char **linkage_ret)
{
	_Atomic(char *) *place = &elf->shown[number];
	const char *name = elf->names[number];
	char *made = atomic_load_explicit(place, memory_order_acquire), *none = NULL;
	bool failed = false;

	*linkage_ret = NULL;
	if (!made) {
		made = make_shown(name, &failed) ?: as_it_is;
		if (!failed && !atomic_compare_exchange_strong(place, &none, made)) {
			if (made != as_it_is)
				free(made);
			made = none;
		}
	}
	if (made == as_it_is)
		return name;
	*linkage_ret = name;
	if (elf_symbols_name_bytes(&(struct elf_symbol){ .name = name }) < strlen(name)) {
		*linkage_ret = made + strlen(made) + 1;
		if (!**linkage_ret)
			*linkage_ret = NULL;
	}
	return made;
}

/* Decides whether the position belongs to the function without a size that starts at `start`. */
static enum source_outcome elf_source_check_reach(struct elf_source *elf, uint64_t start,
						  uint64_t reach_bytes, uint64_t position)
{
	const struct function_bounds *functions;
	uint64_t end, limit = start + reach_bytes;
	struct go_functions *go;

	if (!elf->is_complete) {
		/* The code of a Go program has no records in .eh_frame. */
		go = go_functions_of(elf->object);
		if (!go)
			return SOURCE_SHORT;
		end = go_functions_bound(go, start);
		if (end <= position)
			return SOURCE_MISS;
		if (end < limit)
			limit = end;
	}
	if (position == start)
		return SOURCE_HIT;
	functions = function_bounds_of(elf->object);
	if (!functions)
		return SOURCE_SHORT;
	end = elf->is_complete ? function_bounds_next_after(functions, start)
			       : function_bounds_own_end(functions, start, limit);
	return end <= position ? SOURCE_MISS : SOURCE_HIT;
}

static enum source_outcome find_symbol(void *source, uint64_t position, struct source_match *ret)
{
	struct elf_source *elf = source;
	struct index_entry entry;
	const char *name, *linkage_name;

	if (index_look_up(elf->index, position, &entry) == INDEX_NONE)
		return SOURCE_MISS;
	if (entry.value == HAS_NO_SIZE) {
		enum source_outcome outcome = elf_source_check_reach(
			elf, entry.symbol_start, entry.symbol_size_bytes, position);

		if (outcome != SOURCE_HIT)
			return outcome;
	}
	name = shown_name(elf, entry.number, &linkage_name);
	*ret = (struct source_match){
		.start = entry.symbol_start,
		/* The real end of a symbol without a size is unknown. */
		.size_bytes = entry.value == HAS_NO_SIZE && !elf->is_complete
				      ? 0
				      : entry.symbol_size_bytes,
		.name = name,
		.linkage_name = linkage_name,
		.kind = SYM_SYMBOL_FUNCTION,
	};
	return SOURCE_HIT;
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

	size_t name_bytes = elf_symbols_name_bytes(item);

	buf_clear(text);
	/* A version follows the name. Mangled names in .dynsym have none. */
	if (!sink->linkage_names && demangle_is_candidate(item->name) && !item->name[name_bytes] &&
	    demangle(item->name, text))
		symbols_builder_add(sink->builder, &symbol, text->data, text->size_bytes);
	else
		symbols_builder_add(sink->builder, &symbol, item->name, name_bytes);
}

/* Functions are added after labels, and what is added later wins. */
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

/* The index keeps one name for each place. A list has all names, so the tables are read again. */
static struct sym_error *list_symbols(void *source, const struct source_sink *sink)
{
	const struct elf_source *elf = source;

	for (size_t i = 0; i < elf->file_count; i++) {
		struct elf_symbols symbols;
		struct sym_error *error = elf_symbols_read(elf->files[i], &symbols);

		if (error)
			return error;
		elf_source_move_symbols(&symbols, elf->distances[i]);
		error = bound_reach(elf->object, &symbols);
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
	return ((const struct elf_source *)source)->is_complete;
}

static const char *symbol_file(const void *source)
{
	return ((const struct elf_source *)source)->symbol_file;
}

const struct source_ops source_elf = {
	.kind = SYM_SOURCE_ELF,
	.for_elf = true,
	.open = open_elf,
	.find = find_symbol,
	.is_complete = is_complete,
	.list = list_symbols,
	.close = close_elf,
	.symbol_file = symbol_file,
};
