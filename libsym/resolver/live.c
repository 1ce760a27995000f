/* SPDX-License-Identifier: MIT */
/*
 * A live process, refreshed at a bounded cost: one policy for `resolve`, `symbolize`, `watch`, and
 * programs that link libsym-bcc.
 *
 * A refresh reads what the process has mapped, compiled and written since (resolver_refresh.c).
 * JIT memory is used again, so an address with a name may get another name.
 * A refresh is therefore due
 *
 *   interval_ms after the previous one, in any case;
 *   at once, when a name is missing and the previous refresh has found something new;
 *   when a name is missing and the process has ended: another one may have its id.
 *
 * A token bucket bounds the cost: share_percent of the time may be spent on refreshes.
 * Unused time accumulates up to a second, so an occasional query is always fresh.
 * The first refresh reads everything again and is not charged. After a look-up, and for addresses
 * from the past, it comes after FIRST_REST times what opening and the first look-up have cost, but
 * after a second if that is more and they have cost less.
 *
 * A process that has ended or called exec() is opened again by its id, as the program that it is
 * now.
 * The one before stays as `former`, for addresses of its time, and because its names may be in use.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libsym/resolver/resolver.h"
#include "libsym/snapshot/snapshot_runtime.h"
#include "libsym/snapshot/snapshot_symbols.h"
#include "libsym/symbols/result.h"

static const uint64_t ms_ns = 1000000, second_ns = 1000000000;

enum {
	SHARE_PERCENT = 25,
	INTERVAL_MS = 50,
	FIRST_REST = 4,
	/* For a process that has ended, while no name is missing: another one may get its id. */
	ENDED_INTERVAL_MS = 1000,
	/*
	 * While nothing is resolved, refreshes are further apart: a session buffers what it
	 * receives, and memory is read as a whole.
	 */
	SESSION_REST_MS = 200,
	MEMORY_REST_MS = 500,
	REST_SHARE = 20 /* times the cost of a refresh */
};

struct sym_live {
	int32_t pid;
	struct sym_live_opts opts;
	struct sym_snapshot_opts snapshot_opts;
	struct sym_live_budget own_budget, *budget;
	struct sym_snapshot *first; /* the resolver's */
	struct sym_resolver *resolver;
	struct sym_live *former; /* NULL: no other process had the id while this was open */
	uint64_t next_ns;        /* when the next refresh is due */
	uint64_t idle_ns;        /* and when, while nothing is asked */
	uint64_t first_ns;       /* the first refresh, see above */
	uint64_t retry_ns;       /* when to search for another process; 0: this one has not ended */
	uint64_t open_cost_ns;
	uint64_t generation;
	bool is_fixed;      /* recorded, a core, or a former process */
	bool was_asked;     /* there is something to refresh */
	bool has_refreshed; /* at least once, which has read everything */
	bool was_empty;     /* the last refresh found nothing */
	bool is_past;
	/* ---- the list of symbols: */
	struct join_cache cache;
	uint32_t list_flags;
	bool was_listed;
	struct sym_symbols *symbols;                /* NULL: nothing to compare with */
	const struct string_interner *listed_names; /* from which the list borrows */
	uint64_t listed_changes;                    /* of the resolver, as of the list */
	bool has_other_images;                      /* since the list */
};

/* ---- time ---------------------------------------------------------------------------------- */

static uint64_t read_clock(const struct sym_live *live, clockid_t id)
{
	struct timespec now;

	if (live->opts.clock_ns)
		return live->opts.clock_ns(live->opts.clock_context);
	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * second_ns + (uint64_t)now.tv_nsec;
}

static uint64_t exact_ns(const struct sym_live *live)
{
	return read_clock(live, CLOCK_MONOTONIC);
}

static uint64_t interval_ns(const struct sym_live *live)
{
	return (live->opts.interval_ms ?: (uint32_t)INTERVAL_MS) * ms_ns;
}

/* Adds the share of the time since the last call, and checks what is left. */
static bool has_budget(const struct sym_live *live, uint64_t now_ns)
{
	struct sym_live_budget *budget = live->budget;
	uint64_t share = live->opts.share_percent ?: (uint32_t)SHARE_PERCENT;
	uint64_t passed_ns = now_ns > budget->counted_ns ? now_ns - budget->counted_ns : 0;

	if (!budget->counted_ns || passed_ns > 100 * second_ns)
		passed_ns = 100 * second_ns;
	budget->saved_ns += (int64_t)(passed_ns / 100 * share);
	if (budget->saved_ns > (int64_t)second_ns)
		budget->saved_ns = (int64_t)second_ns;
	budget->counted_ns = now_ns;
	return budget->saved_ns >= 0;
}

