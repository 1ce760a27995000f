/* SPDX-License-Identifier: MIT */
/*
 * Running tools that have read perf maps already and do not read them again: bpftrace, and users of
 * BCC's symbol cache. Reads /proc only.
 */
#ifndef MAPGEN_PERFMAP_RUNNING_TOOLS_H
#define MAPGEN_PERFMAP_RUNNING_TOOLS_H

#include <stddef.h>
#include <stdint.h>

struct running_tool {
	int32_t pid;
	char comm[17];
	const char *advice; /* static: what the user must do */
};

/* At most `room` of them; returns their number. */
size_t running_tools_find(struct running_tool *tools, size_t room);

#endif
