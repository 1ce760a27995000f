/* SPDX-License-Identifier: MIT */
/*
 * The names of a recording, frozen by time: processes, their images, and every symbol in which a
 * frame was seen, each from the time on at which it was first seen. Memory of jitted code is used
 * again, so of several symbols that cover an address the one with the latest time at or before that
 * of the sample holds.
 *
 * As text, a line each, fields separated by tabs; backslash, tab and newline in text are \\, \t,
 * \n:
 *
 *   P  number  pid  container pid  start time (clock ticks since boot)  from (ns)  comm
 *      pid -1: the kernel
 *   T  process  tid  container tid  comm
 *   I  number  process  kind  identity (build-id or MVID; -: none)  path
 *   F  number  path of a source file  its URL (Source Link), when it has one
 *   L  process  address  from (ns)  quality (enum sym_line_quality)  line  column  IL offset
 *      token of the method  MVID of its module (-: none)  number of the file (-: none)
 *      of managed code: what is at this address, which is one byte back where it is a caller's
 *   M  the fields of an L line  name
 *      a method that is inlined at the address, innermost first, before the L line of the method
 *      that has the code; an L line without them has none
 *   S  process  start address  size  from (ns, CLOCK_MONOTONIC)  kind  source  tier (-: none)
 *      image (-: none)  status  name, or the reason why there is none
 */
#ifndef MAPGEN_RECORD_NAME_TABLE_H
#define MAPGEN_RECORD_NAME_TABLE_H

#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/libsym.h"

enum {
	NAME_TABLE_MOST_INLINED = 64 /* at an address; a longer list is left out */
};

struct name_table;

struct sym_error *name_table_create(struct name_table **ret) __attribute__((warn_unused_result));
void name_table_destroy(struct name_table *table);

/* A process, or what it is since an exec() at `from_ns` (else 0). *ret: its number. */
struct sym_error *name_table_add_process(struct name_table *table, int32_t pid,
					 int32_t container_pid, uint64_t start_ticks,
					 uint64_t from_ns, const char *comm, uint32_t *ret)
	__attribute__((warn_unused_result));

struct sym_error *name_table_add_thread(struct name_table *table, uint32_t process, int32_t tid,
					int32_t container_tid, const char *comm)
	__attribute__((warn_unused_result));

/* Adds the answer for an address of a process at a time. A symbol that is there already is not
 * added again. */
struct sym_error *name_table_add_answer(struct name_table *table, uint32_t process,
					const struct sym_answer *answer, uint64_t time_ns)
	__attribute__((warn_unused_result));

/* Where an address of managed code is in its source, or in its IL. The answer has
 * SYM_FIELD_LINES and SYM_FIELD_INLINED. */
struct sym_error *name_table_add_line(struct name_table *table, uint32_t process,
				      const struct sym_answer *answer, uint64_t time_ns)
	__attribute__((warn_unused_result));

/* The text. */
const struct buf *name_table_text(const struct name_table *table);

#endif
