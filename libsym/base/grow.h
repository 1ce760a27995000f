/* SPDX-License-Identifier: MIT */
/* An array that gets one item after the other. Knows nothing of the items. */
#ifndef LIBSYM_BASE_GROW_H
#define LIBSYM_BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/*
 * Room for one more than `count` items of `item_bytes`; `*items` may move. At first for 1024, then
 * for twice as many each time. False when there is no memory: then all is as it was.
 */
static inline bool grow_items(void **items, size_t *capacity, size_t count, size_t item_bytes)
{
	size_t wanted = *capacity ? *capacity * 2 : 1024;
	void *moved;

	if (count < *capacity)
		return true;
	moved = reallocarray(*items, wanted, item_bytes);
	if (!moved)
		return false;
	*items = moved;
	*capacity = wanted;
	return true;
}

#endif
