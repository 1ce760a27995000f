/* SPDX-License-Identifier: MIT */
/*
 * Inlined methods at addresses in jitted code, with their lines. Only a runtime that was started
 * with DOTNET_RichDebugInfo=1 has them; for others nothing is read.
 */
#ifndef LIBSYM_CLR_INLINED_LINES_H
#define LIBSYM_CLR_INLINED_LINES_H

#include "libsym/base/text_set.h"
#include "libsym/clr/inlined_methods.h"
#include "libsym/clr/jitted_modules.h"
#include "libsym/format/dotnet/debug_info.h"

/* For all snapshots of a process. All zero: nothing was read. */
struct inlined_lines {
	/* private */
	struct inlined_methods *methods; /* NULL: not needed yet */
	struct text_set names;
	struct buf texts; /* names of the chains read last */
};

void inlined_lines_deinit(struct inlined_lines *lines);

/* Inlined methods at one place, innermost first. */
struct inlined_answer {
	struct sym_inlined *items; /* free() them; NULL: none */
	uint32_t count;
	struct managed_line line; /* in the innermost method; with items */
	const char *reason;       /* why there are none although the runtime recorded some */
};

/*
 * Finds the chain at an offset of a method in its debug information.
 * `method_desc`: of the method. Errors: NO_MEMORY.
 */
struct sym_error *inlined_lines_take(const struct debug_info *info, uint64_t method_desc,
				     uint32_t offset_bytes, struct inlined_chain *ret)
	__attribute__((warn_unused_result));

/* The process to which the chains belong. */
struct inlined_target {
	struct remote_memory *memory;
	const struct layout *layout;
	const struct clr_target *target;
	struct jitted_module **modules;
};

/*
 * Reads the methods of chains.
 * Errors: those of reading; LIMIT; NO_MEMORY.
 */
struct sym_error *inlined_lines_read(struct inlined_lines *lines,
				     const struct inlined_target *target,
				     struct inlined_chain *chains, size_t count)
	__attribute__((warn_unused_result));

/*
 * Makes the answer of a chain that was read.
 * `outer`: the line of its address in the method that has the code. Errors: NO_MEMORY; LIMIT.
 */
struct sym_error *inlined_lines_answer(struct inlined_lines *lines,
				       const struct inlined_target *target,
				       const struct inlined_chain *chain,
				       const struct managed_line *outer, struct inlined_answer *ret)
	__attribute__((warn_unused_result));

#endif
