/* SPDX-License-Identifier: MIT */
#include "libsym/clr/jit_round.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/limits.h"

/* ---- one look ----------------------------------------------------------------- */

static void look_at_name(const struct jit_tools *tools, struct jit_round *round,
			 const struct code_section *section, struct look *look)
{
	enum method_outcome outcome;

	if (!look->name_bytes) {
		size_t offset = round->names.size_bytes;

		outcome = methods_write_name(tools->methods, look->method.method_desc,
					     &round->names, &look->is_volatile);
		look->is_volatile |= (section->flags & CODE_SECTION_COLLECTIBLE) != 0;
		if (outcome == METHOD_BAD)
			look->state = LOOK_UNNAMED;
		if (outcome != METHOD_NAMED)
			return;
		look->name_offset = offset;
		look->name_bytes = (uint32_t)(round->names.size_bytes - offset);
		buf_append_char(&round->names, '\0');
		if (methods_last_was_dynamic(tools->methods)) {
			look->state = LOOK_NAMED; /* compiled once, fully */
			look->tier = "Optimized";
			return;
		}
	}
	if (tools->tiers &&
	    methods_read_tier(tools->methods, tools->tiers, look->method.method_desc,
			      look->method.start_address, &look->tier) == METHOD_PENDING)
		return;
	look->state = LOOK_NAMED;
}

static void look_at(const struct jit_tools *tools, struct jit_round *round, size_t index)
{
	const struct code_block *block = &round->map.blocks[index];
	const struct code_section *section = &round->map.sections[block->section];
	struct look *look = &round->looks[index];

	if (!look->has_header) {
		look->is_volatile = (section->flags & CODE_SECTION_COLLECTIBLE) != 0;
		switch (code_block_read(tools->memory, tools->layout, &round->map, block,
					&look->method, &look->stub_kind)) {
		case CODE_BLOCK_PENDING:
			return;
		case CODE_BLOCK_STUB:
			look->state = LOOK_STUB;
			return;
		case CODE_BLOCK_BAD:
			look->state = LOOK_UNNAMED;
			return;
		case CODE_BLOCK_METHOD:
			look->has_header = true;
		}
	}
	look_at_name(tools, round, section, look);
}

static struct sym_error *round_error(const struct jit_tools *tools, const struct jit_round *round)
{
	if (round->names.failure != BUF_OK)
		return sym_error_from_buf(&round->names, "names of jitted methods");
	return types_error(tools->types);
}

/* Looks at all blocks of a round that are marked pending, until none is. */
static struct sym_error *look_at_all(const struct jit_tools *tools, struct jit_round *round)
{
	struct sym_error *error = NULL;
	bool again = true;

	for (unsigned int i = 0; !error && again; i++) {
		if (i == LIMIT_REMOTE_ROUNDS)
			return sym_error_create(SYM_ERROR_LIMIT,
						"the runtime's structures have no end");
		for (size_t at = 0; at < round->map.block_count; at++)
			if (round->looks[at].state == LOOK_PENDING)
				look_at(tools, round, at);
		error = round_error(tools, round);
		if (!error)
			error = remote_memory_fetch(tools->memory, &again);
	}
	return error;
}

/* Begins a round with nothing kept that could have changed. */
static struct sym_error *round_begin(const struct jit_tools *tools, struct jit_round *round)
{
	struct sym_error *error;

	*round = (struct jit_round){ 0 };
	buf_init(&round->names, LIMIT_INDEX_NAME_BYTES);
	remote_memory_forget(tools->memory);
	types_forget(tools->types);
	modules_forget_volatile(tools->modules);
	error = code_map_read(tools->memory, tools->layout, &round->map);
	if (error)
		return error;
	round->looks = calloc(round->map.block_count + 1, sizeof(*round->looks));
	return round->looks ? NULL : &sym_error_no_memory;
}

/* ---- two rounds beside each other -------------------------------------------------- */

static bool same(const struct jit_round *a, const struct look *left, const struct jit_round *b,
		 const struct look *right)
{
	if (left->state == LOOK_STUB)
		return right->state == LOOK_STUB && left->stub_kind == right->stub_kind;
	return left->state == LOOK_NAMED && right->state == LOOK_NAMED &&
	       left->method.method_desc == right->method.method_desc &&
	       left->method.size_bytes == right->method.size_bytes &&
	       left->name_bytes == right->name_bytes &&
	       !memcmp(a->names.data + left->name_offset, b->names.data + right->name_offset,
		       left->name_bytes);
}

/* For each block of a round the index of the one that begins at the same place in another, SIZE_MAX
 * where there is none; both are sorted. */
static size_t *pair_blocks(const struct jit_round *round, const struct jit_round *other)
{
	size_t *partners = calloc(round->map.block_count + 1, sizeof(*partners)), at = 0;

	for (size_t i = 0; partners && i < round->map.block_count; i++) {
		uint64_t start = round->map.blocks[i].start_address;

		while (at < other->map.block_count && other->map.blocks[at].start_address < start)
			at++;
		partners[i] =
			at < other->map.block_count && other->map.blocks[at].start_address == start
				? at
				: SIZE_MAX;
	}
	return partners;
}

static void copy_look(struct jit_round *to, struct look *look, const struct jit_round *from,
		      const struct look *source)
{
	*look = *source;
	if (source->state != LOOK_NAMED)
		return;
	look->name_offset = to->names.size_bytes;
	buf_append(&to->names, from->names.data + source->name_offset, source->name_bytes);
	buf_append_char(&to->names, '\0');
}

