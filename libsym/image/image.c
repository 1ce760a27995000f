/* SPDX-License-Identifier: MIT */
/*
 * How an image answers.
 *
 * sources_open() opens all sources of source_table.c in their order, once, when the first position
 * is looked up. A source that does not apply returns NULL.
 * image_find_symbol() asks them in this order; the first hit wins. Without a hit it explains why:
 * what kind of image it is, which debug file is missing, what could not be read.
 * image_list_symbols() lists all sources in the same order. Symbols that start inside a symbol of
 * an earlier source are dropped (drop_shadowed()). Sources are never closed before the image. So
 * look-ups need no lock once they are open.
 */
#include "libsym/image/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/ascending.h"
#include "libsym/base/path.h"
#include "libsym/limits.h"
#include "libsym/source/dwarf_source.h"
#include "libsym/source/gopclntab_source.h"

/* The open sources of one image. Built as a whole, then never changed. */
struct image_sources {
	struct assembly_lookup assembly_lookup;
	struct r2r_assemblies assemblies;
	struct precompiled *precompiled;
	void *sources[SOURCE_COUNT]; /* as source_table; NULL: not opened */
	bool any;
	bool was_short; /* of descriptors: a later attempt may find more */
	/* The answer when there is no symbol. */
	enum sym_status status;
	char *reason;
};

static void sources_close(struct image_sources *sources)
{
	if (!sources)
		return;
	for (size_t i = 0; i < SOURCE_COUNT; i++)
		if (sources->sources[i] && source_table[i]->close)
			source_table[i]->close(sources->sources[i]);
	precompiled_close(sources->precompiled);
	assembly_lookup_deinit(&sources->assembly_lookup);
	free(sources->reason);
	free(sources);
}

DEFINE_GUARD(sources, struct image_sources *, sources_close)
#define AUTO_SOURCES GUARDED(sources)

static const char no_memory[] = "out of memory";

enum sym_status image_status_of_error(enum sym_error_code code)
{
	switch (code) {
	case SYM_ERROR_STALE:
		return SYM_STALE;
	case SYM_ERROR_FORMAT:
		return SYM_BAD_FORMAT;
	case SYM_ERROR_UNSUPPORTED:
		return SYM_UNSUPPORTED;
	default:
		return SYM_UNREADABLE;
	}
}

static enum sym_error_code error_of_status(enum sym_status status)
{
	switch (status) {
	case SYM_STALE:
		return SYM_ERROR_STALE;
	case SYM_BAD_FORMAT:
		return SYM_ERROR_FORMAT;
	case SYM_UNREADABLE:
		return SYM_ERROR_IO;
	default:
		return SYM_ERROR_UNSUPPORTED;
	}
}

struct sym_error *image_create(const char *path, struct object_file *object, struct sym_image **ret)
{
	struct sym_image *image AUTO_IMAGE = calloc(1, sizeof(*image));

	if (!image)
		return &sym_error_no_memory;
	pthread_mutex_init(&image->lock, NULL);
	atomic_init(&image->method_count, UINT64_MAX);
	debug_fetch_init(&image->debug_fetch);
	lazy_init(&image->members);
	lazy_init(&image->pdb_reference);
	lazy_init(&image->pdb);
	pthread_mutex_init(&image->foreign_lock, NULL);
	atomic_init(&image->index, UINT32_MAX);
	image->roots.fd = -1;
	image->load_base = UINT64_MAX;
	image->path = strdup(path);
	if (!image->path)
		return &sym_error_no_memory;
	image->object = object ? object_file_share(object) : NULL;
	if (object && object->unsupported)
		image_set_trouble(image, sym_error_create_path(SYM_ERROR_UNSUPPORTED, path,
							       SYM_OFFSET_UNKNOWN, "%s",
							       object->unsupported));
	*ret = STEAL(image);
	return NULL;
}

