/* SPDX-License-Identifier: MIT */
/*
 * Values by text, of which the least recently used makes room when there are too many. Split into
 * shards with a lock each, so that several threads may use it.
 */
#ifndef SYMSRV_UTIL_LRU_TABLE_H
#define SYMSRV_UTIL_LRU_TABLE_H

#include <stdbool.h>
#include <stddef.h>

struct lru_table;

/* `release` is called for each value that the table gives up. NULL: out of memory. */
struct lru_table *lru_table_create(size_t most_values, void (*release)(void *value));
void lru_table_destroy(struct lru_table *table);

/* Takes `value` over. An older value of the same text is given up. */
void lru_table_add(struct lru_table *table, const char *text, void *value);

/*
 * The result of `use` for the value of a text, or NULL if there is none. `use` is called under the
 * lock; if it returns NULL, the value is given up.
 */
void *lru_table_find(struct lru_table *table, const char *text,
		     void *(*use)(void *value, const void *context), const void *context);
void lru_table_remove(struct lru_table *table, const char *text);

/* Gives up the values for which `keep` returns false. It is called under the lock. */
void lru_table_filter(struct lru_table *table, bool (*keep)(void *value, const void *context),
		      const void *context);
size_t lru_table_count(struct lru_table *table);

#endif