static bool is_of_like_section(const struct jit_round *a, size_t left, const struct jit_round *b,
			       size_t right)
{
	const struct code_section *one = &a->map.sections[a->map.blocks[left].section];
	const struct code_section *other = &b->map.sections[b->map.blocks[right].section];

	return one->begin_address == other->begin_address && one->flags == other->flags;
}

/*
 * Takes over what cannot change. Code that lost a race to be the code of its
 * method is freed at once: so only what two rounds saw alike is kept.
 */
static void take_over(const struct jit_round *known, const size_t *partners,
		      struct jit_round *round)
{
	for (size_t i = 0; i < round->map.block_count; i++)
		if (partners[i] != SIZE_MAX && known->looks[partners[i]].is_settled &&
		    is_of_like_section(round, i, known, partners[i]))
			copy_look(round, &round->looks[i], known, &known->looks[partners[i]]);
}

/* What the round before saw just so needs no second look, and if it is ordinary never another one.
 */
static void confirm(const struct jit_round *known, const size_t *partners, struct jit_round *round)
{
	for (size_t i = 0; i < round->map.block_count; i++) {
		struct look *look = &round->looks[i];
		bool confirmed = partners[i] != SIZE_MAX &&
				 is_of_like_section(round, i, known, partners[i]) &&
				 same(round, look, known, &known->looks[partners[i]]);

		look->is_confirmed = confirmed;
		look->is_settled = confirmed && !look->is_volatile;
	}
}

static bool is_changed(const struct jit_round *known, const size_t *partners,
		       const struct jit_round *round)
{
	if (known->map.block_count != round->map.block_count ||
	    known->map.section_count != round->map.section_count)
		return true;
	for (size_t i = 0; i < round->map.block_count; i++) {
		const struct look *look = &round->looks[i];
		const struct look *before =
			partners[i] == SIZE_MAX ? NULL : &known->looks[partners[i]];

		if (!before || before->state != look->state || before->tier != look->tier)
			return true;
		if (look->state == LOOK_NAMED && !same(round, look, known, before))
			return true;
	}
	return false;
}

/* ---- the second look ------------------------------------------------------------ */

static bool wants_second_look(const struct look *look)
{
	return look->state == LOOK_UNNAMED ||
	       (look->state == LOOK_NAMED && look->is_volatile && !look->is_confirmed);
}

static bool any_wants_second_look(const struct jit_round *round)
{
	for (size_t i = 0; i < round->map.block_count; i++)
		if (wants_second_look(&round->looks[i]))
			return true;
	return false;
}

/* Only what needs it is looked at again. */
static void mark_second(const struct jit_round *first, const size_t *partners,
			struct jit_round *second)
{
	for (size_t i = 0; i < second->map.block_count; i++)
		second->looks[i].state = LOOK_UNNAMED;
	for (size_t i = 0; i < first->map.block_count; i++)
		if (partners[i] != SIZE_MAX && wants_second_look(&first->looks[i]))
			second->looks[partners[i]].state = LOOK_PENDING;
}

static void settle(struct jit_round *first, const struct jit_round *second, const size_t *partners)
{
	for (size_t i = 0; i < first->map.block_count; i++) {
		struct look *look = &first->looks[i];
		const struct look *again =
			partners[i] == SIZE_MAX ? NULL : &second->looks[partners[i]];

		if (!wants_second_look(look))
			continue;
		if (!again)
			look->state = LOOK_GONE;
		else if (look->state == LOOK_NAMED)
			look->state = same(first, look, second, again) ? LOOK_NAMED : LOOK_UNNAMED;
		else if (again->state == LOOK_NAMED && !again->is_volatile)
			/* A page of the first look may have been older than a pointer to it. */
			copy_look(first, look, second, again);
	}
}

static struct sym_error *look_again(const struct jit_tools *tools, struct jit_round *first)
{
	size_t *partners AUTO_FREE = NULL;
	struct jit_round second;
	struct sym_error *error = round_begin(tools, &second);

	if (!error) {
		partners = pair_blocks(first, &second);
		error = partners ? NULL : &sym_error_no_memory;
	}
	if (!error) {
		mark_second(first, partners, &second);
		error = look_at_all(tools, &second);
	}
	if (!error)
		settle(first, &second, partners);
	jit_round_deinit(&second);
	return error;
}

/* ---- a round ------------------------------------------------------------------------ */

void jit_round_deinit(struct jit_round *round)
{
	code_map_deinit(&round->map);
	free(round->looks);
	buf_deinit(&round->names);
	round->looks = NULL;
}

static struct sym_error *read_beside(const struct jit_tools *tools, const struct jit_round *known,
				     struct jit_round *round, bool *changed_ret)
{
	size_t *partners AUTO_FREE = known ? pair_blocks(round, known) : NULL;
	struct sym_error *error = NULL;

	if (known && !partners)
		return &sym_error_no_memory;
	if (known)
		take_over(known, partners, round);
	error = look_at_all(tools, round);
	if (!error && known)
		confirm(known, partners, round);
	if (!error && any_wants_second_look(round))
		error = look_again(tools, round);
	if (!error && round->names.failure != BUF_OK)
		error = sym_error_from_buf(&round->names, "names of jitted methods");
	*changed_ret = !error && (!known || is_changed(known, partners, round));
	return error;
}

struct sym_error *jit_round_read(const struct jit_tools *tools, const struct jit_round *known,
				 struct jit_round *ret, bool *changed_ret)
{
	struct jit_round round;
	struct sym_error *error = round_begin(tools, &round);

	if (!error)
		error = read_beside(tools, known, &round, changed_ret);
	if (error)
		jit_round_deinit(&round);
	else
		*ret = round;
	return error;
}