struct sym_image *image_share(struct sym_image *image)
{
	atomic_fetch_add_explicit(&image->users, 1, memory_order_relaxed);
	return image;
}

uint32_t image_index(const struct sym_image *image)
{
	uint32_t index = atomic_load_explicit(&image->index, memory_order_acquire);

	if (index != UINT32_MAX || !image->company.number)
		return index;
	image->company.number(image->company.images.context);
	return atomic_load_explicit(&image->index, memory_order_acquire);
}

void image_destroy(struct sym_image *image)
{
	if (!image || atomic_fetch_sub_explicit(&image->users, 1, memory_order_acq_rel))
		return;
	lazy_deinit(&image->members);
	lazy_deinit(&image->pdb_reference);
	lazy_deinit(&image->pdb);
	if (image->foreign)
		image->destroy_foreign(image->foreign);
	pthread_mutex_destroy(&image->foreign_lock);
	sources_close(atomic_load(&image->sources));
	debug_fetch_deinit(&image->debug_fetch);
	path_list_free(image->own_debug_dirs);
	object_file_close(image->object);
	free(atomic_load(&image->trouble));
	free(atomic_load(&image->refused_map));
	pthread_mutex_destroy(&image->lock);
	free(image->assembly_directory);
	path_list_free(image->assembly_dirs);
	free(image->path);
	free(image);
}

void image_set_trouble(struct sym_image *image, struct sym_error *error)
{
	static const char *const no_message = "unknown trouble";
	const char *message = error ? sym_error_message(error) : no_message;
	size_t bytes = strlen(message) + 1;
	struct image_trouble *trouble = malloc(sizeof(*trouble) + bytes);
	struct image_trouble *none = NULL;

	/* Being out of memory is not a property of the image. */
	if (trouble && error && !sym_error_is_no_memory(error)) {
		trouble->status = image_status_of_error(sym_error_code(error));
		memcpy(trouble->text, message, bytes);
		if (atomic_compare_exchange_strong(&image->trouble, &none, trouble))
			trouble = NULL;
	}
	free(trouble);
	sym_error_destroy(error);
}

const struct image_trouble *image_trouble(const struct sym_image *image)
{
	return atomic_load_explicit(&((struct sym_image *)image)->trouble, memory_order_acquire);
}

const char *image_refused_map(const struct sym_image *image)
{
	return atomic_load_explicit(&((struct sym_image *)image)->refused_map,
				    memory_order_acquire);
}

/* Explains an image without any source. */
static void explain_kind(const struct object_file *object, struct image_sources *sources,
			 struct buf *why)
{
	sources->status = SYM_NO_SYMBOLS;
	switch (object->kind) {
	case SYM_IMAGE_NGEN:
		sources->status = SYM_UNSUPPORTED;
		buf_append_string(why, "fragile native image of .NET Core 2.1: methods cannot be "
				       "listed");
		break;
	case SYM_IMAGE_IL:
		buf_append_string(why, "assembly without precompiled code");
		break;
	case SYM_IMAGE_COMPONENT:
		buf_append_string(why, "its code is in a composite image");
		break;
	case SYM_IMAGE_NATIVE_PE:
		sources->status = SYM_UNSUPPORTED;
		buf_append_string(why, "PE file without a CLI header");
		break;
	case SYM_IMAGE_UNKNOWN:
		buf_append_string(why, "code in a file that is neither ELF nor PE");
		break;
	default:
		break;
	}
}

static void note_error(struct image_sources *sources, struct buf *why, struct sym_error *error)
{
	sources->status = image_status_of_error(sym_error_code(error));
	buf_clear(why);
	buf_append_string(why, sym_error_message(error));
	sym_error_destroy(error);
}

/* The first rejection stays, as the map does. */
static void note_refused_map(struct sym_image *image, struct buf *note)
{
	char *text = buf_steal(note, NULL);
	char *none = NULL;

	if (text && !atomic_compare_exchange_strong(&image->refused_map, &none, text))
		free(text);
}

