/* SPDX-License-Identifier: MIT */
#include "libsym/bcc/thread_owner.h"

#include <pthread.h>
#include <stdio.h>

#include "libsym/base/cleanup.h"

enum {
	PLACES = 4096,
};

static const uint64_t memory_ns = 60000000000;

/* The last known process of a thread. */
struct seen {
	int id, owner;
	uint64_t seen_ns;
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

int thread_owner(int id, uint64_t now_ns)
{
	struct seen *place = &places[(unsigned int)id % PLACES];
	int owner = read_owner(id);

	pthread_mutex_lock(&lock);
	if (owner > 0)
		*place = (struct seen){ id, owner, now_ns };
	else if (place->id == id && now_ns <= place->seen_ns + memory_ns)
		owner = place->owner;
	else
		owner = id;
	pthread_mutex_unlock(&lock);
	return owner;
}
