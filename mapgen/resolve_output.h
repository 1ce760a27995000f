/* SPDX-License-Identifier: MIT */
/*
 * What resolve prints on standard output: a line for each question, or with --json an object of one
 * array, in the order asked; whether these could be made, json_output.h tells. Foreign text in
 * lines is made fit for a terminal.
 */
#ifndef MAPGEN_RESOLVE_OUTPUT_H
#define MAPGEN_RESOLVE_OUTPUT_H

#include <stddef.h>

#include "libsym/libsym.h"
#include "mapgen/options.h"
#include "mapgen/resolve_input.h"

/* Zero but for the options at first. */
struct answer_printer {
	const struct options *options;
	size_t objects;   /* of the array so far */
	char *short_name; /* room for one */
	size_t short_name_bytes;
};

void answer_printer_print(struct answer_printer *printer, const struct question *question,
			  const struct sym_answer *answer);
/* A question that has none: it is none, or is about an image that is not there. */
void answer_printer_print_bad(struct answer_printer *printer, const struct question *question,
			      const char *reason);
/* After the last one. */
void answer_printer_end(struct answer_printer *printer);
void answer_printer_deinit(struct answer_printer *printer);

#endif
