/* SPDX-License-Identifier: MIT */
#include "mapgen/events/event_rows.h"

#include <stdlib.h>
#include <string.h>

enum {
	MOST_ROWS = 1 << 18,
	MOST_TEXT_BYTES = 4096, /* of a key; the rest of a longer text is left out */
};

void event_rows_deinit(struct event_rows *rows)
{
	struct event_row *row, *next;

	HASH_ITER(hh, rows->table, row, next)
	{
		HASH_DEL(rows->table, row);
		free(row->note);
		free(row);
	}
	*rows = (struct event_rows){ 0 };
}

/* Both texts with their NULs. */
struct key {
	size_t name_bytes, bytes;
	char text[2 * (MOST_TEXT_BYTES + 1)];
};

static void make_key(const char *name, const char *detail, struct key *ret)
{
	size_t name_bytes = strnlen(name, MOST_TEXT_BYTES);
	size_t detail_bytes = strnlen(detail, MOST_TEXT_BYTES);

	ret->name_bytes = name_bytes;
	ret->bytes = name_bytes + detail_bytes + 2;
	memcpy(ret->text, name, name_bytes);
	ret->text[name_bytes] = '\0';
	memcpy(ret->text + name_bytes + 1, detail, detail_bytes);
	ret->text[ret->bytes - 1] = '\0';
}

static struct event_row *find(const struct event_rows *rows, const struct key *key)
{
	struct event_row *row;

	HASH_FIND(hh, rows->table, key->text, key->bytes, row);
	return row;
}

const struct event_row *event_rows_look_up(const struct event_rows *rows, const char *name,
					   const char *detail)
{
	struct key key;

	make_key(name, detail, &key);
	return find(rows, &key);
}

struct sym_error *event_rows_find(struct event_rows *rows, const char *name, const char *detail,
				  struct event_row **ret)
{
	struct event_row *row;
	struct key key;

	make_key(name, detail, &key);
	*ret = find(rows, &key);
	if (*ret || rows->count >= MOST_ROWS)
		return NULL;
	*ret = row =
		hash_find_or_add(&rows->table, key.text, key.bytes, offsetof(struct event_row, key),
				 sizeof(*row) + key.bytes, NULL);
	if (!row)
		return &sym_error_no_memory;
	rows->count++;
	row->name = row->key;
	row->detail = row->key + key.name_bytes + 1;
	return NULL;
}

void event_row_add(struct event_row *row, uint64_t weight)
{
	row->count++;
	row->weight += weight;
	if (weight > row->longest)
		row->longest = weight;
}

static int compare(const void *left, const void *right)
{
	const struct event_row *a = *(const struct event_row *const *)left;
	const struct event_row *b = *(const struct event_row *const *)right;
	int order;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	order = strcmp(a->name, b->name);
	return order ? order : strcmp(a->detail, b->detail);
}

const struct event_row **event_rows_sorted(const struct event_rows *rows)
{
	const struct event_row **sorted = calloc(rows->count + 1, sizeof(*sorted));
	struct event_row *row, *next;
	size_t count = 0;

	if (!sorted)
		return NULL;
	HASH_ITER(hh, rows->table, row, next)
	sorted[count++] = row;
	qsort(sorted, count, sizeof(*sorted), compare);
	return sorted;
}
