/* SPDX-License-Identifier: MIT */
/*
 * Prints the functions of a file by their position in it, without a process.
 *
 *   list_symbols FILE
 */
#include <inttypes.h>
#include <stdio.h>

#include "libsym/libsym.h"

static int fail(struct sym_error *error)
{
	fprintf(stderr, "%s\n", sym_error_message(error));
	sym_error_destroy(error);
	return 1;
}

int main(int argc, char **argv)
{
	struct sym_symbols *symbols = NULL;
	struct sym_image *image;
	struct sym_error *error;

	if (argc != 2) {
		fprintf(stderr, "usage: list_symbols FILE\n");
		return 2;
	}
	error = sym_image_open(argv[1], &image);
	if (error)
		return fail(error);
	error = sym_image_symbols(image, 0, &symbols);
	for (size_t i = 0; !error && i < sym_symbols_count(symbols); i++) {
		const struct sym_symbol *symbol = sym_symbols_at(symbols, i);

		printf("%" PRIx64 " %" PRIx64 " %s\n", symbol->start, symbol->size_bytes,
		       symbol->name);
	}
	sym_symbols_destroy(symbols);
	sym_image_close(image);
	return error ? fail(error) : 0;
}
