/* SPDX-License-Identifier: MIT */
#include "libsym/bcc/bcc_budget.h"

#include <pthread.h>
#include <time.h>

#include "libsym/libsym.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sym_budget *budget;
static time_t step_s;

struct sym_budget *bcc_budget_get(const struct bcc_settings *settings)
{
	static const time_t step_length_s = 60;
	struct timespec now;

	if (settings->no_limits)
		return NULL;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	pthread_mutex_lock(&lock);
	if (!budget) {
		sym_error_destroy(sym_budget_create(NULL, &budget));
		step_s = now.tv_sec;
	}
	/* A tool runs for hours. */
	if (now.tv_sec - step_s >= step_length_s) {
		sym_budget_begin_step(budget);
		step_s = now.tv_sec;
	}
	pthread_mutex_unlock(&lock);
	return budget;
}
