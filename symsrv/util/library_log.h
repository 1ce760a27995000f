/* SPDX-License-Identifier: MIT */
/*
 * Messages of libmicrohttpd. Most are about clients, which are counted elsewhere: known ones are
 * dropped, and of the rest one line in ten seconds is logged.
 */
#ifndef SYMSRV_UTIL_LIBRARY_LOG_H
#define SYMSRV_UTIL_LIBRARY_LOG_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>

struct library_log {
	_Atomic int64_t silent_until_ms;
};

/* An MHD_LogCallback; `context` is the library_log. */
void library_log_take(void *context, const char *format, va_list arguments);

#endif
