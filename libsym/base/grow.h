/* SPDX-License-Identifier: MIT */
/* An array that grows by one item at a time. */
#ifndef LIBSYM_BASE_GROW_H
#define LIBSYM_BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/*
 * Makes room for one more than `count` items of `item_bytes`; `*items` may move. The first
 * allocation holds 64 items; each later one is twice as large. Returns false and changes nothing
 * if out of memory.
 */
static inline bool grow_items(void **items, size_t *capacity, size_t count, size_t item_bytes)
{
	size_t wanted = *capacity ? *capacity * 2 : 64;
	void *moved;

	if (count < *capacity)
		return true;
	/* Not by a pointer of another type than the owner's own. */
	memcpy(&moved, items, sizeof(moved));
	moved = reallocarray(moved, wanted, item_bytes);
	if (!moved)
		return false;
	memcpy(items, &moved, sizeof(moved));
	*capacity = wanted;
	return true;
}

#endif
