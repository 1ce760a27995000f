/* SPDX-License-Identifier: MIT */
/*
 * How a scan runs.
 *
 * Each block passes stages: head, header, description, name, tier. A stage reads one thing, which
 * may not be cached yet.
 * look_at_all() lets all tasks pass as many stages as they can, fetches everything that was
 * requested in one go, and tries the rest again.
 * So ten thousand blocks need a few dozen system calls.
 *
 * A first scan takes over what the previous one saw of immutable code (take_over()).
 * If collectible or dynamic code remains, a second scan with an empty cache looks at it again, and
 * settle() compares both.
 */
#include "libsym/clr/jit_scan.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/limits.h"

/* ---- one look ----------------------------------------------------------------- */

/* A look in progress. */
struct task {
	size_t index;    /* of block and look */
	size_t stage;    /* the next one */
	uint64_t header; /* of the code */
	struct method_description description;
};

enum stage_outcome {
	STAGE_PENDING,
	STAGE_PASSED,
	STAGE_LAST, /* the look is final */
};

/* Reads one thing of each block. */
typedef enum stage_outcome stage_fn(const struct jit_tools *tools, struct jit_scan *round,
				    struct task *task);

static enum stage_outcome end_look(struct look *look, enum look_state state)
{
	look->state = state;
	return STAGE_LAST;
}

static enum stage_outcome look_at_head(const struct jit_tools *tools, struct jit_scan *round,
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
		return end_look(look, BLOCK_STUB);
	case CODE_BLOCK_METHOD:
		return STAGE_PASSED;
	case CODE_BLOCK_BAD:
		break;
	}
	return end_look(look, BLOCK_UNNAMED);
}

static enum stage_outcome look_at_header(const struct jit_tools *tools, struct jit_scan *round,
					 struct task *task)
{
	const struct code_block *block = &round->map.blocks[task->index];
	struct look *look = &round->looks[task->index];

	switch (code_block_read_method(tools->memory, tools->layout, &round->map, block,
				       task->header, &look->method)) {
	case CODE_BLOCK_PENDING:
		return STAGE_PENDING;
	case CODE_BLOCK_METHOD:
		remote_want(tools->memory, look->method.method_desc,
			    tools->layout->method_desc.size_bytes);
		return STAGE_PASSED;
	default:
		return end_look(look, BLOCK_UNNAMED);
	}
}

static enum stage_outcome look_at_description(const struct jit_tools *tools, struct jit_scan *round,
					      struct task *task)
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
	return end_look(look, BLOCK_UNNAMED);
}

static enum stage_outcome look_at_name(const struct jit_tools *tools, struct jit_scan *round,
				       struct task *task)
{
	struct look *look = &round->looks[task->index];
	size_t offset = round->names.size_bytes;
	bool is_volatile;

	if (!task->description.type) {
		enum method_outcome outcome = methods_find_row(tools->methods, &task->description);

		look->is_added = task->description.is_added;
		if (outcome != METHOD_READ)
			return outcome == METHOD_PENDING ? STAGE_PENDING
							 : end_look(look, BLOCK_UNNAMED);
	}
	switch (methods_write_described(tools->methods, &task->description, &round->names,
					&is_volatile)) {
	case METHOD_PENDING:
		return STAGE_PENDING;
	case METHOD_BAD:
		look->is_added = task->description.is_added;
		look->is_volatile |= is_volatile;
		return end_look(look, BLOCK_UNNAMED);
	case METHOD_READ:
		break;
	}
	look->is_volatile |= is_volatile;
	look->name_offset = offset;
	look->name_bytes = (uint32_t)(round->names.size_bytes - offset);
	buf_append_char(&round->names, '\0');
	if (methods_last_was_dynamic(tools->methods)) {
		look->tier = methods_only_tier(&task->description);
		return end_look(look, BLOCK_NAMED);
	}
	return tools->has_tiers ? STAGE_PASSED : end_look(look, BLOCK_NAMED);
}

static enum stage_outcome look_at_tier(const struct jit_tools *tools, struct jit_scan *round,
				       struct task *task)
{
	struct look *look = &round->looks[task->index];

	enum method_outcome outcome = methods_read_tier(tools->methods, &task->description,
							look->method.start_address, &look->tier);

	if (outcome == METHOD_PENDING)
		return STAGE_PENDING;
	look->has_bad_tier = outcome == METHOD_BAD;
	return end_look(look, BLOCK_NAMED);
}

static struct sym_error *round_error(const struct jit_tools *tools, const struct jit_scan *round)
{
	if (round->names.failure != BUF_OK)
		return sym_error_from_buf(&round->names, "names of jitted methods");
	return types_error(tools->types);
}

/*
 * Lets each task pass as many stages as the cache allows. Returns how many wait; they are at the
 * front.
 */
