/* SPDX-License-Identifier: MIT */
/*
 * A process looked at again and again. Knows what of a look can be kept for the next:
 * images while the same files are mapped at the same places, lists of their
 * symbols, and what the runtime told. Everything else is a snapshot's business.
 */
#include <stdlib.h>
#include <string.h>

#include "libsym/limits.h"
#include "libsym/snapshot_symbols.h"

struct sym_watch {
	struct sym_snapshot *snapshot;
	struct live_reader *reader;
	uint32_t flags;
	struct join_cache cache;
	struct sym_symbols *symbols; /* NULL before the first look */
	struct buf maps;             /* text, as of the last look */
};

void sym_watch_close(struct sym_watch *watch)
{
	if (!watch)
		return;
	sym_symbols_destroy(watch->symbols);
	join_cache_deinit(&watch->cache);
	live_reader_close(watch->reader);
	sym_snapshot_close(watch->snapshot);
	buf_deinit(&watch->maps);
	free(watch);
}

struct sym_error *sym_watch_open(int32_t pid, const struct sym_snapshot_opts *opts, uint32_t flags,
				 struct sym_watch **ret)
{
	struct sym_watch *watch;
	struct sym_error *error;

	if (opts && opts->size >= offsetof(struct sym_snapshot_opts, relative_map_dirs) &&
	    opts->root)
		return sym_error_create(SYM_ERROR_ARGUMENT,
					"a recorded process does not change: there is nothing to "
					"watch");
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return &sym_error_no_memory;
	watch->flags = flags;
	buf_init(&watch->maps, LIMIT_MAPS_BYTES);
	error = sym_snapshot_open(pid, opts, &watch->snapshot);
	if (error)
		sym_watch_close(watch);
	else
		*ret = watch;
	return error;
}

struct sym_snapshot *sym_watch_snapshot(const struct sym_watch *watch)
{
	return watch->snapshot;
}

const struct sym_symbols *sym_watch_symbols(const struct sym_watch *watch)
{
	return watch->symbols;
}

/* ---- what is mapped ----------------------------------------------------------- */

static bool is_file(const struct sym_mapping *line)
{
	return line->path[0] == '/' && line->inode && strncmp(line->path, "/memfd:", 7) != 0;
}

static bool is_same_line(const struct sym_mapping *a, const struct sym_mapping *b)
{
	return a->start_address == b->start_address && a->end_address == b->end_address &&
	       a->offset == b->offset && a->inode == b->inode &&
	       a->device_major == b->device_major && a->device_minor == b->device_minor &&
	       a->protection == b->protection && !strcmp(a->path, b->path);
}

/*
 * Gives the lines of `space` the images of the old ones. False when other files are
 * mapped, or a line of an image is not where it was.
 */
static bool carry_images(const struct sym_snapshot *snapshot, struct address_space *space,
			 uint8_t *is_placed, size_t *runtime_ret)
{
	const struct address_space *old = snapshot->space;
	size_t at = 0;

	*runtime_ret = ADDRESS_SPACE_NONE;
	for (size_t i = 0; i < space->mapping_count; i++) {
		struct sym_mapping *line = &space->mappings[i];

		while (at < old->mapping_count &&
		       old->mappings[at].start_address < line->start_address) {
			if (old->mappings[at].image_index != UINT32_MAX ||
			    is_file(&old->mappings[at]))
				return false;
			at++;
		}
		if (at == old->mapping_count || !is_same_line(line, &old->mappings[at])) {
			if (is_file(line))
				return false;
			continue;
		}
		line->image_index = old->mappings[at].image_index;
		is_placed[i] = snapshot->is_placed[at];
		if (at == snapshot->runtime.mapping_index)
			*runtime_ret = i;
		at++;
	}
	for (; at < old->mapping_count; at++)
		if (old->mappings[at].image_index != UINT32_MAX || is_file(&old->mappings[at]))
			return false;
	return *runtime_ret != ADDRESS_SPACE_NONE ||
	       snapshot->runtime.mapping_index == ADDRESS_SPACE_NONE;
}

/* The same images in a new address space: the snapshot takes it over. */
static bool adopt(struct sym_snapshot *snapshot, struct address_space *space)
{
	uint8_t *is_placed = calloc(space->mapping_count + 1, sizeof(*is_placed));
	size_t runtime;

	if (!is_placed || !carry_images(snapshot, space, is_placed, &runtime)) {
		free(is_placed);
		return false;
	}
	free(snapshot->is_placed);
	address_space_destroy(snapshot->space);
	snapshot->is_placed = is_placed;
	snapshot->space = space;
	snapshot->runtime.mapping_index = runtime;
	return true;
}

static struct sym_error *open_again(struct sym_watch *watch)
{
	struct sym_snapshot *old = watch->snapshot;
	const struct sym_snapshot_opts opts = {
		.size = sizeof(opts),
		.relative_map_dirs = (const char *const *)old->relative_map_dirs,
		.jit = (uint32_t)old->jit,
	};
	struct sym_snapshot *snapshot;
	struct sym_error *error = sym_snapshot_open(old->process->pid, &opts, &snapshot);

