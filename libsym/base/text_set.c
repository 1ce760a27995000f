/* SPDX-License-Identifier: MIT */
#include "libsym/base/text_set.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/hash.h"

struct text_entry {
	UT_hash_handle hh;
	char text[];
};

static struct text_entry *text_set_find(const struct text_set *set, const char *text,
					size_t size_bytes)
{
	struct text_entry *entry;

	HASH_FIND(hh, set->entries, text, size_bytes, entry);
	return entry;
}

const char *text_set_add(struct text_set *set, const char *text, size_t size_bytes)
{
	struct text_entry *entry = text_set_find(set, text, size_bytes);

	if (entry)
		return entry->text;
	entry = malloc(sizeof(*entry) + size_bytes + 1);
	if (!entry)
		return NULL;
	memcpy(entry->text, text, size_bytes);
	entry->text[size_bytes] = '\0';
	HASH_ADD_KEYPTR(hh, set->entries, entry->text, size_bytes, entry);
	if (hash_added(entry))
		return entry->text;
	free(entry);
	return NULL;
}

bool text_set_has(const struct text_set *set, const char *text)
{
	return text_set_find(set, text, strlen(text)) != NULL;
}

void text_set_deinit(struct text_set *set)
{
	HASH_DESTROY(set->entries, free);
}
