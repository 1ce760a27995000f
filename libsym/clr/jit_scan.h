/* SPDX-License-Identifier: MIT */
/*
 * Scans of a runtime's code: which blocks exist, and what each look at a block finds.
 *
 * Ordinary code is never freed, and the mark of a new method is written last. So one look suffices,
 * and the result remains valid in later scans.
 * Dynamic methods and collectible code are looked at twice, with an empty cache in between; or
 * once, if the previous scan saw the same. They are named only if both looks agree.
 */
#ifndef LIBSYM_CLR_JIT_SCAN_H
#define LIBSYM_CLR_JIT_SCAN_H

#include "libsym/base/buf.h"
#include "libsym/clr/code_heap.h"
#include "libsym/clr/method_desc.h"

/* Borrowed tools of a scan. */
struct jit_tools {
	struct remote_memory *memory;
	const struct layout *layout;
	bool has_tiers; /* as passed to methods_create(); otherwise tiers stay unknown */
	struct modules *modules;
	struct types *types;
	struct methods *methods;
};

enum look_state {
	BLOCK_PENDING,
	BLOCK_UNNAMED,
	BLOCK_NAMED,
	BLOCK_STUB,
	BLOCK_GONE, /* freed before the second look */
};

/* The result of one look at one block. It is small, because all looks are walked several times. */
struct look {
	struct code_method method;
	size_t name_offset; /* in the names of its scan */
	const char *tier;
	uint32_t stub_kind;
	uint32_t name_bytes;
	uint8_t state; /* enum look_state */
	bool has_bad_tier;
	bool is_added; /* BLOCK_UNNAMED, but not inconsistent */
	bool is_volatile;
	bool is_confirmed; /* the previous scan saw the same */
	bool is_settled;   /* and it cannot change any more */
};

struct jit_scan {
	struct code_map map;
	struct look *looks; /* one for each block of the map */
	struct buf names;
};

/*
 * Looks at everything.
 * What `known`, the previous scan (NULL: none), has of ordinary code is copied without reading it
 * again.
 * *changed_ret: something differs from `known`.
 * Errors: those of reading; LIMIT; NO_MEMORY.
 */
struct sym_error *jit_scan_read(const struct jit_tools *tools, const struct jit_scan *known,
				struct jit_scan *ret, bool *changed_ret)
	__attribute__((warn_unused_result));
void jit_scan_deinit(struct jit_scan *round);

#endif