/* The failure of a source costs that source only, except a lack of memory. */
static struct sym_error *open_source(struct sym_image *image, struct image_sources *sources,
				     struct source_input *input, size_t number, struct buf *why)
{
	const struct source_ops *ops = source_table[number];
	struct sym_error *error;
	struct buf note;

	if (ops->for_elf && input->object->kind != SYM_IMAGE_ELF)
		return NULL;
	buf_init(&note, LIMIT_NAME_BYTES);
	error = ops->open(input, &note, &sources->sources[number]);
	sources->was_short |= sym_error_is_shortage(error);
	if (error && !sym_error_is_no_memory(error)) {
		note_error(sources, why, error);
		error = NULL;
	}
	if (note.size_bytes && ops->kind == SYM_SOURCE_RELATIVE_MAP)
		note_refused_map(image, &note);
	else if (note.size_bytes && !why->size_bytes)
		buf_append(why, note.data, note.size_bytes);
	buf_deinit(&note);
	sources->any |= sources->sources[number] != NULL && !ops->is_extra;
	input->has_symbols = sources->any;
	if (sources->sources[number] && ops->is_complete)
		input->has_all_symbols |= ops->is_complete(sources->sources[number]);
	return error;
}

/* A needed assembly that could not be searched for counts as an error too. */
static struct sym_error *open_precompiled(const struct sym_image *image,
					  struct image_sources *sources)
{
	struct sym_error *error =
		precompiled_open(image->object, &sources->assemblies, &sources->precompiled);
	struct sym_error *trouble = assembly_lookup_take_trouble(&sources->assembly_lookup);

	if (!trouble)
		return error;
	sym_error_destroy(error);
	sources->was_short |= sym_error_is_shortage(trouble);
	return trouble;
}

static struct sym_error *open_table(struct sym_image *image, struct image_sources *sources,
				    struct buf *why)
{
	struct source_input input = { .object = image->object,
				      .path = image->path,
				      .relative_map_dirs = image->relative_map_dirs,
				      .roots = image->roots,
				      .debug_fetch = &image->debug_fetch,
				      .forks_for_dwarf = image->forks_for_dwarf };
	struct sym_error *error = NULL;

	if (image->object->kind == SYM_IMAGE_READYTORUN ||
	    image->object->kind == SYM_IMAGE_COMPOSITE)
		error = open_precompiled(image, sources);
	if (sym_error_is_no_memory(error))
		return error;
	if (error)
		note_error(sources, why, error);
	input.precompiled = sources->precompiled;
	for (size_t i = 0; i < SOURCE_COUNT; i++) {
		error = open_source(image, sources, &input, i, why);
		if (error)
			return error;
	}
	return NULL;
}

static struct sym_error *sources_open(struct sym_image *image, struct image_sources **ret)
{
	struct image_sources *sources AUTO_SOURCES = calloc(1, sizeof(*sources));
	struct sym_error *error;
	struct buf why;

	if (!sources)
		return &sym_error_no_memory;
	assembly_lookup_init(&sources->assembly_lookup);
	sources->assembly_lookup.company = image->company.images;
	sources->assembly_lookup.directory = image->assembly_directory;
	sources->assembly_lookup.further_directories = image->assembly_dirs;
	if (object_file_account(image->object))
		sources->assembly_lookup.budget = object_file_account(image->object)->budget;
	sources->assemblies = assembly_lookup_as_assemblies(&sources->assembly_lookup);
	buf_init(&why, LIMIT_NAME_BYTES);
	explain_kind(image->object, sources, &why);
	error = open_table(image, sources, &why);
	if (!error && why.size_bytes)
		sources->reason = buf_steal(&why, NULL);
	buf_deinit(&why);
	if (error)
		return error;
	if (sources->any)
		sources->status = SYM_NO_MATCH;
	*ret = STEAL(sources);
	return NULL;
}

