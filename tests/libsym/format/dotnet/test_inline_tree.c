/* SPDX-License-Identifier: MIT */
/* Trees of inlined methods, written by hand by the format. */
#include "libsym/format/dotnet/inline_tree.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/support/alloc_fail.h"
#include "tests/support/nibble_writer.h"

/* ---- a writer ---- */

struct node {
	uint64_t method;
	int32_t il;
	uint32_t child, sibling;
};

struct mapping {
	uint32_t native, node;
	int32_t il;
};

static void put_delta(struct nibbles *out, int64_t delta)
{
	put_number(out, delta < 0 ? (uint32_t)(-delta) << 1 | 1 : (uint32_t)delta << 1);
}

static void put_tree(struct nibbles *out, const struct node *nodes, uint32_t node_count,
		     const struct mapping *mappings, uint32_t mapping_count)
{
	struct node last = { .il = -2 };
	struct mapping before = { .il = -2 };

	put_number(out, node_count);
	put_number(out, mapping_count);
	for (uint32_t i = 0; i < node_count; i++) {
		for (unsigned int nibble = 0; nibble < 16; nibble++)
			put_nibble(out, nodes[i].method >> (4 * nibble) & 15);
		put_delta(out, (int64_t)nodes[i].il - last.il);
		put_delta(out, (int64_t)nodes[i].child - last.child);
		put_delta(out, (int64_t)nodes[i].sibling - last.sibling);
		last = nodes[i];
	}
	for (uint32_t i = 0; i < mapping_count; i++) {
		put_number(out, mappings[i].native - before.native);
		put_delta(out, (int64_t)mappings[i].node - before.node);
		put_delta(out, (int64_t)mappings[i].il - before.il);
		put_number(out, 2);
		before = mappings[i];
	}
	end_byte(out);
}

/* 0 has 3 and 1; 3 has 2; 2 has 4. */
static const struct node nodes[] = {
	{ 0x7f0012345678, -1, 3, 0 }, { 0x1010, 7, 0, 0 }, { 0x2020, 654592262, 4, 0 },
	{ 0x3030, 0, 2, 1 },          { 0x4040, 5, 0, 0 },
};
static const struct mapping mappings[] = {
	{ 0x10, 0, 0 }, { 0x20, 4, 12 }, { 0x20, 3, 2 },
	{ 0x31, 4, 9 }, { 0x80, 1, 0 },  { 0x90, 0, 33 },
};

enum {
	NODES = sizeof(nodes) / sizeof(nodes[0]),
	MAPPINGS = sizeof(mappings) / sizeof(mappings[0]),
};

static const char *read_tree(const struct nibbles *text, size_t size_bytes, struct inline_tree *ret)
{
	const char *failure;

	cr_assert_null(inline_tree_read(text->bytes, size_bytes, ret, &failure));
	return failure;
}

static const char *failure_of(const struct node *of_nodes, uint32_t node_count,
			      const struct mapping *of_mappings, uint32_t mapping_count)
{
	struct nibbles text = { 0 };
	struct inline_tree tree;
	const char *failure;

	put_tree(&text, of_nodes, node_count, of_mappings, mapping_count);
	failure = read_tree(&text, end_byte(&text), &tree);
	inline_tree_deinit(&tree);
	return failure;
}

/* ---- tests ---- */

Test(inline_tree, reads_nodes_and_their_parents)
{
	static const uint32_t parents[] = { 0, 0, 3, 0, 2 };
	struct nibbles text = { 0 };
	struct inline_tree tree;

	put_tree(&text, nodes, NODES, mappings, MAPPINGS);
	cr_assert_null(read_tree(&text, end_byte(&text), &tree));
	cr_assert(eq(u32, tree.count, NODES));
	for (uint32_t i = 0; i < NODES; i++) {
		cr_expect(eq(u64, tree.nodes[i].method_desc, nodes[i].method));
		cr_expect(eq(u32, tree.nodes[i].parent, parents[i]));
		cr_expect(eq(u32, tree.nodes[i].child, nodes[i].child));
		cr_expect(eq(u32, tree.nodes[i].sibling, nodes[i].sibling));
	}
	inline_tree_deinit(&tree);
}

Test(inline_tree, finds_the_chain_of_an_offset)
{
	static const struct {
		uint32_t native, begin;
		int32_t il;
		uint32_t count, chain[3];
	} wanted[] = {
		{ 0x10, 0x10, 0, 0, { 0 } },
		{ 0x1f, 0x10, 0, 0, { 0 } },
		/* The last of two mappings at one place has the code. */
		{ 0x20, 0x20, 2, 1, { 3 } },
		{ 0x31, 0x31, 9, 3, { 4, 2, 3 } },
		{ 0x7f, 0x31, 9, 3, { 4, 2, 3 } },
		{ 0x80, 0x80, 0, 1, { 1 } },
		{ UINT32_MAX, 0x90, 33, 0, { 0 } },
	};
	struct nibbles text = { 0 };
	struct inline_tree tree;
	struct inline_place place;

	put_tree(&text, nodes, NODES, mappings, MAPPINGS);
	cr_assert_null(read_tree(&text, end_byte(&text), &tree));
	cr_expect_not(inline_tree_find(&tree, 0xf, &place));
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		cr_assert(inline_tree_find(&tree, wanted[i].native, &place));
		cr_expect(eq(u32, place.native_offset, wanted[i].begin));
		cr_expect(eq(i32, place.il_offset, wanted[i].il));
		cr_assert(eq(u32, place.count, wanted[i].count));
		for (uint32_t k = 0; k < place.count; k++)
			cr_expect(eq(u32, place.nodes[k], wanted[i].chain[k]));
	}
	inline_tree_deinit(&tree);
}

