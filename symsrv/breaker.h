/* SPDX-License-Identifier: MIT */
/*
 * A circuit breaker: after some failures in a row, or when the other side wants a rest,
 * nobody asks for a while, then one may try. Knows no clock and no lock: both are the caller's.
 */
#ifndef SYMSRV_BREAKER_H
#define SYMSRV_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

enum breaker_state {
	BREAKER_CLOSED, /* all may ask */
	BREAKER_OPEN,   /* nobody may */
	BREAKER_TRYING, /* one is asking, the others may not */
};

struct breaker {
	enum breaker_state state;
	unsigned int failures; /* in a row */
	int64_t open_ms;       /* how long it stays open the next time; 0: not opened yet */
	int64_t until_ms;
};

/* True when the caller may ask now; it must then report success or failure. */
bool breaker_allows(struct breaker *breaker, int64_t now_ms);
void breaker_succeeded(struct breaker *breaker);
void breaker_failed(struct breaker *breaker, int64_t now_ms);
/* It was told how long nobody is to ask, of which a limit is observed. */
void breaker_rests(struct breaker *breaker, int64_t now_ms, int64_t rest_ms);
/* Neither: the one who was allowed did not get to ask. */
void breaker_withdrawn(struct breaker *breaker);

#endif
