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
	size_t offset = round->names->text.size_bytes;
	bool is_volatile;

	if (!task->description.type) {
		enum method_outcome outcome = methods_find_row(tools->methods, &task->description);

		look->is_added = task->description.is_added;
		if (outcome != METHOD_READ)
			return outcome == METHOD_PENDING ? STAGE_PENDING
							 : end_look(look, LOOK_UNNAMED);
	}
	switch (methods_write_described(tools->methods, &task->description, &round->names->text,
					&is_volatile)) {
	case METHOD_PENDING:
		return STAGE_PENDING;
	case METHOD_BAD:
		look->is_added = task->description.is_added;
		look->is_volatile |= is_volatile;
		return end_look(look, LOOK_UNNAMED);
	case METHOD_READ:
		break;
	}
	look->is_volatile |= is_volatile;
	look->name_offset = offset;
	look->name_bytes = (uint32_t)(round->names->text.size_bytes - offset);
	buf_append_char(&round->names->text, '\0');
	if (methods_last_was_dynamic(tools->methods)) {
		look->tier = methods_only_tier(&task->description);
		return end_look(look, LOOK_NAMED);
	}
	task->soon = task->description.code_data;
	return tools->has_tiers ? STAGE_PASSED : end_look(look, LOOK_NAMED);
}

static enum stage_outcome look_at_tier(const struct jit_tools *tools, struct jit_round *round,
				       struct task *task)
{
	struct look *look = &round->looks[task->index];

	enum method_outcome outcome = methods_read_tier(tools->methods, &task->description,
							look->method.start_address, &look->tier);

	if (outcome == METHOD_PENDING)
		return STAGE_PENDING;
	look->has_bad_tier = outcome == METHOD_BAD;
	return end_look(look, LOOK_NAMED);
}

static struct sym_error *round_error(const struct jit_tools *tools, const struct jit_round *round)
{
	if (round->names->text.failure != BUF_OK)
		return sym_error_from_buf(&round->names->text, "names of jitted methods");
	return types_error(tools->types);
}

/* What is to be done next. Not more at a time than caches hold: what a stage leaves is there for
 * the one behind it. */
struct tasks {
	struct task *items;
	size_t capacity;
	size_t next_block; /* the first that no task was made of yet */
	uint32_t *left;    /* those that have not ended */
	size_t left_count;
	uint32_t *passed; /* room for as many: those that passed the present stage */
};

static const size_t usual_tasks = 2048;
/* Each part has system calls of its own: a large process is looked at in so many. */
static const size_t most_parts = 16;

/*
 * Almost all that is read is read for the first time: the processor is told a little earlier. What
 * is found by way of something else is told of in two steps.
 */
typedef void ahead_fn(const struct jit_tools *tools, struct task *task);

struct stage {
	stage_fn *look;
	ahead_fn *far, *near; /* `far` may be NULL */
};

enum {
	TASKS_NEAR = 8,
	TASKS_FAR = 16,
};

static void ahead_in_memory(const struct jit_tools *tools, struct task *task)
{
	remote_prefetch(tools->memory, task->soon);
}

static void ahead_to_chunk(const struct jit_tools *tools, struct task *task)
{
	methods_prefetch_chunk(tools->methods, task->soon);
}

static void ahead_to_row(const struct jit_tools *tools, struct task *task)
{
	(void)tools;
	methods_prefetch_row(&task->description);
}

static void ahead_in_metadata(const struct jit_tools *tools, struct task *task)
{
	if (methods_find_row(tools->methods, &task->description) == METHOD_READ)
		methods_prefetch_name(&task->description);
}

static void ahead_to_versions(const struct jit_tools *tools, struct task *task)
{
	methods_prefetch_versions(tools->methods, &task->description);
}

/* Lets those that wait try the stage; returns how many still wait, at the front. */
static size_t try_stage(const struct jit_tools *tools, struct jit_round *round, struct tasks *tasks,
			const struct stage *stage, size_t waiting, size_t *passed)
{
	struct task *items = tasks->items;
	uint32_t *left = tasks->left;
	size_t still = 0;

	for (size_t i = 0; i < waiting; i++) {
		uint32_t at = left[i];

		if (stage->far && i + TASKS_FAR < waiting)
			stage->far(tools, &items[left[i + TASKS_FAR]]);
		if (i + TASKS_NEAR < waiting) {
			stage->near(tools, &items[left[i + TASKS_NEAR]]);
			prefetch(&round->looks[items[left[i + TASKS_NEAR]].index]);
		}
		switch (stage->look(tools, round, &items[at])) {
		case STAGE_PENDING:
			left[still++] = at;
			break;
		case STAGE_PASSED:
			tasks->passed[(*passed)++] = at;
			break;
		case STAGE_LAST:
			break;
		}
	}
	return still;
}

/* Lets every task pass one stage; a task that ended is left out of the next. */
static struct sym_error *run_stage(const struct jit_tools *tools, struct jit_round *round,
				   struct tasks *tasks, const struct stage *stage)
{
	size_t waiting = tasks->left_count, passed = 0;
	uint32_t *left = tasks->left;

	for (unsigned int i = 0; waiting; i++) {
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
		waiting = try_stage(tools, round, tasks, stage, waiting, &passed);
		error = round_error(tools, round);
		if (error)
			return error;
	}
	for (size_t i = 0; i < waiting; i++)
		round->looks[tasks->items[left[i]].index].state = LOOK_UNNAMED;
	tasks->left = tasks->passed;
	tasks->left_count = passed;
	tasks->passed = left;
	return NULL;
}

