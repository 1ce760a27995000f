/* SPDX-License-Identifier: MIT */
/*
 * JSON through jansson. Addresses are strings ("0x7f..."), because many readers turn numbers of
 * JSON into doubles. Each byte that is not UTF-8 becomes U+FFFD. Objects are built without a check
 * at each step: once memory runs out, nothing more is printed, and json_output_print() reports it.
 */
#ifndef MAPGEN_CLI_JSON_OUTPUT_H
#define MAPGEN_CLI_JSON_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "libsym/base/buf.h"
#include "mapgen/cli/message.h"

/* Call this before all others. */
void json_output_begin(void);

/* Whether memory ran out for something that should have been printed. */
bool json_output_has_failed(void);

/* A string, or null where `text` is NULL. */
json_t *json_output_text(const char *text);

/* The string that was written to `text`, and frees that. */
json_t *json_output_take(struct buf *text);

/* "0x..." or null for UINT64_MAX. */
json_t *json_output_address(uint64_t address);

/* [{"subject": ..., "reason": ...}, ...] */
json_t *json_output_failures(const struct failures *failures);

/* Prints `value` without a newline and frees it. False, with a message, when it could not be
 * printed. */
bool json_output_compact(json_t *value);

/* Prints `value` indented, with a newline, and frees it. False, with a message, on failure. */
bool json_output_print(json_t *value);
bool json_output_print_to(json_t *value, FILE *to);

#endif
