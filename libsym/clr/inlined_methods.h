/* SPDX-License-Identifier: MIT */
/*
 * The methods of a chain of inlined calls, by their MethodDescs: names, modules, and where each
 * calls the next one.
 *
 * The JIT leaves the IL offset of a call unset. So the calls in the IL of the caller are compared
 * with the method that was called. It is the call if it is the only one, or if every such call was
 * inlined: then the order is that of the IL. Otherwise the offset stays unknown.
 */
#ifndef LIBSYM_CLR_INLINED_METHODS_H
#define LIBSYM_CLR_INLINED_METHODS_H

#include "libsym/base/buf.h"
#include "libsym/clr/module_place.h"
#include "libsym/format/dotnet/inline_tree.h"

struct inlined_methods;

/* Everything is borrowed. Errors: NO_MEMORY. */
struct sym_error *inlined_methods_create(struct remote_memory *memory, const struct layout *layout,
					 struct inlined_methods **ret)
	__attribute__((warn_unused_result));
void inlined_methods_destroy(struct inlined_methods *inlined);

struct inlined_frame {
	uint64_t method_desc;
	/* Among the inlined calls of this method in its caller: its number, and how many. */
	uint32_t number, same_count;
	/* From inlined_methods_read() on: */
	uint32_t rid; /* MethodDef */
	uint64_t module;
	struct module_place place;
	size_t name_offset; /* in the names; NUL terminated */
	uint32_t il_offset; /* of the code, or of the call; UINT32_MAX: unknown */
};

/* A chain, innermost first. The last frame is the method that has the code; it is not named. */
struct inlined_chain {
	struct inlined_frame *frames;
	uint32_t count;      /* at least 2 */
	uint32_t il_offset;  /* of the code in the innermost method */
	const char *failure; /* NULL, or why its methods are not known; static */
	/* private */
	bool is_read;
	bool is_volatile; /* some method of it can be unloaded */
};

/*
 * Makes the chain of a place in a tree; its count is 0 when nothing is inlined there.
 * Free its frames. Errors: NO_MEMORY.
 */
struct sym_error *inlined_chain_create(const struct inline_tree *tree,
				       const struct inline_place *place, struct inlined_chain *ret)
	__attribute__((warn_unused_result));

/*
 * Reads `count` chains, and replaces `names`. Chains without frames are skipped. A chain with a
 * method that can be unloaded is read twice, and must be the same.
 * Errors: those of reading; LIMIT; NO_MEMORY.
 */
struct sym_error *inlined_methods_read(struct inlined_methods *inlined,
				       struct inlined_chain *chains, size_t count,
				       struct buf *names) __attribute__((warn_unused_result));

#endif
