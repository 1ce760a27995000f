/* SPDX-License-Identifier: MIT */
/*
 * Lists of objects in requests: {"objects": [PATH, ...]}, with the paths by which clients ask for
 * them. Bounded by the size of the text and by a number of objects.
 */
#ifndef SYMSRV_LOOKUP_OBJECT_LIST_H
#define SYMSRV_LOOKUP_OBJECT_LIST_H

#include "symsrv/lookup/lookup.h"

#define OBJECT_LIST_MAX 10000

struct listed_object {
	struct key key;
	char *room; /* heap; the strings of the key lie in it */
};

struct object_list {
	struct listed_object *items; /* heap */
	size_t count;
};

extern const char object_list_no_memory[];

/* NULL, or why it is malformed (static), or object_list_no_memory. object_list_deinit() in any
 * case.
 */
const char *object_list_parse(const char *text, size_t size_bytes, struct object_list *ret);
void object_list_deinit(struct object_list *list);

/* Whether the object is stored or indexed. Its bytes are not checked. */
bool object_list_is_here(const struct holdings *holdings, const struct key *key);

/* {"have": [BOOL, ...]}, in the order of the list; heap, NULL: out of memory. */
char *object_list_have(const struct object_list *list, const struct holdings *holdings);

#endif
