/* SPDX-License-Identifier: MIT */
/*
 * Refreshes a resolver: new and removed mappings, code that the runtime has compiled, new data of
 * the perf map and the jitdump.
 *
 * Old data may be in use by other threads. A refresh publishes the new data, then waits until all
 * readers that could have the old pointer have ended (base/epoch.h).
 * Old names may be in use by the caller for longer. They stay for two more replacements:
 *
 *   self_reported   resolver->previous[0], previous[1]
 *   runtime         resolver->live_before, if it has another set of names
 *   snapshot        resolver->before
 */
#include <string.h>

#include "libsym/limits.h"
#include "libsym/resolver/kernel.h"
#include "libsym/resolver/resolver.h"
#include "libsym/snapshot/snapshot_runtime.h"

/* Waits for all readers that may have seen the old data. */
static void wait_for_readers(struct sym_resolver *resolver)
{
	epoch_wait(&resolver->readers);
}

/* ---- refreshing ---------------------------------------------------------------------- */

/* True when both have no source and the same reason. */
static bool has_same_reason(const struct self_reported_code *a, const struct self_reported_code *b)
{
	return a->status == b->status &&
	       (a->reason && b->reason ? !strcmp(a->reason, b->reason) : a->reason == b->reason);
}

/*
 * Reads everything again. The old data stay for two more such changes, because their names are in
 * use.
 */
static struct sym_error *read_again(struct sym_resolver *resolver, struct self_reported_code *old,
				    enum sym_refresh *ret)
{
	struct self_reported_code *fresh = self_reported_code_read(atomic_load(&resolver->now));

	if (!fresh)
		return &sym_error_no_memory;
	if (!fresh->source &&
	    (old->source || (!fresh->jitdump && (old->jitdump || has_same_reason(old, fresh))))) {
		self_reported_code_destroy(fresh);
		return NULL;
	}
	if (fresh->source || fresh->jitdump)
		*ret = SYM_REFRESH_REPLACED;
	atomic_store(&resolver->written, fresh);
	resolver_changed(resolver);
	wait_for_readers(resolver);
	self_reported_code_destroy(resolver->previous[1]);
	resolver->previous[1] = resolver->previous[0];
	resolver->previous[0] = old;
	return NULL;
}

/* Checks whether a perf map has appeared. */
static struct sym_error *look_for_map(struct sym_resolver *resolver, bool *ret)
{
	const struct sym_snapshot *snapshot = atomic_load(&resolver->now);
	struct perfmap_source *source = NULL;
	struct sym_error *error;
	struct buf why;

	buf_init(&why, LIMIT_NAME_BYTES);
	error = snapshot_read_perf_map(snapshot, snapshot->ground->perf_map_flags, &why, &source);
	buf_deinit(&why);
	*ret = source != NULL;
	perfmap_source_close(source);
	/* A map that cannot be used counts as none. */
	return sym_error_only_no_memory(error);
}

/* *again_ret: everything must be read again. */
static struct sym_error *refresh_map(struct sym_resolver *resolver,
				     struct self_reported_code *written, bool *again_ret,
				     enum sym_refresh *ret)
{
	enum perfmap_refresh found = PERFMAP_REPLACED;
	struct sym_error *error;

	if (!written->source && written->jitdump)
		return look_for_map(resolver, again_ret);
	error = written->source ? perfmap_source_refresh(written->source, &found) : NULL;
	if (error)
		return error;
	*again_ret = found == PERFMAP_REPLACED;
	if (found != PERFMAP_APPENDED)
		return NULL;
	*ret = SYM_REFRESH_EXTENDED;
	resolver_changed(resolver);
	if (perfmap_source_has_garbage(written->source)) {
		wait_for_readers(resolver);
		perfmap_source_collect(written->source);
	}
	return NULL;
}

static struct sym_error *refresh_jitdump(struct sym_resolver *resolver,
					 struct self_reported_code *written, bool *again_ret,
					 enum sym_refresh *ret)
{
	enum jitdump_refresh found = JITDUMP_UNCHANGED;
	struct sym_error *error = jitdump_source_refresh(written->jitdump, &found);

	if (error)
		return error;
	*again_ret = found == JITDUMP_REPLACED;
	if (found == JITDUMP_APPENDED) {
		*ret = SYM_REFRESH_EXTENDED;
		resolver_changed(resolver);
	}
	if (jitdump_source_has_garbage(written->jitdump)) {
		wait_for_readers(resolver);
		jitdump_source_collect(written->jitdump);
	}
	return NULL;
}

