/* SPDX-License-Identifier: MIT */
/*
 * Fragile native images (CoreLib up to .NET Core 2.2).
 * Their methods cannot be listed.
 * Each executable section is one range whose name says so, of kind stub, so that it is not taken
 * for a method.
 */
#include <stdlib.h>
#include <string.h>

#include "libsym/limits.h"
#include "libsym/source/source.h"

struct ngen {
	struct object_file *object;
	char *name;
};

static void close_image(void *source)
{
	struct ngen *ngen = source;

	free(ngen->name);
	free(ngen);
}

static struct sym_error *open_image(const struct source_input *input, struct buf *why, void **ret)
{
	const char *assembly;
	struct ngen *ngen;
	struct buf name;

	(void)why;
	if (input->object->kind != SYM_IMAGE_NGEN)
		return NULL;
	assembly = object_file_assembly_name(input->object);
	ngen = calloc(1, sizeof(*ngen));
	buf_init(&name, LIMIT_NAME_BYTES);
	buf_printf(&name, "stub FragileNativeImage<%s>", assembly ? assembly : "");
	if (ngen)
		ngen->name = buf_steal(&name, NULL);
	buf_deinit(&name);
	if (!ngen || !ngen->name) {
		free(ngen);
		return &sym_error_no_memory;
	}
	ngen->object = input->object;
	*ret = ngen;
	return NULL;
}

static enum source_outcome find_section(void *source, uint64_t position, struct source_match *ret)
{
	const struct ngen *ngen = source;
	const struct object_segment *segment = object_file_find_segment(ngen->object, position);

	if (!segment)
		return SOURCE_MISS;
	*ret = (struct source_match){
		.start = segment->position,
		.size_bytes = segment->size_bytes,
		.name = ngen->name,
		.kind = SYM_SYMBOL_STUB,
	};
	return SOURCE_HIT;
}

static struct sym_error *list_sections(void *source, const struct source_sink *sink)
{
	const struct ngen *ngen = source;

	for (size_t i = 0; sink->stubs && i < ngen->object->segment_count; i++) {
		const struct object_segment *segment = &ngen->object->segments[i];
		struct sym_symbol symbol = {
			.start = sink->base + segment->position,
			.size_bytes = segment->size_bytes,
			.kind = SYM_SYMBOL_STUB,
			.source = SYM_SOURCE_READYTORUN,
			.image_index = sink->image_index,
		};

		if (segment->executable)
			symbols_builder_add(sink->builder, &symbol, ngen->name, strlen(ngen->name));
	}
	return NULL;
}

const struct source_ops source_ngen = {
	.kind = SYM_SOURCE_READYTORUN,
	.open = open_image,
	.find = find_section,
	.list = list_sections,
	.close = close_image,
};
