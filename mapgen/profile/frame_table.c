/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/frame_table.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/grow.h"
#include "libsym/base/hash.h"
#include "libsym/base/path.h"
#include "libsym/error.h"

enum {
	MOST_FRAMES = 1 << 26,
	MOST_STACKS = 1 << 26,
	MOST_INLINED = 1 << 26,      /* numbers of frames in `inlined` */
	MOST_STACK_FRAMES = 1 << 13, /* a stack with more has no inlined functions */
	INLINED_NUMBER = 1 << 30,    /* bit of a number: an index of `inlined` */
	TEXTS = 6,
	HEAD_BYTES = 2 + 3 * sizeof(uint32_t), /* of a key, before its texts */
};

/* The key is "kind flags line column IL-offset image NUL tier NUL reason NUL name NUL file". */
struct frame_entry {
	UT_hash_handle hh;
	struct profile_frame frame; /* its texts are in the key, or the name is `later_name` */
	char *later_name;
	uint32_t number;
	char key[];
};

struct stack_entry {
	UT_hash_handle hh;
	uint32_t number;
	uint32_t count;
	uint32_t key[]; /* end, then the frames */
};

struct frame_table {
	struct frame_entry *frames_by_key;
	struct frame_entry **frames;
	size_t frame_count, frame_capacity;
	uint32_t *inlined; /* lists of frames: their count, then their numbers, outermost first */
	size_t inlined_count, inlined_capacity;
	struct stack_entry *stacks_by_key;
	struct stack_entry **stacks;
	size_t stack_count, stack_capacity;
};

const char *frame_kind_text(enum frame_kind kind)
{
	static const char *const texts[FRAME_KINDS] = { "unknown", "jitted", "precompiled",
							"runtime", "native", "kernel",
							"event" };

	return (unsigned int)kind < FRAME_KINDS ? texts[kind] : "unknown";
}

bool frame_kind_is_managed(enum frame_kind kind)
{
	return kind == FRAME_KIND_JITTED || kind == FRAME_KIND_PRECOMPILED;
}

const char *stack_end_text(enum stack_end end)
{
	if (end == STACK_END_NOT_SAID)
		return "frame pointers end there";
	if (end == STACK_END_NO_STACK)
		return "no stack was recorded";
	return sym_unwind_end_text((enum sym_unwind_end)end);
}

/* Files of the runtime; the names are those of src/coreclr and src/native/corehost. */
static bool is_runtime_file(const char *path)
{
	static const char *const names[] = { "libcoreclr.so",      "libclrjit.so",
					     "libclrgc.so",        "libclrgcexp.so",
					     "libhostfxr.so",      "libhostpolicy.so",
					     "libmscordaccore.so", "libcoreclrtraceptprovider.so" };
	const char *name = path_file_name(path);

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return !strncmp(name, "libSystem.", 10);
}

enum frame_kind frame_kind_of(const char *source, const char *tier, const char *image,
			      enum sym_symbol_kind kind)
{
	if (!strcmp(source, "kernel"))
		return FRAME_KIND_KERNEL;
	if (!strcmp(source, "r2r") || !strcmp(source, "relmap") || !strcmp(tier, "PreJIT"))
		return FRAME_KIND_PRECOMPILED;
	if (!strcmp(source, "runtime") || !strcmp(source, "perfmap") || !strcmp(source, "jitdump"))
		return kind == SYM_SYMBOL_STUB ? FRAME_KIND_RUNTIME : FRAME_KIND_JITTED;
	if (is_runtime_file(image))
		return FRAME_KIND_RUNTIME;
	return *image ? FRAME_KIND_NATIVE : FRAME_KIND_UNKNOWN;
}

struct sym_error *frame_table_create(struct frame_table **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? NULL : &sym_error_no_memory;
}

static void frame_entry_destroy(struct frame_entry *entry)
{
	free(entry->later_name);
	free(entry);
}

void frame_table_destroy(struct frame_table *table)
{
	if (!table)
		return;
	HASH_DESTROY(table->frames_by_key, frame_entry_destroy);
	HASH_DESTROY(table->stacks_by_key, free);
	free(table->frames);
	free(table->inlined);
	free(table->stacks);
	free(table);
}

/* ---- frames ------------------------------------------------------------------------------------
 */

