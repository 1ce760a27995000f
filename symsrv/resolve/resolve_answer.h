/* SPDX-License-Identifier: MIT */
/*
 * One answer of libsym as JSON.
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

#include <jansson.h>

#include "libsym/libsym.h"

/* null when there is no name. NULL when out of memory. */
json_t *resolve_answer_json(const struct sym_answer *answer);

#endif
