/* SPDX-License-Identifier: MIT */
/*
 * Which arrivals get the room of the store. An arrival with a known length asks for all of it
 * before it has any, and these are served in the order in which they came, so that small ones
 * cannot keep a large one out for ever. An arrival of unknown length asks for more while it holds
 * some, and goes first; when all of these would wait for each other, the last one must give up.
 *
 * Part of the store, under its lock.
 */
#ifndef SYMSRV_STORE_STORE_QUOTA_H
#define SYMSRV_STORE_STORE_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* The state of an arrival. */
struct store_share {
	uint64_t bytes;
	bool is_waiting;
	bool is_moving; /* it has room and does not wait, so it will end */
	TAILQ_ENTRY(store_share) entry;
};

struct store_quota {
	uint64_t arriving_bytes;
	unsigned int moving_count;
	TAILQ_HEAD(, store_share) waiting; /* arrivals without room */
};

void store_quota_init(struct store_quota *room);

/* False: other arrivals without room came before it. */
bool store_quota_is_turn(const struct store_quota *room, const struct store_share *share);

void store_quota_take(struct store_quota *room, struct store_share *share, uint64_t bytes);

/*
 * There is no room now. -EAGAIN: there will be, and it keeps its place; -EDEADLK: not before this
 * one gives up its room; -ENOSPC: no other arrival holds any.
 */
int store_quota_wait(struct store_quota *room, struct store_share *share);

/* Gives its room back and ends its waiting. */
void store_quota_leave(struct store_quota *room, struct store_share *share);

#endif
