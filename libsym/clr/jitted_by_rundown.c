/* SPDX-License-Identifier: MIT */
/*
 * In which order the runtime is asked.
 *
 *   begin   start a session (if it will be read again), then request a rundown
 *   go on   take events; request another rundown when one is due or events were lost
 *   end     take the last events; request nothing
 *
 * The session starts before the rundown. Otherwise code that is compiled in between would be in
 * neither.
 * Rundowns are repeated after 5 s, 50 s, 500 s and so on, for methods whose compilation began
 * before the session.
 * The runtime does not report stubs. They are searched in its memory when there is new code
 * (stub_scan.h).
 */
#include "libsym/clr/jitted_by_rundown.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/clr/diagnostics/diagnostics_address.h"
#include "libsym/clr/diagnostics/rundown_follow.h"
#include "libsym/clr/stub_scan.h"

/*
 * A method whose compilation began before the session has no event, and one whose compilation has
 * not ended is not in a list. Only a later list has such a method.
 */
static const int64_t first_list_ms = 5000;

/*
 * For stubs all code of the runtime is read: at the earliest this long after the last time, and
 * using at most this share of the time.
 */
static const int64_t stubs_after_ms = 1000, stubs_cost_share = 50;

/* ---- its life ------------------------------------------------------------------- */

void jitted_by_rundown_init(struct jitted_by_rundown *reader, const struct process *process,
			    bool follows)
{
	*reader =
		(struct jitted_by_rundown){ .process = process, .follows = follows, .root_fd = -1 };
	reported_methods_init(&reader->reported);
}

/*
 * A session belongs to the program that it was started with. After exec() there is another program.
 */
static void end_session(struct jitted_by_rundown *reader)
{
	struct sym_error *gone = reader->follow ? process_check(reader->process) : NULL;

	if (gone)
		rundown_follow_abandon(reader->follow);
	else
		rundown_follow_close(reader->follow);
	reader->follow = NULL;
	sym_error_destroy(gone);
}

void jitted_by_rundown_reset(struct jitted_by_rundown *reader)
{
	end_session(reader);
	reported_methods_deinit(&reader->reported);
	reported_methods_init(&reader->reported);
}

void jitted_by_rundown_deinit(struct jitted_by_rundown *reader)
{
	end_session(reader);
	reported_methods_deinit(&reader->reported);
	free(reader->socket_directory);
	if (reader->root_fd >= 0)
		close(reader->root_fd);
}

/* ---- asking ---------------------------------------------------------------------- */

/* `ret` borrows the descriptor and the directory of the reader. */
static struct sym_error *find_place(struct jitted_by_rundown *reader, struct diagnostics_place *ret)
{
	const struct process *process = reader->process;
	struct sym_error *error = NULL;

	if (!reader->socket_directory)
		error = diagnostics_address_directory(process, &reader->socket_directory);
	if (!error && reader->root_fd < 0 && process->root_fd >= 0)
		reader->root_fd = fcntl(process->root_fd, F_DUPFD_CLOEXEC, 0);
	*ret = diagnostics_address_of(process, reader->socket_directory);
	ret->root_fd = reader->root_fd;
	return error;
}

struct sym_error *jitted_by_rundown_is_running(struct jitted_by_rundown *reader, bool *ret)
{
	struct diagnostics_place place;
	struct sym_error *error = find_place(reader, &place), *stopped;

	if (error)
		return error;
	stopped = diagnostics_check_running(&place);
	*ret = !stopped;
	sym_error_destroy(stopped);
	return NULL;
}

static void plan_list(struct jitted_by_rundown *reader, int64_t after_ms)
{
	reader->list_after_ms = after_ms;
	reader->list_due_ms = diagnostics_now_ms() + after_ms;
}

struct listing {
	struct jitted_by_rundown *reader;
	struct rundown rundown;
	bool keeps; /* keep the earlier reports: the runtime has reported what was unloaded since */
};

static struct sym_error *report_all(void *context, const struct runtime_assemblies *assemblies)
{
	const struct listing *listing = context;
	struct jitted_by_rundown *reader = listing->reader;
	struct reported_methods reported;
	struct sym_error *error;

	reported_methods_init(&reported);
	error = reported_methods_begin(&reported, &listing->rundown, assemblies);
	if (!error && listing->keeps)
		error = reported_methods_keep(&reported, &reader->reported);
	if (error) {
		reported_methods_deinit(&reported);
		return error;
	}
	reported_methods_deinit(&reader->reported);
	reader->reported = reported;
	return NULL;
}

static bool are_same(const struct address_ranges *a, const struct address_ranges *b)
{
	return a->count == b->count &&
	       (!a->count || !memcmp(a->items, b->items, a->count * sizeof(*a->items)));
}

/* Finds stubs, which the runtime does not report. */
static struct sym_error *find_stubs(struct jitted_by_rundown *reader,
				    const struct clr_target *target, bool *changed)
{
	struct address_ranges found = { 0 };
	int64_t begin = diagnostics_now_ms(), pause;
	struct sym_error *error = stub_scan_find(target->process, target->space, &found);

	pause = stubs_after_ms + stubs_cost_share * (diagnostics_now_ms() - begin);
	reader->stubs_due_ms = begin + pause;
	reader->stubs_last_ms = begin + 5 * pause;
	if (error || are_same(&found, &reader->reported.stubs)) {
		address_ranges_deinit(&found);
		return error;
	}
	address_ranges_deinit(&reader->reported.stubs);
	reader->reported.stubs = found;
	*changed = true;
	return NULL;
}

