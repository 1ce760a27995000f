/* SPDX-License-Identifier: MIT */
#include "symsrv/store/negative_cache.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "symsrv/util/lru_table.h"

enum {
	/* About 200 bytes each: 26 MB at the very most. */
	MOST_ENTRIES = 1 << 17
};

struct entry {
	int64_t until_ms;
	unsigned int state;
};

struct negative_cache {
	struct lru_table *entries;
	atomic_uint clears;
};

struct negative_cache *negative_cache_create(void)
{
	struct negative_cache *negative = calloc(1, sizeof(*negative));

	if (negative)
		negative->entries = lru_table_create(MOST_ENTRIES, free);
	if (negative && negative->entries)
		return negative;
	free(negative);
	return NULL;
}

void negative_cache_clear(struct negative_cache *negative)
{
	/* First, so that entries that are added from here on belong to the state before. */
	negative->clears++;
	lru_table_filter(negative->entries, NULL, NULL);
}

void negative_cache_destroy(struct negative_cache *negative)
{
	if (!negative)
		return;
	lru_table_destroy(negative->entries);
	free(negative);
}

/* The key of the entry for a name, or for none: heap, or NULL. No name has a line feed. */
static char *key_of(const char *text, const char *name)
{
	char *key;

	if (asprintf(&key, "%s%s%s", text, name ? "\n" : "", name ? name : "") < 0)
		return NULL;
	return key;
}

static void add(struct negative_cache *negative, const char *text, const char *name,
		int64_t until_ms, unsigned int state)
{
	char *key AUTO_FREE = key_of(text, name);
	struct entry *entry = key ? malloc(sizeof(*entry)) : NULL;

	if (!entry)
		return;
	*entry = (struct entry){ until_ms, state };
	lru_table_add(negative->entries, key, entry);
}

void negative_cache_add(struct negative_cache *negative, const char *text, const char *name,
			int64_t until_ms, unsigned int state)
{
	add(negative, text, NULL, until_ms, state);
	if (name)
		add(negative, text, name, until_ms, state);
}

static void *use_valid(void *value, const void *context)
{
	const struct entry *entry = value, *now = context;

	return now->until_ms < entry->until_ms && entry->state == now->state ? value : NULL;
}

bool negative_cache_contains(struct negative_cache *negative, const char *text, const char *name,
			     int64_t now_ms, unsigned int state)
{
	char *key AUTO_FREE = key_of(text, name);

	return key &&
	       lru_table_find(negative->entries, key, use_valid, &(struct entry){ now_ms, state });
}

void negative_cache_remove(struct negative_cache *negative, const char *text, const char *name)
{
	char *key AUTO_FREE = key_of(text, name);

	lru_table_remove(negative->entries, text);
	if (key)
		lru_table_remove(negative->entries, key);
}

unsigned int negative_cache_clears(const struct negative_cache *negative)
{
	return negative->clears;
}

size_t negative_cache_count(struct negative_cache *negative)
{
	return lru_table_count(negative->entries);
}