/* Opens the sources once; NULL when out of memory (the next look-up tries again). */
static const struct image_sources *opened_sources(struct sym_image *image)
{
	struct budget_account *span AUTO_BUDGET_SPAN = NULL;
	struct image_sources *sources = atomic_load_explicit(&image->sources, memory_order_acquire);

	if (sources)
		return sources;
	span = budget_span(object_file_account(image->object));
	pthread_mutex_lock(&image->lock);
	sources = atomic_load(&image->sources);
	if (!sources) {
		sym_error_destroy(sources_open(image, &sources));
		atomic_store_explicit(&image->sources, sources, memory_order_release);
	}
	pthread_mutex_unlock(&image->lock);
	return sources;
}

bool image_was_short(const struct sym_image *image)
{
	const struct image_sources *sources =
		atomic_load_explicit(&((struct sym_image *)image)->sources, memory_order_acquire);

	return sources && sources->was_short;
}

bool image_was_asked(const struct sym_image *image)
{
	return atomic_load_explicit(&((struct sym_image *)image)->sources, memory_order_acquire) ||
	       image->was_counted;
}

static void take_match(struct sym_answer *answer, const struct source_ops *ops, uint64_t position,
		       const struct source_match *match)
{
	answer->status = SYM_RESOLVED;
	answer->source = ops->kind;
	answer->name = match->name;
	answer->linkage_name = match->linkage_name;
	answer->tier = match->tier;
	answer->kind = match->kind;
	answer->offset_bytes = position - match->start;
	answer->size_bytes = match->size_bytes;
	answer->reason = NULL;
}

/* Why names that may exist are not available. */
static const char *table_trouble(const struct sym_image *image, const struct image_sources *sources)
{
	const char *trouble = debug_fetch_problem(&image->debug_fetch);

	if (!trouble)
		trouble = object_file_debug_problem(image->object);
	if (trouble)
		return trouble;
	return sources->any || sources->status == SYM_NO_SYMBOLS ? NULL : sources->reason;
}

/* Why something that may have the name could not be read. */
static const char *image_unreadable_reason(const struct sym_image *image,
					   const struct image_sources *sources, bool was_short)
{
	if (was_short)
		return no_memory;
	return sources->was_short && sources->reason ? sources->reason
						     : object_file_problem(image->object);
}

static void say_nothing(const struct sym_image *image, const struct image_sources *sources,
			bool was_short, struct sym_answer *answer)
{
	const char *reason = image_unreadable_reason(image, sources, was_short);

	if (reason) {
		answer->status = SYM_UNREADABLE;
		answer->reason = reason;
	} else if (!answer->reason || !sources->any) {
		answer->reason = table_trouble(image, sources) ?: answer->reason;
	}
}

void image_find_symbol(struct sym_image *image, uint64_t position, struct sym_answer *answer)
{
	const struct image_trouble *trouble = image_trouble(image);
	const struct image_sources *sources;
	struct source_match match;
	bool was_short = false;

	if (trouble || !image->object) {
		answer->status = trouble ? trouble->status : SYM_UNREADABLE;
		answer->reason = trouble ? trouble->text : NULL;
		return;
	}
	sources = opened_sources(image);
	if (!sources) {
		answer->status = SYM_UNREADABLE;
		answer->reason = no_memory;
		return;
	}
	answer->status = sources->status;
	answer->reason = sources->any ? NULL : sources->reason;
	for (size_t i = 0; i < SOURCE_COUNT; i++) {
		if (!sources->sources[i])
			continue;
		switch (source_table[i]->find(sources->sources[i], position, &match)) {
		case SOURCE_HIT:
			take_match(answer, source_table[i], position, &match);
			return;
		case SOURCE_BOUNDS:
			if (image_unreadable_reason(image, sources, was_short))
				break;
			take_match(answer, source_table[i], position, &match);
			answer->status = SYM_BOUNDS_ONLY;
			answer->reason = table_trouble(image, sources);
			return;
		case SOURCE_NAMELESS:
			answer->status = SYM_NO_MATCH;
			answer->reason = match.reason;
			break;
		case SOURCE_SHORT:
			was_short = true;
			break;
		case SOURCE_MISS:
			break;
		}
	}
	say_nothing(image, sources, was_short, answer);
}

