/* SPDX-License-Identifier: MIT */
/*
 * Precodes with their names: "[precode] " and the method whose call goes through
 * it. Knows whose name may be believed: a MethodDesc that can be recycled only
 * while its method has code.
 */
#ifndef LIBSYM_CLR_JIT_THUNKS_H
#define LIBSYM_CLR_JIT_THUNKS_H

#include "libsym/clr/jit_round.h"
#include "libsym/clr/precode.h"

/* A precode or a page of them. */
struct jit_thunk {
	struct precode precode;
	size_t name_offset;
	uint32_t name_bytes; /* 0: none */
	bool done;
};

struct jit_thunks {
	struct jit_thunk *items;
	size_t count;
	struct buf names;
};

/* All of the code map of a round. Errors: as precodes_read(). */
struct sym_error *jit_thunks_read(const struct jit_tools *tools,
				  const struct layout_precodes *layout,
				  const struct jit_round *round, struct jit_thunks *ret)
	__attribute__((warn_unused_result));
void jit_thunks_deinit(struct jit_thunks *thunks);

#endif
