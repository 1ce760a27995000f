/* SPDX-License-Identifier: MIT */
/*
 * Lines of perf maps as nearly all are: numbers of at most 16 digits, one space behind each, a
 * name of printable ASCII, no carriage return. A map of a million lines is read at the speed of
 * this, in some 100 instructions a line; there is only a way for x86-64 with AVX2.
 */
#ifndef LIBSYM_FORMAT_PERFMAP_USUAL_H
#define LIBSYM_FORMAT_PERFMAP_USUAL_H

#include <stdbool.h>
#include <stddef.h>

struct perfmap_line;

bool perfmap_usual_works(void);

/*
 * Where perfmap_usual_works(): takes such lines from *next up to the first that is none, or lies
 * so near `end` that it may have to be read otherwise; how many, at most `count`.
 */
size_t perfmap_usual_take(const char **next, const char *end, struct perfmap_line *lines,
			  size_t count);

#endif
