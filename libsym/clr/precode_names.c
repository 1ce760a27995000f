/* SPDX-License-Identifier: MIT */
#include "libsym/clr/precode_names.h"

#include <stdlib.h>

#include "libsym/base/address_table.h"
#include "libsym/limits.h"

/*
 * Lists methods with code, by MethodDesc: only for those a recyclable MethodDesc is known to be
 * alive. False when out of memory.
 */
static bool list_living(const struct jit_scan *round, struct address_table *ret)
{
	for (size_t i = 0; i < round->map.block_count; i++) {
		struct look *look = &round->looks[i];
		struct range_slot *slot;

		if (look->state != BLOCK_NAMED || !look->method.method_desc)
			continue;
		slot = address_table_slot(ret, look->method.method_desc);
		if (!slot)
			return false;
		slot->value = look;
	}
	return true;
}

static const char precode_prefix[] = "[precode] ";

static void name_thunk(const struct jit_tools *tools, const struct jit_scan *round,
		       const struct address_table *living, struct precode_names *thunks,
		       struct precode_name *thunk)
{
	const struct look *look = address_table_find(living, thunk->precode.method_desc);
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
	struct address_table living = { 0 };
	struct sym_error *error = list_living(round, &living) ? NULL : &sym_error_no_memory;

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
	address_table_deinit(&living);
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