static struct sym_error *refresh_written(struct sym_resolver *resolver,
					 struct self_reported_code *written, enum sym_refresh *ret)
{
	bool again = false;
	struct sym_error *error = refresh_map(resolver, written, &again, ret);

	if (!error && !again && written->jitdump)
		error = refresh_jitdump(resolver, written, &again, ret);
	return !error && again ? read_again(resolver, written, ret) : error;
}

/* ---- what the runtime tells ------------------------------------------------------------ */

void resolver_exchange_live(struct sym_resolver *resolver, struct jitted_code *fresh)
{
	struct jitted_code *old = atomic_exchange(&resolver->live, fresh);

	resolver_changed(resolver);
	if (!old)
		return;
	wait_for_readers(resolver);
	if (jitted_code_names(old) != jitted_code_names(fresh)) {
		struct jitted_code *before = resolver->live_before;

		resolver->live_before = old;
		old = before;
	}
	jitted_code_destroy(old);
}

/*
 * The runtime's code as of the last refresh. NULL when no address has needed it yet, or when there
 * was no runtime then: the first address that needs it reads it.
 */
static const struct jitted_code *resolver_known_code(struct sym_resolver *resolver)
{
	const struct jitted_code *code = atomic_load(&resolver->live);

	if (!code)
		code = atomic_load(&resolver->snapshot->ground->jitted_code.code);
	return code && code->had_runtime ? code : NULL;
}

/* A runtime that does not answer this time may do so next time. Its earlier code stays in use. */
static struct sym_error *refresh_live(struct sym_resolver *resolver, enum sym_refresh *ret)
{
	const struct jitted_code *known = resolver_known_code(resolver);
	struct jitted_code *fresh = NULL;
	struct clr_target target;
	struct sym_error *error;

	if (!known || resolver->snapshot->process->recorded)
		return NULL;
	target = snapshot_clr_target(atomic_load(&resolver->now));
	error = jitted_code_read_again(&target, known, &resolver->jitted_reader, &fresh);
	error = sym_error_only_no_memory(error);
	if (error)
		return error;
	if (!fresh)
		return NULL;
	resolver_exchange_live(resolver, fresh);
	*ret = SYM_REFRESH_EXTENDED;
	return NULL;
}

/* ---- what is mapped ------------------------------------------------------------------ */

/* Answers contain paths of mappings, so each path is interned for the life of the resolver. */
static struct sym_error *keep_paths(struct sym_resolver *resolver, struct address_space *space)
{
	const char *last = NULL, *kept = NULL;

	for (size_t i = 0; i < space->mapping_count; i++) {
		if (space->mappings[i].path != last) {
			last = space->mappings[i].path;
			kept = text_set_add(&resolver->paths, last, strlen(last));
		}
		if (!kept)
			return &sym_error_no_memory;
		space->mappings[i].path = kept;
	}
	return NULL;
}

/* Readers of `old` may continue; those of the snapshot before it have ended. */
static void exchange_snapshot(struct sym_resolver *resolver, struct sym_snapshot *old,
			      struct sym_snapshot *fresh)
{
	struct sym_snapshot *before = resolver->before;

	atomic_store(&resolver->now, fresh);
	resolver_changed(resolver);
	resolver->before = old != resolver->snapshot ? old : NULL;
	if (!before)
		return;
	wait_for_readers(resolver);
	sym_snapshot_close(before);
}

/* Changes of the mappings. */
struct mapped {
	bool files;
	bool code; /* which addresses are executable */
};

/* Takes ownership of `space` on success. */
static struct sym_error *look_again(struct sym_resolver *resolver, struct address_space *space,
				    struct mapped *mapped)
{
	struct sym_snapshot *old = atomic_load(&resolver->now), *fresh;
	struct sym_error *error = keep_paths(resolver, space);

	if (!error)
		error = snapshot_look_again(old, space, &fresh);
	if (error)
		return error;
	mapped->files |= !snapshot_has_same_files(old, fresh);
	mapped->code |= !address_space_has_same_code(old->space, fresh->space);
	exchange_snapshot(resolver, old, fresh);
	return NULL;
}

/* Errors: those of reading maps; STALE for a process that has ended. */
static struct sym_error *refresh_maps(struct sym_resolver *resolver, struct mapped *mapped)
{
	const struct buf *before =
		snapshot_is_as_opened(atomic_load(&resolver->now)) ? &resolver->maps : NULL;
	struct address_space *space AUTO_ADDRESS_SPACE = NULL;
	struct sym_error *error;
	struct buf text;

