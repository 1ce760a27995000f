/* SPDX-License-Identifier: MIT */
/*
 * The jitted code of a snapshot's process, told by the runtime in it: by which
 * way, and why not by another. Reads once, when somebody first asks, and keeps
 * it as long as the snapshot; the process may go on compiling meanwhile.
 */
#ifndef LIBSYM_LIVE_CODE_H
#define LIBSYM_LIVE_CODE_H

#include <pthread.h>
#include <stdatomic.h>

#include "libsym/error.h"
#include "libsym/source/runtime_source.h"

struct live_code {
	struct sym_jit_info info;
	struct runtime_source *source; /* NULL: no way served; info says why */
	char *contract_reason, *rundown_reason;
};

/* In a snapshot. Zero is nothing read yet. */
struct live_code_slot {
	pthread_mutex_t lock;
	_Atomic(struct live_code *) code;
};

void live_code_slot_init(struct live_code_slot *slot);
void live_code_slot_deinit(struct live_code_slot *slot);

/* Reads when it has not been read. Thread safe. Errors: NO_MEMORY only; everything else is in the
 * info. */
struct sym_error *live_code_get(const struct sym_snapshot *snapshot, const struct live_code **ret)
	__attribute__((warn_unused_result));

#endif
