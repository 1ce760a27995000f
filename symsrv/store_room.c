/* SPDX-License-Identifier: MIT */
#include "symsrv/store_room.h"

#include <errno.h>
#include <stddef.h>

void store_room_init(struct store_room *room)
{
	*room = (struct store_room){ .last = &room->first };
}

bool store_room_is_turn(const struct store_room *room, const struct store_share *share)
{
	return share->bytes || !room->first || room->first == share;
}

static void enqueue(struct store_room *room, struct store_share *share)
{
	if (share->link)
		return;
	share->link = room->last;
	*room->last = share;
	room->last = &share->next;
}

static void dequeue(struct store_room *room, struct store_share *share)
{
	if (!share->link)
		return;
	*share->link = share->next;
	if (share->next)
		share->next->link = share->link;
	else
		room->last = share->link;
	share->next = NULL;
	share->link = NULL;
}

static void count_moving(struct store_room *room, struct store_share *share)
{
	room->moving_count -= share->is_moving;
	share->is_moving = share->bytes && !share->is_waiting;
	room->moving_count += share->is_moving;
}

void store_room_take(struct store_room *room, struct store_share *share, uint64_t bytes)
{
	dequeue(room, share);
	room->arriving_bytes += bytes;
	share->bytes += bytes;
	share->is_waiting = false;
	count_moving(room, share);
}

int store_room_wait(struct store_room *room, struct store_share *share)
{
	bool is_turn = store_room_is_turn(room, share);

	if (is_turn && room->arriving_bytes == share->bytes)
		return -ENOSPC;
	if (share->bytes && room->moving_count == share->is_moving)
		return -EDEADLK;
	if (!share->bytes)
		enqueue(room, share);
	share->is_waiting = true;
	count_moving(room, share);
	return -EAGAIN;
}

void store_room_leave(struct store_room *room, struct store_share *share)
{
	dequeue(room, share);
	room->arriving_bytes -= share->bytes;
	share->bytes = 0;
	share->is_waiting = false;
	count_moving(room, share);
}