static char *make_key(const struct profile_frame *frame, size_t *size_ret)
{
	const char *const texts[TEXTS] = { frame->image,
					   frame->tier,
					   frame->reason,
					   frame->name,
					   frame->file ? frame->file : "",
					   frame->url ? frame->url : "" };
	const uint32_t numbers[] = { frame->line, frame->column, frame->il_offset };
	size_t size = HEAD_BYTES;
	char *key;

	for (int i = 0; i < TEXTS; i++)
		size += strlen(texts[i]) + 1;
	*size_ret = size;
	key = malloc(size);
	if (!key)
		return NULL;
	key[0] = (char)frame->kind;
	key[1] = (char)(frame->is_named | frame->is_guessed << 1 | frame->has_il_offset << 2 |
			(int)frame->quality << 3 | frame->is_inlined << 5);
	memcpy(key + 2, numbers, sizeof(numbers));
	size = HEAD_BYTES;
	for (int i = 0; i < TEXTS; i++) {
		size_t count = strlen(texts[i]) + 1;

		memcpy(key + size, texts[i], count);
		size += count;
	}
	return key;
}

static const char *behind(const char *text)
{
	return text + strlen(text) + 1;
}

static void set_frame(struct frame_entry *entry, const struct profile_frame *frame)
{
	entry->frame = *frame;
	entry->frame.image = entry->key + HEAD_BYTES;
	entry->frame.tier = behind(entry->frame.image);
	entry->frame.reason = behind(entry->frame.tier);
	entry->frame.name = behind(entry->frame.reason);
	entry->frame.file = behind(entry->frame.name);
	entry->frame.url = behind(entry->frame.file);
}

struct sym_error *frame_table_add(struct frame_table *table, const struct profile_frame *frame,
				  uint32_t *ret)
{
	size_t key_bytes;
	char *key AUTO_FREE = make_key(frame, &key_bytes);
	struct frame_entry *entry;
	bool is_new;

	if (!key || !grow_items((void **)&table->frames, &table->frame_capacity, table->frame_count,
				sizeof(*table->frames)))
		return &sym_error_no_memory;
	entry = hash_find_or_add(&table->frames_by_key, key, key_bytes,
				 offsetof(struct frame_entry, key), sizeof(*entry) + key_bytes,
				 &is_new);
	if (!entry)
		return &sym_error_no_memory;
	if (is_new && table->frame_count == MOST_FRAMES)
		return sym_error_create(SYM_ERROR_LIMIT, "more than %d different frames",
					MOST_FRAMES);
	if (is_new) {
		set_frame(entry, frame);
		entry->number = (uint32_t)table->frame_count;
		table->frames[table->frame_count++] = entry;
	}
	*ret = entry->number;
	return NULL;
}

static bool add_inlined_number(struct frame_table *table, uint32_t number)
{
	if (!grow_items((void **)&table->inlined, &table->inlined_capacity, table->inlined_count,
			sizeof(*table->inlined)))
		return false;
	table->inlined[table->inlined_count++] = number;
	return true;
}

struct sym_error *frame_table_add_inlined(struct frame_table *table, const uint32_t *frames,
					  size_t count, uint32_t *ret)
{
	size_t first = table->inlined_count;
	bool has_memory;

	if (count >= MOST_INLINED - first)
		return sym_error_create(SYM_ERROR_LIMIT, "more than %d inlined functions",
					MOST_INLINED);
	has_memory = add_inlined_number(table, (uint32_t)count);
	for (size_t i = 0; has_memory && i < count; i++)
		has_memory = add_inlined_number(table, frames[i]);
	if (!has_memory) {
		table->inlined_count = first;
		return &sym_error_no_memory;
	}
	*ret = INLINED_NUMBER | (uint32_t)first;
	return NULL;
}

/* The line of a frame is in itself; an inlined function has that of its call in the next one. */
static void set_call(struct profile_frame *frame, const struct sym_inlined *called)
{
	frame->file = called->call_line ? called->call_file : NULL;
	frame->url = NULL;
	frame->line = frame->file ? called->call_line : 0;
	frame->column = frame->file ? called->call_column : 0;
	frame->quality = frame->file ? SYM_LINE_EXACT : SYM_LINE_NONE;
	frame->il_offset = 0;
	frame->has_il_offset = false;
}

