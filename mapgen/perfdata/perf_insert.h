/* SPDX-License-Identifier: MIT */
/*
 * Inserts records into a perf.data that perf_data_copy() has written, before all others. What lies
 * behind moves, and its places in the header and in the table of features are changed. In a pipe
 * the records come behind those that describe the events, which perf must read first.
 */
#ifndef MAPGEN_PERFDATA_PERF_INSERT_H
#define MAPGEN_PERFDATA_PERF_INSERT_H

#include "mapgen/perfdata/perf_data.h"

/* NULL, or why no record can be inserted into the file; static. */
const char *perf_insert_trouble(int fd, enum perf_data_shape shape);

/*
 * `count` bytes, a multiple of 8, of whole records. *at_ret: their place; every record at or behind
 * that place has moved by `count`. Only for a file without perf_insert_trouble(). An error: it
 * cannot be read or written, or was changed.
 */
struct sym_error *perf_insert(int fd, enum perf_data_shape shape, const void *bytes, size_t count,
			      uint64_t *at_ret);

/*
 * Makes room for `count` bytes of records before or behind (`at_end`) all records of a file without
 * perf_insert_trouble(). *at_ret: their place. False: the file cannot be read or written.
 */
bool perf_insert_room(int fd, bool at_end, uint64_t count, uint64_t *at_ret);

#endif
