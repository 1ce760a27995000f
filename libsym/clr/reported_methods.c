/* SPDX-License-Identifier: MIT */
/*
 * How changes are applied (reported_methods_apply()).
 *
 * 1. find_newer(): the newest report at each changed address, from what is known and from the
 *    changes.
 * 2. choose_valid(): drop changes that are older than that, and sort the rest by time.
 * 3. remove_methods(): remove the known methods that share bytes with a change.
 * 4. add_changes(): add a loaded method if it is the last change everywhere in its range.
 *
 * Steps 1 and 4 use latest_interval, so the cost is n log n for n changes.
 */
#include "libsym/clr/reported_methods.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/address_ranges.h"
#include "libsym/base/ascending.h"
#include "libsym/base/grow.h"
#include "libsym/clr/diagnostics/rundown_name.h"
#include "libsym/limits.h"
#include "libsym/perf/latest_interval.h"

static const size_t spare_name_bytes = (size_t)1 << 20;

void reported_methods_init(struct reported_methods *reported)
{
	*reported = (struct reported_methods){ 0 };
	buf_init(&reported->names, LIMIT_INDEX_NAME_BYTES);
}

static struct reported_module *find_module(const struct reported_methods *reported, uint64_t id)
{
	struct reported_module *module;

	HASH_FIND(hh, reported->modules, &id, sizeof(id), module);
	return module;
}

static void forget_module(struct reported_methods *reported, struct reported_module *module)
{
	HASH_DEL(reported->modules, module);
	free(module->path);
	free(module);
}

void reported_methods_deinit(struct reported_methods *reported)
{
	while (reported->modules)
		forget_module(reported, reported->modules);
	free(reported->items);
	free(reported->ends);
	buf_deinit(&reported->names);
	address_ranges_deinit(&reported->stubs);
	*reported = (struct reported_methods){ 0 };
}

/* NULL when out of memory. */
static struct reported_module *add_module(struct reported_methods *reported, uint64_t id)
{
	struct reported_module *module = calloc(1, sizeof(*module));

	if (!module)
		return NULL;
	module->id = id;
	HASH_ADD(hh, reported->modules, id, sizeof(module->id), module);
	if (hash_added(module))
		return module;
	free(module);
	return NULL;
}

/* False when out of memory. */
static bool take_module(struct reported_methods *reported, const struct rundown_module *module)
{
	struct reported_module *known = find_module(reported, module->id);
	char *path;

	if (known && known->time > module->time)
		return true;
	if (module->is_gone) {
		if (known)
			forget_module(reported, known);
		return true;
	}
	path = strdup(module->path);
	if (path && !known)
		known = add_module(reported, module->id);
	if (!path || !known) {
		free(path);
		return false;
	}
	free(known->path);
	known->path = path;
	known->time = module->time;
	return true;
}

/* Collectible modules come and go: of two with the same id the later one wins. */
static struct sym_error *take_modules(struct reported_methods *reported,
				      const struct rundown *rundown)
{
	for (size_t i = 0; i < rundown->module_count; i++)
		if (!take_module(reported, &rundown->modules[i]))
			return &sym_error_no_memory;
	return NULL;
}

/* The metadata of the module that was last looked up. */
struct found {
	bool any;
	uint64_t module_id;
	const struct metadata *metadata;
};

static const struct metadata *find_metadata(const struct reported_methods *reported,
					    struct found *found,
					    const struct runtime_assemblies *assemblies,
					    uint64_t module_id)
{
	const struct reported_module *module;

	if (found->any && found->module_id == module_id)
		return found->metadata;
	module = find_module(reported, module_id);
	*found = (struct found){
		.any = true,
		.module_id = module_id,
		.metadata = module && module->path[0]
				    ? assemblies->find(assemblies->context, module->path)
				    : NULL,
	};
	return found->metadata;
}

static void note_time(struct reported_methods *reported, const struct rundown_method *method)
{
	if (method->time > reported->newest_time)
		reported->newest_time = method->time;
}

