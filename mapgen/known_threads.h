/* SPDX-License-Identifier: MIT */
/* Of which process a thread is, remembered for a second: a text names the same ones again and
 * again, and ids are used again. */
#ifndef MAPGEN_KNOWN_THREADS_H
#define MAPGEN_KNOWN_THREADS_H

#include <stdint.h>

struct known_thread;

/* Zero at first, but for the root. */
struct known_threads {
	const char *root; /* of a recorded process tree; NULL: this machine's */
	struct known_thread *items;
};

/* 0: it is not there. */
int32_t known_threads_process(struct known_threads *threads, int32_t tid);
void known_threads_deinit(struct known_threads *threads);

#endif