static struct sym_error *tasks_create(const struct jit_round *round, struct tasks *tasks)
{
	size_t count = round->map.block_count / most_parts + 1;

	tasks->capacity = count > usual_tasks ? count : usual_tasks;
	tasks->items = malloc(tasks->capacity * sizeof(*tasks->items));
	tasks->left = malloc(tasks->capacity * sizeof(*tasks->left));
	tasks->passed = malloc(tasks->capacity * sizeof(*tasks->passed));
	return tasks->items && tasks->left && tasks->passed ? NULL : &sym_error_no_memory;
}

static void tasks_free(struct tasks *tasks)
{
	free(tasks->items);
	free(tasks->left);
	free(tasks->passed);
}

/* Makes tasks of the next blocks that are marked pending; false when there are none. */
static bool tasks_next(const struct jit_tools *tools, const struct jit_round *round,
		       struct tasks *tasks)
{
	size_t i, count = 0;

	for (i = tasks->next_block; i < round->map.block_count && count < tasks->capacity; i++) {
		uint64_t head = round->map.blocks[i].start_address - 8;

		if (round->looks[i].state != LOOK_PENDING)
			continue;
		tasks->items[count].index = i;
		tasks->items[count].soon = head;
		tasks->left[count] = (uint32_t)count;
		count++;
		remote_want(tools->memory, head, 8);
	}
	tasks->next_block = i;
	tasks->left_count = count;
	return count;
}

/* Lets all tasks that there are pass all stages. */
static struct sym_error *run_stages(const struct jit_tools *tools, struct jit_round *round,
				    struct tasks *tasks)
{
	static const struct stage stages[] = {
		{ look_at_head, NULL, ahead_in_memory },
		{ look_at_header, NULL, ahead_in_memory },
		{ look_at_description, ahead_in_memory, ahead_to_chunk },
		{ look_at_name, ahead_to_row, ahead_in_metadata },
		{ look_at_tier, ahead_in_memory, ahead_to_versions },
	};
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i < sizeof(stages) / sizeof(stages[0]); i++) {
		error = run_stage(tools, round, tasks, &stages[i]);
		if (!error && stages[i].look == look_at_description)
			error = types_read_wanted(tools->types);
	}
	return error;
}

/* Looks at all blocks of a round that are marked pending, until none is. */
static struct sym_error *look_at_all(const struct jit_tools *tools, struct jit_round *round)
{
	struct tasks tasks = { 0 };
	struct sym_error *error = tasks_create(round, &tasks);

	while (!error && tasks_next(tools, round, &tasks))
		error = run_stages(tools, round, &tasks);
	tasks_free(&tasks);
	return error;
}

static struct jit_names *jit_names_create(void)
{
	struct jit_names *names = malloc(sizeof(*names));

	if (!names)
		return NULL;
	atomic_init(&names->users, 1);
	buf_init(&names->text, LIMIT_INDEX_NAME_BYTES);
	return names;
}

struct jit_names *jit_names_share(struct jit_names *names)
{
	atomic_fetch_add(&names->users, 1);
	return names;
}

void jit_names_release(struct jit_names *names)
{
	if (!names || atomic_fetch_sub(&names->users, 1) != 1)
		return;
	buf_deinit(&names->text);
	free(names);
}

/* Begins a round with nothing kept that could have changed; a second one only with the heaps of
 * `first` that are to be looked at again. */
static struct sym_error *round_begin(const struct jit_tools *tools, const struct code_map *first,
				     const bool *is_wanted, struct jit_round *round)
{
	const size_t usual_name_bytes = 160;
	struct sym_error *error;

	*round = (struct jit_round){ .names = jit_names_create() };
	if (!round->names)
		return &sym_error_no_memory;
	remote_memory_forget(tools->memory);
	types_forget(tools->types);
	if (first)
		modules_forget_volatile(tools->modules);
	else
		modules_forget_small(tools->modules);
	error = code_map_read_again(tools->memory, tools->layout, first, is_wanted, &round->map);
	if (error)
		return error;
	/* Rather too much room, which costs nothing until it is used, than moving the names. */
	if (!first && round->map.block_count < LIMIT_INDEX_NAME_BYTES / usual_name_bytes / 4)
		buf_reserve(&round->names->text, round->map.block_count * usual_name_bytes);
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
	       !memcmp(a->names->text.data + left->name_offset,
		       b->names->text.data + right->name_offset, left->name_bytes);
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
	look->name_offset = to->names->text.size_bytes;
	buf_append(&to->names->text, from->names->text.data + source->name_offset,
		   source->name_bytes);
	buf_append_char(&to->names->text, '\0');
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
		look->is_settled = confirmed && !look->is_volatile && !look->has_bad_tier;
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
	if (look->state != LOOK_NAMED)
		return look->state == LOOK_UNNAMED;
	return look->has_bad_tier || (look->is_volatile && !look->is_confirmed);
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

static void settle_named(struct look *look, const struct look *again, bool is_same)
{
	if (!is_same && look->is_volatile && !look->is_confirmed)
		look->state = LOOK_UNNAMED;
	if (!is_same || !look->has_bad_tier)
		return;
	look->tier = again->tier;
	look->has_bad_tier = again->has_bad_tier;
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
			settle_named(look, again, same(first, look, second, again));
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
	jit_names_release(round->names);
	round->names = NULL;
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
	/* A name that found no room must not be compared. */
	error = round_error(tools, round);
	if (!error)
		error = look_at_all(tools, round);
	if (!error && known)
		confirm(known, partners, round);
	if (!error && any_wants_second_look(round))
		error = look_again(tools, round);
	if (!error)
		error = round_error(tools, round);
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
