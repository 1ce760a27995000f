/* SPDX-License-Identifier: MIT */
#include "libsym/clr/prepared.h"

#include <stdlib.h>

#include "libsym/base/grow.h"
#include "libsym/limits.h"

static const uint32_t max_buckets = 1 << 20;
static const size_t max_entries = (size_t)1 << 22;

struct walk {
	struct remote_memory *memory;
	const struct layout *layout;
	const struct layout_prepared *prepared_layout;
	struct prepared prepared;
	size_t capacity;
	uint64_t *tables; /* visited: components of a composite share one */
	size_t table_count;
	bool no_memory, too_many;
};

static void add(struct walk *walk, uint64_t entry, uint64_t method_desc)
{
	walk->too_many |= walk->prepared.count >= max_entries;
	walk->no_memory |= !grow_items((void **)&walk->prepared.items, &walk->capacity,
				       walk->prepared.count, sizeof(*walk->prepared.items));
	if (!walk->too_many && !walk->no_memory)
		walk->prepared.items[walk->prepared.count++] =
			(struct prepared_entry){ entry, method_desc };
}

/* Address of the buckets of a module's table; 0 when it has none, or it was there already. */
static uint64_t find_buckets(struct walk *walk, uint64_t module)
{
	const struct layout_prepared *layout = walk->prepared_layout;
	uint64_t info, composite, buckets;

	remote_begin(walk->memory);
	info = remote_u64(walk->memory, module + walk->layout->module.ready_to_run_info);
	if (!info)
		return 0;
	composite = remote_u64(walk->memory, info + layout->composite);
	if (composite)
		info = composite;
	buckets = remote_u64(walk->memory, info + layout->entry_points + layout->buckets);
	if (remote_state(walk->memory) != REMOTE_OK || !buckets)
		return 0;
	for (size_t i = 0; i < walk->table_count; i++)
		if (walk->tables[i] == buckets)
			return 0;
	walk->tables[walk->table_count++] = buckets;
	return buckets;
}

static void read_table(struct walk *walk, uint64_t buckets)
{
	const struct layout_prepared *layout = walk->prepared_layout;
	uint32_t count = remote_u32(walk->memory, buckets);

	if (remote_state(walk->memory) != REMOTE_OK || count > max_buckets)
		return;
	remote_want(walk->memory, buckets, ((size_t)count + 1) * layout->bucket_bytes);
	for (uint64_t i = 1; i <= count && !walk->no_memory && !walk->too_many; i++) {
		uint64_t bucket = buckets + i * layout->bucket_bytes;

		for (uint64_t slot = 0; slot < layout->slots_per_bucket; slot++) {
			uint64_t key = remote_u64(walk->memory, bucket + layout->keys + 8 * slot);
			uint64_t value =
				remote_u64(walk->memory, bucket + layout->values + 8 * slot);

			if (remote_state(walk->memory) != REMOTE_OK)
				return;
			if (key > 1)
				add(walk, key, (value & layout->value_mask) << 1);
		}
	}
}

struct sym_error *prepared_read(struct remote_memory *memory, const struct layout *layout,
				const struct layout_prepared *prepared_layout,
				const struct code_map *map, struct prepared *ret)
{
	struct walk walk = { .memory = memory,
			     .layout = layout,
			     .prepared_layout = prepared_layout };
	struct sym_error *error = NULL;

	walk.tables = calloc(map->section_count + 1, sizeof(*walk.tables));
	if (!walk.tables)
		return &sym_error_no_memory;
	for (bool again = true; !error && again;) {
		walk.prepared.count = walk.table_count = 0;
		for (size_t i = 0; i < map->section_count; i++) {
			uint64_t module = map->sections[i].module;
			uint64_t buckets = module ? find_buckets(&walk, module) : 0;

			if (buckets)
				read_table(&walk, buckets);
		}
		error = walk.no_memory ? &sym_error_no_memory : remote_memory_fetch(memory, &again);
		if (!error && walk.too_many)
			error = sym_error_create(SYM_ERROR_LIMIT, "more than %zu prepared methods",
						 max_entries);
	}
	free(walk.tables);
	if (error)
		prepared_deinit(&walk.prepared);
	else
		*ret = walk.prepared;
	return error;
}

void prepared_deinit(struct prepared *prepared)
{
	free(prepared->items);
	*prepared = (struct prepared){ 0 };
}
