/* SPDX-License-Identifier: MIT */
/*
 * What resolve is asked: "0x7f..." or "IMAGE+0xN", as operands or one a line.
 * Knows the form of a question and how lines arrive in batches; not what the
 * answer is.
 */
#ifndef MAPGEN_RESOLVE_INPUT_H
#define MAPGEN_RESOLVE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct question {
	const char *text;  /* as asked, without blanks around it */
	const char *image; /* before the '+'; NULL for an address */
	size_t image_bytes;
	uint64_t value; /* hexadecimal, with or without 0x */
	bool malformed;
};

/* `text` stays the caller's and must outlive the question. */
struct question question_parse(const char *text);

/* Called with the questions that have arrived; false ends the reading. */
typedef bool question_handler(void *context, const struct question *questions, size_t count);

/*
 * Reads lines of `fd` until its end and hands them on as they arrive, so that a
 * line typed is a line answered and a pipe is read in large pieces. Empty lines
 * are skipped; a line that is too long is one malformed question. Returns 0, or
 * an errno.
 */
int questions_read(int fd, question_handler *handler, void *context);

#endif
