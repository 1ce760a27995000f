/* SPDX-License-Identifier: MIT */
#include "libsym/base/epoch.h"

#include <sched.h>

/* Readers that arrive now are counted in the other phase, so the loop ends. It runs twice because a
 * reader may have read the phase just before it changed. */
void epoch_wait(struct epoch *epoch)
{
	for (int i = 0; i < 2; i++) {
		unsigned int phase = atomic_fetch_add(&epoch->phase, 1) & 1;

		while (atomic_load(&epoch->counts[phase]))
			sched_yield();
	}
}
