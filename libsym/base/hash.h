/* SPDX-License-Identifier: MIT */
/*
 * The only includer of uthash. By default uthash calls exit() when an insert runs out of memory.
 * With HASH_NONFATAL_OOM the insert is undone, and the element is marked for the caller.
 *
 * An element type has a member `UT_hash_handle hh` and uses HASH_FIND, HASH_ADD_KEYPTR, HASH_DEL
 * and HASH_ITER directly. After an add, hash_added(element) is true if it is in the table.
 * HASH_DESTROY empties a table. hash_find_or_add() is for elements that begin with their `hh`.
 */
#ifndef LIBSYM_BASE_HASH_H
#define LIBSYM_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>

#define HASH_NONFATAL_OOM            1
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)
#include <uthash.h>

#define hash_added(element) ((element)->hh.tbl != NULL)

/* Empties a table, and calls destroy(element) for each element. */
#define HASH_DESTROY(head, destroy)                                                                \
	do {                                                                                       \
		__typeof__(head) destroyed, next_destroyed;                                        \
		HASH_ITER(hh, head, destroyed, next_destroyed)                                     \
		{                                                                                  \
			HASH_DEL(head, destroyed);                                                 \
			destroy(destroyed);                                                        \
		}                                                                                  \
	} while (0)

/*
 * The element with this key. If it is missing, adds one of `element_bytes` that is zero but for the
 * key, which is `key_offset` bytes from its beginning. It is allocated with calloc(). `head` is
 * the address of the table's pointer. `is_new_ret` may be NULL. Returns NULL and adds nothing if
 * out of memory.
 */
void *hash_find_or_add(void *head, const void *key, size_t key_bytes, size_t key_offset,
		       size_t element_bytes, bool *is_new_ret);

#endif
