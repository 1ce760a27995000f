/* SPDX-License-Identifier: MIT */
#include "libsym/source/told_methods.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/address_ranges.h"
#include "libsym/base/ascending.h"
#include "libsym/base/grow.h"
#include "libsym/clr/rundown_name.h"
#include "libsym/limits.h"
#include "libsym/source/last_at.h"

static const size_t spare_name_bytes = (size_t)1 << 20;

void told_methods_init(struct told_methods *told)
{
	*told = (struct told_methods){ 0 };
	buf_init(&told->names, LIMIT_INDEX_NAME_BYTES);
}

static struct told_module *find_module(const struct told_methods *told, uint64_t id)
{
	struct told_module *module;

	HASH_FIND(hh, told->modules, &id, sizeof(id), module);
	return module;
}

static void forget_module(struct told_methods *told, struct told_module *module)
{
	HASH_DEL(told->modules, module);
	free(module->path);
	free(module);
}

void told_methods_deinit(struct told_methods *told)
{
	while (told->modules)
		forget_module(told, told->modules);
	free(told->items);
	free(told->ends);
	buf_deinit(&told->names);
	address_ranges_deinit(&told->stubs);
	*told = (struct told_methods){ 0 };
}

/* NULL for want of memory. */
static struct told_module *add_module(struct told_methods *told, uint64_t id)
{
	struct told_module *module = calloc(1, sizeof(*module));

	if (!module)
		return NULL;
	module->id = id;
	HASH_ADD(hh, told->modules, id, sizeof(module->id), module);
	if (hash_added(module))
		return module;
	free(module);
	return NULL;
}

/* False when there is no memory. */
static bool take_module(struct told_methods *told, const struct rundown_module *module)
{
	struct told_module *known = find_module(told, module->id);
	char *path;

	if (known && known->time > module->time)
		return true;
	if (module->is_gone) {
		if (known)
			forget_module(told, known);
		return true;
	}
	path = strdup(module->path);
	if (path && !known)
		known = add_module(told, module->id);
	if (!path || !known) {
		free(path);
		return false;
	}
	free(known->path);
	known->path = path;
	known->time = module->time;
	return true;
}

/* Collectible modules come and go: the later of two of one number holds. */
static struct sym_error *take_modules(struct told_methods *told, const struct rundown *rundown)
{
	for (size_t i = 0; i < rundown->module_count; i++)
		if (!take_module(told, &rundown->modules[i]))
			return &sym_error_no_memory;
	return NULL;
}

/* The metadata of the module that was asked for last. */
struct found {
	bool any;
	uint64_t module_id;
	const struct metadata *metadata;
};

static const struct metadata *find_metadata(const struct told_methods *told, struct found *found,
					    const struct runtime_assemblies *assemblies,
					    uint64_t module_id)
{
	const struct told_module *module;

	if (found->any && found->module_id == module_id)
		return found->metadata;
	module = find_module(told, module_id);
	*found = (struct found){
		.any = true,
		.module_id = module_id,
		.metadata = module && module->path[0]
				    ? assemblies->find(assemblies->context, module->path)
				    : NULL,
	};
	return found->metadata;
}

static void note_time(struct told_methods *told, const struct rundown_method *method)
{
	if (method->time > told->newest_time)
		told->newest_time = method->time;
}

static struct sym_error *add_method(struct told_methods *told, const struct rundown_method *method,
				    const struct metadata *metadata)
{
	size_t offset = told->names.size_bytes;

	if (!grow_items((void **)&told->items, &told->capacity, told->count, sizeof(*told->items)))
		return &sym_error_no_memory;
	if (!rundown_write_name(method, metadata, &told->names)) {
		if (told->names.failure != BUF_OK)
			return sym_error_from_buf(&told->names, "names of jitted methods");
		buf_truncate(&told->names, offset);
		told->unnamed_count++;
		return NULL;
	}
	told->items[told->count++] = (struct told_method){
		.start_address = method->start_address,
		.size_bytes = method->size_bytes,
		.name_bytes = (uint32_t)(told->names.size_bytes - offset),
		.name_offset = offset,
		.time = method->time,
		.tier = rundown_tier(method->flags),
	};
	return NULL;
}

static bool is_wanted(const struct rundown_method *method)
{
	return method->flags & (RUNDOWN_JITTED | RUNDOWN_DYNAMIC);
}

/* Over the part of a place that a range begins in, too: it reaches to the next place. */
static void put_newer(struct last_at *newer, uint64_t start, uint64_t end, uint64_t time)
{
	size_t count = ascending_count_below(newer->places, newer->count, start + 1);
	uint64_t from = count ? newer->places[count - 1] : start;

	last_at_put(newer, from, end - from, time);
}

