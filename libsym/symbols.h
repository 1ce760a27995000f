/* SPDX-License-Identifier: MIT */
/*
 * Lists of symbols: collected in any order, then sorted and frozen. Names live
 * in blocks that never move. Knows nothing of where symbols come from and does
 * not settle overlaps (symbols_disjoint() does, by the rule of index.h).
 */
#ifndef LIBSYM_SYMBOLS_H
#define LIBSYM_SYMBOLS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"

struct name_block;

/* Blocks of bytes for names: what was handed out stays where it is. */
struct name_pool {
	struct name_block *blocks;
	size_t used_bytes; /* of the newest block */
	size_t block_bytes;
};

void name_pool_deinit(struct name_pool *pool);
/* Takes over all names of `other`, which is empty then. */
void name_pool_absorb(struct name_pool *pool, struct name_pool *other);
/* A NUL-terminated copy; NULL when there is no memory. */
const char *name_pool_add(struct name_pool *pool, const char *name, size_t name_bytes);

enum {
	SYMBOLS_MAX_KEPT = 4
};

/* Something that must live as long as a list because names of the list are in it. */
struct symbols_kept {
	void *object;
	void (*end)(void *object);
};

struct symbols_table;

struct sym_symbols {
	struct sym_symbol *items;
	size_t count;
	struct name_pool names;
	struct symbols_kept kept[SYMBOLS_MAX_KEPT];
	size_t kept_count;
	_Atomic(struct symbols_table *) table; /* of names; NULL until somebody searches */
};

struct symbols_builder {
	struct sym_symbols list;
	size_t capacity;
	struct sym_error *failure; /* the first one sticks; symbols_freeze() hands it out */
};

void symbols_builder_init(struct symbols_builder *builder);
/* Room for about `count` more at once, as far as there is any. */
void symbols_builder_expect(struct symbols_builder *builder, size_t count);
void symbols_builder_deinit(struct symbols_builder *builder);

/* Adds `symbol`, its name replaced by a copy of `name`. */
void symbols_builder_add(struct symbols_builder *builder, const struct sym_symbol *symbol,
			 const char *name, size_t name_bytes);

/* As above for a name that lives as long as the list will: in its own pool, say. */
void symbols_builder_add_borrowed(struct symbols_builder *builder, const struct sym_symbol *symbol);

/* Hands `object` over to the list, which ends it last. At most SYMBOLS_MAX_KEPT of them. */
void symbols_builder_keep(struct symbols_builder *builder, void *object, void (*end)(void *object));

/* Sorts by start, size and name, and empties the builder. */
struct sym_error *symbols_freeze(struct symbols_builder *builder, struct sym_symbols **ret)
	__attribute__((warn_unused_result));

/*
 * The same, but first cuts the symbols so that none overlaps another: of two
 * that share bytes the one added later keeps them.
 */
struct sym_error *symbols_freeze_disjoint(struct symbols_builder *builder, struct sym_symbols **ret)
	__attribute__((warn_unused_result));

static inline void guard_symbols_builder(struct symbols_builder *builder)
{
	symbols_builder_deinit(builder);
}
#define AUTO_SYMBOLS_BUILDER GUARDED(symbols_builder)

DEFINE_GUARD(sym_symbols, struct sym_symbols *, sym_symbols_destroy)
#define AUTO_SYMBOLS GUARDED(sym_symbols)

#endif
