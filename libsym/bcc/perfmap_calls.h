/* SPDX-License-Identifier: MIT */
/*
 * The path of a process's perf map outside its own root. For the path inside see
 * bcc_perf_map_path().
 */
#ifndef LIBSYM_BCC_PERFMAP_CALLS_H
#define LIBSYM_BCC_PERFMAP_CALLS_H

#include <stddef.h>

void host_perf_map_path(char *room, size_t room_bytes, int pid);

#endif
