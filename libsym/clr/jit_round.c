/* SPDX-License-Identifier: MIT */
#include "libsym/clr/jit_round.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/limits.h"

/* ---- one look ----------------------------------------------------------------- */

/* A look on its way. */
struct task {
	size_t index;    /* of block and look */
	uint64_t soon;   /* address that the next stage begins with */
	uint64_t header; /* of the code */
	struct method_description description;
};

enum stage_outcome {
	STAGE_PENDING,
	STAGE_PASSED,
	STAGE_LAST, /* the look is as it will stay */
};

/* One thing to read of each block. */
typedef enum stage_outcome stage_fn(const struct jit_tools *tools, struct jit_round *round,
				    struct task *task);

static enum stage_outcome end_look(struct look *look, enum look_state state)
{
	look->state = state;
	return STAGE_LAST;
}

static enum stage_outcome look_at_head(const struct jit_tools *tools, struct jit_round *round,
				       struct task *task)
{
	const struct code_block *block = &round->map.blocks[task->index];
	struct look *look = &round->looks[task->index];

	look->is_volatile =
		(round->map.sections[block->section].flags & CODE_SECTION_COLLECTIBLE) != 0;
	switch (code_block_read_head(tools->memory, tools->layout, block, &task->header)) {
	case CODE_BLOCK_PENDING:
		return STAGE_PENDING;
	case CODE_BLOCK_STUB:
		look->stub_kind = (uint32_t)task->header;
		return end_look(look, LOOK_STUB);
	case CODE_BLOCK_METHOD:
		task->soon = task->header + tools->layout->code_header.method_desc;
		return STAGE_PASSED;
	case CODE_BLOCK_BAD:
		break;
	}
	return end_look(look, LOOK_UNNAMED);
}

static enum stage_outcome look_at_header(const struct jit_tools *tools, struct jit_round *round,
					 struct task *task)
{
	const struct code_block *block = &round->map.blocks[task->index];
	struct look *look = &round->looks[task->index];

	switch (code_block_read_method(tools->memory, tools->layout, &round->map, block,
				       task->header, &look->method)) {
	case CODE_BLOCK_PENDING:
		return STAGE_PENDING;
	case CODE_BLOCK_METHOD:
		task->soon = look->method.method_desc;
		remote_want(tools->memory, task->soon, tools->layout->method_desc.size_bytes);
		return STAGE_PASSED;
	default:
		return end_look(look, LOOK_UNNAMED);
	}
}

static enum stage_outcome look_at_description(const struct jit_tools *tools,
					      struct jit_round *round, struct task *task)
{
	struct look *look = &round->looks[task->index];

	switch (methods_describe(tools->methods, look->method.method_desc, &task->description)) {
	case METHOD_PENDING:
		return STAGE_PENDING;
	case METHOD_READ:
		return STAGE_PASSED;
	case METHOD_BAD:
		break;
	}
	return end_look(look, LOOK_UNNAMED);
}

static enum stage_outcome look_at_name(const struct jit_tools *tools, struct jit_round *round,
				       struct task *task)
{
	struct look *look = &round->looks[task->index];
	size_t offset = round->names.size_bytes;
	bool is_volatile;

	if (!task->description.type) {
		enum method_outcome outcome = methods_find_row(tools->methods, &task->description);

		if (outcome != METHOD_READ)
			return outcome == METHOD_PENDING ? STAGE_PENDING
							 : end_look(look, LOOK_UNNAMED);
	}
	switch (methods_write_described(tools->methods, &task->description, &round->names,
					&is_volatile)) {
	case METHOD_PENDING:
		return STAGE_PENDING;
	case METHOD_BAD:
		look->is_volatile |= is_volatile;
		return end_look(look, LOOK_UNNAMED);
	case METHOD_READ:
		break;
	}
	look->is_volatile |= is_volatile;
	look->name_offset = offset;
	look->name_bytes = (uint32_t)(round->names.size_bytes - offset);
	buf_append_char(&round->names, '\0');
	if (methods_last_was_dynamic(tools->methods)) {
		look->tier = "Optimized"; /* compiled once, fully */
		return end_look(look, LOOK_NAMED);
	}
	task->soon = task->description.code_data;
	return tools->has_tiers ? STAGE_PASSED : end_look(look, LOOK_NAMED);
}

static enum stage_outcome look_at_tier(const struct jit_tools *tools, struct jit_round *round,
				       struct task *task)
{
	struct look *look = &round->looks[task->index];

	if (methods_read_tier(tools->methods, &task->description, look->method.start_address,
			      &look->tier) == METHOD_PENDING)
		return STAGE_PENDING;
	return end_look(look, LOOK_NAMED);
}

static struct sym_error *round_error(const struct jit_tools *tools, const struct jit_round *round)
{
	if (round->names.failure != BUF_OK)
		return sym_error_from_buf(&round->names, "names of jitted methods");
	return types_error(tools->types);
}

/* What is to be done, in the order of addresses; a task without one is over. */
struct tasks {
	struct task *items;
	size_t count;
	size_t *waiting; /* those that wait in the present stage */
};

static const size_t tasks_ahead = 8;

/* Almost all that is read is read for the first time: the processor is told a little earlier. */
typedef void ahead_fn(const struct jit_tools *tools, struct task *task);

