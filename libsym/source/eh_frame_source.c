/* SPDX-License-Identifier: MIT */
/*
 * Functions of an ELF image without a name: their bounds, and the text IMAGE!0xVADDR, so that
 * samples fold by function.
 * It is the last source. Bounds are read when an address is found by no other source; a text is
 * made at the first hit of its function.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "libsym/base/lazy.h"
#include "libsym/base/path.h"
#include "libsym/elf/elf_sections.h"
#include "libsym/elf/function_bounds.h"
#include "libsym/source/source.h"

/* Bounds and their texts. Built as a whole; afterwards only texts are added. */
struct bounds {
	const struct function_bounds *functions; /* the image's */
	_Atomic(char *) *texts;                  /* zeros, which use no memory until one is set */
};

struct eh_frame_source {
	struct object_file *object;
	struct lazy bounds;
};

static void bounds_destroy(void *made)
{
	struct bounds *bounds = made;

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

	lazy_deinit(&own->bounds);
	free(own);
}

/* Old linkers omit the program header. Then the section decides. */
static struct sym_error *has_bounds(const struct object_file *object, bool *ret)
{
	struct elf_sections sections AUTO_ELF_SECTIONS = { 0 };
	struct sym_error *error;

	*ret = object->unwind_bytes;
	if (*ret)
		return NULL;
	error = elf_sections_read(object, &sections);
	*ret = !error && elf_sections_find_named(&sections, ".eh_frame");
	return sym_error_only_no_memory(error);
}

static struct sym_error *open_source(const struct source_input *input, struct buf *why, void **ret)
{
	struct eh_frame_source *own;
	struct sym_error *error;
	bool any;

	(void)why;
	error = has_bounds(input->object, &any);
	if (error || !any)
		return error;
	own = calloc(1, sizeof(*own));
	if (!own)
		return &sym_error_no_memory;
	own->object = input->object;
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
	bounds->functions = function_bounds_of(own->object);
	if (bounds->functions)
		bounds->texts = calloc(bounds->functions->count + 1, sizeof(*bounds->texts));
	return bounds->texts ? STEAL(bounds) : NULL;
}

static struct bounds *get_bounds(struct eh_frame_source *own)
{
	return lazy_get(&own->bounds, make_bounds, bounds_destroy, own);
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
	text = eh_frame_source_text(own->object->path, vaddr);
	if (!text || atomic_compare_exchange_strong(place, &none, text))
		return text;
	free(text);
	return none;
}

static enum source_outcome eh_frame_source_find(void *source, uint64_t position,
						struct source_match *ret)
{
	struct eh_frame_source *own = source;
	struct bounds *bounds = get_bounds(own);
	uint64_t vaddr;
	const char *text;
	size_t number;

	if (!bounds)
		return SOURCE_SHORT;
	number = function_bounds_find(bounds->functions, position);
	if (number == FUNCTION_BOUNDS_NONE)
		return SOURCE_MISS;
	vaddr = bounds->functions->items[number].vaddr;
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

/* ---- all --------------------------------------------------------------------------------- */

static struct sym_error *eh_frame_source_list(void *source, const struct source_sink *sink)
{
	struct eh_frame_source *own = source;
	struct bounds *bounds = sink->unnamed ? get_bounds(own) : NULL;

	if (sink->unnamed && !bounds)
		return &sym_error_no_memory;
	for (size_t i = 0; bounds && i < bounds->functions->count; i++) {
		uint64_t vaddr = bounds->functions->items[i].vaddr;
		struct sym_symbol symbol = {
			.start = sink->base + vaddr,
			.size_bytes = bounds->functions->items[i].size_bytes,
			.kind = SYM_SYMBOL_UNNAMED,
			.source = SYM_SOURCE_EH_FRAME,
			.image_index = sink->image_index,
		};
		char *text AUTO_FREE = eh_frame_source_text(own->object->path, vaddr);

		if (!text)
			return &sym_error_no_memory;
		symbols_builder_add(sink->builder, &symbol, text, strlen(text));
	}
	return NULL;
}

const struct source_ops source_eh_frame = {
	.kind = SYM_SOURCE_EH_FRAME,
	.for_elf = true,
	.is_extra = true,
	.open = open_source,
	.find = eh_frame_source_find,
	.list = eh_frame_source_list,
	.close = close_source,
};
