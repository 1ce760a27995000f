/* SPDX-License-Identifier: MIT */
#include "mapgen/standin_image.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "mapgen/message.h"
#include "mapgen/target.h"

void standin_image_add(struct standin_elf *elf, const struct options *options,
		       const struct sym_symbol *symbol)
{
	const char *tier = options->tiers == TIER_FORM_STRIP ? NULL : symbol->tier;
	char *name AUTO_FREE = NULL;
	size_t bytes;

	if (options->names != NAME_FORM_SHORT) {
		standin_elf_add(elf, symbol->start, symbol->size_bytes, symbol->name, tier);
		return;
	}
	bytes = strlen(symbol->name) + 1;
	name = malloc(bytes);
	if (!name) {
		elf->names.failure = BUF_NO_MEMORY;
		return;
	}
	sym_name_shorten(symbol->name, name, bytes);
	standin_elf_add(elf, symbol->start, symbol->size_bytes, name, tier);
}

char *standin_image_render(struct sym_image *image, const struct options *options,
			   const char *origin, struct buf *ret, size_t *symbols_ret)
{
	struct sym_symbols *symbols GUARDED(symbols) = NULL;
	struct standin_elf elf;
	struct sym_error *error = sym_image_symbols(
		image, SYM_IMAGE_SYMBOLS_STUBS | SYM_IMAGE_SYMBOLS_BY_OFFSET, &symbols);
	bool whole;

	if (error) {
		char *failure = message_format("%s", sym_error_message(error));

		sym_error_destroy(error);
		return failure;
	}
	*symbols_ret = sym_symbols_count(symbols);
	if (!*symbols_ret)
		return NULL;
	standin_elf_init(&elf);
	for (size_t i = 0; i < *symbols_ret; i++)
		standin_image_add(&elf, options, sym_symbols_at(symbols, i));
	whole = standin_elf_finish(&elf, origin, ret, NULL);
	standin_elf_deinit(&elf);
	return whole ? NULL : message_format("its names do not fit into memory");
}