	buf_init(&text, LIMIT_MAPS_BYTES);
	error = address_space_read_changed(resolver->snapshot->process, before, &text, &space);
	if (!error && space) {
		error = look_again(resolver, space, mapped);
		if (!error) {
			space = NULL; /* owned by the snapshot now */
			buf_swap(&resolver->maps, &text);
		}
	}
	buf_deinit(&text);
	return error;
}

/* ---- all of it ------------------------------------------------------------------------- */

static struct self_reported_code *get_written(struct sym_resolver *resolver)
{
	struct self_reported_code *written;

	pthread_mutex_lock(&resolver->lock);
	written = atomic_load(&resolver->written);
	pthread_mutex_unlock(&resolver->lock);
	return written;
}

/* Refreshes the names of code. */
static struct sym_error *refresh_names(struct sym_resolver *resolver, enum sym_refresh *ret)
{
	struct self_reported_code *written = get_written(resolver);
	struct sym_error *error = refresh_live(resolver, ret);

	/* Not needed yet: the first address that needs it reads it. */
	if (error || !written || !snapshot_uses_perf_map(resolver->snapshot))
		return error;
	return refresh_written(resolver, written, ret);
}

/*
 * True when names need current mappings: the runtime's code is read with the mapped assemblies, and
 * a jitdump is found by its mapping.
 */
static bool needs_maps(struct sym_resolver *resolver)
{
	const struct self_reported_code *written = get_written(resolver);

	return resolver_known_code(resolver) || (written && !written->source && !written->jitdump);
}

/*
 * Code is named only in memory that was mapped before. So names are read first, and mappings again
 * if new names came from them.
 */
static struct sym_error *refresh_process(struct sym_resolver *resolver, struct mapped *mapped,
					 enum sym_refresh *ret)
{
	bool is_first = needs_maps(resolver);
	struct sym_error *error = is_first ? refresh_maps(resolver, mapped)
					   : process_check(resolver->snapshot->process);

	if (!error)
		error = refresh_names(resolver, ret);
	if (!error && (!is_first || *ret != SYM_REFRESH_UNCHANGED))
		error = refresh_maps(resolver, mapped);
	return error;
}

/* Takes the last reports of the runtime and the last data written before the process ended. */
static struct sym_error *refresh_ended(struct sym_resolver *resolver, enum sym_refresh *ret)
{
	const struct clr_target target = snapshot_clr_target(atomic_load(&resolver->now));
	struct jitted_code *rest = NULL;
	struct sym_error *error =
		resolver_known_code(resolver)
			? jitted_code_read_rest(&target, resolver->jitted_reader, &rest)
			: NULL;

	*ret = SYM_REFRESH_EXITED;
	error = sym_error_only_no_memory(error);
	if (error)
		return error;
	if (rest) {
		resolver_exchange_live(resolver, rest);
		*ret = SYM_REFRESH_EXTENDED;
	}
	return NULL;
}

static struct sym_error *resolver_refresh_all(struct sym_resolver *resolver, enum sym_refresh *ret)
{
	struct mapped mapped = { 0 };
	struct sym_error *error;

	if (resolver->snapshot->process->recorded)
		return refresh_names(resolver, ret);
	error = refresh_process(resolver, &mapped, ret);
	if (error && sym_error_code(error) == SYM_ERROR_STALE) {
		sym_error_destroy(error);
		return refresh_ended(resolver, ret);
	}
	if (mapped.code && *ret == SYM_REFRESH_UNCHANGED)
		*ret = SYM_REFRESH_EXTENDED;
	if (mapped.files && *ret != SYM_REFRESH_REPLACED)
		*ret = SYM_REFRESH_REMAPPED;
	return error;
}

struct sym_error *sym_resolver_refresh(struct sym_resolver *resolver, enum sym_refresh *ret)
{
	enum sym_refresh found = SYM_REFRESH_UNCHANGED;
	struct sym_error *error;

	pthread_mutex_lock(&resolver->refresh_lock);
	kernel_refresh(lazy_peek(&resolver->kernel));
	error = resolver_refresh_all(resolver, &found);
	pthread_mutex_unlock(&resolver->refresh_lock);
	if (!error && ret)
		*ret = found;
	return error;
}
