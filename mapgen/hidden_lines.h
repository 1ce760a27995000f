/* SPDX-License-Identifier: MIT */
/*
 * Lines of a perf map that only this project reads. A runtime loses the newline behind a name that
 * is not ASCII, and the next line is glued on: the library takes it all the same, perf and BCC do
 * not see it. Knows no more of a line than its address.
 */
#ifndef MAPGEN_HIDDEN_LINES_H
#define MAPGEN_HIDDEN_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/base/address_table.h"

/* `ret` is zeroed at first, and to be ended with address_table_deinit(). `fd` is read with pread().
 * False when there is no memory; what cannot be read hides nothing. */
bool hidden_lines_find(int fd, struct address_table *ret);

/* Does the map have code at `address` in such a line, and in no whole one behind it? */
bool hidden_lines_have(const struct address_table *lines, uint64_t address);

#endif
