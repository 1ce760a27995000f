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

/* The key of an entry with a name: heap, or NULL. No name has a line feed. */
static char *join(const char *text, size_t text_bytes, const char *name, size_t *length_ret)
{
	char *joined;
	int length = asprintf(&joined, "%.*s\n%s", (int)text_bytes, text, name);

	*length_ret = length < 0 ? 0 : (size_t)length;
	return length < 0 ? NULL : joined;
}

static void add(struct negative_cache *negative, const char *text, size_t length, int64_t until_ms,
		unsigned int state)
{
	struct entry *entry = malloc(sizeof(*entry));

	if (!entry)
		return;
	*entry = (struct entry){ until_ms, state };
	lru_table_add(negative->entries, text, length, entry);
}

void negative_cache_add(struct negative_cache *negative, const char *text, const char *name,
			int64_t until_ms, unsigned int state)
{
	char *joined AUTO_FREE = NULL;
	size_t length;

	add(negative, text, strlen(text), until_ms, state);
	if (!name)
		return;
	joined = join(text, strlen(text), name, &length);
	if (joined)
		add(negative, joined, length, until_ms, state);
}

static void *use_valid(void *value, const void *context)
{
	const struct entry *entry = value, *now = context;

	return now->until_ms < entry->until_ms && entry->state == now->state ? value : NULL;
}

static bool contains(struct negative_cache *negative, const char *text, size_t text_bytes,
		     int64_t now_ms, unsigned int state)
{
	return lru_table_find(negative->entries, text, text_bytes, use_valid,
			      &(struct entry){ now_ms, state });
}

bool negative_cache_contains(struct negative_cache *negative, const char *text, size_t text_bytes,
			     const char *name, int64_t now_ms, unsigned int state)
{
	char *joined AUTO_FREE = NULL;
	size_t length;

	if (!name)
		return contains(negative, text, text_bytes, now_ms, state);
	joined = join(text, text_bytes, name, &length);
	return joined && contains(negative, joined, length, now_ms, state);
}

void negative_cache_remove(struct negative_cache *negative, const char *text, const char *name)
{
	char *joined AUTO_FREE = NULL;
	size_t length;

	lru_table_remove(negative->entries, text, strlen(text));
	if (!name)
		return;
	joined = join(text, strlen(text), name, &length);
	if (joined)
		lru_table_remove(negative->entries, joined, length);
}

unsigned int negative_cache_clears(const struct negative_cache *negative)
{
	return negative->clears;
}

size_t negative_cache_count(struct negative_cache *negative)
{
	return lru_table_count(negative->entries);
}
