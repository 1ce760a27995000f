/* SPDX-License-Identifier: MIT */
/*
 * The perf map that a runtime is writing, reached through the runtime's own
 * descriptor, and lines added to it. Knows file descriptions, torn lines and
 * what a kill may leave behind; not what is in a line.
 *
 * The runtime opens its map without O_APPEND and writes at the offset of its
 * file description, so what others append is overwritten by the next jitted
 * method (tried on .NET 10). The flag belongs to the file description, which
 * pidfd_getfd(2) shares: once it is set, the runtime's lines follow ours.
 */
#ifndef MAPGEN_PERFMAP_RUNTIME_MAP_H
#define MAPGEN_PERFMAP_RUNTIME_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sym_perf_map_info;

/* The runtime's own file, open through a copy of its descriptor. */
struct runtime_map {
	int write_fd; /* shares the file description of the runtime; has O_APPEND */
	int read_fd;
	bool made_append;            /* O_APPEND was not set before */
	const struct rights *rights; /* rights of the process, for writing */
};

/*
 * Whether the runtime writes in blocks: .NET 11 collects 4096 bytes, which end anywhere in a line
 * (strace, 11.0.0); earlier releases write each line at once. `version` as in sym_process_info; may
 * be NULL.
 */
bool runtime_map_comes_in_blocks(const char *version);

/*
 * Copies the descriptor (pidfd_getfd) and sets O_APPEND on it, so that from now on the runtime
 * writes behind what others have appended. PERMISSION: there is no ptrace permission, or an old
 * kernel; replacing may still work.
 */
struct sym_error *runtime_map_open(int32_t pid, const struct sym_perf_map_info *info,
				   const struct rights *rights, struct runtime_map *ret);
void runtime_map_close(struct runtime_map *map);

/*
 * Whether the file keeps ending within a line: the writer buffers with stdio, or a full disk cut
 * the line. Text that is appended there would cut a name.
 */
bool runtime_map_ends_in_half_a_line(const struct runtime_map *map);

/*
 * Appends whole lines. A child in a session of its own does it: this process may be killed at any
 * moment, and a write that is cut at a page would join the runtime's next line to half of ours.
 */
struct sym_error *runtime_map_append(const struct runtime_map *map, const char *text,
				     size_t size_bytes);

#endif