static void *source_of(struct sym_image *image, enum sym_source_kind kind)
{
	const struct image_sources *sources =
		image->object && !image_trouble(image) ? opened_sources(image) : NULL;

	for (size_t i = 0; sources && i < SOURCE_COUNT; i++)
		if (source_table[i]->kind == kind)
			return sources->sources[i];
	return NULL;
}

const struct precompiled *image_precompiled(struct sym_image *image,
					    struct assembly_lookup **lookup_ret)
{
	const struct image_sources *sources =
		image->object && !image_trouble(image) ? opened_sources(image) : NULL;

	if (!sources || !sources->precompiled)
		return NULL;
	*lookup_ret = (struct assembly_lookup *)&sources->assembly_lookup;
	return sources->precompiled;
}

/* Finds the assembly of a method in a composite image. */
static void describe_component(struct sym_image *image, uint64_t position,
			       struct sym_answer *answer)
{
	const struct image_sources *sources = opened_sources(image);
	const struct r2r_range *range;
	const struct r2r *r2r;
	size_t found, count;

	if (!sources || !sources->precompiled || position > UINT32_MAX)
		return;
	r2r = precompiled_r2r(sources->precompiled);
	found = r2r_find(r2r, (uint32_t)position);
	if (found == SIZE_MAX)
		return;
	range = &r2r_ranges(r2r, &count)[found];
	if (range->kind == R2R_STUB)
		return;
	answer->component_mvid = r2r_entry_mvid(r2r, range->entry);
	if (answer->component_mvid)
		answer->component = r2r_entry_assembly(r2r, range->entry);
}

/*
 * By DWARF, else by the function table of a Go program; only then is DWARF fetched. The name of
 * *ret is NULL when no function is known.
 */
static bool describe_code(struct sym_image *image, uint64_t position, struct dwarf_place *ret,
			  struct sym_inlined inlined[DWARF_INFO_INLINED], size_t *count_ret)
{
	void *dwarf = source_of(image, SYM_SOURCE_DWARF);
	void *gopclntab = source_of(image, SYM_SOURCE_GOPCLNTAB);
	bool is_here = dwarf && dwarf_source_is_here(dwarf);
	struct gopclntab_line line;

	*ret = (struct dwarf_place){ 0 };
	if (is_here && dwarf_source_describe(dwarf, position, ret, inlined, count_ret))
		return true;
	if (gopclntab && gopclntab_source_describe(gopclntab, position, &line, inlined,
						   DWARF_INFO_INLINED, count_ret)) {
		*ret = (struct dwarf_place){ .line = { .file = line.file, .line = line.line } };
		return true;
	}
	return dwarf && !is_here && dwarf_source_describe(dwarf, position, ret, inlined, count_ret);
}

/*
 * A linker can drop local functions from an otherwise full symbol table. With lines, DWARF names
 * them.
 */
static void take_place(const struct dwarf_place *place, uint64_t position,
		       struct sym_answer *answer)
{
	if (!place->name || (answer->status != SYM_NO_MATCH && answer->status != SYM_BOUNDS_ONLY &&
			     answer->status != SYM_NO_SYMBOLS))
		return;
	take_match(answer, &source_dwarf, position,
		   &(struct source_match){
			   .start = place->start,
			   .size_bytes = place->size_bytes,
			   .name = place->name,
			   .linkage_name = place->linkage_name,
			   .kind = SYM_SYMBOL_FUNCTION,
		   });
}

