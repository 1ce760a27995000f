/* SPDX-License-Identifier: MIT */
#include "libsym/bcc/thread_owner.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "libsym/base/cleanup.h"

enum {
	PLACES = 4096,
	MEMORY_S = 60,
};

/* The last known process of a thread. */
struct seen {
	int id, owner;
	int64_t seconds;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct seen places[PLACES];

/* 0: there is no such thread. */
static int read_owner(int id)
{
	FILE *status GUARDED(file) = NULL;
	char path[64], line[128];
	int owner = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", id);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "Tgid: %d", &owner) == 1)
			break;
	return owner;
}

int thread_owner(int id)
{
	struct seen *place = &places[(unsigned int)id % PLACES];
	struct timespec now;
	int owner = read_owner(id);

	clock_gettime(CLOCK_MONOTONIC, &now);
	pthread_mutex_lock(&lock);
	if (owner > 0)
		*place = (struct seen){ id, owner, now.tv_sec };
	else if (place->id == id && now.tv_sec - place->seconds <= MEMORY_S)
		owner = place->owner;
	else
		owner = id;
	pthread_mutex_unlock(&lock);
	return owner;
}
