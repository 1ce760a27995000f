/* SPDX-License-Identifier: MIT */
/*
 * The methods that the JIT inlined into a method, and which code belongs to which: "rich debug
 * info", which a runtime records when it was started with DOTNET_RichDebugInfo=1.
 *
 *   nibble integers (il_map.h): number of nodes, number of mappings
 *   each node:    MethodDesc (16 nibbles), deltas of IL offset, child, sibling
 *   each mapping: delta of native offset, deltas of node and IL offset, source
 *
 * Deltas are to the record before, with the sign in bit 0; that of the native offset has no sign.
 * IL offsets start at -2, all else at 0. Node 0 is the method itself. Child and sibling are numbers
 * of nodes; 0 is none. The IL offset of a node is that of the call in its caller.
 * dotnet/runtime src/coreclr/vm/debuginfostore.cpp (DoInlineTreeNodes, DoRichOffsetMappings).
 */
#ifndef LIBSYM_FORMAT_DOTNET_INLINE_TREE_H
#define LIBSYM_FORMAT_DOTNET_INLINE_TREE_H

#include "libsym/format/dotnet/il_map.h"

enum {
	/* The deepest chain that is returned; the JIT stops at 20 by default. */
	INLINE_TREE_DEEPEST = 64
};

struct inline_node {
	uint64_t method_desc;
	int32_t call_il_offset; /* in the parent; the JIT leaves some unset: any number */
	uint32_t child, sibling;
	uint32_t parent; /* its number; of node 0: 0 */
};

struct inline_tree {
	struct inline_node *nodes;
	uint32_t count;
	uint32_t mapping_count;
	struct nibble_reader mappings; /* at the first one */
};

/*
 * Reads the nodes. `bytes` must stay until inline_tree_find().
 * *failure_ret: why there is no tree; static; NULL: there is one.
 * Errors: NO_MEMORY.
 */
struct sym_error *inline_tree_read(const void *bytes, size_t size_bytes, struct inline_tree *ret,
				   const char **failure_ret) __attribute__((warn_unused_result));
void inline_tree_deinit(struct inline_tree *tree);

/* The place of a native offset in the tree. */
struct inline_place {
	uint32_t native_offset; /* of the mapping; the code reaches to the next one */
	int32_t il_offset;      /* in the innermost method */
	/* Nodes, innermost first, without node 0. 0: the code is the method's own. */
	uint32_t count;
	uint32_t nodes[INLINE_TREE_DEEPEST];
};

/*
 * Finds the last mapping at or before a native offset, which is that of an instruction.
 * Returns false when there is none, or its chain has no end.
 */
bool inline_tree_find(const struct inline_tree *tree, uint32_t native_offset,
		      struct inline_place *ret);

#endif
