/* SPDX-License-Identifier: MIT */
#include "libsym/clr/precode_names.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/limits.h"

/* Methods with code, by MethodDesc. Only for those a recyclable MethodDesc is known to be alive. */
struct living {
	uint64_t method_desc;
	const struct look *look;
};

struct living_list {
	struct living *items;
	size_t count;
};

static int compare_living(const void *a, const void *b)
{
	const struct living *left = a, *right = b;

	return left->method_desc < right->method_desc ? -1 : left->method_desc > right->method_desc;
}

static struct living_list list_living(const struct jit_scan *round)
{
	struct living_list list = { calloc(round->map.block_count + 1, sizeof(*list.items)), 0 };

	for (size_t i = 0; list.items && i < round->map.block_count; i++)
		if (round->looks[i].state == BLOCK_NAMED)
			list.items[list.count++] =
				(struct living){ round->looks[i].method.method_desc,
						 &round->looks[i] };
	if (list.count)
		qsort(list.items, list.count, sizeof(*list.items), compare_living);
	return list;
}

static const struct look *find_living(const struct living_list *list, uint64_t method_desc)
{
	struct living key = { .method_desc = method_desc };
	const struct living *found =
		list->count ? bsearch(&key, list->items, list->count, sizeof(key), compare_living)
			    : NULL;

	return found ? found->look : NULL;
}

static const char precode_prefix[] = "[precode] ";

static void name_thunk(const struct jit_tools *tools, const struct jit_scan *round,
		       const struct living_list *living, struct precode_names *thunks,
		       struct precode_name *thunk)
{
	const struct look *look = find_living(living, thunk->precode.method_desc);
	size_t offset = thunks->names.size_bytes;
	enum method_outcome outcome = METHOD_READ;
	bool is_volatile = false;

	buf_append_string(&thunks->names, precode_prefix);
	if (look)
		buf_append(&thunks->names, round->names.data + look->name_offset, look->name_bytes);
	else
		outcome = methods_write_name(tools->methods, thunk->precode.method_desc,
					     &thunks->names, &is_volatile);
	thunk->done = outcome != METHOD_PENDING;
	if (outcome != METHOD_READ || is_volatile) {
		buf_truncate(&thunks->names, offset);
		return;
	}
	thunk->name_offset = offset;
	thunk->name_bytes = (uint32_t)(thunks->names.size_bytes - offset);
	buf_append_char(&thunks->names, '\0');
}

static struct sym_error *name_thunks(const struct jit_tools *tools, const struct jit_scan *round,
				     struct precode_names *thunks)
{
	struct living_list living = list_living(round);
	struct sym_error *error = living.items ? NULL : &sym_error_no_memory;

	for (bool again = true; !error && again;) {
		for (size_t i = 0; i < thunks->count; i++)
			if (!thunks->items[i].done)
				name_thunk(tools, round, &living, thunks, &thunks->items[i]);
		if (thunks->names.failure != BUF_OK)
			error = sym_error_from_buf(&thunks->names, "names of precodes");
		if (!error)
			error = types_error(tools->types);
		if (!error)
			error = remote_memory_fetch(tools->memory, &again);
	}
	free(living.items);
	return error;
}

struct sym_error *precode_names_read(const struct jit_tools *tools,
				     const struct layout_precodes *layout,
				     const struct jit_scan *round, struct precode_names *ret)
{
	struct precode_names thunks = { 0 };
	struct precodes precodes;
	struct sym_error *error = precodes_read(tools->memory, layout, &round->map, &precodes);

	if (error)
		return error;
	buf_init(&thunks.names, LIMIT_INDEX_NAME_BYTES);
	thunks.items = calloc(precodes.count + 1, sizeof(*thunks.items));
	thunks.count = thunks.items ? precodes.count : 0;
	for (size_t i = 0; i < thunks.count; i++) {
		thunks.items[i].precode = precodes.items[i];
		thunks.items[i].done = !precodes.items[i].method_desc;
	}
	precodes_deinit(&precodes);
	error = thunks.items ? name_thunks(tools, round, &thunks) : &sym_error_no_memory;
	if (error)
		precode_names_deinit(&thunks);
	else
		*ret = thunks;
	return error;
}

void precode_names_deinit(struct precode_names *thunks)
{
	free(thunks->items);
	buf_deinit(&thunks->names);
	*thunks = (struct precode_names){ 0 };
}
