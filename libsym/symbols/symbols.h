/* SPDX-License-Identifier: MIT */
/* Lists of symbols: collected in any order, then sorted and frozen. Names live in blocks that never
 * move. symbols_freeze_disjoint() resolves overlaps by the rule of index.h. */
#ifndef LIBSYM_SYMBOLS_SYMBOLS_H
#define LIBSYM_SYMBOLS_SYMBOLS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/budget.h"
#include "libsym/error.h"
#include "libsym/symbols/name_pool.h"

enum {
	SYMBOLS_MAX_OWNED = 4,
	SYMBOLS_CHARGES = 2 /* the accounts of a budget */
};

/* An object that contains names of the list, and lives as long as it. */
struct symbols_owned {
	void *object;
	void (*end)(void *object);
};

struct sym_symbols {
	struct sym_symbol *items;
	size_t count;
	struct name_pool names;
	struct symbols_owned owned[SYMBOLS_MAX_OWNED];
	size_t owned_count;
	struct symbols_charge {
		struct budget_account *account;
		uint64_t bytes;
	} charges[SYMBOLS_CHARGES];
};

struct symbols_builder {
	struct sym_symbols list;
	size_t capacity;
	struct sym_error *failure;      /* the first failure; symbols_freeze() returns it */
	struct budget_account *account; /* NULL: none */
	const char *path;
	uint64_t pending_bytes; /* not yet charged to it */
};

void symbols_builder_init(struct symbols_builder *builder);
void symbols_builder_deinit(struct symbols_builder *builder);
/* Charges everything added from now on to `account`, until the list is destroyed; NULL: to none.
 * `path` is what it is for, and must be valid until the next call. */
void symbols_builder_charge(struct symbols_builder *builder, struct budget_account *account,
			    const char *path);

/* Adds `symbol` with a copy of `name` as its name. */
void symbols_builder_add(struct symbols_builder *builder, const struct sym_symbol *symbol,
			 const char *name, size_t name_bytes);

/* Adds `symbol` with its own name, which lives as long as the list (in an adopted object, say). */
void symbols_builder_add_borrowed(struct symbols_builder *builder, const struct sym_symbol *symbol);

/* Adopts `object`: the list ends it last. At most SYMBOLS_MAX_OWNED objects. */
void symbols_builder_adopt(struct symbols_builder *builder, void *object,
			   void (*end)(void *object));

/* Adopts the names of `other`, which must be destroyed next, and what was charged for them. */
void symbols_builder_absorb_names(struct symbols_builder *builder, struct sym_symbols *other);

/* Sorts by start, size and name, and empties the builder. */
struct sym_error *symbols_freeze(struct symbols_builder *builder, struct sym_symbols **ret)
	__attribute__((warn_unused_result));

/* Like symbols_freeze(), but first cuts the symbols so that none overlap: of two that share bytes,
 * the one added later keeps them. */
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
