/* SPDX-License-Identifier: MIT */
/*
 * The perf map that a runtime is writing, reached through the runtime's own
 * descriptor, and lines added to it. Knows file descriptions, torn lines and
 * what a kill may leave behind; not what is in a line. Failures are heap texts.
 *
 * The runtime opens its map without O_APPEND and writes at the offset of its
 * file description, so what others append is overwritten by the next jitted
 * method (tried on .NET 10). The flag belongs to the file description, which
 * pidfd_getfd(2) shares: once it is set, the runtime's lines follow ours.
 */
#ifndef MAPGEN_RUNTIME_MAP_H
#define MAPGEN_RUNTIME_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sym_perf_map_info;

/* The runtime's own file, open through the runtime's own descriptor. */
struct runtime_map {
	int write_fd; /* shares the runtime's file description; has O_APPEND */
	int read_fd;
	bool made_append; /* O_APPEND was not set before */
};

enum runtime_map_failure {
	RUNTIME_MAP_OPEN = 0,
	RUNTIME_MAP_NOT_PERMITTED, /* ptrace permission or kernel: replacing may still work */
	RUNTIME_MAP_FAILED,
};

/*
 * .NET 11 keeps what it has to write until there are 4096 bytes of it, which end anywhere in a
 * line (strace, 11.0.0); releases before write each line at once. `version` as in
 * sym_process_info; may be NULL.
 */
bool runtime_map_comes_in_blocks(const char *version);

/*
 * Takes the descriptor (pidfd_getfd) and sets O_APPEND on it, so that the runtime
 * writes behind what others have added from here on.
 */
enum runtime_map_failure runtime_map_open(int32_t pid, const struct sym_perf_map_info *info,
					  struct runtime_map *ret, char **reason_ret);
void runtime_map_close(struct runtime_map *map);

/*
 * Whether the file goes on ending within a line: whoever writes it with stdio holds the rest back,
 * or a full disk cut it. What is appended there would cut a name, and leave a part of it.
 */
bool runtime_map_ends_in_half_a_line(const struct runtime_map *map);

/*
 * Appends whole lines. Done by a child in a session of its own: this process
 * may be killed at any moment, and a write that is cut at the border of a page
 * would glue the runtime's next line to half of ours.
 */
char *runtime_map_append(const struct runtime_map *map, const char *text, size_t size_bytes);

#endif
