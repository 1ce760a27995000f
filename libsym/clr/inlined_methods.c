/* SPDX-License-Identifier: MIT */
/*
 * A chain is read whole or not at all: every attempt begins with its first frame, and ends when a
 * page is missing. What was read stays in the caches of types, modules and memory, so that another
 * attempt costs little.
 */
#include "libsym/clr/inlined_methods.h"

#include <stdlib.h>

#include "libsym/clr/method_desc.h"
#include "libsym/format/dotnet/il.h"
#include "libsym/format/dotnet/method_call.h"
#include "libsym/limits.h"

enum {
	MOST_SIGNATURE_BYTES = 1 << 16
};

struct inlined_methods {
	struct remote_memory *memory;
	const struct layout *layout;
	struct modules *modules;
	struct types *types;
	struct methods *methods;
	struct buf signature; /* room for comparisons */
	bool no_memory;
};

struct sym_error *inlined_methods_create(struct remote_memory *memory, const struct layout *layout,
					 struct inlined_methods **ret)
{
	struct inlined_methods *inlined = calloc(1, sizeof(*inlined));
	struct sym_error *error;

	if (!inlined)
		return &sym_error_no_memory;
	inlined->memory = memory;
	inlined->layout = layout;
	buf_init(&inlined->signature, MOST_SIGNATURE_BYTES);
	error = modules_create(memory, layout, &inlined->modules);
	if (!error)
		error = types_create(memory, layout, inlined->modules, &inlined->types);
	if (!error)
		error = methods_create(memory, layout, NULL, inlined->types, &inlined->methods);
	if (error)
		inlined_methods_destroy(inlined);
	else
		*ret = inlined;
	return error;
}

void inlined_methods_destroy(struct inlined_methods *inlined)
{
	if (!inlined)
		return;
	methods_destroy(inlined->methods);
	types_destroy(inlined->types);
	modules_destroy(inlined->modules);
	buf_deinit(&inlined->signature);
	free(inlined);
}

/* ---- a chain ------------------------------------------------------------------------ */

/* Siblings are numbered in the order in which the JIT inlined them, from 0. */
static void count_same(const struct inline_tree *tree, uint32_t node, struct inlined_frame *frame)
{
	const struct inline_node *nodes = tree->nodes;

	for (uint32_t other = nodes[nodes[node].parent].child; other;
	     other = nodes[other].sibling) {
		if (nodes[other].method_desc != frame->method_desc)
			continue;
		frame->same_count++;
		frame->number += other < node;
	}
}

struct sym_error *inlined_chain_create(const struct inline_tree *tree,
				       const struct inline_place *place, struct inlined_chain *ret)
{
	*ret = (struct inlined_chain){ 0 };
	if (!place->count || place->il_offset < 0)
		return NULL;
	ret->frames = calloc(place->count + 1, sizeof(*ret->frames));
	if (!ret->frames)
		return &sym_error_no_memory;
	ret->count = place->count + 1;
	ret->il_offset = (uint32_t)place->il_offset;
	for (uint32_t i = 0; i < place->count; i++) {
		ret->frames[i].method_desc = tree->nodes[place->nodes[i]].method_desc;
		count_same(tree, place->nodes[i], &ret->frames[i]);
	}
	ret->frames[place->count].method_desc = tree->nodes[0].method_desc;
	return NULL;
}

/* ---- calls -------------------------------------------------------------------------- */

/* UINT32_MAX: unknown. The IL is that of the caller. */
static uint32_t find_call(struct inlined_methods *inlined, const uint8_t *il, uint32_t il_bytes,
			  const struct method_description *caller,
			  const struct method_description *callee,
			  const struct inlined_frame *frame)
{
	const struct metadata *metadata = caller->type->module->metadata;
	const struct called_method called = { callee->type->module->metadata, callee->type->rid,
					      callee->rid };
	uint32_t found = UINT32_MAX, count = 0;
	struct il_call call;
	size_t at = 0;

	while (il_next_call(il, il_bytes, &at, &call)) {
		enum method_call_match match =
			method_call_compare(metadata, &call, &called, &inlined->signature);

		inlined->no_memory |= inlined->signature.failure == BUF_NO_MEMORY;
		if (match == METHOD_CALL_MAYBE)
			return UINT32_MAX;
		if (match == METHOD_CALL_OTHER)
			continue;
		if (count == frame->number || !count)
			found = call.offset;
		count++;
	}
	/* A malformed instruction hides the calls behind it. */
	if (at != il_bytes)
		return UINT32_MAX;
	return count == 1 || count == frame->same_count ? found : UINT32_MAX;
}

/* ---- methods ------------------------------------------------------------------------ */

static enum method_outcome describe(struct inlined_methods *inlined, uint64_t method_desc,
				    struct method_description *ret)
{
	enum method_outcome outcome = methods_describe(inlined->methods, method_desc, ret);

	return outcome == METHOD_READ ? methods_find_row(inlined->methods, ret) : outcome;
}

static enum method_outcome write_name(struct inlined_methods *inlined,
				      const struct method_description *method,
				      struct inlined_frame *frame, bool *is_volatile,
				      struct buf *names)
{
	bool is_new_volatile = false;
	enum method_outcome outcome;

	frame->name_offset = names->size_bytes;
	outcome = methods_write_described(inlined->methods, method, names, &is_new_volatile);
	*is_volatile |= is_new_volatile;
	if (outcome == METHOD_READ)
		buf_append_char(names, '\0');
	return outcome;
}