static struct sym_error *add_method(struct reported_methods *reported,
				    const struct rundown_method *method,
				    const struct metadata *metadata)
{
	size_t offset = reported->names.size_bytes;

	if (!grow_items((void **)&reported->items, &reported->capacity, reported->count,
			sizeof(*reported->items)))
		return &sym_error_no_memory;
	if (!rundown_write_name(method, metadata, &reported->names)) {
		if (reported->names.failure != BUF_OK)
			return sym_error_from_buf(&reported->names, "names of jitted methods");
		buf_truncate(&reported->names, offset);
		reported->unnamed_count++;
		return NULL;
	}
	reported->items[reported->count++] = (struct reported_method){
		.start_address = method->start_address,
		.size_bytes = method->size_bytes,
		.name_bytes = (uint32_t)(reported->names.size_bytes - offset),
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

/* Also covers the interval in which the range starts, up to the next place. */
static void put_newer(struct latest_interval *newer, uint64_t start, uint64_t end, uint64_t time)
{
	size_t count = ascending_count_below(newer->places, newer->count, start + 1);
	uint64_t from = count ? newer->places[count - 1] : start;

	latest_interval_put(newer, from, end - from, time);
}

/*
 * The runtime sends the events of one thread, then those of another. So a change may arrive after a
 * newer one at the same address. Finds the newest reported time at each place. False when out of
 * memory.
 */
static bool find_newer(const struct reported_methods *reported, const struct rundown *changes,
		       struct latest_interval *ret)
{
	uint64_t *borders = calloc(2 * changes->method_count + 1, sizeof(*borders));
	size_t count = 0;

	for (size_t i = 0; borders && i < changes->method_count; i++) {
		const struct rundown_method *method = &changes->methods[i];

		if (!is_wanted(method) || method->time >= reported->newest_time)
			continue;
		borders[count++] = method->start_address;
		borders[count++] = method->start_address + method->size_bytes;
	}
	if (!borders || !latest_interval_init(ret, borders, count))
		return false;
	for (size_t i = 0; count && i < reported->end_count; i++)
		put_newer(ret, reported->ends[i].start_address, reported->ends[i].end_address,
			  reported->ends[i].time);
	for (size_t i = 0; count && i < reported->count; i++)
		put_newer(ret, reported->items[i].start_address,
			  reported->items[i].start_address + reported->items[i].size_bytes,
			  reported->items[i].time);
	return true;
}

static bool is_overtaken(const struct latest_interval *newer, const struct rundown_method *method)
{
	return latest_interval_highest(newer, method->start_address, method->size_bytes) >
	       method->time;
}

/* The changes that have an effect, in the order of their times. */
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

/* False when out of memory; free the items in any case. */
static bool choose_valid(const struct reported_methods *reported, const struct rundown *changes,
			 struct valid_changes *ret)
{
	struct latest_interval newer AUTO_LAST_AT = { 0 };

	*ret = (struct valid_changes){ .items = calloc(changes->method_count + 1,
						       sizeof(*ret->items)) };
	if (!ret->items || !find_newer(reported, changes, &newer))
		return false;
	for (size_t i = 0; i < changes->method_count; i++)
		if (is_wanted(&changes->methods[i]) && !is_overtaken(&newer, &changes->methods[i]))
			ret->items[ret->count++] = &changes->methods[i];
	if (ret->count)
		qsort(ret->items, ret->count, sizeof(*ret->items), compare_times);
	return true;
}

/* False when out of memory. */
static bool take_ends(struct reported_methods *reported, const struct valid_changes *changes)
{
	struct unload_event *ends = calloc(changes->count + 1, sizeof(*ends));

	free(reported->ends);
	reported->ends = ends;
	reported->end_count = 0;
	for (size_t i = 0; ends && i < changes->count; i++) {
		const struct rundown_method *method = changes->items[i];

		if (!method->is_gone)
			continue;
		ends[reported->end_count++] =
			(struct unload_event){ method->start_address,
					       method->start_address + method->size_bytes,
					       method->time };
	}
	return ends != NULL;
}

/* False when out of memory. */
static bool unite_changes(const struct valid_changes *changes, struct address_ranges *ret)
{
	bool done = true;

	for (size_t i = 0; done && i < changes->count; i++) {
		const struct rundown_method *method = changes->items[i];

		done = address_ranges_append(ret, method->start_address,
					     method->start_address + method->size_bytes);
	}
	address_ranges_unite(ret);
	return done;
}

/* Removes methods that share bytes with the ranges. */
static void remove_methods(struct reported_methods *reported, const struct address_ranges *ranges)
{
	size_t kept = 0;

	for (size_t i = 0; i < reported->count; i++) {
		const struct reported_method *item = &reported->items[i];

		if (!address_ranges_overlap(ranges, item->start_address,
					    item->start_address + item->size_bytes))
			reported->items[kept++] = *item;
	}
	reported->count = kept;
}

/* Drops the names of unloaded methods when they are most of all names. */
static void drop_old_names(struct reported_methods *reported)
{
	size_t used_bytes = 0;
	struct buf names;

	for (size_t i = 0; i < reported->count; i++)
		used_bytes += reported->items[i].name_bytes;
	if (reported->names.size_bytes / 2 < used_bytes + spare_name_bytes)
		return;
	buf_init(&names, LIMIT_INDEX_NAME_BYTES);
	if (!buf_reserve(&names, used_bytes)) {
		buf_deinit(&names); /* tried again next time */
		return;
	}
	for (size_t i = 0; i < reported->count; i++) {
		size_t offset = names.size_bytes;

		buf_append(&names, reported->names.data + reported->items[i].name_offset,
			   reported->items[i].name_bytes);
		reported->items[i].name_offset = offset;
	}
	buf_deinit(&reported->names);
	reported->names = names;
}

struct sym_error *reported_methods_begin(struct reported_methods *reported,
					 const struct rundown *rundown,
					 const struct runtime_assemblies *assemblies)
{
	struct found found = { 0 };
	struct sym_error *error = take_modules(reported, rundown);

	for (size_t i = 0; !error && i < rundown->method_count; i++) {
		const struct rundown_method *method = &rundown->methods[i];

		if (!is_wanted(method))
			continue;
		note_time(reported, method);
		error = add_method(reported, method,
				   find_metadata(reported, &found, assemblies, method->module_id));
	}
	return error;
}

static bool unite_items(const struct reported_methods *reported, struct address_ranges *ret)
{
	bool done = true;

	for (size_t i = 0; done && i < reported->count; i++)
		done = address_ranges_append(ret, reported->items[i].start_address,
					     reported->items[i].start_address +
						     reported->items[i].size_bytes);
	address_ranges_unite(ret);
	return done;
}

static struct sym_error *keep_item(struct reported_methods *reported,
				   const struct reported_methods *before,
				   const struct reported_method *item)
{
	size_t offset = reported->names.size_bytes;

	if (!grow_items((void **)&reported->items, &reported->capacity, reported->count,
			sizeof(*reported->items)))
		return &sym_error_no_memory;
	buf_append(&reported->names, before->names.data + item->name_offset, item->name_bytes);
	if (reported->names.failure != BUF_OK)
		return sym_error_from_buf(&reported->names, "names of jitted methods");
	reported->items[reported->count] = *item;
	reported->items[reported->count++].name_offset = offset;
	return NULL;
}

struct sym_error *reported_methods_keep(struct reported_methods *reported,
					const struct reported_methods *before)
{
	struct address_ranges now = { 0 };
	struct sym_error *error = unite_items(reported, &now) ? NULL : &sym_error_no_memory;

	for (size_t i = 0; !error && i < before->count; i++) {
		const struct reported_method *item = &before->items[i];

		if (!address_ranges_overlap(&now, item->start_address,
					    item->start_address + item->size_bytes))
			error = keep_item(reported, before, item);
	}
	address_ranges_deinit(&now);
	return error;
}

/* Finds the last change at each place, by its number from 1. False when out of memory. */
static bool find_last(const struct valid_changes *changes, struct latest_interval *ret)
{
	uint64_t *starts = calloc(changes->count + 1, sizeof(*starts));

	for (size_t i = 0; starts && i < changes->count; i++)
		starts[i] = changes->items[i]->start_address;
	if (!starts || !latest_interval_init(ret, starts, changes->count))
		return false;
	for (size_t i = 0; i < changes->count; i++)
		latest_interval_put(ret, changes->items[i]->start_address,
				    changes->items[i]->size_bytes, i + 1);
	return true;
}

/* Adds what remains of the changes, one after another. */
static struct sym_error *add_changes(struct reported_methods *reported,
				     const struct valid_changes *changes,
				     const struct runtime_assemblies *assemblies)
{
	struct latest_interval last AUTO_LAST_AT = { 0 };
	struct found found = { 0 };
	struct sym_error *error = find_last(changes, &last) ? NULL : &sym_error_no_memory;

	for (size_t i = 0; !error && i < changes->count; i++) {
		const struct rundown_method *method = changes->items[i];

		note_time(reported, method);
		/* A method remains if nothing later covers a place in it. */
		if (!method->is_gone && latest_interval_highest(&last, method->start_address,
								method->size_bytes) == i + 1)
			error = add_method(
				reported, method,
				find_metadata(reported, &found, assemblies, method->module_id));
	}
	return error;
}

struct sym_error *reported_methods_apply(struct reported_methods *reported,
					 const struct rundown *changes,
					 const struct runtime_assemblies *assemblies,
					 bool *changed_ret)
{
	struct address_ranges ranges = { 0 };
	struct valid_changes valid;
	struct sym_error *error = take_modules(reported, changes);
	size_t before = reported->count, kept;
	bool has_room = choose_valid(reported, changes, &valid) && unite_changes(&valid, &ranges);

	if (!error && !has_room)
		error = &sym_error_no_memory;
	if (!error)
		remove_methods(reported, &ranges);
	address_ranges_deinit(&ranges);
	kept = reported->count;
	if (!error)
		error = add_changes(reported, &valid, assemblies);
	if (!error && !take_ends(reported, &valid))
		error = &sym_error_no_memory;
	*changed_ret = kept != before || reported->count != kept;
	free(valid.items);
	drop_old_names(reported);
	return error;
}
