/* SPDX-License-Identifier: MIT */
/* Numbers as people read them: "12.41 s", "78 ms", "1,022", "18.2 %". */
#ifndef MAPGEN_VIEW_UNITS_H
#define MAPGEN_VIEW_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	UNITS_ROOM = 40
};

/* Each writes to `room` of UNITS_ROOM and returns it. */
const char *units_time(uint64_t ns, char *room);
/* 1 KB is 1,000 bytes. */
const char *units_bytes(uint64_t bytes, char *room);
const char *units_count(uint64_t count, char *room);
/* "1 wait", "1,022 waits"; the words have at most 12 letters. */
const char *units_things(uint64_t count, const char *one, const char *many, char *room);
const char *units_percent(uint64_t part, uint64_t whole, char *room);

#endif
