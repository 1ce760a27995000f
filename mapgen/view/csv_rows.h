/* SPDX-License-Identifier: MIT */
/* Flat JSON objects as CSV: a line of headings, then a line each. */
#ifndef MAPGEN_VIEW_CSV_ROWS_H
#define MAPGEN_VIEW_CSV_ROWS_H

#include <jansson.h>
#include <stdio.h>

/* All rows have the members of the first one. Texts are quoted where they must be; what is neither
 * text, number nor truth value is left empty. */
void csv_rows_write(const json_t *rows, FILE *to);

#endif
