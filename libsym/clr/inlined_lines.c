/* SPDX-License-Identifier: MIT */
#include "libsym/clr/inlined_lines.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/limits.h"

void inlined_lines_deinit(struct inlined_lines *lines)
{
	inlined_methods_destroy(lines->methods);
	buf_deinit(&lines->texts);
	text_set_deinit(&lines->names);
	*lines = (struct inlined_lines){ 0 };
}

/* ---- the chain ------------------------------------------------------------------------ */

/*
 * The ordinary map has more: prologs, epilogs, and code without a line. Where one of these begins
 * behind the mapping, the mapping ends.
 */
static bool is_covered(const struct debug_info *info, uint32_t offset_bytes,
		       const struct inline_place *place)
{
	struct il_map map = il_map_begin(info->bounds, info->bounds_bytes, info->form);
	bool has_epilog = false;
	struct il_map_entry entry;

	while (il_map_next(&map, &entry) && entry.native_offset <= offset_bytes) {
		if (entry.is_call_instruction)
			continue;
		if (entry.native_offset > place->native_offset)
			return false;
		has_epilog |= entry.native_offset == place->native_offset &&
			      entry.il_offset == IL_OFFSET_EPILOG;
	}
	return !has_epilog && !map.failure;
}

static const char *take_place(const struct debug_info *info, uint64_t method_desc,
			      uint32_t offset_bytes, const struct inline_tree *tree,
			      struct inline_place *ret)
{
	*ret = (struct inline_place){ 0 };
	if (tree->nodes[0].method_desc != method_desc)
		return "the tree of its inlined methods belongs to another method";
	if (!inline_tree_find(tree, offset_bytes, ret) || !is_covered(info, offset_bytes, ret))
		ret->count = 0;
	return NULL;
}

struct sym_error *inlined_lines_take(const struct debug_info *info, uint64_t method_desc,
				     uint32_t offset_bytes, struct inlined_chain *ret)
{
	struct inline_place place;
	struct inline_tree tree;
	const char *failure;
	struct sym_error *error;

	*ret = (struct inlined_chain){ 0 };
	if (!info->rich)
		return NULL;
	error = inline_tree_read(info->rich, info->rich_bytes, &tree, &failure);
	if (error)
		return error;
	if (!failure)
		failure = take_place(info, method_desc, offset_bytes, &tree, &place);
	if (!failure)
		error = inlined_chain_create(&tree, &place, ret);
	ret->failure = failure;
	inline_tree_deinit(&tree);
	return error;
}

/* ---- its lines -------------------------------------------------------------------------- */

static struct sym_error *line_of(const struct inlined_target *target,
				 const struct inlined_frame *frame, struct managed_line *ret)
{
	struct jitted_module *module;
	struct sym_error *error =
		jitted_modules_get(target->modules, target->memory, target->target, frame->module,
				   &frame->place, &module);

	*ret = managed_line_none(NULL);
	if (error)
		return error;
	jitted_module_name(module, ret, frame->rid);
	if (module->place.is_editable) {
		ret->reason = "hot reload may have changed the method";
		return NULL;
	}
	if (frame->il_offset == UINT32_MAX)
		return NULL;
	managed_line_set_il(ret, IL_EXACT, frame->il_offset, 0);
	jitted_module_read_line(module, ret);
	return NULL;
}

/* Names live as long as the process's data. */
static struct sym_error *keep_name(struct inlined_lines *lines, const char *name, const char **ret)
{
	*ret = text_set_add(&lines->names, name, strlen(name));
	return *ret ? NULL : &sym_error_no_memory;
}

/* The call of item `i` stands in the method of the next frame. */
static struct sym_error *find_call_line(const struct inlined_target *target,
					const struct inlined_chain *chain, uint32_t i,
					const struct managed_line *outer, struct sym_inlined *item)
{
	struct managed_line line;
	struct sym_error *error = line_of(target, &chain->frames[i + 1], &line);

	if (error)
		return error;
	if (line.quality == SYM_LINE_NONE && i + 2 == chain->count)
		line = *outer;
	if (line.quality == SYM_LINE_NONE)
		return NULL;
	item->call_file = line.file;
	item->call_line = line.line;
	item->call_column = line.column;
	return NULL;
}

static struct sym_error *make_items(struct inlined_lines *lines,
				    const struct inlined_target *target,
				    const struct inlined_chain *chain,
				    const struct managed_line *outer, struct sym_inlined *items)
{
	struct sym_error *error = NULL;

	for (uint32_t i = 0; !error && i + 1 < chain->count; i++) {
		error = keep_name(lines, lines->texts.data + chain->frames[i].name_offset,
				  &items[i].name);
		if (!error)
			error = find_call_line(target, chain, i, outer, &items[i]);
	}
	return error;
}

struct sym_error *inlined_lines_answer(struct inlined_lines *lines,
				       const struct inlined_target *target,
				       const struct inlined_chain *chain,
				       const struct managed_line *outer, struct inlined_answer *ret)
{
	struct sym_inlined *items AUTO_FREE = NULL;
	struct sym_error *error;

	*ret = (struct inlined_answer){ .reason = chain->failure };
	if (chain->failure || !chain->count)
		return NULL;
	items = calloc(chain->count - 1, sizeof(*items));
	if (!items)
		return &sym_error_no_memory;
	error = line_of(target, &chain->frames[0], &ret->line);
	if (!error)
		error = make_items(lines, target, chain, outer, items);
	if (error)
		return error;
	ret->items = STEAL(items);
	ret->count = chain->count - 1;
	return NULL;
}

struct sym_error *inlined_lines_read(struct inlined_lines *lines,
				     const struct inlined_target *target,
				     struct inlined_chain *chains, size_t count)
{
	struct sym_error *error = NULL;
	bool has_any = false;

	for (size_t i = 0; i < count; i++)
		has_any |= chains[i].count != 0;
	if (!has_any)
		return NULL;
	if (!lines->methods) {
		buf_init(&lines->texts, LIMIT_INDEX_NAME_BYTES);
		error = inlined_methods_create(target->memory, target->layout, &lines->methods);
	}
	return error ? error : inlined_methods_read(lines->methods, chains, count, &lines->texts);
}