static size_t run_stages(const struct jit_tools *tools, struct jit_scan *round, struct task *tasks,
			 size_t count)
{
	static stage_fn *const stages[] = {
		look_at_head, look_at_header, look_at_description, look_at_name, look_at_tier,
	};
	size_t waiting = 0;

	for (size_t i = 0; i < count; i++) {
		enum stage_outcome outcome;

		while ((outcome = stages[tasks[i].stage](tools, round, &tasks[i])) == STAGE_PASSED)
			tasks[i].stage++;
		if (outcome == STAGE_PENDING)
			tasks[waiting++] = tasks[i];
	}
	return waiting;
}

/* Looks at blocks until nothing more can be read. */
static struct sym_error *finish_tasks(const struct jit_tools *tools, struct jit_scan *round,
				      struct task *tasks, size_t count)
{
	bool again = true;

	for (unsigned int i = 0; count && again; i++) {
		struct sym_error *error;

		if (i == LIMIT_REMOTE_ROUNDS)
			return sym_error_create(SYM_ERROR_LIMIT,
						"the runtime's structures have no end");
		count = run_stages(tools, round, tasks, count);
		error = round_error(tools, round);
		if (!error)
			error = remote_memory_fetch(tools->memory, &again);
		if (error)
			return error;
	}
	for (size_t i = 0; i < count; i++)
		round->looks[tasks[i].index].state = BLOCK_UNNAMED;
	return NULL;
}

/* Looks at all pending blocks of a scan, so many at a time. */
static struct sym_error *look_at_all(const struct jit_tools *tools, struct jit_scan *round)
{
	const size_t most = 1 << 10;
	struct task *tasks AUTO_FREE = calloc(most, sizeof(*tasks));
	struct sym_error *error = tasks ? NULL : &sym_error_no_memory;

	for (size_t i = 0; !error && i < round->map.block_count;) {
		size_t count = 0;

		for (; i < round->map.block_count && count < most; i++)
			if (round->looks[i].state == BLOCK_PENDING)
				tasks[count++] = (struct task){ .index = i };
		error = finish_tasks(tools, round, tasks, count);
	}
	return error;
}

/* Starts a scan with an empty cache. */
static struct sym_error *round_begin(const struct jit_tools *tools, bool is_second,
				     struct jit_scan *round)
{
	struct sym_error *error;

	*round = (struct jit_scan){ 0 };
	buf_init(&round->names, LIMIT_INDEX_NAME_BYTES);
	remote_memory_forget(tools->memory);
	types_forget(tools->types);
	if (is_second)
		modules_forget_volatile(tools->modules);
	else
		modules_forget_small(tools->modules);
	error = code_map_read(tools->memory, tools->layout, &round->map);
	if (error)
		return error;
	round->looks = calloc(round->map.block_count + 1, sizeof(*round->looks));
	return round->looks ? NULL : &sym_error_no_memory;
}

/* ---- two rounds beside each other -------------------------------------------------- */

static bool is_same_look(const struct jit_scan *a, const struct look *left,
			 const struct jit_scan *b, const struct look *right)
{
	if (left->state == BLOCK_STUB)
		return right->state == BLOCK_STUB && left->stub_kind == right->stub_kind;
	return left->state == BLOCK_NAMED && right->state == BLOCK_NAMED &&
	       left->method.method_desc == right->method.method_desc &&
	       left->method.size_bytes == right->method.size_bytes &&
	       left->name_bytes == right->name_bytes &&
	       !memcmp(a->names.data + left->name_offset, b->names.data + right->name_offset,
		       left->name_bytes);
}

/*
 * For each block of a scan: the index of the block with the same start in another one, or SIZE_MAX.
 * Both are sorted.
 */
static size_t *pair_blocks(const struct jit_scan *round, const struct jit_scan *other)
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

static void copy_look(struct jit_scan *to, struct look *look, const struct jit_scan *from,
		      const struct look *source)
{
	*look = *source;
	if (source->state != BLOCK_NAMED)
		return;
	look->name_offset = to->names.size_bytes;
	buf_append(&to->names, from->names.data + source->name_offset, source->name_bytes);
	buf_append_char(&to->names, '\0');
}

static bool is_of_like_section(const struct jit_scan *a, size_t left, const struct jit_scan *b,
			       size_t right)
{
	const struct code_section *one = &a->map.sections[a->map.blocks[left].section];
	const struct code_section *other = &b->map.sections[b->map.blocks[right].section];

	return one->begin_address == other->begin_address && one->flags == other->flags;
}

/*
 * Copies what cannot change. Code that lost a race to become the code of its method is freed at
 * once, so only what two scans saw identically is kept.
 */
static void take_over(const struct jit_scan *known, const size_t *partners, struct jit_scan *round)
{
	for (size_t i = 0; i < round->map.block_count; i++)
		if (partners[i] != SIZE_MAX && known->looks[partners[i]].is_settled &&
		    is_of_like_section(round, i, known, partners[i]))
			copy_look(round, &round->looks[i], known, &known->looks[partners[i]]);
}

/*
 * A block that the previous scan saw identically needs no second look; an ordinary one never again.
 */
