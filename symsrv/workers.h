/* SPDX-License-Identifier: MIT */
/*
 * A few threads for work that may block: opening, hashing, verifying, copying.
 * Jobs are embedded in what they are about, so that handing one over cannot fail.
 */
#ifndef SYMSRV_WORKERS_H
#define SYMSRV_WORKERS_H

#include <stddef.h>

struct job {
	void (*run)(struct job *job);
	struct job *next; /* the pool's */
};

struct workers;

int workers_create(unsigned int threads, struct workers **ret);
/* Finishes what was handed over, then ends the threads. */
void workers_destroy(struct workers *workers);
void workers_submit(struct workers *workers, struct job *job, void (*run)(struct job *job));
size_t workers_waiting(struct workers *workers);

#endif
