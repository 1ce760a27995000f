/* SPDX-License-Identifier: MIT */
#include "symsrv/upstream/circuit_breaker.h"

static const unsigned int failures_to_open = 5;
static const int64_t first_open_ms = 10000;
static const int64_t longest_open_ms = 300000;

bool circuit_breaker_allows(struct circuit_breaker *breaker, int64_t now_ms)
{
	if (breaker->state == BREAKER_CLOSED)
		return true;
	if (breaker->state == BREAKER_TRYING || now_ms < breaker->until_ms)
		return false;
	breaker->state = BREAKER_TRYING;
	return true;
}

void circuit_breaker_succeeded(struct circuit_breaker *breaker)
{
	*breaker = (struct circuit_breaker){ .state = BREAKER_CLOSED };
}

void circuit_breaker_failed(struct circuit_breaker *breaker, int64_t now_ms)
{
	breaker->failures++;
	if (breaker->state == BREAKER_OPEN ||
	    (breaker->state == BREAKER_CLOSED && breaker->failures < failures_to_open))
		return;
	breaker->open_ms = breaker->open_ms ? 2 * breaker->open_ms : first_open_ms;
	if (breaker->open_ms > longest_open_ms)
		breaker->open_ms = longest_open_ms;
	breaker->until_ms = now_ms + breaker->open_ms;
	breaker->state = BREAKER_OPEN;
}

void circuit_breaker_rests(struct circuit_breaker *breaker, int64_t now_ms, int64_t rest_ms)
{
	breaker->until_ms = now_ms + (rest_ms < longest_open_ms ? rest_ms : longest_open_ms);
	breaker->state = BREAKER_OPEN;
}

void circuit_breaker_withdrawn(struct circuit_breaker *breaker)
{
	if (breaker->state == BREAKER_TRYING)
		breaker->state = BREAKER_OPEN;
}