static void ahead_in_memory(const struct jit_tools *tools, struct task *task)
{
	remote_prefetch(tools->memory, task->soon);
}

static void ahead_in_metadata(const struct jit_tools *tools, struct task *task)
{
	if (methods_find_row(tools->methods, &task->description) == METHOD_READ)
		methods_prefetch_name(&task->description);
}

/* Lets every task pass one stage; a task that ended is left out of the next. */
static struct sym_error *run_stage(const struct jit_tools *tools, struct jit_round *round,
				   struct tasks *tasks, stage_fn *stage, ahead_fn *ahead)
{
	size_t waiting = tasks->count, passed = 0;

	for (size_t i = 0; i < waiting; i++)
		tasks->waiting[i] = i;
	for (unsigned int i = 0; waiting; i++) {
		size_t still = 0;
		bool again;
		/* Also what the stage before noted for this one. */
		struct sym_error *error = remote_memory_fetch(tools->memory, &again);

		if (error)
			return error;
		if (i && !again)
			break;
		if (i == LIMIT_REMOTE_ROUNDS)
			return sym_error_create(SYM_ERROR_LIMIT,
						"the runtime's structures have no end");
		for (size_t at = 0; at < waiting; at++) {
			if (at + tasks_ahead < waiting)
				ahead(tools, &tasks->items[tasks->waiting[at + tasks_ahead]]);
			if (stage(tools, round, &tasks->items[tasks->waiting[at]]) == STAGE_PENDING)
				tasks->waiting[still++] = tasks->waiting[at];
		}
		waiting = still;
		error = round_error(tools, round);
		if (error)
			return error;
	}
	for (size_t i = 0; i < waiting; i++)
		round->looks[tasks->items[tasks->waiting[i]].index].state = LOOK_UNNAMED;
	for (size_t i = 0; i < tasks->count; i++) {
		if (round->looks[tasks->items[i].index].state != LOOK_PENDING)
			continue;
		if (passed != i)
			tasks->items[passed] = tasks->items[i];
		passed++;
	}
	tasks->count = passed;
	return NULL;
}

/* Looks at all blocks of a round that are marked pending, until none is. */
static struct sym_error *look_at_all(const struct jit_tools *tools, struct jit_round *round)
{
	struct sym_error *error = NULL;
	struct tasks tasks = { 0 };
	size_t count = 0;

	for (size_t i = 0; i < round->map.block_count; i++)
		count += round->looks[i].state == LOOK_PENDING;
	tasks.items = malloc((count + 1) * sizeof(*tasks.items));
	tasks.waiting = malloc((count + 1) * sizeof(*tasks.waiting));
	if (!tasks.items || !tasks.waiting)
		error = &sym_error_no_memory;
	for (size_t i = 0; !error && i < round->map.block_count; i++)
		if (round->looks[i].state == LOOK_PENDING) {
			tasks.items[tasks.count++] =
				(struct task){ .index = i,
					       .soon = round->map.blocks[i].start_address - 8 };
			remote_want(tools->memory, round->map.blocks[i].start_address - 8, 8);
		}
	if (!error)
		error = run_stage(tools, round, &tasks, look_at_head, ahead_in_memory);
	if (!error)
		error = run_stage(tools, round, &tasks, look_at_header, ahead_in_memory);
	if (!error)
		error = run_stage(tools, round, &tasks, look_at_description, ahead_in_memory);
	if (!error)
		error = types_read_wanted(tools->types);
	if (!error)
		error = run_stage(tools, round, &tasks, look_at_name, ahead_in_metadata);
	if (!error)
		error = run_stage(tools, round, &tasks, look_at_tier, ahead_in_memory);
	free(tasks.items);
	free(tasks.waiting);
	return error;
}

/* Begins a round with nothing kept that could have changed; a second one only with the heaps of
 * `first` that are to be looked at again. */
static struct sym_error *round_begin(const struct jit_tools *tools, const struct code_map *first,
				     const bool *is_wanted, struct jit_round *round)
{
	struct sym_error *error;

	*round = (struct jit_round){ 0 };
	buf_init(&round->names, LIMIT_INDEX_NAME_BYTES);
	remote_memory_forget(tools->memory);
	types_forget(tools->types);
	modules_forget_volatile(tools->modules);
	error = code_map_read_again(tools->memory, tools->layout, first, is_wanted, &round->map);
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

static bool *mark_sections(const struct jit_round *round)
{
	bool *is_wanted = calloc(round->map.section_count + 1, sizeof(*is_wanted));

	for (size_t i = 0; is_wanted && i < round->map.block_count; i++)
		if (wants_second_look(&round->looks[i]))
			is_wanted[round->map.blocks[i].section] = true;
	return is_wanted;
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
	bool *is_wanted AUTO_FREE = mark_sections(first);
	struct jit_round second;
	struct sym_error *error;

	if (!is_wanted)
		return &sym_error_no_memory;
	error = round_begin(tools, &first->map, is_wanted, &second);
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
	struct sym_error *error = round_begin(tools, NULL, NULL, &round);

	if (!error)
		error = read_beside(tools, known, &round, changed_ret);
	if (error)
		jit_round_deinit(&round);
	else
		*ret = round;
	return error;
}