/* ---- opening ------------------------------------------------------------------------------- */

static void drop_list(struct sym_live *live)
{
	sym_symbols_destroy(STEAL(live->symbols));
	join_cache_deinit(&live->cache);
}

void sym_live_close(struct sym_live *live)
{
	if (!live)
		return;
	sym_live_close(live->former);
	drop_list(live);
	sym_resolver_destroy(live->resolver);
	sym_snapshot_close(live->first);
	free(live);
}

DEFINE_GUARD(live, struct sym_live *, sym_live_close)
DEFINE_GUARD(fresh_snapshot, struct sym_snapshot *, sym_snapshot_close)
#define AUTO_LIVE     GUARDED(live)
#define AUTO_SNAPSHOT GUARDED(fresh_snapshot)

static struct sym_error *open_snapshot(const struct sym_live *live, struct sym_snapshot **ret)
{
	const struct sym_snapshot_opts *opts = live->opts.snapshot ? &live->snapshot_opts : NULL;

	return live->opts.core ? sym_snapshot_open_core(live->opts.core, opts, ret)
			       : sym_snapshot_open(live->pid, opts, ret);
}

static struct sym_error *copy_opts(const struct sym_live_opts *opts, struct sym_live *live)
{
	const struct sym_snapshot_opts *snapshot;
	size_t size;

	if (!opts)
		return NULL;
	if (opts->size < sizeof(opts->size))
		return sym_error_create(SYM_ERROR_ARGUMENT, "sym_live_opts.size is not set");
	memcpy(&live->opts, opts, opts->size < sizeof(*opts) ? opts->size : sizeof(*opts));
	snapshot = live->opts.snapshot;
	if (!snapshot)
		return NULL;
	size = snapshot->size < sizeof(*snapshot) ? snapshot->size : sizeof(*snapshot);
	memcpy(&live->snapshot_opts, snapshot, size);
	live->snapshot_opts.size = size;
	live->is_fixed = live->snapshot_opts.root;
	return NULL;
}

struct sym_error *sym_live_open(int32_t pid, const struct sym_live_opts *opts,
				struct sym_live **ret)
{
	struct sym_live *live AUTO_LIVE = calloc(1, sizeof(*live));
	struct sym_error *error;
	uint64_t begin_ns;

	if (!live)
		return &sym_error_no_memory;
	live->pid = pid;
	error = copy_opts(opts, live);
	if (error)
		return error;
	live->is_fixed |= live->opts.core != NULL;
	live->budget = live->opts.budget ?: &live->own_budget;
	begin_ns = exact_ns(live);
	error = open_snapshot(live, &live->first);
	if (!error)
		error = sym_resolver_create(live->first, &live->resolver);
	if (error)
		return error;
	live->open_cost_ns = exact_ns(live) - begin_ns;
	*ret = STEAL(live);
	return NULL;
}

/* ---- refreshing ----------------------------------------------------------------------------- */

struct sym_snapshot *sym_live_snapshot(const struct sym_live *live)
{
	return atomic_load(&live->resolver->now);
}

struct sym_resolver *live_resolver(const struct sym_live *live)
{
	return live->resolver;
}

uint64_t sym_live_generation(const struct sym_live *live)
{
	return live->generation;
}

/* The runtime's code as of the last refresh; NULL: not read. */
static const struct jitted_code *known_code(const struct sym_live *live)
{
	return atomic_load(&live->resolver->live)
		       ?: atomic_load(&live->first->ground->jitted_code.code);
}

/* The compiled code was read for the first time, since `begin_ns`. */
static void note_first(struct sym_live *live, uint64_t begin_ns)
{
	uint64_t cost_ns = live->open_cost_ns + exact_ns(live) - begin_ns;
	uint64_t rest_ns = FIRST_REST * cost_ns;

	if (rest_ns > second_ns)
		rest_ns = cost_ns > second_ns ? cost_ns : second_ns;
	if (!live->was_asked)
		live->first_ns = begin_ns + rest_ns;
	live->was_asked = true;
}

struct sym_error *sym_live_jit(struct sym_live *live, const struct sym_jit_info **ret)
{
	const struct jitted_code *code = known_code(live);
	uint64_t begin_ns = exact_ns(live);
	struct sym_error *error;

	if (!code || !code->had_runtime) {
		error = snapshot_live_code(sym_live_snapshot(live), &code);
		if (error)
			return error;
	}
	note_first(live, begin_ns);
	*ret = &code->info;
	return NULL;
}