Test(inline_tree, may_have_no_inlined_method)
{
	static const struct node root = { 0x7f0012345678, -1, 0, 0 };

	cr_expect_null(failure_of(&root, 1, mappings, 1));
	cr_expect_null(failure_of(&root, 1, NULL, 0));
}

Test(inline_tree, rejects_a_tree_that_is_none)
{
	static const struct {
		const char *what;
		struct node node;
		uint32_t number;
	} faults[] = {
		{ "a loop to the root's child", { 0x4040, 5, 3, 0 }, 4 },
		{ "a node that is its own child", { 0x4040, 5, 4, 0 }, 4 },
		{ "a node that is its own sibling", { 0x3030, 0, 2, 3 }, 3 },
		{ "a node of two parents", { 0x1010, 7, 4, 0 }, 1 },
		{ "a child beyond the end", { 0x4040, 5, 5, 0 }, 4 },
		{ "a sibling beyond the end", { 0x4040, 5, 0, 0x7ffffffe }, 4 },
		{ "a node without a parent", { 0x2020, 0, 0, 0 }, 2 },
		{ "a sibling of the root", { 0x7f0012345678, -1, 0, 3 }, 0 },
	};

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct node changed[NODES];

		memcpy(changed, nodes, sizeof(nodes));
		changed[faults[i].number] = faults[i].node;
		cr_expect_not_null(failure_of(changed, NODES, mappings, MAPPINGS), "%s",
				   faults[i].what);
	}
}

/* Two nodes that are each other's child: no walk from the root meets them. */
Test(inline_tree, has_no_chain_without_an_end)
{
	static const struct node looped[] = { { 0x10, 0, 0, 0 },
					      { 0x20, 0, 2, 0 },
					      { 0x30, 0, 1, 0 } };
	static const struct mapping at[] = { { 0, 1, 0 }, { 8, 0, 0 } };
	struct nibbles text = { 0 };
	struct inline_tree tree;
	struct inline_place place;

	put_tree(&text, looped, 3, at, 2);
	if (read_tree(&text, end_byte(&text), &tree))
		return;
	cr_expect_not(inline_tree_find(&tree, 4, &place));
	cr_expect(inline_tree_find(&tree, 9, &place));
	inline_tree_deinit(&tree);
}

Test(inline_tree, rejects_sizes_that_are_wrong)
{
	struct nibbles text = { 0 };
	struct inline_tree tree;
	size_t size_bytes;

	put_tree(&text, nodes, NODES, mappings, MAPPINGS);
	size_bytes = end_byte(&text);
	for (size_t cut = 0; cut < size_bytes; cut++)
		cr_expect_not_null(read_tree(&text, cut, &tree), "cut to %zu bytes", cut);
	cr_expect_not_null(read_tree(&text, size_bytes + 1, &tree), "a byte more");
	text = (struct nibbles){ 0 };
	put_number(&text, 0x20000000);
	put_number(&text, 0xffffffff);
	cr_expect_not_null(read_tree(&text, sizeof(text.bytes), &tree), "more than its bytes");
	text = (struct nibbles){ 0 };
	put_tree(&text, NULL, 0, mappings, 1);
	cr_expect_not_null(read_tree(&text, end_byte(&text), &tree), "no root");
}

Test(inline_tree, rejects_mappings_of_no_node)
{
	static const struct mapping bad[] = { { 0x10, 0, 0 }, { 0x20, NODES, 1 } };
	static const struct mapping far[] = { { 0xffffffff, 0, 0 }, { 0x10, 1, 1 } };

	cr_expect_not_null(failure_of(nodes, NODES, bad, 2), "a node beyond the end");
	cr_expect_not_null(failure_of(nodes, NODES, far, 2), "offsets that begin again");
}

Test(inline_tree, reports_the_lack_of_memory)
{
	struct nibbles text = { 0 };
	struct inline_tree tree;
	const char *failure;
	struct sym_error *error;

	put_tree(&text, nodes, NODES, mappings, MAPPINGS);
	alloc_fail_after(0);
	error = inline_tree_read(text.bytes, end_byte(&text), &tree, &failure);
	alloc_fail_stop();
	cr_expect(eq(ptr, error, &sym_error_no_memory));
}