struct sym_error *image_describe(struct sym_image *image, uint64_t position,
				 struct sym_result *result, size_t number)
{
	struct sym_inlined inlined[DWARF_INFO_INLINED];
	struct sym_answer *answer = &result->slots[number];
	const uint32_t wanted = result->fields & (SYM_FIELD_LINES | SYM_FIELD_INLINED);
	struct dwarf_place place;
	struct budget_account *span AUTO_BUDGET_SPAN = NULL;
	size_t count;
	bool found;

	if (image->object)
		span = budget_span(object_file_account(image->object));
	if (result->fields & SYM_FIELD_COMPONENT && answer->status == SYM_RESOLVED &&
	    sym_image_kind(image) == SYM_IMAGE_COMPOSITE)
		describe_component(image, position, answer);
	/* DWARF is read on request only. Lines of managed code are in image_lines.h. */
	if (!wanted || (image->object && image->object->kind != SYM_IMAGE_ELF))
		return NULL;
	errno = 0;
	found = describe_code(image, position, &place, inlined, &count);
	/* Readers of tables set errno when out of memory. */
	answer->lost = place.is_short || (!found && errno == ENOMEM) ? wanted : 0;
	if (!found)
		return NULL;
	take_place(&place, position, answer);
	if (result->fields & SYM_FIELD_LINES) {
		answer->file = place.line.file;
		answer->line = place.line.line;
		answer->column = place.line.column;
		answer->line_quality = place.line.line ? SYM_LINE_EXACT : SYM_LINE_NONE;
	}
	return result->fields & SYM_FIELD_INLINED
		       ? result_add_inlined(result, number, inlined, count)
		       : NULL;
}

const char *image_symbol_file(struct sym_image *image)
{
	const struct image_sources *sources =
		image->object && !image_trouble(image) ? opened_sources(image) : NULL;
	const char *path = NULL;

	for (size_t i = 0; sources && !path && i < SOURCE_COUNT; i++)
		if (sources->sources[i] && source_table[i]->symbol_file)
			path = source_table[i]->symbol_file(sources->sources[i]);
	return path;
}

/*
 * Drops from [middle, end) the symbols that start inside a symbol of [first, middle). Keeps the
 * order.
 */
static struct sym_error *drop_shadowed(struct sym_symbols *list, size_t first, size_t middle)
{
	size_t count = middle - first, kept = middle;
	struct sym_symbol *earlier AUTO_FREE = NULL;

	if (!count || middle == list->count)
		return NULL;
	earlier = reallocarray(NULL, count, sizeof(*earlier));
	if (!earlier)
		return &sym_error_no_memory;
	memcpy(earlier, list->items + first, count * sizeof(*earlier));
	ascending_sort_items(earlier, count, sizeof(*earlier));
	for (size_t i = middle; i < list->count; i++)
		if (!bsearch(&list->items[i], earlier, count, sizeof(*earlier), ascending_compare))
			list->items[kept++] = list->items[i];
	list->count = kept;
	return NULL;
}

static struct sym_error *list_sources(const struct image_sources *sources,
				      const struct source_sink *sink)
{
	struct sym_symbols *list = &sink->builder->list;
	size_t first = list->count;

	for (size_t i = 0; i < SOURCE_COUNT; i++) {
		size_t middle = list->count;
		struct sym_error *error;

		if (!sources->sources[i] || !source_table[i]->list)
			continue;
		error = source_table[i]->list(sources->sources[i], sink);
		if (!error)
			error = drop_shadowed(list, first, middle);
		if (error)
			return error;
	}
	return NULL;
}

