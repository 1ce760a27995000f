/* SPDX-License-Identifier: MIT */
#include "symsrv/util/library_log.h"

#include <stdio.h>
#include <string.h>

#include "symsrv/util/clock.h"
#include "symsrv/util/log.h"

static const int64_t silence_ms = 10000;

/* Errors of clients, and connections that we reset. */
static const char *const left_out[] = { "client", "timed out", "Error processing request",
					"Application reported internal error" };

void library_log_take(void *context, const char *format, va_list arguments)
{
	struct library_log *log = context;
	int64_t now = clock_now_ms();
	char text[256];

	vsnprintf(text, sizeof(text), format, arguments);
	text[strcspn(text, "\n")] = 0;
	for (size_t i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
		if (strstr(text, left_out[i]))
			return;
	if (now < log->silent_until_ms)
		return;
	log->silent_until_ms = now + silence_ms;
	log_message(LOG_LEVEL_WARNING, "server: %s", text);
}