struct sym_error *frame_table_add_answer(struct frame_table *table,
					 const struct profile_frame *frame,
					 const struct sym_answer *answer, uint32_t *ret)
{
	size_t count = answer->inlined_count <= FRAME_MOST_INLINED ? answer->inlined_count : 0;
	uint32_t numbers[FRAME_MOST_INLINED + 1];
	struct profile_frame next = *frame;
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i < answer->inlined_count; i++) {
		const struct sym_inlined *inlined = &answer->inlined[i];

		next.name = *inlined->name ? inlined->name : FRAME_NAME_UNKNOWN;
		next.is_inlined = true;
		if (count)
			error = frame_table_add(table, &next, &numbers[count - i]);
		set_call(&next, inlined);
	}
	next.name = frame->name;
	next.is_inlined = false;
	if (!error)
		error = frame_table_add(table, &next, ret);
	if (error || !count)
		return error;
	numbers[0] = *ret;
	return frame_table_add_inlined(table, numbers, count + 1, ret);
}

/* The frames that a number stands for, outermost first. */
static const uint32_t *frames_of(const struct frame_table *table, const uint32_t *number,
				 size_t *count_ret)
{
	const uint32_t *list;

	*count_ret = 1;
	if (!(*number & INLINED_NUMBER))
		return number;
	list = &table->inlined[*number & ~(uint32_t)INLINED_NUMBER];
	*count_ret = *list;
	return list + 1;
}

const struct profile_frame *frame_table_at(const struct frame_table *table, uint32_t frame)
{
	size_t count;

	return &table->frames[*frames_of(table, &frame, &count)]->frame;
}

size_t frame_table_count(const struct frame_table *table)
{
	return table->frame_count;
}

struct sym_error *frame_table_name(struct frame_table *table, uint32_t frame, const char *name)
{
	struct frame_entry *entry = table->frames[frame];
	char *copy = strdup(name);

	if (!copy)
		return &sym_error_no_memory;
	free(entry->later_name);
	entry->later_name = copy;
	entry->frame.name = copy;
	entry->frame.reason = "";
	entry->frame.is_named = true;
	return NULL;
}

/* ---- stacks ------------------------------------------------------------------------------------
 */

/* *count: of the frames that are given, then of those that the stack has. Heap; NULL for want of
 * memory. */
static uint32_t *make_stack_key(const struct frame_table *table, const uint32_t *frames,
				size_t *count, enum stack_end end)
{
	size_t given = *count, total = given, at = 1;
	size_t most = given > MOST_STACK_FRAMES ? given : MOST_STACK_FRAMES;
	uint32_t *key = reallocarray(NULL, 1 + most, sizeof(*key));

	if (!key)
		return NULL;
	key[0] = end;
	for (size_t i = 0; i < given; i++) {
		size_t own;
		const uint32_t *numbers = frames_of(table, &frames[i], &own);

		if (total + own - 1 > MOST_STACK_FRAMES)
			own = 1;
		memcpy(key + at, numbers, own * sizeof(*numbers));
		at += own;
		total += own - 1;
	}
	*count = total;
	return key;
}

struct sym_error *frame_table_add_stack(struct frame_table *table, const uint32_t *frames,
					size_t count, enum stack_end end, uint32_t *ret)
{
	uint32_t *key AUTO_FREE = make_stack_key(table, frames, &count, end);
	size_t key_bytes = (count + 1) * sizeof(*key);
	struct stack_entry *entry;
	bool is_new;

	if (!key || !grow_items((void **)&table->stacks, &table->stack_capacity, table->stack_count,
				sizeof(*table->stacks)))
		return &sym_error_no_memory;
	entry = hash_find_or_add(&table->stacks_by_key, key, key_bytes,
				 offsetof(struct stack_entry, key), sizeof(*entry) + key_bytes,
				 &is_new);
	if (!entry)
		return &sym_error_no_memory;
	if (is_new && table->stack_count == MOST_STACKS)
		return sym_error_create(SYM_ERROR_LIMIT, "more than %d different stacks",
					MOST_STACKS);
	if (is_new) {
		entry->count = (uint32_t)count;
		entry->number = (uint32_t)table->stack_count;
		table->stacks[table->stack_count++] = entry;
	}
	*ret = entry->number;
	return NULL;
}

const uint32_t *frame_table_stack(const struct frame_table *table, uint32_t stack,
				  size_t *count_ret)
{
	*count_ret = table->stacks[stack]->count;
	return table->stacks[stack]->key + 1;
}

enum stack_end frame_table_stack_end(const struct frame_table *table, uint32_t stack)
{
	return table->stacks[stack]->key[0];
}

size_t frame_table_stack_count(const struct frame_table *table)
{
	return table->stack_count;
}
