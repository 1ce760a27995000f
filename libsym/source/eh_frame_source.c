/* SPDX-License-Identifier: MIT */
/*
 * Functions of an ELF image that have no name: their bounds, and IMAGE!0xVADDR
 * in place of a name, so that samples fold by function. Asked last. The bounds are
 * read when an address asks that no other source knew, those of a few functions one by one, then
 * all of the image; and a text is made when its function is first hit.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "libsym/base/lazy.h"
#include "libsym/base/path.h"
#include "libsym/elf_function_glance.h"
#include "libsym/elf_functions.h"
#include "libsym/elf_sections.h"
#include "libsym/source/source.h"

/* Bounds with a place for each text. Made as a whole, then only texts are added. */
struct bounds {
	const struct elf_functions *functions; /* the image's */
	_Atomic(char *) *texts;                /* zeroes that cost no memory until one is set */
};

enum {
	MOST_GLANCES = 32 /* functions that are looked up one by one */
};

/* One of the first functions that were asked for. */
struct glanced {
	struct eh_frame_function function;
	char *text;
};

struct eh_frame_source {
	struct image *image;
	pthread_mutex_t lock; /* of what follows, while there are no bounds */
	struct elf_function_glance *glance;
	bool was_opened;
	struct glanced glanced[MOST_GLANCES];
	size_t glanced_count;
	struct lazy bounds;
};

static void bounds_destroy(struct bounds *bounds)
{
	if (!bounds)
		return;
	for (size_t i = 0; bounds->texts && i < bounds->functions->count; i++)
		free(atomic_load_explicit(&bounds->texts[i], memory_order_relaxed));
	free(bounds->texts);
	free(bounds);
}

DEFINE_GUARD(bounds, struct bounds *, bounds_destroy)
#define AUTO_BOUNDS GUARDED(bounds)

static void close_source(void *source)
{
	struct eh_frame_source *own = source;

	bounds_destroy(lazy_deinit(&own->bounds));
	elf_function_glance_close(own->glance);
	for (size_t i = 0; i < own->glanced_count; i++)
		free(own->glanced[i].text);
	pthread_mutex_destroy(&own->lock);
	free(own);
}

/* Old linkers leave out the program header; then the section says whether there is something. */
static struct sym_error *has_bounds(const struct image *image, bool *ret)
{
	struct elf_sections sections AUTO_ELF_SECTIONS = { 0 };
	struct sym_error *error;

	*ret = image->unwind_bytes;
	if (*ret)
		return NULL;
	error = elf_sections_read(image, &sections);
	*ret = !error && elf_sections_find_named(&sections, ".eh_frame");
	if (error && sym_error_code(error) == SYM_ERROR_NO_MEMORY)
		return error;
	sym_error_destroy(error);
	return NULL;
}

static struct sym_error *open_source(const struct source_input *input, struct buf *why, void **ret)
{
	struct eh_frame_source *own;
	struct sym_error *error;
	bool any;

	(void)why;
	*ret = NULL;
	if (input->image->kind != SYM_IMAGE_ELF)
		return NULL;
	error = has_bounds(input->image, &any);
	if (error || !any)
		return error;
	own = calloc(1, sizeof(*own));
	if (!own)
		return &sym_error_no_memory;
	own->image = input->image;
	pthread_mutex_init(&own->lock, NULL);
	lazy_init(&own->bounds);
	*ret = own;
	return NULL;
}

static void *make_bounds(const void *source)
{
	const struct eh_frame_source *own = source;
	struct bounds *bounds AUTO_BOUNDS = calloc(1, sizeof(*bounds));

	if (!bounds)
		return NULL;
	bounds->functions = elf_functions_of(own->image);
	if (bounds->functions)
		bounds->texts = calloc(bounds->functions->count + 1, sizeof(*bounds->texts));
	return bounds->texts ? STEAL(bounds) : NULL;
}

static struct bounds *get_bounds(struct eh_frame_source *own)
{
	return lazy_get(&own->bounds, make_bounds, own);
}

char *eh_frame_source_text(const char *image_path, uint64_t vaddr)
{
	char *text;

	return asprintf(&text, "%s!0x%" PRIx64, path_file_name(image_path), vaddr) < 0 ? NULL
										       : text;
}

bool eh_frame_source_is_text(const char *name, const char *image_path)
{
	static const char middle[] = "!0x";
	const char *file = path_file_name(image_path);
	size_t length = strlen(name), file_bytes = strlen(file), digits = 0;

	while (digits < length && strchr("0123456789abcdef", name[length - 1 - digits]))
		digits++;
	return digits && length == file_bytes + strlen(middle) + digits &&
	       !memcmp(name + file_bytes, middle, strlen(middle)) &&
	       !memcmp(name, file, file_bytes);
}

