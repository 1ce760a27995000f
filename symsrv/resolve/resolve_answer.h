/* SPDX-License-Identifier: MIT */
/*
 * Answers of libsym as JSON.
 *
 *   {"function": TEXT, "offset": N, "linkage_name": TEXT,
 *    "file": TEXT, "line": N, "line_quality": "nearest" or "prolog",
 *    "inlines": [{"function": TEXT, "linkage_name": TEXT, "file": TEXT, "line": N}, ...]}
 *
 * Each function has the place where it is in: that of the address in the innermost one, that of the
 * call of the next in the others. "inlines" begins with the innermost one. What is unknown is left
 * out.
 */
#ifndef SYMSRV_RESOLVE_RESOLVE_ANSWER_H
#define SYMSRV_RESOLVE_RESOLVE_ANSWER_H

#include "libsym/base/buf.h"
#include "libsym/libsym.h"

/* Appends the answer; null when there is no name. False, and nothing is appended, when there is no
 * room for it. */
bool resolve_answer_write(struct buf *buf, const struct sym_answer *answer);

/* The answers to a module's positions, appended to the text of a response. */
struct answer_list {
	struct buf *text;  /* of the response */
	size_t count;      /* answers of this module */
	size_t most_bytes; /* of the response */
};

/* Both append an answer, with a comma between two. False, and nothing is appended, when there is no
 * room for it. */
bool answer_list_append(struct answer_list *list, const struct sym_answer *answer);
bool answer_list_append_text(struct answer_list *list, const char *text, size_t size_bytes);

#endif
