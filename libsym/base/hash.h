/* SPDX-License-Identifier: MIT */
/*
 * The only includer of uthash. By default uthash calls exit() when an insert runs out of memory.
 * With HASH_NONFATAL_OOM the insert is undone, and the element is marked for the caller.
 *
 * An element type has a member `UT_hash_handle hh` and uses HASH_FIND, HASH_ADD_KEYPTR, HASH_DEL
 * and HASH_ITER directly. After an add, hash_added(element) is true if it is in the table.
 * HASH_FREE empties a table and calls free() for each element.
 */
#ifndef LIBSYM_BASE_HASH_H
#define LIBSYM_BASE_HASH_H

#define HASH_NONFATAL_OOM            1
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)
#include <uthash.h>

#define hash_added(element) ((element)->hh.tbl != NULL)

/* `next` of a handle is the element; its handle is at the offset `hho` of the table. */
static inline void hash_free_items(void *first, UT_hash_table *table)
{
	for (void *item = first, *next; item; item = next) {
		next = ((UT_hash_handle *)((char *)item + table->hho))->next;
		free(item);
	}
	free(table->buckets);
	free(table);
}

#define HASH_FREE(head)                                                                            \
	do {                                                                                       \
		if (head)                                                                          \
			hash_free_items((head), (head)->hh.tbl);                                   \
		(head) = NULL;                                                                     \
	} while (0)

#endif
