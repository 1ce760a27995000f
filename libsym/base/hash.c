/* SPDX-License-Identifier: MIT */
#include "libsym/base/hash.h"

#include <stdlib.h>
#include <string.h>

/* The begin of each element. */
struct hash_element {
	UT_hash_handle hh;
};

void *hash_find_or_add(void *head, const void *key, size_t key_bytes, size_t key_offset,
		       size_t element_bytes, bool *is_new_ret)
{
	struct hash_element *table, *element;
	void *own_key;

	/* Not by a pointer of another type than the table's own. */
	memcpy(&table, head, sizeof(table));
	HASH_FIND(hh, table, key, key_bytes, element);
	if (is_new_ret)
		*is_new_ret = !element;
	if (element)
		return element;
	element = calloc(1, element_bytes);
	if (!element)
		return NULL;
	own_key = (char *)element + key_offset;
	memcpy(own_key, key, key_bytes);
	HASH_ADD_KEYPTR(hh, table, own_key, key_bytes, element);
	if (hash_added(element)) {
		memcpy(head, &table, sizeof(table));
		return element;
	}
	free(element);
	return NULL;
}
