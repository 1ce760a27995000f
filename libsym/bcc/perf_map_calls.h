/* SPDX-License-Identifier: MIT */
/* Where the perf map of a process lies outside of its own root; see bcc_perf_map_path() for the
 * place inside. */
#ifndef LIBSYM_BCC_PERF_MAP_CALLS_H
#define LIBSYM_BCC_PERF_MAP_CALLS_H

#include <stddef.h>

void host_perf_map_path(char *room, size_t room_bytes, int pid);

#endif
