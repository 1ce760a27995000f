/* SPDX-License-Identifier: MIT */
/* Trees of inlined methods, as a runtime keeps them beside the debug information of a method. */
#include <stdlib.h>

#include "libsym/format/dotnet/inline_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_place(const struct inline_tree *tree, uint32_t native_offset)
{
	struct inline_place place;

	if (!inline_tree_find(tree, native_offset, &place))
		return;
	if (place.native_offset > native_offset || place.count > INLINE_TREE_DEEPEST)
		abort();
	for (uint32_t i = 0; i < place.count; i++) {
		uint32_t parent = i + 1 < place.count ? place.nodes[i + 1] : 0;

		if (!place.nodes[i] || place.nodes[i] >= tree->count ||
		    tree->nodes[place.nodes[i]].parent != parent)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct inline_tree tree;
	const char *failure = NULL;
	struct sym_error *error = inline_tree_read(data, size, &tree, &failure);

	if (!error && !failure) {
		for (uint32_t native = 0; native < 300; native += 7)
			check_place(&tree, native);
		check_place(&tree, UINT32_MAX);
		inline_tree_deinit(&tree);
	}
	sym_error_destroy(error);
	return 0;
}
