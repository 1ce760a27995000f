/* SPDX-License-Identifier: MIT */
/*
 * The looks at a runtime's code: which blocks there are, and what each says of
 * itself. Ordinary code is never freed, and the mark of a new method is written
 * last, so one look is enough for it, and what one round saw holds in the next.
 * Dynamic methods and what can be unloaded is looked at twice with nothing kept in
 * between, or once where the round before saw the same, and named only if both
 * looks agree. Knows when a look is to be believed; what is made of it is not its
 * business.
 */
#ifndef LIBSYM_CLR_JIT_ROUND_H
#define LIBSYM_CLR_JIT_ROUND_H

#include <stdatomic.h>

#include "libsym/base/buf.h"
#include "libsym/clr/code_heap.h"
#include "libsym/clr/method_desc.h"

/* What rounds are made with; all of it borrowed. */
struct jit_tools {
	struct remote_memory *memory;
	const struct layout *layout;
	bool has_tiers; /* what methods_create() was told; otherwise they stay unknown */
	struct modules *modules;
	struct types *types;
	struct methods *methods;
};

enum look_state {
	LOOK_PENDING,
	LOOK_UNNAMED,
	LOOK_NAMED,
	LOOK_STUB,
	LOOK_GONE, /* freed before the second look */
};

/* What one look says of one block; all of them are gone through several times, so they are small.
 */
struct look {
	struct code_method method;
	size_t name_offset; /* into the names of its round */
	const char *tier;
	uint32_t stub_kind;
	uint32_t name_bytes;
	uint8_t state; /* enum look_state */
	bool has_bad_tier;
	bool is_added; /* LOOK_UNNAMED, but no contradiction */
	bool is_volatile;
	bool is_confirmed; /* the round before saw the same */
	bool is_settled;   /* and it cannot change any more */
};

/* The names of a round, for as long as the round or somebody else has them. */
struct jit_names {
	atomic_uint users;
	struct buf text;
};

/* Another user; jit_names_release() from any thread. */
struct jit_names *jit_names_share(struct jit_names *names);
void jit_names_release(struct jit_names *names);

struct jit_round {
	struct code_map map;
	struct look *looks; /* as many as there are blocks in the map */
	struct jit_names *names;
};

/*
 * Looks at everything; what `known`, the round before (NULL: none), saw of ordinary code
 * is taken over without reading it again. *changed_ret: something is not as it was
 * in `known`. Errors: those of reading, LIMIT, NO_MEMORY.
 */
struct sym_error *jit_round_read(const struct jit_tools *tools, const struct jit_round *known,
				 struct jit_round *ret, bool *changed_ret)
	__attribute__((warn_unused_result));
void jit_round_deinit(struct jit_round *round);

#endif