	if (error)
		return error;
	/* A process of the same number is another one if it began at another time. */
	error = process_check(old->process);
	if (error) {
		sym_snapshot_close(snapshot);
		return error;
	}
	live_code_move(&old->live_code, &snapshot->live_code);
	sym_snapshot_close(old);
	watch->snapshot = snapshot;
	return NULL;
}

/* *changed_ret: other images are mapped than before. */
static struct sym_error *look_at_maps(struct sym_watch *watch, bool *changed_ret)
{
	struct address_space *space AUTO_ADDRESS_SPACE = NULL;
	struct buf text;
	struct sym_error *error, *ended;

	buf_init(&text, LIMIT_MAPS_BYTES);
	error = process_read_file(watch->snapshot->process, "maps", &text);
	ended = process_check(watch->snapshot->process);
	if (ended) {
		sym_error_destroy(error);
		error = ended;
	}
	if (error || (text.size_bytes == watch->maps.size_bytes && text.size_bytes &&
		      !memcmp(text.data, watch->maps.data, text.size_bytes))) {
		buf_deinit(&text);
		return error;
	}
	error = address_space_parse(text.data, text.size_bytes, &space);
	if (!error && adopt(watch->snapshot, space)) {
		space = NULL;
	} else if (!error) {
		error = open_again(watch);
		*changed_ret = !error;
	}
	if (!error) {
		struct buf old = watch->maps;

		watch->maps = text;
		text = old;
	}
	buf_deinit(&text);
	return error;
}

/* ---- a look ---------------------------------------------------------------------- */

static bool is_equal(const struct sym_symbol *a, const struct sym_symbol *b)
{
	return a->start == b->start && a->size_bytes == b->size_bytes &&
	       !strcmp(a->name, b->name) &&
	       (a->tier == b->tier || (a->tier && b->tier && !strcmp(a->tier, b->tier)));
}

/* Both are sorted and disjoint. */
static void count_changes(const struct sym_symbols *before, const struct sym_symbols *now,
			  struct sym_watch_change *change)
{
	size_t left = 0, right = 0, equal = 0;

	while (before && left < before->count && right < now->count) {
		const struct sym_symbol *a = &before->items[left], *b = &now->items[right];

		if (a->start == b->start) {
			equal += is_equal(a, b);
			left++;
			right++;
		} else if (a->start < b->start) {
			left++;
		} else {
			right++;
		}
	}
	change->added = now->count - equal;
	change->removed = before ? before->count - equal : 0;
}

/* Where nobody tells the names of jitted code but a perf map, that is what changes. */
static bool depends_on_perf_map(const struct sym_snapshot *snapshot)
{
	const struct live_code *code = atomic_load(&snapshot->live_code.code);

	return snapshot_uses_perf_map(snapshot) && (!code || !code->source);
}

static struct sym_error *join_again(struct sym_watch *watch, struct sym_watch_change *change)
{
	struct perfmap_source *old_map AUTO_PERFMAP_SOURCE = NULL;
	struct sym_symbols *symbols;
	struct sym_error *error;

	if (depends_on_perf_map(watch->snapshot)) {
		/* The list that we have goes on using the old one's names until there is a new. */
		old_map = watch->cache.perf_map;
		watch->cache.perf_map = NULL;
		watch->cache.has_perf_map = false;
	}
	error = snapshot_join(watch->snapshot, watch->flags, &watch->cache, &symbols);
	if (error && old_map) {
		perfmap_source_close(watch->cache.perf_map);
		watch->cache.perf_map = STEAL(old_map);
	}
	if (error)
		return error;
	count_changes(watch->symbols, symbols, change);
	change->symbols = !watch->symbols || change->added || change->removed;
	sym_symbols_destroy(watch->symbols);
	watch->symbols = symbols;
	/* After the list what it used. */
	join_cache_sweep(&watch->cache);
	live_code_forget(&watch->snapshot->live_code);
	return NULL;
}

static struct sym_error *look(struct sym_watch *watch, struct sym_watch_change *change)
{
	bool images = false, code = false, first = !watch->symbols;
	struct sym_error *error = look_at_maps(watch, &images);

	if (!error && snapshot_uses_runtime(watch->snapshot))
		error = live_code_refresh(watch->snapshot, &watch->reader, &code);
	if (error)
		return error;
	change->images = first || images;
	if (!first && !images && !code && !depends_on_perf_map(watch->snapshot))
		return NULL;
	return join_again(watch, change);
}

struct sym_error *sym_watch_refresh(struct sym_watch *watch, struct sym_watch_change *change)
{
	struct sym_watch_change result = { 0 };
	struct sym_error *error;

	if (change && change->size < sizeof(result.size))
		return sym_error_create(SYM_ERROR_ARGUMENT, "sym_watch_change.size is not set");
	error = look(watch, &result);
	if (error || !change)
		return error;
	result.size = change->size;
	memcpy(change, &result, change->size < sizeof(result) ? change->size : sizeof(result));
	return NULL;
}
