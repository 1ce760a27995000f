/* SPDX-License-Identifier: MIT */
/*
 * What the program says on standard error: one line each, prefixed, without
 * anything that could draw on a terminal. Also the list of things that failed,
 * kept until the end so that a progress bar does not tear it apart.
 */
#ifndef MAPGEN_MESSAGE_H
#define MAPGEN_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "libsym/base/cleanup.h"
#include "libsym/libsym.h"

void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

DEFINE_GUARD(error_object, struct sym_error *, sym_error_destroy)
#define AUTO_ERROR_OBJECT GUARDED(error_object)

/* Copies `text` with control characters replaced by '?'; NULL when out of memory. */
char *message_printable(const char *text);

/* asprintf(). Never NULL, so that what says why something failed is not taken for success: some
 * memory is kept for it, and the program ends where that does not suffice. */
char *message_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct failure {
	char *subject; /* a path; "" when the reason says it all */
	char *reason;
};

struct failed_subject;

struct failures {
	struct failure *items;
	size_t count;
	struct failed_subject *subjects; /* each of the items' once */
};

/* Takes `reason` over (heap; NULL: out of memory). */
void failures_add(struct failures *failures, const char *subject, char *reason);

/* What was said of a subject does not hold any more. */
void failures_drop(struct failures *failures, const char *subject);

bool failures_have(const struct failures *failures, const char *subject);

/* One message each, the subject left out where the reason names it already. */
void failures_print(const struct failures *failures);
void failures_deinit(struct failures *failures);

#endif
