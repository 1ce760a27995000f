/* SPDX-License-Identifier: MIT */
/*
 * Which of the files that arrive may have the room of the store. Those that say
 * how long they will be ask for all of it at once, before they have any: they are
 * served in the order in which they came, so that small ones do not keep a large one
 * out for ever. Those that do not say ask for more while they hold some, and go
 * first; where all of these would wait for each other the last one has to let go.
 *
 * Part of the store, under its lock. Refuses to know what lies in it.
 */
#ifndef SYMSRV_STORE_ROOM_H
#define SYMSRV_STORE_ROOM_H

#include <stdbool.h>
#include <stdint.h>

/* Of a file that arrives. */
struct store_share {
	uint64_t bytes;
	bool is_waiting;
	bool is_moving;                   /* it has room, and does not wait for more: it will end */
	struct store_share *next, **link; /* while it waits with nothing */
};

struct store_room {
	uint64_t arriving_bytes;
	unsigned int moving_count;
	struct store_share *first, **last; /* those that wait with nothing */
};

void store_room_init(struct store_room *room);

/* False: others that have nothing came before it. */
bool store_room_is_turn(const struct store_room *room, const struct store_share *share);

void store_room_take(struct store_room *room, struct store_share *share, uint64_t bytes);

/*
 * There is none now. -EAGAIN: there will be, and it keeps its place; -EDEADLK: not
 * before this one gives up what it has; -ENOSPC: nobody else has any.
 */
int store_room_wait(struct store_room *room, struct store_share *share);

/* Gives back what it has, and waits no more. */
void store_room_leave(struct store_room *room, struct store_share *share);

#endif
