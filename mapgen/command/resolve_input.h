/* SPDX-License-Identifier: MIT */
/*
 * The questions of resolve, as operands or one a line:
 *
 *   0x7f...    IMAGE+0xN    IMAGE!0xTOKEN+IL0xN    IMAGE!MVID!0xTOKEN+IL~0xN
 *
 * Knows the form of a question and how lines arrive in batches; not what the answer is.
 */
#ifndef MAPGEN_COMMAND_RESOLVE_INPUT_H
#define MAPGEN_COMMAND_RESOLVE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Characters of an MVID. */
enum {
	MVID_TEXT = 36
};

struct question {
	const char *text;  /* as asked, without blanks around it */
	const char *image; /* before the '+'; NULL for an address */
	size_t image_bytes;
	uint64_t value;      /* hexadecimal, with or without 0x */
	uint32_t token;      /* of a method: `value` is an offset into its IL; 0: none */
	const char *mvid;    /* with a token: the module must have it, MVID_TEXT; NULL: any */
	bool is_approximate; /* with a token: "~" */
	bool malformed;
};

/* `text` belongs to the caller and must outlive the question. */
struct question question_parse(const char *text);

/* Called with the questions that have arrived; returning false ends the reading. */
typedef bool question_handler(void *context, const struct question *questions, size_t count);

/*
 * Reads lines of `fd` until its end and passes them on as they arrive: a line that is typed is
 * answered at once, and a pipe is read in large pieces. Skips empty lines; a line that is too long
 * is one malformed question. Returns 0 or an errno.
 */
int questions_read(int fd, question_handler *handler, void *context);

#endif
