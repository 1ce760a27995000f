/* SPDX-License-Identifier: MIT */
/*
 * Answers of libsym that a server completes (symbolize_client.h): names where there is none, and
 * lines where they are wanted. What this machine knows comes first.
 */
#ifndef MAPGEN_DEBUGINFO_SYMBOLIZED_ANSWER_H
#define MAPGEN_DEBUGINFO_SYMBOLIZED_ANSWER_H

#include "mapgen/debuginfo/symbolize_client.h"

struct symbolized_answers;

/* `fields`: enum sym_field of the answers. NULL, with a message, on failure. */
struct symbolized_answers *symbolized_answers_create(const char *url, uint32_t fields);
void symbolized_answers_destroy(struct symbolized_answers *answers);

/* Notes what an answer lacks; symbolized_answers_ask() asks for all of it. `image`: its image, or
 * NULL. */
void symbolized_answers_note(struct symbolized_answers *answers, struct sym_image *image,
			     const struct sym_answer *answer);
void symbolized_answers_ask(struct symbolized_answers *answers);

/* Returns `answer`, or `room` with what the server knows; that lives until the next call. */
const struct sym_answer *symbolized_answers_complete(struct symbolized_answers *answers,
						     struct sym_image *image,
						     const struct sym_answer *answer,
						     struct sym_answer *room);

/* Prints why answers lack names or lines, if the server failed. True when it has printed. */
bool symbolized_answers_say(const struct symbolized_answers *answers);

#endif
