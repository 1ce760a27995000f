/* SPDX-License-Identifier: MIT */
#include "symsrv/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void log_message(enum log_level level, const char *format, ...)
{
	char text[1024];
	va_list arguments;
	size_t length, i, start;

	length = getenv("JOURNAL_STREAM") ? (size_t)snprintf(text, sizeof(text), "<%d>", level)
					  : (size_t)snprintf(text, sizeof(text), "symsrv: ");
	start = length;
	va_start(arguments, format);
	length += (size_t)vsnprintf(text + length, sizeof(text) - length - 1, format, arguments);
	va_end(arguments);
	if (length > sizeof(text) - 2)
		length = sizeof(text) - 2;
	for (i = start; i < length; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = '?';
	text[length++] = '\n';
	if (write(STDERR_FILENO, text, length) < 0)
		return; /* nobody left to tell */
}
