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
	/* Of what the list does not have yet: it could not be made then. */
	bool has_new_images, has_new_code;
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
	error = snapshot_check_join(flags);
	if (error)
		return error;
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

/* Both list theirs by address, and what is mapped as it was is the same module. */
static bool has_same_images(const struct sym_snapshot *a, const struct sym_snapshot *b)
{
	return a->module_count == b->module_count &&
	       !memcmp(a->modules, b->modules, a->module_count * sizeof(struct sym_image *));
}

/* Looks at `space`, which is taken over on success. */
static struct sym_error *look_at(struct sym_watch *watch, struct address_space *space,
				 bool *changed_ret)
{
	struct sym_snapshot *old = watch->snapshot, *fresh;
	struct sym_error *error = snapshot_open_all(old);

	if (!error)
		error = snapshot_look_again(old, space, &fresh);
	if (error)
		return error;
	error = snapshot_open_all(fresh);
	if (error) {
		fresh->space = NULL; /* the caller's still */
		sym_snapshot_close(fresh);
		return error;
	}
	*changed_ret = !has_same_images(old, fresh);
	sym_snapshot_close(old);
	snapshot_make_users(fresh);
	watch->snapshot = fresh;
	return NULL;
}

/* *changed_ret: other images are mapped than before. */
static struct sym_error *look_at_maps(struct sym_watch *watch, bool *changed_ret)
{
	const struct buf *before = snapshot_is_as_opened(watch->snapshot) ? &watch->maps : NULL;
	struct address_space *space AUTO_ADDRESS_SPACE = NULL;
	struct sym_error *error;
	struct buf text;

	buf_init(&text, LIMIT_MAPS_BYTES);
	error = address_space_read_changed(watch->snapshot->process, before, &text, &space);
	if (!error && space) {
		error = look_at(watch, space, changed_ret);
		if (!error) {
			space = NULL; /* the snapshot's now */
			buf_swap(&watch->maps, &text);
		}
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
	const struct live_code *code = atomic_load(&snapshot->ground->live_code.code);

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
	live_code_forget(&watch->snapshot->ground->live_code);
	return NULL;
}

static bool has_ended(const struct sym_error *error)
{
	return error && (sym_error_code(error) == SYM_ERROR_STALE ||
			 sym_error_code(error) == SYM_ERROR_NOT_FOUND);
}

/* Of a process that has ended, as `why` says: that, unless its runtime had told something before.
 */
static struct sym_error *look_last(struct sym_watch *watch, struct sym_error *why,
				   struct sym_watch_change *change)
{
	bool code;
	struct sym_error *error = live_code_end(watch->snapshot, watch->reader, &code);

	if (error || !code) {
		sym_error_destroy(error);
		return why;
	}
	sym_error_destroy(why);
	return join_again(watch, change);
}

static struct sym_error *look(struct sym_watch *watch, struct sym_watch_change *change)
{
	bool images = false, code = false;
	struct sym_error *error = look_at_maps(watch, &images);

	watch->has_new_images |= !watch->symbols || images;
	if (has_ended(error) && watch->symbols)
		return look_last(watch, error, change);
	if (!error && snapshot_uses_runtime(watch->snapshot))
		error = live_code_refresh(watch->snapshot, &watch->reader, &code);
	watch->has_new_code |= code;
	if (error)
		return error;
	change->images = watch->has_new_images;
	if (watch->has_new_images || watch->has_new_code || depends_on_perf_map(watch->snapshot))
		error = join_again(watch, change);
	if (!error)
		watch->has_new_images = watch->has_new_code = false;
	return error;
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
