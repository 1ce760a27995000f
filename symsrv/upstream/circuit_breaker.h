/* SPDX-License-Identifier: MIT */
/*
 * A circuit breaker. After some failures in a row, or when the other side asks for a pause, no
 * request is made for a while; then one trial is allowed. The caller provides clock and lock.
 */
#ifndef SYMSRV_UPSTREAM_CIRCUIT_BREAKER_H
#define SYMSRV_UPSTREAM_CIRCUIT_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

enum circuit_breaker_state {
	BREAKER_CLOSED, /* requests are allowed */
	BREAKER_OPEN,   /* no requests */
	BREAKER_TRYING, /* one trial is in progress, others must wait */
};

struct circuit_breaker {
	enum circuit_breaker_state state;
	unsigned int failures; /* in a row */
	int64_t open_ms;       /* duration of the next open state; 0: not opened yet */
	int64_t until_ms;
};

/* True when the caller may make a request now; it must then report success or failure. */
bool circuit_breaker_allows(struct circuit_breaker *breaker, int64_t now_ms);
void circuit_breaker_succeeded(struct circuit_breaker *breaker);
void circuit_breaker_failed(struct circuit_breaker *breaker, int64_t now_ms);
/* The other side asked for a pause, whose length is limited. */
void circuit_breaker_rests(struct circuit_breaker *breaker, int64_t now_ms, int64_t rest_ms);
/* Neither success nor failure: the allowed request was not made. */
void circuit_breaker_withdrawn(struct circuit_breaker *breaker);

#endif
