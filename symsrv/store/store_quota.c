/* SPDX-License-Identifier: MIT */
#include "symsrv/store/store_quota.h"

#include <errno.h>
#include <stddef.h>

void store_quota_init(struct store_quota *room)
{
	*room = (struct store_quota){ .last = &room->first };
}

bool store_quota_is_turn(const struct store_quota *room, const struct store_share *share)
{
	return share->bytes || !room->first || room->first == share;
}

static void store_quota_enqueue(struct store_quota *room, struct store_share *share)
{
	if (share->link)
		return;
	share->link = room->last;
	*room->last = share;
	room->last = &share->next;
}

static void store_quota_dequeue(struct store_quota *room, struct store_share *share)
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

static void count_moving(struct store_quota *room, struct store_share *share)
{
	room->moving_count -= share->is_moving;
	share->is_moving = share->bytes && !share->is_waiting;
	room->moving_count += share->is_moving;
}

void store_quota_take(struct store_quota *room, struct store_share *share, uint64_t bytes)
{
	store_quota_dequeue(room, share);
	room->arriving_bytes += bytes;
	share->bytes += bytes;
	share->is_waiting = false;
	count_moving(room, share);
}

int store_quota_wait(struct store_quota *room, struct store_share *share)
{
	bool is_turn = store_quota_is_turn(room, share);

	if (is_turn && room->arriving_bytes == share->bytes)
		return -ENOSPC;
	if (share->bytes && room->moving_count == share->is_moving)
		return -EDEADLK;
	if (!share->bytes)
		store_quota_enqueue(room, share);
	share->is_waiting = true;
	count_moving(room, share);
	return -EAGAIN;
}

void store_quota_leave(struct store_quota *room, struct store_share *share)
{
	store_quota_dequeue(room, share);
	room->arriving_bytes -= share->bytes;
	share->bytes = 0;
	share->is_waiting = false;
	count_moving(room, share);
}