static const char *text_of(const struct eh_frame_source *own, struct bounds *bounds, size_t number,
			   uint64_t vaddr)
{
	_Atomic(char *) *place = &bounds->texts[number];
	char *text = atomic_load_explicit(place, memory_order_acquire);
	char *none = NULL;

	if (text)
		return text;
	text = eh_frame_source_text(own->image->path, vaddr);
	if (!text || atomic_compare_exchange_strong(place, &none, text))
		return text;
	free(text);
	return none;
}

static enum source_outcome find_in_bounds(struct eh_frame_source *own, uint64_t position,
					  struct source_match *ret)
{
	struct bounds *bounds = get_bounds(own);
	uint64_t vaddr;
	const char *text;
	size_t number;

	if (!bounds)
		return SOURCE_SHORT;
	number = elf_functions_find(bounds->functions, position);
	if (number == ELF_FUNCTIONS_NONE)
		return SOURCE_MISS;
	vaddr = bounds->functions->base + bounds->functions->items[number].distance;
	text = text_of(own, bounds, number, vaddr);
	if (!text)
		return SOURCE_SHORT;
	*ret = (struct source_match){
		.start = vaddr,
		.size_bytes = bounds->functions->items[number].size_bytes,
		.name = text,
		.kind = SYM_SYMBOL_UNNAMED,
	};
	return SOURCE_BOUNDS;
}

/* ---- the first few ----------------------------------------------------------------------- */

/* With the lock; NULL when it takes all of them. */
static const struct glanced *glance_anew(struct eh_frame_source *own, uint64_t vaddr)
{
	struct glanced *next = &own->glanced[own->glanced_count];

	if (own->glanced_count == MOST_GLANCES)
		return NULL;
	if (!own->was_opened) {
		struct sym_error *error = elf_function_glance_open(own->image, &own->glance);

		own->was_opened = !error;
		sym_error_destroy(error);
	}
	if (!own->glance || !elf_function_glance_find(own->glance, vaddr, &next->function))
		return NULL;
	next->text = eh_frame_source_text(own->image->path, next->function.vaddr);
	if (!next->text)
		return NULL;
	own->glanced_count++;
	return next;
}

static bool glance(struct eh_frame_source *own, uint64_t vaddr, struct source_match *ret)
{
	const struct glanced *found = NULL;

	pthread_mutex_lock(&own->lock);
	for (size_t i = 0; !found && i < own->glanced_count; i++)
		if (vaddr - own->glanced[i].function.vaddr < own->glanced[i].function.size_bytes)
			found = &own->glanced[i];
	if (!found)
		found = glance_anew(own, vaddr);
	if (found)
		*ret = (struct source_match){
			.start = found->function.vaddr,
			.size_bytes = found->function.size_bytes,
			.name = found->text,
			.kind = SYM_SYMBOL_UNNAMED,
		};
	pthread_mutex_unlock(&own->lock);
	return found;
}

static enum source_outcome find(void *source, uint64_t position, struct source_match *ret)
{
	struct eh_frame_source *own = source;
	struct bounds *bounds = lazy_peek(&own->bounds);

	if (!bounds && glance(own, position, ret))
		return SOURCE_BOUNDS;
	return find_in_bounds(own, position, ret);
}

/* ---- all --------------------------------------------------------------------------------- */

static struct sym_error *list(void *source, const struct source_sink *sink)
{
	struct eh_frame_source *own = source;
	struct bounds *bounds = sink->unnamed ? get_bounds(own) : NULL;

	for (size_t i = 0; bounds && i < bounds->functions->count; i++) {
		uint64_t vaddr = bounds->functions->base + bounds->functions->items[i].distance;
		struct sym_symbol symbol = {
			.start = sink->base + vaddr,
			.size_bytes = bounds->functions->items[i].size_bytes,
			.kind = SYM_SYMBOL_UNNAMED,
			.source = SYM_SOURCE_EH_FRAME,
			.image_index = sink->image_index,
		};
		char *text AUTO_FREE = eh_frame_source_text(own->image->path, vaddr);

		if (!text)
			return &sym_error_no_memory;
		symbols_builder_add(sink->builder, &symbol, text, strlen(text));
	}
	return NULL;
}

const struct source_ops source_eh_frame = {
	.kind = SYM_SOURCE_EH_FRAME,
	.is_extra = true,
	.open = open_source,
	.find = find,
	.list = list,
	.close = close_source,
};
