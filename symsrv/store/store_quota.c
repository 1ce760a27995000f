/* SPDX-License-Identifier: MIT */
#include "symsrv/store/store_quota.h"

#include <errno.h>
#include <stddef.h>

void store_quota_init(struct store_quota *room)
{
	*room = (struct store_quota){ 0 };
	TAILQ_INIT(&room->waiting);
}

bool store_quota_is_turn(const struct store_quota *room, const struct store_share *share)
{
	return share->bytes || TAILQ_EMPTY(&room->waiting) || TAILQ_FIRST(&room->waiting) == share;
}

static void leave_queue(struct store_quota *room, struct store_share *share)
{
	if (share->is_waiting && !share->bytes)
		TAILQ_REMOVE(&room->waiting, share, entry);
}

static void count_moving(struct store_quota *room, struct store_share *share)
{
	room->moving_count -= share->is_moving;
	share->is_moving = share->bytes && !share->is_waiting;
	room->moving_count += share->is_moving;
}

void store_quota_take(struct store_quota *room, struct store_share *share, uint64_t bytes)
{
	leave_queue(room, share);
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
	if (!share->bytes && !share->is_waiting)
		TAILQ_INSERT_TAIL(&room->waiting, share, entry);
	share->is_waiting = true;
	count_moving(room, share);
	return -EAGAIN;
}

void store_quota_leave(struct store_quota *room, struct store_share *share)
{
	leave_queue(room, share);
	room->arriving_bytes -= share->bytes;
	share->bytes = 0;
	share->is_waiting = false;
	count_moving(room, share);
}
