/* SPDX-License-Identifier: MIT */
/*
 * The kinds of event that a nettrace stream has described, by their number in the stream.
 *
 *   4, 5   i32 number, UTF-16 provider, i32 event id, UTF-16 name, i64 keywords, i32 version,
 *          i32 level, fields; 5 then has tags: i32 size, u8 tag, content
 *   6      varint number, UTF-8 provider, varint event id, UTF-8 name, fields, u16 size of
 *          options; each: u8 option, content
 */
#ifndef LIBSYM_FORMAT_NETTRACE_NETTRACE_KINDS_H
#define LIBSYM_FORMAT_NETTRACE_NETTRACE_KINDS_H

#include "libsym/format/nettrace/nettrace.h"

struct nettrace_kinds {
	struct nettrace_kind **by_number; /* NULL: not described */
	size_t number_count;
	struct nettrace_kind **all; /* also those whose number another kind has now */
	size_t count, capacity;
};

void nettrace_kinds_deinit(struct nettrace_kinds *kinds);

/* Read one description. A malformed one is left out. Return false if out of memory. */
bool nettrace_kinds_read_v4(struct nettrace_kinds *kinds, struct reader payload);
bool nettrace_kinds_read_v6(struct nettrace_kinds *kinds, struct reader row);

/* Frees all numbers; the kinds stay. */
void nettrace_kinds_forget(struct nettrace_kinds *kinds);

/* NULL: not described. */
struct nettrace_kind *nettrace_kinds_find(const struct nettrace_kinds *kinds, uint32_t number);

#endif
