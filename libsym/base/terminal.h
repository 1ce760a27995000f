/* SPDX-License-Identifier: MIT */
/*
 * Removes control characters from text that goes to a terminal. Names, paths and program output are
 * untrusted, and a terminal obeys control characters. Each program puts a guarded stream in front
 * of its terminal. Files and pipes get the bytes unchanged.
 */
#ifndef LIBSYM_BASE_TERMINAL_H
#define LIBSYM_BASE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Copies `size_bytes` bytes to `room`, which has the same size. Replaces with '?':
 *   - control characters (C0, DEL, C1) except newline and tab
 *   - characters that change the direction of text (U+061C, U+200E, U+200F, U+202A to U+202E,
 *     U+2066 to U+2069)
 *   - bytes that are not valid UTF-8, because a terminal may take them for C1 control characters
 * Returns the number of bytes written to `room`. *rest_ret is the number of bytes at the end, at
 * most 3, that were left out because they begin an incomplete character.
 */
size_t terminal_clean(char *room, const char *text, size_t size_bytes, size_t *rest_ret);

/* Whether a character is one of the first two kinds. */
bool terminal_obeys(uint32_t character);

/* If `*stream` (stdout or stderr) is a terminal, replaces it with a stream that cleans its output
 * and has no descriptor. stdout is written line by line, stderr at every call. */
void terminal_guard(FILE **stream);

#endif
