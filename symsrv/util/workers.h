/* SPDX-License-Identifier: MIT */
/*
 * A few threads for work that may block: opening, hashing, verifying, copying. A job is part of the
 * object that it works on, so queueing it cannot fail.
 */
#ifndef SYMSRV_UTIL_WORKERS_H
#define SYMSRV_UTIL_WORKERS_H

#include <stddef.h>
#include <sys/queue.h>

struct job {
	void (*run)(struct job *job);
	STAILQ_ENTRY(job) next; /* for the pool */
};

struct workers;

int workers_create(unsigned int threads, struct workers **ret);
/* Finishes the queued jobs, then ends the threads. */
void workers_destroy(struct workers *workers);
void workers_submit(struct workers *workers, struct job *job, void (*run)(struct job *job));
size_t workers_waiting(struct workers *workers);

#endif
