/* SPDX-License-Identifier: MIT */
/*
 * The output of resolve on standard output: a line for each question, or with --json one object of
 * an array, in the order asked. json_output.h knows whether they could all be printed. Foreign text
 * is printed without control characters.
 */
#ifndef MAPGEN_COMMAND_RESOLVE_OUTPUT_H
#define MAPGEN_COMMAND_RESOLVE_OUTPUT_H

#include <stddef.h>

#include "libsym/libsym.h"
#include "mapgen/cli/options.h"
#include "mapgen/command/resolve_input.h"
#include "mapgen/debuginfo/source_urls.h"

/* Zero-initialized except for the options. */
struct answer_printer {
	const struct options *options;
	struct source_urls *urls; /* NULL: none are printed */
	size_t objects;           /* objects printed so far */
	char *short_name;         /* room for one */
	size_t short_name_bytes;
};

void answer_printer_print(struct answer_printer *printer, const struct question *question,
			  const struct sym_answer *answer);
/* A question without an answer: it is malformed, or names an image that does not exist. */
/* The line of an IL offset. */
void answer_printer_print_line(struct answer_printer *printer, const struct question *question,
			       const struct sym_pdb *pdb, const struct sym_source_line *line);
void answer_printer_print_bad(struct answer_printer *printer, const struct question *question,
			      const char *reason);
/* Call this after the last question. */
void answer_printer_end(struct answer_printer *printer);
void answer_printer_deinit(struct answer_printer *printer);

#endif
