/* SPDX-License-Identifier: MIT */
/*
 * Rates of allocations, exceptions and pauses of a running runtime. They come from a session whose
 * events are counted and not kept. The runtime sends its events every 0.1 s.
 */
#ifndef MAPGEN_RECORD_RUNTIME_RATES_H
#define MAPGEN_RECORD_RUNTIME_RATES_H

#include "libsym/libsym.h"

struct runtime_rates;

struct runtime_amounts {
	uint64_t allocated_bytes; /* estimated */
	uint64_t exceptions;
	uint64_t pause_ns; /* threads were stopped for collections */
	uint64_t gaps;     /* how often the runtime has dropped one event or more */
};

/* `budget` is borrowed and may be NULL. Errors: those of runtime_session_open(). */
struct sym_error *runtime_rates_open(int32_t pid, struct sym_budget *budget,
				     struct runtime_rates **ret)
	__attribute__((warn_unused_result));
/* NULL is accepted. */
void runtime_rates_close(struct runtime_rates *rates);

/* Counts what has arrived; does not wait. Errors: IO, FORMAT, NO_MEMORY. */
struct sym_error *runtime_rates_step(struct runtime_rates *rates)
	__attribute__((warn_unused_result));

/* Returns the amounts since the last call. */
struct runtime_amounts runtime_rates_take(struct runtime_rates *rates);

#endif