/*
 * The runtime tells what one thread has done and then what another has, so something newer may have
 * been told before of the place of a change: at which time at last. False when there is no memory.
 */
static bool find_newer(const struct told_methods *told, const struct rundown *changes,
		       struct last_at *ret)
{
	uint64_t *borders = calloc(2 * changes->method_count + 1, sizeof(*borders));
	size_t count = 0;

	for (size_t i = 0; borders && i < changes->method_count; i++) {
		const struct rundown_method *method = &changes->methods[i];

		if (!is_wanted(method) || method->time >= told->newest_time)
			continue;
		borders[count++] = method->start_address;
		borders[count++] = method->start_address + method->size_bytes;
	}
	if (!borders || !last_at_init(ret, borders, count))
		return false;
	for (size_t i = 0; count && i < told->end_count; i++)
		put_newer(ret, told->ends[i].start_address, told->ends[i].end_address,
			  told->ends[i].time);
	for (size_t i = 0; count && i < told->count; i++)
		put_newer(ret, told->items[i].start_address,
			  told->items[i].start_address + told->items[i].size_bytes,
			  told->items[i].time);
	return true;
}

static bool is_overtaken(const struct last_at *newer, const struct rundown_method *method)
{
	return last_at_highest(newer, method->start_address, method->size_bytes) > method->time;
}

/* Those of the changes that make a difference, in the order of their times. */
struct valid_changes {
	const struct rundown_method **items;
	size_t count;
};

static int compare_times(const void *a, const void *b)
{
	const struct rundown_method *left = *(const struct rundown_method *const *)a;
	const struct rundown_method *right = *(const struct rundown_method *const *)b;

	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	return left < right ? -1 : left > right;
}

/* False when there is no memory; free the items in any case. */
static bool choose_valid(const struct told_methods *told, const struct rundown *changes,
			 struct valid_changes *ret)
{
	struct last_at newer AUTO_LAST_AT = { 0 };

	*ret = (struct valid_changes){ .items = calloc(changes->method_count + 1,
						       sizeof(*ret->items)) };
	if (!ret->items || !find_newer(told, changes, &newer))
		return false;
	for (size_t i = 0; i < changes->method_count; i++)
		if (is_wanted(&changes->methods[i]) && !is_overtaken(&newer, &changes->methods[i]))
			ret->items[ret->count++] = &changes->methods[i];
	if (ret->count)
		qsort(ret->items, ret->count, sizeof(*ret->items), compare_times);
	return true;
}

/* False when there is no memory. */
static bool take_ends(struct told_methods *told, const struct valid_changes *changes)
{
	struct told_end *ends = calloc(changes->count + 1, sizeof(*ends));

	free(told->ends);
	told->ends = ends;
	told->end_count = 0;
	for (size_t i = 0; ends && i < changes->count; i++) {
		const struct rundown_method *method = changes->items[i];

		if (!method->is_gone)
			continue;
		ends[told->end_count++] =
			(struct told_end){ method->start_address,
					   method->start_address + method->size_bytes,
					   method->time };
	}
	return ends != NULL;
}

/* Of items that it frees, NULL for want of memory. */
static bool unite(struct address_range *items, size_t count, struct address_ranges *ret)
{
	bool done = items && address_ranges_unite(items, count, ret);

	free(items);
	return done;
}

static bool unite_changes(const struct valid_changes *changes, struct address_ranges *ret)
{
	struct address_range *items = calloc(changes->count + 1, sizeof(*items));

	for (size_t i = 0; items && i < changes->count; i++) {
		const struct rundown_method *method = changes->items[i];

		items[i] = (struct address_range){ method->start_address,
						   method->start_address + method->size_bytes };
	}
	return unite(items, changes->count, ret);
}

/* Those that share bytes with these ranges. */
static void remove_methods(struct told_methods *told, const struct address_ranges *ranges)
{
	size_t kept = 0;

	for (size_t i = 0; i < told->count; i++) {
		const struct told_method *item = &told->items[i];

		if (!address_ranges_meet(ranges, item->start_address,
					 item->start_address + item->size_bytes))
			told->items[kept++] = *item;
	}
	told->count = kept;
}

/* Names of methods that are gone are let go when they are most of all. */
static void drop_old_names(struct told_methods *told)
{
	size_t used_bytes = 0;
	struct buf names;

	for (size_t i = 0; i < told->count; i++)
		used_bytes += told->items[i].name_bytes;
	if (told->names.size_bytes / 2 < used_bytes + spare_name_bytes)
		return;
	buf_init(&names, LIMIT_INDEX_NAME_BYTES);
	if (!buf_reserve(&names, used_bytes)) {
		buf_deinit(&names); /* another time */
		return;
	}
	for (size_t i = 0; i < told->count; i++) {
		size_t offset = names.size_bytes;

		buf_append(&names, told->names.data + told->items[i].name_offset,
			   told->items[i].name_bytes);
		told->items[i].name_offset = offset;
	}
	buf_deinit(&told->names);
	told->names = names;
}

