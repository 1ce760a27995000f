/* SPDX-License-Identifier: MIT */
#include "libsym/format/dotnet/inline_tree.h"

#include <stdlib.h>

enum {
	METHOD_NIBBLES = 16,
	/* A record is at least a MethodDesc and three numbers, or four numbers. */
	LEAST_NODE_NIBBLES = METHOD_NIBBLES + 3,
	LEAST_MAPPING_NIBBLES = 4
};

static const int32_t first_il_offset = -2;

/* value << 1 | sign */
static uint32_t add_signed(struct nibble_reader *reader, uint32_t before)
{
	uint32_t delta = nibble_read(reader);

	return delta & 1 ? before - (delta >> 1) : before + (delta >> 1);
}

static uint64_t read_method(struct nibble_reader *reader)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < METHOD_NIBBLES; i++)
		value |= (uint64_t)nibble_next(reader) << (4 * i);
	return value;
}

static void read_nodes(struct nibble_reader *reader, struct inline_tree *tree)
{
	struct inline_node node = { .call_il_offset = first_il_offset };

	for (uint32_t i = 0; i < tree->count && reader_ok(&reader->bytes); i++) {
		node.method_desc = read_method(reader);
		node.call_il_offset = (int32_t)add_signed(reader, (uint32_t)node.call_il_offset);
		node.child = add_signed(reader, node.child);
		node.sibling = add_signed(reader, node.sibling);
		tree->nodes[i] = node;
	}
}

/*
 * Every node but the first must be the child of exactly one: then no walk to the root has a loop
 * that contains the root, and the steps are at most the nodes.
 */
static bool set_parents(struct inline_tree *tree)
{
	uint32_t left = tree->count - 1;

	for (uint32_t i = 0; i < tree->count; i++) {
		uint32_t child = tree->nodes[i].child;

		while (child) {
			if (child >= tree->count || tree->nodes[child].parent != UINT32_MAX)
				return false;
			tree->nodes[child].parent = i;
			left--;
			child = tree->nodes[child].sibling;
		}
	}
	return !left && !tree->nodes[0].sibling;
}

struct mapping {
	uint32_t native_offset, node;
	uint32_t il_offset;
};

/* Replaces the mapping before by the next one. Returns false when it is malformed. */
static bool read_mapping(struct nibble_reader *reader, uint32_t node_count, struct mapping *mapping)
{
	uint32_t delta = nibble_read(reader);

	if (delta > UINT32_MAX - mapping->native_offset)
		return false;
	mapping->native_offset += delta;
	mapping->node = add_signed(reader, mapping->node);
	mapping->il_offset = add_signed(reader, mapping->il_offset);
	nibble_read(reader); /* source */
	return reader_ok(&reader->bytes) && mapping->node < node_count;
}

/* The bytes must end after the last mapping: otherwise a size is wrong. */
static bool has_all_mappings(const struct inline_tree *tree)
{
	struct nibble_reader reader = tree->mappings;
	struct mapping mapping = { .il_offset = (uint32_t)first_il_offset };

	for (uint32_t i = 0; i < tree->mapping_count; i++)
		if (!read_mapping(&reader, tree->count, &mapping))
			return false;
	return !reader_left(&reader.bytes);
}

static const char *read_tree(struct nibble_reader *reader, struct inline_tree *tree)
{
	static const char malformed[] = "the tree of its inlined methods is malformed";

	read_nodes(reader, tree);
	if (!reader_ok(&reader->bytes))
		return malformed;
	for (uint32_t i = 0; i < tree->count; i++)
		tree->nodes[i].parent = UINT32_MAX;
	tree->nodes[0].parent = 0;
	if (!set_parents(tree))
		return malformed;
	tree->mappings = *reader;
	return has_all_mappings(tree) ? NULL : "the mappings of its inlined methods are malformed";
}

struct sym_error *inline_tree_read(const void *bytes, size_t size_bytes, struct inline_tree *ret,
				   const char **failure_ret)
{
	struct nibble_reader reader = { .bytes = reader_over(bytes, size_bytes) };
	struct inline_tree tree = { .count = nibble_read(&reader) };
	uint64_t nibbles = (uint64_t)size_bytes * 2;

	*ret = (struct inline_tree){ 0 };
	*failure_ret = "the tree of its inlined methods is larger than its bytes";
	tree.mapping_count = nibble_read(&reader);
	if (!reader_ok(&reader.bytes) || !tree.count ||
	    (uint64_t)tree.count * LEAST_NODE_NIBBLES +
			    (uint64_t)tree.mapping_count * LEAST_MAPPING_NIBBLES >
		    nibbles)
		return NULL;
	tree.nodes = calloc(tree.count, sizeof(*tree.nodes));
	if (!tree.nodes)
		return &sym_error_no_memory;
	*failure_ret = read_tree(&reader, &tree);
	if (*failure_ret)
		inline_tree_deinit(&tree);
	else
		*ret = tree;
	return NULL;
}

void inline_tree_deinit(struct inline_tree *tree)
{
	free(tree->nodes);
	*tree = (struct inline_tree){ 0 };
}

/* ---- a place ---------------------------------------------------------------------- */

/* Returns false for a chain that is too deep. */
static bool take_chain(const struct inline_tree *tree, uint32_t node, struct inline_place *place)
{
	place->count = 0;
	for (; node; node = tree->nodes[node].parent) {
		if (place->count == INLINE_TREE_DEEPEST)
			return false;
		place->nodes[place->count++] = node;
	}
	return true;
}

bool inline_tree_find(const struct inline_tree *tree, uint32_t native_offset,
		      struct inline_place *ret)
{
	struct nibble_reader reader = tree->mappings;
	struct mapping next = { .il_offset = (uint32_t)first_il_offset }, found = next;
	uint32_t taken = 0;

	for (; taken < tree->mapping_count; taken++) {
		if (!read_mapping(&reader, tree->count, &next) ||
		    next.native_offset > native_offset)
			break;
		found = next;
	}
	ret->native_offset = found.native_offset;
	ret->il_offset = (int32_t)found.il_offset;
	return taken && take_chain(tree, found.node, ret);
}
