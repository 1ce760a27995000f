/* SPDX-License-Identifier: MIT */
/*
 * Messages of the program on standard error: one line each, with a prefix, without control
 * characters. Also the list of failures, which is printed at the end so that a progress bar does
 * not break it up.
 */
#ifndef MAPGEN_CLI_MESSAGE_H
#define MAPGEN_CLI_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "libsym/base/text_set.h"
#include "libsym/error.h"

void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints an error and destroys it. True when there is none: NULL. */
bool message_error(struct sym_error *error);

/* Prints an error as "PATH: ..." and destroys it, also when it begins with the path. True when
 * there is none: NULL. */
bool message_error_of(const char *path, struct sym_error *error);

/* Whether a message has named this reason, one of those that failed_calls.h counts. */
bool message_has_named(int errno_value);

/* Copies `text`; '?' replaces newlines, tabs and all that a terminal obeys (base/terminal.h). NULL
 * when out of memory. */
char *message_printable(const char *text);

/* asprintf() that never returns NULL, so that a missing reason cannot be taken for success. Some
 * memory is reserved for it; without any the program exits. */
char *message_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* `text` behind "SUBJECT: ", if it begins with that: what is printed beside its path does not
 * repeat the path. */
const char *message_without_subject(const char *subject, const char *text);

struct failure {
	char *subject; /* a path; "" when `reason` stands alone */
	char *reason;
};

struct failures {
	struct failure *items;
	size_t count;
	struct text_set subjects; /* each subject of `items` once */
};

/* Adopts `reason` (heap; NULL: out of memory). A reason that begins with the subject loses it. */
void failures_add(struct failures *failures, const char *subject, char *reason);

/* Adds the message of an error as the reason, and destroys the error. */
void failures_add_error(struct failures *failures, const char *subject, struct sym_error *error);

/* Removes the failures of a subject. */
void failures_drop(struct failures *failures, const char *subject);

bool failures_have(const struct failures *failures, const char *subject);

/* Prints one message each, without the subject where the reason names it. */
void failures_print(const struct failures *failures);
void failures_deinit(struct failures *failures);

#endif
