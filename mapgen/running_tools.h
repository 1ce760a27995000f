/* SPDX-License-Identifier: MIT */
/*
 * Tools on this machine that have read perf maps already and do not look again:
 * bpftrace, and whatever uses BCC's symbol cache. Only looks into /proc.
 */
#ifndef MAPGEN_RUNNING_TOOLS_H
#define MAPGEN_RUNNING_TOOLS_H

#include <stddef.h>
#include <stdint.h>

struct running_tool {
	int32_t pid;
	char comm[17];
	const char *advice; /* static: what its user has to do */
};

/* At most `room` of them; returns how many there are. */
size_t running_tools_find(struct running_tool *tools, size_t room);

#endif