static void jit_scan_confirm(const struct jit_scan *known, const size_t *partners,
			     struct jit_scan *round)
{
	for (size_t i = 0; i < round->map.block_count; i++) {
		struct look *look = &round->looks[i];
		bool confirmed = partners[i] != SIZE_MAX &&
				 is_of_like_section(round, i, known, partners[i]) &&
				 is_same_look(round, look, known, &known->looks[partners[i]]);

		look->is_confirmed = confirmed;
		look->is_settled = confirmed && !look->is_volatile && !look->has_bad_tier;
	}
}

static bool is_changed(const struct jit_scan *known, const size_t *partners,
		       const struct jit_scan *round)
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
		if (look->state == BLOCK_NAMED && !is_same_look(round, look, known, before))
			return true;
	}
	return false;
}

/* ---- the second look ------------------------------------------------------------ */

static bool wants_second_look(const struct look *look)
{
	if (look->state != BLOCK_NAMED)
		return look->state == BLOCK_UNNAMED;
	return look->has_bad_tier || (look->is_volatile && !look->is_confirmed);
}

static bool any_wants_second_look(const struct jit_scan *round)
{
	for (size_t i = 0; i < round->map.block_count; i++)
		if (wants_second_look(&round->looks[i]))
			return true;
	return false;
}

/* Marks only those blocks that need a second look. */
static void mark_second(const struct jit_scan *first, const size_t *partners,
			struct jit_scan *second)
{
	for (size_t i = 0; i < second->map.block_count; i++)
		second->looks[i].state = BLOCK_UNNAMED;
	for (size_t i = 0; i < first->map.block_count; i++)
		if (partners[i] != SIZE_MAX && wants_second_look(&first->looks[i]))
			second->looks[partners[i]].state = BLOCK_PENDING;
}

static void settle_named(struct look *look, const struct look *again, bool is_same)
{
	if (!is_same && look->is_volatile && !look->is_confirmed)
		look->state = BLOCK_UNNAMED;
	if (!is_same || !look->has_bad_tier)
		return;
	look->tier = again->tier;
	look->has_bad_tier = again->has_bad_tier;
}

static void jit_scan_settle(struct jit_scan *first, const struct jit_scan *second,
			    const size_t *partners)
{
	for (size_t i = 0; i < first->map.block_count; i++) {
		struct look *look = &first->looks[i];
		const struct look *again =
			partners[i] == SIZE_MAX ? NULL : &second->looks[partners[i]];

		if (!wants_second_look(look))
			continue;
		if (!again)
			look->state = BLOCK_GONE;
		else if (look->state == BLOCK_NAMED)
			settle_named(look, again, is_same_look(first, look, second, again));
		else if (again->state == BLOCK_NAMED && !again->is_volatile)
			/* A page in the cache may have been older than a pointer to it. */
			copy_look(first, look, second, again);
	}
}

static struct sym_error *look_again(const struct jit_tools *tools, struct jit_scan *first)
{
	size_t *partners AUTO_FREE = NULL;
	struct jit_scan second;
	struct sym_error *error = round_begin(tools, true, &second);

	if (!error) {
		partners = pair_blocks(first, &second);
		error = partners ? NULL : &sym_error_no_memory;
	}
	if (!error) {
		mark_second(first, partners, &second);
		error = look_at_all(tools, &second);
	}
	if (!error)
		jit_scan_settle(first, &second, partners);
	jit_scan_deinit(&second);
	return error;
}

/* ---- a round ------------------------------------------------------------------------ */

void jit_scan_deinit(struct jit_scan *round)
{
	code_map_deinit(&round->map);
	free(round->looks);
	buf_deinit(&round->names);
	round->looks = NULL;
}

static struct sym_error *read_beside(const struct jit_tools *tools, const struct jit_scan *known,
				     struct jit_scan *round, bool *changed_ret)
{
	size_t *partners AUTO_FREE = known ? pair_blocks(round, known) : NULL;
	struct sym_error *error = NULL;

	if (known && !partners)
		return &sym_error_no_memory;
	if (known)
		take_over(known, partners, round);
	/* A name that did not fit must not be compared. */
	error = round_error(tools, round);
	if (!error)
		error = look_at_all(tools, round);
	if (!error && known)
		jit_scan_confirm(known, partners, round);
	if (!error && any_wants_second_look(round))
		error = look_again(tools, round);
	if (!error)
		error = round_error(tools, round);
	*changed_ret = !error && (!known || is_changed(known, partners, round));
	return error;
}

struct sym_error *jit_scan_read(const struct jit_tools *tools, const struct jit_scan *known,
				struct jit_scan *ret, bool *changed_ret)
{
	struct jit_scan round;
	struct sym_error *error = round_begin(tools, false, &round);

	if (!error)
		error = read_beside(tools, known, &round, changed_ret);
	if (error)
		jit_scan_deinit(&round);
	else
		*ret = round;
	return error;
}
