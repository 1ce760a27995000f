/* SPDX-License-Identifier: MIT */
/*
 * The head of a trace:
 *
 *   4   8 x i16 date and time (UTC), i64 ticks, i64 ticks per second, i32 pointer bytes, i32 pid,
 *       i32 processors, i32 sampling period
 *   6   8 x i16, i64, i64, i32 as above, then i32 count of pairs, each two texts
 */
#ifndef LIBSYM_FORMAT_NETTRACE_NETTRACE_TRACE_H
#define LIBSYM_FORMAT_NETTRACE_NETTRACE_TRACE_H

#include "libsym/format/nettrace/nettrace.h"

/* Replaces values that are out of range by the usual ones. */
void nettrace_trace_read_v4(struct nettrace_trace *trace, struct reader head);
/* False: malformed. */
bool nettrace_trace_read_v6(struct nettrace_trace *trace, struct reader head);

#endif
