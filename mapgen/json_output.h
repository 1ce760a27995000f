/* SPDX-License-Identifier: MIT */
/*
 * JSON through jansson. Addresses are strings ("0x7f..."), because numbers of
 * JSON are read as doubles by many. Text that is not UTF-8 gets U+FFFD for each
 * byte that does not belong. Objects are built without looking at each step:
 * where there is no memory for one, nothing is printed from then on, and json_output_print() says
 * so.
 */
#ifndef MAPGEN_JSON_OUTPUT_H
#define MAPGEN_JSON_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "mapgen/message.h"

/* Before any other. */
void json_output_begin(void);

/* Was there no memory for something that was to be printed? */
bool json_output_has_failed(void);

/* A string, or null where `text` is NULL. */
json_t *json_output_text(const char *text);

/* "0x..." or null for UINT64_MAX. */
json_t *json_output_address(uint64_t address);

/* [{"subject": ..., "reason": ...}, ...] */
json_t *json_output_failures(const struct failures *failures);

/* Prints `value` without a newline and ends it; false, said, when it could not be made. */
bool json_output_compact(json_t *value);

/* As above, indented, with a newline. */
bool json_output_print(json_t *value);
bool json_output_print_to(json_t *value, FILE *to);

#endif
