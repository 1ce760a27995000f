/* SPDX-License-Identifier: MIT */
/*
 * What libmicrohttpd says. Most of it is of what clients do, which is counted elsewhere: that is
 * left out as far as it is known, and of the rest there is one line in ten seconds.
 */
#ifndef SYMSRV_LIBRARY_LOG_H
#define SYMSRV_LIBRARY_LOG_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>

struct library_log {
	_Atomic int64_t silent_until_ms;
};

/* As MHD_LogCallback; `context` is the library_log. */
void library_log_take(void *context, const char *format, va_list arguments);

#endif
