/* SPDX-License-Identifier: MIT */
/*
 * Lines of a perf map that only this project reads. A runtime loses the newline behind a name that
 * is not ASCII, so two lines are joined. libsym splits them; perf and BCC do not see the second
 * one. Knows only the addresses of lines.
 */
#ifndef MAPGEN_PERFMAP_JOINED_LINES_H
#define MAPGEN_PERFMAP_JOINED_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/base/address_table.h"

/* `ret` is zeroed by the caller and freed with address_table_deinit(). `fd` is read with pread().
 * False when out of memory; a file that cannot be read hides nothing. */
bool joined_lines_find(int fd, struct address_table *ret);

/* Whether the map has code at `address` in a joined line, and in no whole line behind it. */
bool joined_lines_have(const struct address_table *lines, uint64_t address);

#endif