/* The runtime makes stubs when methods are called, long after it has reported the methods. */
static struct sym_error *find_more_stubs(struct jitted_by_rundown *reader,
					 const struct clr_target *target, bool *changed)
{
	int64_t now = diagnostics_now_ms();

	return now < (*changed ? reader->stubs_due_ms : reader->stubs_last_ms)
		       ? NULL
		       : find_stubs(reader, target, changed);
}

/* Replaces the earlier reports, unless there is an error. */
static struct sym_error *list_all(struct jitted_by_rundown *reader, const struct clr_target *target,
				  bool keeps)
{
	struct listing listing = { .reader = reader, .keeps = keeps };
	struct diagnostics_place place;
	struct sym_error *error = find_place(reader, &place);
	bool any;

	if (!error)
		error = rundown_ask(&place, &listing.rundown);
	if (!error)
		error = target->ops->use_assemblies(target->snapshot, report_all, &listing);
	if (!error) {
		stub_scan_find_barrier(target->process, target->space, &reader->reported.barrier);
		error = find_stubs(reader, target, &any);
	}
	rundown_deinit(&listing.rundown);
	return error;
}

struct sym_error *jitted_by_rundown_begin(struct jitted_by_rundown *reader,
					  const struct clr_target *target,
					  struct string_interner *names,
					  struct runtime_source **ret)
{
	struct diagnostics_place place;
	struct sym_error *error = find_place(reader, &place);

	/* The session starts before the list, so that nothing is lost in between. */
	if (!error && reader->follows)
		error = rundown_follow_open(&place, &reader->follow);
	if (!error)
		error = list_all(reader, target, false);
	if (!error)
		error = runtime_source_open_reported(&reader->reported, names, ret);
	plan_list(reader, first_list_ms);
	return error;
}

struct reporting {
	struct jitted_by_rundown *reader;
	struct rundown changes;
	bool changed;
};

static struct sym_error *report_changes(void *context, const struct runtime_assemblies *assemblies)
{
	struct reporting *reporting = context;

	return reported_methods_apply(&reporting->reader->reported, &reporting->changes, assemblies,
				      &reporting->changed);
}

/* A runtime that does not answer now is asked later again. */
static struct sym_error *list_later(struct jitted_by_rundown *reader,
				    const struct clr_target *target, bool *changed)
{
	struct sym_error *error = list_all(reader, target, true);

	plan_list(reader, 10 * reader->list_after_ms);
	*changed |= !error;
	return sym_error_only_no_memory(error);
}

/* Applies what was loaded and unloaded. */
static struct sym_error *apply_changes(const struct clr_target *target, struct reporting *reporting)
{
	if (!reporting->changes.method_count && !reporting->changes.module_count)
		return NULL;
	return target->ops->use_assemblies(target->snapshot, report_changes, reporting);
}

struct sym_error *jitted_by_rundown_go_on(struct jitted_by_rundown *reader,
					  const struct clr_target *target,
					  struct string_interner *names,
					  struct runtime_source **ret)
{
	struct reporting reporting = { .reader = reader };
	struct sym_error *error = rundown_follow_take(reader->follow, &reporting.changes);
	bool has_gap = reporting.changes.has_gap;

	if (!error && has_gap) {
		error = list_all(reader, target, false);
		reporting.changed = true;
	} else if (!error) {
		error = apply_changes(target, &reporting);
	}
	rundown_deinit(&reporting.changes);
	if (!error && !has_gap && diagnostics_now_ms() >= reader->list_due_ms)
		error = list_later(reader, target, &reporting.changed);
	if (!error)
		error = find_more_stubs(reader, target, &reporting.changed);
	if (!error && reporting.changed)
		error = runtime_source_open_reported(&reader->reported, names, ret);
	return error;
}

/* A runtime that exits unloads all its code, which was valid while it ran. */
static void drop_unloads(struct rundown *changes)
{
	size_t kept = 0;

	for (size_t i = 0; i < changes->method_count; i++)
		if (!changes->methods[i].is_gone)
			changes->methods[kept++] = changes->methods[i];
	changes->method_count = kept;
}

struct sym_error *jitted_by_rundown_end(struct jitted_by_rundown *reader,
					const struct clr_target *target,
					struct string_interner *names, struct runtime_source **ret)
{
	struct reporting reporting = { .reader = reader };
	struct sym_error *error =
		reader->follow ? rundown_follow_take(reader->follow, &reporting.changes) : NULL;

	drop_unloads(&reporting.changes);
	if (!error)
		error = apply_changes(target, &reporting);
	rundown_deinit(&reporting.changes);
	if (!error && reporting.changed)
		error = runtime_source_open_reported(&reader->reported, names, ret);
	return error;
}

struct sym_error *jitted_by_rundown_stubs_alone(const struct clr_target *target,
						struct runtime_source **ret)
{
	struct reported_methods none;
	struct sym_error *error;

	reported_methods_init(&none);
	stub_scan_find_barrier(target->process, target->space, &none.barrier);
	error = stub_scan_find(target->process, target->space, &none.stubs);
	if (!error)
		error = runtime_source_open_reported(&none, NULL, ret);
	reported_methods_deinit(&none);
	return error;
}
