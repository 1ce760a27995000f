/* SPDX-License-Identifier: MIT */
#include "mapgen/cli/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/terminal.h"
#include "libsym/base/utf8.h"
#include "mapgen/cli/command.h"

/* Bytes that are not UTF-8 stay, except those that are control characters by themselves. */
static void make_printable(char *text)
{
	char *end = text;

	while (*text) {
		uint32_t character;
		size_t bytes = utf8_read(text, SIZE_MAX, &character);

		if (!bytes) {
			character = (unsigned char)*text;
			bytes = 1;
		}
		if (terminal_obeys(character) || character == '\n' || character == '\t') {
			*end++ = '?';
		} else {
			memmove(end, text, bytes);
			end += bytes;
		}
		text += bytes;
	}
	*end = '\0';
}

char *message_printable(const char *text)
{
	char *copy = strdup(text);

	if (copy)
		make_printable(copy);
	return copy;
}

enum {
	RESERVE_BYTES = 64 << 10
};

/* Freed when memory runs out, so that the message about it can be formatted. */
static _Atomic(void *) reserve;

static char *format_text(const char *format, va_list arguments)
{
	va_list again;
	char *text;
	int length;

	va_copy(again, arguments);
	length = vasprintf(&text, format, arguments);
	if (length < 0) {
		free(atomic_exchange(&reserve, NULL));
		length = vasprintf(&text, format, again);
	} else if (!atomic_load(&reserve)) {
		free(atomic_exchange(&reserve, malloc(RESERVE_BYTES)));
	}
	va_end(again);
	if (length >= 0)
		return text;
	fputs("dotnet-mapgen: out of memory\n", stderr);
	exit(EXIT_FAILED);
}

char *message_format(const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = format_text(format, arguments);
	va_end(arguments);
	return text;
}

static const int reasons[] = { ENOMEM, EIO,    EMFILE,       ENFILE,     ENOBUFS,
			       ENOSPC, EAGAIN, ECONNREFUSED, ECONNRESET, EPIPE };
static atomic_bool was_named[sizeof(reasons) / sizeof(reasons[0])];

static void note_reasons(const char *text)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strstr(text, strerror(reasons[i])) ||
		    (reasons[i] == ENOMEM && strstr(text, "out of memory")))
			atomic_store(&was_named[i], true);
}

bool message_has_named(int errno_value)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i] == errno_value)
			return atomic_load(&was_named[i]);
	return false;
}

void message(const char *format, ...)
{
	char *text AUTO_FREE = NULL;
	va_list arguments;

	va_start(arguments, format);
	text = format_text(format, arguments);
	va_end(arguments);
	make_printable(text);
	note_reasons(text);
	fprintf(stderr, "dotnet-mapgen: %s\n", text);
}

bool message_error(struct sym_error *error)
{
	if (!error)
		return true;
	message("%s", sym_error_message(error));
	sym_error_destroy(error);
	return false;
}

bool message_error_of(const char *path, struct sym_error *error)
{
	if (!error)
		return true;
	message("%s: %s", path, message_without_subject(path, sym_error_message(error)));
	sym_error_destroy(error);
	return false;
}

const char *message_without_subject(const char *subject, const char *text)
{
	size_t length = strlen(subject);

	return length && !strncmp(text, subject, length) && !strncmp(text + length, ": ", 2)
		       ? text + length + 2
		       : text;
}

bool failures_have(const struct failures *failures, const char *subject)
{
	return text_set_has(&failures->subjects, subject);
}

void failures_add(struct failures *failures, const char *subject, char *reason)
{
	struct failure *items = reallocarray(failures->items, failures->count + 1, sizeof(*items));
	char *copy = strdup(subject);
	const char *text;

	if (items)
		failures->items = items;
	if (!items || !copy || !reason) {
		message("%s: %s", subject, reason ? reason : "out of memory");
		free(copy);
		free(reason);
		return;
	}
	/* Errors of libsym begin with their path. */
	text = message_without_subject(subject, reason);
	memmove(reason, text, strlen(text) + 1);
	items[failures->count++] = (struct failure){ copy, reason };
	text_set_add(&failures->subjects, copy, strlen(copy));
}

void failures_add_error(struct failures *failures, const char *subject, struct sym_error *error)
{
	failures_add(failures, subject, message_format("%s", sym_error_message(error)));
	sym_error_destroy(error);
}

void failures_drop(struct failures *failures, const char *subject)
{
	size_t kept = 0;

	text_set_deinit(&failures->subjects);
	for (size_t i = 0; i < failures->count; i++) {
		struct failure *failure = &failures->items[i];

		if (strcmp(failure->subject, subject) != 0) {
			text_set_add(&failures->subjects, failure->subject,
				     strlen(failure->subject));
			failures->items[kept++] = *failure;
			continue;
		}
		free(failure->subject);
		free(failure->reason);
	}
	failures->count = kept;
}

void failures_print(const struct failures *failures)
{
	for (size_t i = 0; i < failures->count; i++) {
		const struct failure *failure = &failures->items[i];

		if (!*failure->subject || strstr(failure->reason, failure->subject))
			message("%s", failure->reason);
		else
			message("%s: %s", failure->subject, failure->reason);
	}
}

void failures_deinit(struct failures *failures)
{
	text_set_deinit(&failures->subjects);
	for (size_t i = 0; i < failures->count; i++) {
		free(failures->items[i].subject);
		free(failures->items[i].reason);
	}
	free(failures->items);
}