int sym_live_has_session(const struct sym_live *live)
{
	const struct jitted_code *code = known_code(live);

	return live->has_refreshed && code && code->info.method == SYM_JIT_RUNDOWN;
}

/* Keeps the process before, for addresses of its time and because its names are in use. */
static struct sym_error *keep_former(struct sym_live *live)
{
	struct sym_live *former = calloc(1, sizeof(*former));

	if (!former)
		return &sym_error_no_memory;
	former->pid = live->pid;
	former->budget = &former->own_budget;
	former->is_fixed = true;
	former->first = STEAL(live->first);
	former->resolver = STEAL(live->resolver);
	sym_live_close(live->former);
	live->former = former;
	return NULL;
}

/*
 * Opens a process that has ended or called exec(). True when there is another process or program.
 */
static bool live_follow_exec(struct sym_live *live)
{
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = NULL;
	struct sym_resolver *resolver = NULL;
	struct sym_error *error = open_snapshot(live, &snapshot);

	if (!error && live->opts.flags & SYM_LIVE_SAME_PROCESS &&
	    live->first->process->start_time_ticks != snapshot->process->start_time_ticks)
		return false;
	if (!error)
		error = sym_resolver_create(snapshot, &resolver);
	if (!error)
		error = keep_former(live);
	if (error) {
		sym_resolver_destroy(resolver);
		sym_error_destroy(error);
		return false;
	}
	drop_list(live);
	live->first = STEAL(snapshot);
	live->resolver = resolver;
	live->has_refreshed = live->was_empty = false;
	live->generation++;
	return true;
}

/* Names that the list borrows are freed when the resolver replaces their set twice. */
static void take_up(struct sym_live *live, enum sym_refresh found)
{
	const struct jitted_code *code = known_code(live);

	if (found == SYM_REFRESH_REMAPPED || found == SYM_REFRESH_REPLACED) {
		live->generation++;
		live->has_other_images = true;
	}
	if (live->symbols && code && jitted_code_names(code) != live->listed_names)
		sym_symbols_destroy(STEAL(live->symbols));
}

static struct sym_error *live_refresh(struct sym_live *live, enum sym_refresh *ret)
{
	struct sym_snapshot *before = sym_live_snapshot(live);
	struct sym_error *error = sym_resolver_refresh(live->resolver, ret);

	if (sym_live_snapshot(live) != before) {
		snapshot_make_users(sym_live_snapshot(live));
		live->generation++;
	}
	return error;
}

/* The runtime sends its events every 0.1 s. */
static void wait_for_report(const struct sym_live *live)
{
	const struct timespec wait = { .tv_sec = live->opts.wait_ms / 1000,
				       .tv_nsec = (long)(live->opts.wait_ms % 1000 * ms_ns) };

	if (live->opts.wait_ms && sym_live_has_session(live))
		nanosleep(&wait, NULL);
}

/* A missing name may have become known since the last refresh. */
static bool may_have_come(const struct sym_live *live, bool missed)
{
	return missed && live->has_refreshed && !live->was_empty;
}

static bool is_due(const struct sym_live *live, bool missed)
{
	uint64_t now_ns;

	if (live->is_fixed || !live->was_asked || (live->is_past && !missed))
		return false;
	now_ns = read_clock(live, CLOCK_MONOTONIC_COARSE);
	if (live->is_past && !live->has_refreshed && now_ns < live->first_ns)
		return false;
	return (now_ns >= live->next_ns || may_have_come(live, missed) ||
		(missed && live->retry_ns && now_ns >= live->retry_ns)) &&
	       has_budget(live, now_ns);
}

static void live_charge(struct sym_live *live, uint64_t begin_ns, bool has_ended)
{
	uint64_t end_ns = exact_ns(live);

	if (live->has_refreshed)
		live->budget->saved_ns -= (int64_t)(end_ns - begin_ns);
	live->has_refreshed |= !has_ended;
	live->next_ns = end_ns + (has_ended ? ENDED_INTERVAL_MS * ms_ns : interval_ns(live));
	live->retry_ns = has_ended ? end_ns + interval_ns(live) : 0;
}

