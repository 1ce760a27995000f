/* SPDX-License-Identifier: MIT */
/* Hexadecimal digits to and from numbers and bytes. No prefix, no sign, no locale. */
#ifndef LIBSYM_BASE_HEX_H
#define LIBSYM_BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern const int8_t hex_values[256]; /* value of a digit in either case, -1 for any other byte */

/*
 * Reads the hexadecimal digits at `text`, at most `size_bytes` of them. Returns how many were read;
 * 0 if there is none or the value does not fit into 64 bits. Writes *ret only if it returns
 * nonzero.
 */
size_t hex_read_u64(const char *text, size_t size_bytes, uint64_t *ret);

/* Writes `value` in lower case without leading zeros and without a NUL. Returns the number of
 * bytes, 1 to 16. */
size_t hex_write_u64(char *room, uint64_t value);

/* Like hex_write_u64(), zero-padded to at least `width` (at most 16) digits. */
size_t hex_write_u64_padded(char *room, uint64_t value, size_t width);

/* Writes 2 * `count` lower-case digits and a NUL to `room`. */
void hex_write_bytes(char *room, const void *bytes, size_t count);

/* Reads exactly 2 * `count` digits. Returns false if one is not a digit. */
bool hex_read_bytes(const char *text, void *bytes_ret, size_t count);

#endif