struct sym_error *told_methods_begin(struct told_methods *told, const struct rundown *rundown,
				     const struct runtime_assemblies *assemblies)
{
	struct found found = { 0 };
	struct sym_error *error = take_modules(told, rundown);

	for (size_t i = 0; !error && i < rundown->method_count; i++) {
		const struct rundown_method *method = &rundown->methods[i];

		if (!is_wanted(method))
			continue;
		note_time(told, method);
		error = add_method(told, method,
				   find_metadata(told, &found, assemblies, method->module_id));
	}
	return error;
}

static bool unite_items(const struct told_methods *told, struct address_ranges *ret)
{
	struct address_range *items = calloc(told->count + 1, sizeof(*items));

	for (size_t i = 0; items && i < told->count; i++)
		items[i] = (struct address_range){ told->items[i].start_address,
						   told->items[i].start_address +
							   told->items[i].size_bytes };
	return unite(items, told->count, ret);
}

static struct sym_error *keep_item(struct told_methods *told, const struct told_methods *before,
				   const struct told_method *item)
{
	size_t offset = told->names.size_bytes;

	if (!grow_items((void **)&told->items, &told->capacity, told->count, sizeof(*told->items)))
		return &sym_error_no_memory;
	buf_append(&told->names, before->names.data + item->name_offset, item->name_bytes);
	if (told->names.failure != BUF_OK)
		return sym_error_from_buf(&told->names, "names of jitted methods");
	told->items[told->count] = *item;
	told->items[told->count++].name_offset = offset;
	return NULL;
}

struct sym_error *told_methods_keep(struct told_methods *told, const struct told_methods *before)
{
	struct address_ranges now = { 0 };
	struct sym_error *error = unite_items(told, &now) ? NULL : &sym_error_no_memory;

	for (size_t i = 0; !error && i < before->count; i++) {
		const struct told_method *item = &before->items[i];

		if (!address_ranges_meet(&now, item->start_address,
					 item->start_address + item->size_bytes))
			error = keep_item(told, before, item);
	}
	address_ranges_deinit(&now);
	return error;
}

/* Which change was the last one of each place; their numbers count from 1. False when there is no
 * memory. */
static bool find_last(const struct valid_changes *changes, struct last_at *ret)
{
	uint64_t *starts = calloc(changes->count + 1, sizeof(*starts));

	for (size_t i = 0; starts && i < changes->count; i++)
		starts[i] = changes->items[i]->start_address;
	if (!starts || !last_at_init(ret, starts, changes->count))
		return false;
	for (size_t i = 0; i < changes->count; i++)
		last_at_put(ret, changes->items[i]->start_address, changes->items[i]->size_bytes,
			    i + 1);
	return true;
}

/* What one after the other leaves of them. */
static struct sym_error *add_changes(struct told_methods *told, const struct valid_changes *changes,
				     const struct runtime_assemblies *assemblies)
{
	struct last_at last AUTO_LAST_AT = { 0 };
	struct found found = { 0 };
	struct sym_error *error = find_last(changes, &last) ? NULL : &sym_error_no_memory;

	for (size_t i = 0; !error && i < changes->count; i++) {
		const struct rundown_method *method = changes->items[i];

		note_time(told, method);
		/* What shares bytes with it begins in it, or has come over its beginning. */
		if (!method->is_gone &&
		    last_at_highest(&last, method->start_address, method->size_bytes) == i + 1)
			error = add_method(
				told, method,
				find_metadata(told, &found, assemblies, method->module_id));
	}
	return error;
}

struct sym_error *told_methods_apply(struct told_methods *told, const struct rundown *changes,
				     const struct runtime_assemblies *assemblies, bool *changed_ret)
{
	struct address_ranges ranges = { 0 };
	struct valid_changes valid;
	struct sym_error *error = take_modules(told, changes);
	size_t before = told->count, kept;
	bool has_room = choose_valid(told, changes, &valid) && unite_changes(&valid, &ranges);

	if (!error && !has_room)
		error = &sym_error_no_memory;
	if (!error)
		remove_methods(told, &ranges);
	address_ranges_deinit(&ranges);
	kept = told->count;
	if (!error)
		error = add_changes(told, &valid, assemblies);
	if (!error && !take_ends(told, &valid))
		error = &sym_error_no_memory;
	*changed_ret = kept != before || told->count != kept;
	free(valid.items);
	drop_old_names(told);
	return error;
}