int sym_live_update(struct sym_live *live, int missed)
{
	enum sym_refresh found = SYM_REFRESH_UNCHANGED;
	struct sym_error *error;
	uint64_t begin_ns;
	bool is_new;

	if (!is_due(live, missed))
		return 0;
	begin_ns = exact_ns(live);
	if (may_have_come(live, missed))
		wait_for_report(live);
	error = live_refresh(live, &found);
	/* A refresh that failed midway may have changed the mappings. */
	if (error)
		found = SYM_REFRESH_REMAPPED;
	sym_error_destroy(error);
	if (found == SYM_REFRESH_EXITED)
		is_new = live_follow_exec(live);
	else
		is_new = found != SYM_REFRESH_UNCHANGED;
	if (found != SYM_REFRESH_EXITED && is_new)
		take_up(live, found);
	live_charge(live, begin_ns, found == SYM_REFRESH_EXITED && !is_new);
	live->was_empty = !is_new || error;
	return is_new;
}

/* ---- resolving ------------------------------------------------------------------------------ */

/* True when code may be there since: nothing was mapped, or it is memory that a JIT can use. */
int sym_live_may_be_new(const struct sym_answer *answer)
{
	if (answer->status == SYM_UNMAPPED)
		return 1;
	return !answer->image &&
	       (answer->status == SYM_NO_MATCH || answer->status == SYM_NO_SYMBOLS) &&
	       !resolver_is_kernel_path(answer->image_path);
}

static bool has_unknown_code(const struct sym_result *result)
{
	for (size_t i = 0; i < result->count; i++)
		if (sym_live_may_be_new(&result->slots[i]))
			return true;
	return false;
}

struct sym_error *sym_live_resolve_now(struct sym_live *live, const uint64_t *addresses,
				       const uint64_t *times_ns, size_t count,
				       struct sym_result *result)
{
	uint64_t begin_ns;
	struct sym_error *error;

	if (live->was_asked)
		return sym_resolver_resolve_at(live->resolver, addresses, times_ns, count, result);
	begin_ns = exact_ns(live);
	error = sym_resolver_resolve_at(live->resolver, addresses, times_ns, count, result);
	note_first(live, begin_ns);
	live->next_ns = begin_ns + interval_ns(live);
	if (live->next_ns < live->first_ns)
		live->next_ns = live->first_ns;
	live->idle_ns = live->next_ns;
	return error;
}

struct sym_error *sym_live_resolve(struct sym_live *live, const uint64_t *addresses,
				   const uint64_t *times_ns, size_t count,
				   struct sym_result *result)
{
	struct sym_error *error;

	sym_live_update(live, 0);
	error = sym_live_resolve_now(live, addresses, times_ns, count, result);
	if (!error && has_unknown_code(result) && sym_live_update(live, 1))
		error = sym_live_resolve_now(live, addresses, times_ns, count, result);
	return error;
}

void sym_live_set_past(struct sym_live *live, int is_past)
{
	live->is_past = is_past;
}

/* The start of a process is in ticks of a clock that includes suspend. */
int sym_live_is_before(const struct sym_live *live, uint64_t time_ns)
{
	const uint64_t tick_ns = 10 * ms_ns;
	uint64_t start_ns = live->first->process->start_time_ticks * tick_ns;
	struct timespec awake, all;

	if (!time_ns || time_ns >= start_ns)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &awake);
	clock_gettime(CLOCK_BOOTTIME, &all);
	return time_ns + (uint64_t)(all.tv_sec - awake.tv_sec + 1) * second_ns < start_ns;
}

struct sym_live *sym_live_at(struct sym_live *live, uint64_t time_ns)
{
	struct sym_live *former = live->former;

	return former && sym_live_is_before(live, time_ns) && !sym_live_is_before(former, time_ns)
		       ? former
		       : live;
}

/* ---- while nothing is asked ----------------------------------------------------------------- */

/*
 * Only a runtime's code must be read while it runs. Files that other programs write stay readable.
 */
static bool is_followed(const struct sym_live *live)
{
	const struct runtime_info *runtime;

	if (live->is_fixed || live->is_past || !live->was_asked)
		return false;
	runtime = snapshot_runtime(sym_live_snapshot(live));
	return runtime && runtime->shape;
}

int32_t sym_live_next_ms(const struct sym_live *live)
{
	uint64_t now_ns = exact_ns(live);

	if (!is_followed(live))
		return -1;
	return live->idle_ns > now_ns ? (int32_t)((live->idle_ns - now_ns) / ms_ns) + 1 : 0;
}

