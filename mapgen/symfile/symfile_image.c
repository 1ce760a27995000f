/* SPDX-License-Identifier: MIT */
#include "mapgen/symfile/symfile_image.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/name_form.h"
#include "mapgen/cli/target.h"

void symfile_image_add(struct symfile *elf, const struct options *options,
		       const struct sym_symbol *symbol)
{
	const char *tier = options->tiers == TIER_FORM_STRIP ? NULL : symbol->tier;
	char *name AUTO_FREE = NULL;
	size_t bytes;

	if (options->names == NAME_FORM_FULL) {
		symfile_add(elf, symbol->start, symbol->size_bytes, symbol->name, tier);
		return;
	}
	bytes = name_form_write(options->names, symbol->name, NULL, 0) + 1;
	name = malloc(bytes);
	if (!name) {
		elf->names.failure = BUF_NO_MEMORY;
		return;
	}
	name_form_write(options->names, symbol->name, name, bytes);
	symfile_add(elf, symbol->start, symbol->size_bytes, name, tier);
}

struct sym_error *symfile_image_render(struct sym_image *image, const struct options *options,
				       const char *origin, struct buf *ret, size_t *symbols_ret)
{
	struct sym_symbols *symbols GUARDED(symbols) = NULL;
	struct symfile elf;
	struct sym_error *error = sym_image_symbols(
		image, SYM_IMAGE_SYMBOLS_STUBS | SYM_IMAGE_SYMBOLS_BY_OFFSET, &symbols);
	bool whole;

	if (error)
		return error;
	*symbols_ret = sym_symbols_count(symbols);
	if (!*symbols_ret)
		return NULL;
	symfile_init(&elf);
	for (size_t i = 0; i < *symbols_ret; i++)
		symfile_image_add(&elf, options, sym_symbols_at(symbols, i));
	whole = symfile_finish(&elf, origin, ret, NULL);
	symfile_deinit(&elf);
	return whole ? NULL : sym_error_create(SYM_ERROR_IO, "out of memory for its names");
}
