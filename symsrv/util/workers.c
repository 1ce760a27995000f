/* SPDX-License-Identifier: MIT */
#include "symsrv/util/workers.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct workers {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	STAILQ_HEAD(, job) jobs;
	size_t waiting;
	bool is_ending;
	unsigned int count;
	pthread_t threads[];
};

static struct job *next_job(struct workers *workers)
{
	struct job *job;

	pthread_mutex_lock(&workers->lock);
	while (STAILQ_EMPTY(&workers->jobs) && !workers->is_ending)
		pthread_cond_wait(&workers->wake, &workers->lock);
	job = STAILQ_FIRST(&workers->jobs);
	if (job) {
		STAILQ_REMOVE_HEAD(&workers->jobs, next);
		workers->waiting--;
	}
	pthread_mutex_unlock(&workers->lock);
	return job;
}

static void *workers_run(void *context)
{
	struct job *job;

	while ((job = next_job(context)))
		job->run(job);
	return NULL;
}

int workers_create(unsigned int threads, struct workers **ret)
{
	struct workers *workers = calloc(1, sizeof(*workers) + threads * sizeof(pthread_t));

	if (!workers)
		return -ENOMEM;
	STAILQ_INIT(&workers->jobs);
	pthread_mutex_init(&workers->lock, NULL);
	pthread_cond_init(&workers->wake, NULL);
	for (; workers->count < threads; workers->count++) {
		int failure = pthread_create(&workers->threads[workers->count], NULL, workers_run,
					     workers);

		if (failure) {
			workers_destroy(workers);
			return -failure;
		}
	}
	*ret = workers;
	return 0;
}

void workers_destroy(struct workers *workers)
{
	unsigned int i;

	if (!workers)
		return;
	pthread_mutex_lock(&workers->lock);
	workers->is_ending = true;
	pthread_cond_broadcast(&workers->wake);
	pthread_mutex_unlock(&workers->lock);
	for (i = 0; i < workers->count; i++)
		pthread_join(workers->threads[i], NULL);
	pthread_cond_destroy(&workers->wake);
	pthread_mutex_destroy(&workers->lock);
	free(workers);
}

void workers_submit(struct workers *workers, struct job *job, void (*run)(struct job *job))
{
	job->run = run;
	pthread_mutex_lock(&workers->lock);
	STAILQ_INSERT_TAIL(&workers->jobs, job, next);
	workers->waiting++;
	pthread_cond_signal(&workers->wake);
	pthread_mutex_unlock(&workers->lock);
}

size_t workers_waiting(struct workers *workers)
{
	size_t waiting;

	pthread_mutex_lock(&workers->lock);
	waiting = workers->waiting;
	pthread_mutex_unlock(&workers->lock);
	return waiting;
}
