/* SPDX-License-Identifier: MIT */
/*
 * An answer of libsym as bytes, from the process that reads foreign debug information to the
 * server. Numbers are little-endian.
 *
 *   u32 flags    enum answer_flag of symbol_answer.c; 0: there is no name, and nothing follows
 *   u32 line, u32 line quality, u32 number of inlined functions
 *   u64 offset
 *   texts: name, linkage name, file; those that the flags name, each with its NUL
 *   for each inlined function: u32 flags, u32 line of the call, texts: name, linkage name, file
 *
 * The server does not trust the process: symbol_answer_read() refuses what is cut or too much.
 */
#ifndef SYMSRV_RESOLVE_SYMBOL_ANSWER_H
#define SYMSRV_RESOLVE_SYMBOL_ANSWER_H

#include "libsym/base/buf.h"
#include "libsym/base/reader.h"
#include "libsym/libsym.h"

/* libsym reads 64. */
#define SYMBOL_ANSWER_INLINED 64

/* The buffer keeps its failure. */
void symbol_answer_write(struct buf *buf, const struct sym_answer *answer);

/* The strings of *ret lie in the bytes of the reader, the inlined functions in `inlined`. False:
 * malformed. */
bool symbol_answer_read(struct reader *reader, struct sym_inlined inlined[SYMBOL_ANSWER_INLINED],
			struct sym_answer *ret);

#endif
