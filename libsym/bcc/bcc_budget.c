/* SPDX-License-Identifier: MIT */
#include "libsym/bcc/bcc_budget.h"

#include <pthread.h>

#include "libsym/libsym.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sym_budget *budget;
static uint64_t step_ns;

struct sym_budget *bcc_budget_get(const struct bcc_settings *settings)
{
	static const uint64_t step_length_ns = 60000000000;
	uint64_t now_ns;

	if (settings->no_limits)
		return NULL;
	now_ns = bcc_settings_now_ns(settings);
	pthread_mutex_lock(&lock);
	if (!budget) {
		sym_error_destroy(sym_budget_create(NULL, &budget));
		step_ns = now_ns;
	}
	/* A tool runs for hours. */
	if (now_ns >= step_ns + step_length_ns) {
		sym_budget_begin_step(budget);
		step_ns = now_ns;
	}
	pthread_mutex_unlock(&lock);
	return budget;
}