void sym_live_idle(struct sym_live *live)
{
	uint64_t begin_ns = exact_ns(live), end_ns, rest_ns, cost_ns;
	bool is_first = !live->has_refreshed;

	if (!is_followed(live) || begin_ns < live->idle_ns)
		return;
	sym_live_update(live, 0);
	end_ns = exact_ns(live);
	/* The first refresh reads everything. */
	cost_ns = is_first ? 0 : end_ns - begin_ns;
	rest_ns = (sym_live_has_session(live) ? SESSION_REST_MS : MEMORY_REST_MS) * ms_ns;
	live->idle_ns = end_ns + (rest_ns > REST_SHARE * cost_ns ? rest_ns : REST_SHARE * cost_ns);
}

/* ---- the list of symbols -------------------------------------------------------------------- */

static bool is_equal(const struct sym_symbol *a, const struct sym_symbol *b)
{
	return a->start == b->start && a->size_bytes == b->size_bytes &&
	       !strcmp(a->name, b->name) &&
	       (a->tier == b->tier || (a->tier && b->tier && !strcmp(a->tier, b->tier)));
}

/* Both are sorted and disjoint. */
static void count_changes(const struct sym_symbols *before, const struct sym_symbols *now,
			  struct sym_live_change *change)
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

/* True when only the perf map names jitted code: then the map is what changes. */
static bool depends_on_perf_map(const struct sym_live *live)
{
	const struct jitted_code *code = known_code(live);

	return snapshot_uses_perf_map(live->first) && (!code || !code->source);
}

static struct sym_error *join_again(struct sym_live *live, uint32_t flags,
				    struct sym_live_change *change)
{
	struct perfmap_source *old_map AUTO_PERFMAP_SOURCE = NULL;
	uint64_t changes = atomic_load(&live->resolver->changes);
	struct sym_symbols *symbols;
	struct sym_error *error;

	if (depends_on_perf_map(live)) {
		/* The previous list uses names of the old map until there is a new list. */
		old_map = STEAL(live->cache.perf_map);
		live->cache.has_perf_map = false;
	}
	error = snapshot_join(sym_live_snapshot(live), flags, atomic_load(&live->resolver->live),
			      &live->cache, &symbols);
	if (error && old_map) {
		perfmap_source_close(live->cache.perf_map);
		live->cache.perf_map = STEAL(old_map);
	}
	if (error)
		return error;
	count_changes(live->symbols, symbols, change);
	change->images = !live->symbols || live->has_other_images;
	change->symbols = !live->symbols || change->added || change->removed;
	sym_symbols_destroy(live->symbols);
	live->symbols = symbols;
	live->listed_names = known_code(live) ? jitted_code_names(known_code(live)) : NULL;
	live->listed_changes = changes;
	live->has_other_images = false;
	join_cache_sweep(&live->cache);
	return NULL;
}

/* The previous list stays in use until the next one, so its names must not be freed in between. */
static struct sym_error *refresh_for_list(struct sym_live *live)
{
	enum sym_refresh found = SYM_REFRESH_UNCHANGED;
	struct sym_error *error;

	if (live->is_fixed)
		return NULL;
	error = live_refresh(live, &found);
	live->has_refreshed |= !error;
	if (!error && found == SYM_REFRESH_EXITED)
		return process_check(live->first->process);
	/* A refresh that failed midway may have changed the mappings. */
	if (error || found == SYM_REFRESH_REMAPPED || found == SYM_REFRESH_REPLACED) {
		live->generation++;
		live->has_other_images = true;
	}
	return error;
}

static struct sym_error *live_list_symbols(struct sym_live *live, uint32_t flags,
					   struct sym_live_change *change)
{
	struct sym_error *error = live->was_listed ? refresh_for_list(live) : NULL;

	live->was_asked = live->was_listed = true;
	if (error)
		return error;
	/* Cached lists of images were made with the previous flags. */
	if (flags != live->list_flags)
		drop_list(live);
	live->list_flags = flags;
	if (live->symbols && live->listed_changes == atomic_load(&live->resolver->changes) &&
	    !live->has_other_images && !depends_on_perf_map(live))
		return NULL;
	return join_again(live, flags, change);
}

struct sym_error *sym_live_symbols(struct sym_live *live, uint32_t flags,
				   const struct sym_symbols **ret, struct sym_live_change *change)
{
	struct sym_live_change result = { 0 };
	struct sym_error *error;

	if (change && change->size < sizeof(change->size))
		return sym_error_create(SYM_ERROR_ARGUMENT, "sym_live_change.size is not set");
	error = live_list_symbols(live, flags, &result);
	if (error)
		return error;
	*ret = live->symbols;
	if (!change)
		return NULL;
	result.size = change->size;
	memcpy(change, &result, change->size < sizeof(result) ? change->size : sizeof(result));
	return NULL;
}