/* An error when symbols are expected and there are none. An image without code has none. */
static struct sym_error *image_no_symbols_error(const struct sym_image *image,
						const struct image_sources *sources)
{
	/* There may be more symbols, and the caller of a list could not know. */
	if (sources->was_short)
		return sym_error_create(SYM_ERROR_IO, "%s",
					sources->reason ? sources->reason : image->path);
	if (sources->any || sources->status == SYM_NO_SYMBOLS)
		return NULL;
	if (sources->status == SYM_UNSUPPORTED)
		return sym_error_create_path(SYM_ERROR_UNSUPPORTED, image->path, SYM_OFFSET_UNKNOWN,
					     "%s",
					     sources->reason ? sources->reason : "not supported");
	return sym_error_create(error_of_status(sources->status), "%s",
				sources->reason ? sources->reason : image->path);
}

/* Saves the method count, so that a later call need not read the image again. */
static void note_count(struct sym_image *image, const struct image_sources *sources)
{
	uint64_t count =
		sources->precompiled ? r2r_method_count(precompiled_r2r(sources->precompiled)) : 0;

	atomic_store_explicit(&image->method_count, count, memory_order_relaxed);
}

/*
 * Runs `use` on open sources; NULL: only the count is wanted. Sources opened for this are closed
 * again: their images may be large.
 */
static struct sym_error *
with_sources(struct sym_image *image, void *context,
	     struct sym_error *(*use)(struct sym_image *, const struct image_sources *, void *))
{
	const struct image_trouble *trouble = image_trouble(image);
	struct image_sources *own AUTO_SOURCES = NULL;
	struct budget_account *span AUTO_BUDGET_SPAN = NULL;
	const struct image_sources *sources;
	struct sym_error *error = NULL;

	if (trouble)
		return sym_error_create(error_of_status(trouble->status), "%s", trouble->text);
	if (!image->object)
		return sym_error_create_path(SYM_ERROR_IO, image->path, SYM_OFFSET_UNKNOWN,
					     "not open");
	span = budget_span(object_file_account(image->object));
	sources = atomic_load_explicit(&image->sources, memory_order_acquire);
	if (!sources) {
		error = sources_open(image, &own);
		sources = own;
	}
	if (!error)
		error = image_no_symbols_error(image, sources);
	if (error)
		return error;
	note_count(image, sources);
	return use ? use(image, sources, context) : NULL;
}

static struct sym_error *use_for_list(struct sym_image *image, const struct image_sources *sources,
				      void *context)
{
	const struct source_sink *sink = context;
	struct sym_error *error;

	symbols_builder_charge(sink->builder, object_file_account(image->object), image->path);
	error = list_sources(sources, sink);
	if (!error)
		error = STEAL(sink->builder->failure);
	symbols_builder_charge(sink->builder, NULL, NULL);
	return error;
}

struct sym_error *image_list_symbols(struct sym_image *image, const struct source_sink *sink)
{
	return with_sources(image, (void *)sink, use_for_list);
}

struct precompiled_use {
	struct sym_error *(*use)(const struct precompiled *, void *context);
	void *context;
};

static struct sym_error *use_for_precompiled(struct sym_image *image,
					     const struct image_sources *sources, void *context)
{
	const struct precompiled_use *use = context;

	(void)image;
	return use->use(sources->precompiled, use->context);
}

struct sym_error *image_use_precompiled(struct sym_image *image,
					struct sym_error *(*use)(const struct precompiled *,
								 void *context),
					void *context)
{
	struct precompiled_use call = { use, context };

	return with_sources(image, &call, use_for_precompiled);
}

struct sym_error *sym_image_method_count(struct sym_image *image, uint64_t *ret)
{
	struct sym_error *error = NULL;

	pthread_mutex_lock(&image->lock);
	if (atomic_load(&image->method_count) == UINT64_MAX)
		error = with_sources(image, NULL, NULL);
	if (!error) {
		*ret = atomic_load(&image->method_count);
		image->was_counted = true;
	}
	pthread_mutex_unlock(&image->lock);
	return error;
}

enum sym_image_kind sym_image_kind(const struct sym_image *image)
{
	return image->object ? image->object->kind : SYM_IMAGE_UNKNOWN;
}