static const char bad_method[] = "an inlined method is not in the runtime's memory";

/* As far as possible: false when a page is missing or a method is not one. */
static bool read_frames(struct inlined_methods *inlined, struct inlined_chain *chain,
			struct buf *names)
{
	struct method_description callee, method = { 0 };

	for (uint32_t i = 0; i < chain->count; i++) {
		struct inlined_frame *frame = &chain->frames[i];
		enum method_outcome outcome;
		const uint8_t *il;
		uint32_t il_bytes;

		callee = method;
		outcome = describe(inlined, frame->method_desc, &method);
		if (outcome == METHOD_READ && (!method.name || !method.type->module))
			outcome = METHOD_BAD;
		if (outcome == METHOD_READ && i + 1 < chain->count)
			outcome = write_name(inlined, &method, frame, &chain->is_volatile, names);
		if (outcome != METHOD_READ) {
			chain->failure = outcome == METHOD_BAD ? bad_method : NULL;
			return false;
		}
		remote_begin(inlined->memory);
		frame->rid = method.rid;
		frame->module = method.type->module->address;
		module_place_read(inlined->memory, inlined->layout, frame->module, &frame->place);
		il = methods_read_il(inlined->methods, &method, &il_bytes);
		if (remote_state(inlined->memory) == REMOTE_PENDING)
			return false;
		frame->il_offset = i ? find_call(inlined, il, il_bytes, &method, &callee,
						 &chain->frames[i - 1])
				     : chain->il_offset;
		if (!i && chain->il_offset >= il_bytes) {
			chain->failure = "the debug information of an inlined method is not of its "
					 "IL";
			return false;
		}
	}
	return true;
}

static void read_chain(struct inlined_methods *inlined, struct inlined_chain *chain,
		       struct buf *names)
{
	size_t names_before = names->size_bytes;
	bool is_whole;

	remote_begin(inlined->memory);
	is_whole = read_frames(inlined, chain, names);
	chain->is_read = is_whole || chain->failure;
	if (!is_whole)
		buf_truncate(names, names_before);
}

static struct sym_error *check_memory(const struct inlined_methods *inlined,
				      const struct buf *names)
{
	if (names->failure != BUF_OK)
		return sym_error_from_buf(names, "names of inlined methods");
	if (inlined->no_memory)
		return &sym_error_no_memory;
	return types_error(inlined->types);
}

static struct sym_error *read_chains(struct inlined_methods *inlined, struct inlined_chain *chains,
				     size_t count, struct buf *names)
{
	struct sym_error *error = NULL;
	bool again = true;

	types_forget(inlined->types);
	modules_forget_volatile(inlined->modules);
	for (unsigned int round = 0; !error && again; round++) {
		if (round == LIMIT_REMOTE_ROUNDS)
			return sym_error_create(SYM_ERROR_LIMIT, "inlined methods have no end");
		for (size_t i = 0; i < count; i++)
			if (chains[i].count && !chains[i].is_read)
				read_chain(inlined, &chains[i], names);
		error = check_memory(inlined, names);
		if (!error)
			error = remote_memory_fetch(inlined->memory, &again);
	}
	for (size_t i = 0; i < count; i++)
		if (chains[i].count && !chains[i].is_read)
			chains[i].failure = bad_method;
	return error;
}

/* ---- a second look ------------------------------------------------------------------ */

static bool is_same_frame(const struct inlined_frame *a, const struct inlined_frame *b)
{
	return a->rid == b->rid && a->module == b->module && a->il_offset == b->il_offset &&
	       !memcmp(&a->place, &b->place, sizeof(a->place));
}

static bool is_same_chain(const struct inlined_chain *a, const char *a_names,
			  const struct inlined_chain *b, const char *b_names)
{
	if (b->failure)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (!is_same_frame(&a->frames[i], &b->frames[i]) ||
		    (i + 1 < a->count && strcmp(a_names + a->frames[i].name_offset,
						b_names + b->frames[i].name_offset) != 0))
			return false;
	return true;
}

/* With an empty cache. */
static struct sym_error *confirm(struct inlined_methods *inlined, struct inlined_chain *chain,
				 const char *names)
{
	struct inlined_chain again = { .count = chain->count, .il_offset = chain->il_offset };
	struct inlined_frame *frames AUTO_FREE = calloc(chain->count, sizeof(*frames));
	struct sym_error *error;
	struct buf names_again;

	if (!frames)
		return &sym_error_no_memory;
	memcpy(frames, chain->frames, chain->count * sizeof(*frames));
	again.frames = frames;
	buf_init(&names_again, LIMIT_INDEX_NAME_BYTES);
	remote_memory_forget(inlined->memory);
	error = read_chains(inlined, &again, 1, &names_again);
	if (!error && !is_same_chain(chain, names, &again, names_again.data))
		chain->failure = "its inlined methods changed while they were read";
	buf_deinit(&names_again);
	return error;
}

struct sym_error *inlined_methods_read(struct inlined_methods *inlined,
				       struct inlined_chain *chains, size_t count,
				       struct buf *names)
{
	struct sym_error *error;

	buf_clear(names);
	error = read_chains(inlined, chains, count, names);
	for (size_t i = 0; !error && i < count; i++)
		if (chains[i].is_volatile && !chains[i].failure)
			error = confirm(inlined, &chains[i], names->data);
	return error;
}
