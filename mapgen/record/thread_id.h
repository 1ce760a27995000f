/* SPDX-License-Identifier: MIT */
/* Facts about a thread from /proc: its name, and its id as its container counts. */
#ifndef MAPGEN_RECORD_THREAD_ID_H
#define MAPGEN_RECORD_THREAD_ID_H

#include <stdbool.h>
#include <stdint.h>

struct thread_id {
	int32_t container_tid; /* innermost NSpid */
	char comm[64];
};

/* False when it has ended. */
bool thread_id_read(int32_t pid, int32_t tid, struct thread_id *ret);

#endif
