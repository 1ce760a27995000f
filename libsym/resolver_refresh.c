/* SPDX-License-Identifier: MIT */
/*
 * What a resolver takes up while its process goes on: mappings that came and went, what the runtime
 * in it has compiled, and what its perf map and its jitdump got. Knows when nobody reads what was
 * there before any more.
 */
#include <string.h>

#include "libsym/limits.h"
#include "libsym/resolver.h"

/* Returns when whoever could have seen what was there before the call has ended. */
static void wait_for_readers(struct sym_resolver *resolver)
{
	struct quick_look_up *dropped = STEAL(resolver->quicks_dropped);

	readers_wait(&resolver->readers);
	quick_look_up_destroy(dropped);
}

/* ---- refreshing ---------------------------------------------------------------------- */

/* Nothing but a reason why there is nothing, which may be another. */
static bool has_same_reason(const struct written *a, const struct written *b)
{
	return a->status == b->status &&
	       (a->reason && b->reason ? !strcmp(a->reason, b->reason) : a->reason == b->reason);
}

/* What was read before stays for two more such changes, because names of it are in use. */
static struct sym_error *read_again(struct sym_resolver *resolver, struct written *old,
				    enum sym_refresh *ret)
{
	struct written *fresh = read_written(atomic_load(&resolver->now));

	if (!fresh)
		return &sym_error_no_memory;
	if (!fresh->source &&
	    (old->source || (!fresh->jitdump && (old->jitdump || has_same_reason(old, fresh))))) {
		written_destroy(fresh);
		return NULL;
	}
	if (fresh->source || fresh->jitdump)
		*ret = SYM_REFRESH_REREAD;
	atomic_store(&resolver->written, fresh);
	resolver_changed(resolver);
	if (old == atomic_load(&resolver->first))
		return NULL;
	wait_for_readers(resolver);
	written_destroy(resolver->previous[1]);
	resolver->previous[1] = resolver->previous[0];
	resolver->previous[0] = old;
	return NULL;
}

/* Is there a perf map by now, where there was none? */
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
	if (!error || sym_error_code(error) == SYM_ERROR_NO_MEMORY)
		return error;
	/* One that cannot be used is none. */
	sym_error_destroy(error);
	return NULL;
}

/* *again_ret: all has to be read again. */
static struct sym_error *refresh_map(struct sym_resolver *resolver, struct written *written,
				     bool *again_ret, enum sym_refresh *ret)
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
	*ret = SYM_REFRESH_APPENDED;
	resolver_changed(resolver);
	if (perfmap_source_has_garbage(written->source)) {
		wait_for_readers(resolver);
		perfmap_source_collect(written->source);
	}
	return NULL;
}

static struct sym_error *refresh_jitdump(struct sym_resolver *resolver, struct written *written,
					 bool *again_ret, enum sym_refresh *ret)
{
	enum jitdump_refresh found = JITDUMP_UNCHANGED;
	struct sym_error *error = jitdump_source_refresh(written->jitdump, &found);

	if (error)
		return error;
	*again_ret = found == JITDUMP_REPLACED;
	if (found == JITDUMP_APPENDED) {
		*ret = SYM_REFRESH_APPENDED;
		resolver_changed(resolver);
	}
	if (jitdump_source_has_garbage(written->jitdump)) {
		wait_for_readers(resolver);
		jitdump_source_collect(written->jitdump);
	}
	return NULL;
}

static struct sym_error *refresh_written(struct sym_resolver *resolver, struct written *written,
					 enum sym_refresh *ret)
{
	bool again = false;
	struct sym_error *error = refresh_map(resolver, written, &again, ret);

	if (!error && !again && written->jitdump)
		error = refresh_jitdump(resolver, written, &again, ret);
	return !error && again ? read_again(resolver, written, ret) : error;
}

/* ---- what the runtime tells ------------------------------------------------------------ */

void resolver_exchange_live(struct sym_resolver *resolver, struct live_code *fresh)
{
	struct live_code *old;

	resolver_set_refreshed(resolver);
	old = atomic_exchange(&resolver->live, fresh);
	resolver_changed(resolver);
	/* Whoever glances has noted the old one. */
	atomic_fetch_add(&resolver->generation, 1);
	if (!old)
		return;
	wait_for_readers(resolver);
	if (live_code_names(old) != live_code_names(fresh)) {
		struct live_code *before = resolver->live_before;

		resolver->live_before = old;
		old = before;
	}
	live_code_destroy(old);
}

/* Nobody has asked yet: whoever asks first reads it as it is then; so it is with a runtime that was
 * not there when somebody asked. */
static const struct live_code *told_before(struct sym_resolver *resolver)
{
	const struct live_code *code = atomic_load(&resolver->live);

	if (!code)
		code = atomic_load(&resolver->snapshot->ground->live_code.code);
	return code && code->had_runtime ? code : NULL;
}

/* A runtime that does not tell this time may do so the next time: what it told before serves on. */
static struct sym_error *refresh_live(struct sym_resolver *resolver, enum sym_refresh *ret)
{
	const struct live_code *known = told_before(resolver);
	struct live_code *fresh = NULL;
	struct sym_error *error;

	if (!known || resolver->snapshot->process->recorded)
		return NULL;
	error = live_code_read_again(atomic_load(&resolver->now), known, &resolver->live_reader,
				     &fresh);
	if (error && sym_error_code(error) == SYM_ERROR_NO_MEMORY)
		return error;
	sym_error_destroy(error);
	if (!fresh)
		return NULL;
	resolver_exchange_live(resolver, fresh);
	*ret = SYM_REFRESH_APPENDED;
	return NULL;
}

/* ---- what is mapped ------------------------------------------------------------------ */

/* Paths of mappings are handed out with answers, and so must stay: each is kept once, however often
 * what it names comes and goes. */
static struct sym_error *keep_paths(struct sym_resolver *resolver, struct address_space *space)
{
	struct sym_error *error = resolver->paths ? NULL : index_name_set_create(&resolver->paths);
	const char *last = NULL, *kept = NULL;

	if (error)
		return error;
	for (size_t i = 0; i < space->mapping_count; i++) {
		uint32_t offset;

		if (space->mappings[i].path != last) {
			last = space->mappings[i].path;
			error = index_name_set_add(resolver->paths, last, strlen(last), &offset);
			if (error)
				return error;
			kept = index_names_at(index_name_set_names(resolver->paths), offset);
		}
		space->mappings[i].path = kept;
	}
	return NULL;
}

/* Readers of `old` may go on; those of the one before it have ended. */
static void exchange_snapshot(struct sym_resolver *resolver, struct sym_snapshot *old,
			      struct sym_snapshot *fresh)
{
	struct sym_snapshot *before = resolver->before;

	resolver_set_refreshed(resolver);
	atomic_store(&resolver->now, fresh);
	atomic_fetch_add(&resolver->generation, 1);
	resolver_changed(resolver);
	resolver->before = old != resolver->snapshot ? old : NULL;
	if (!before)
		return;
	wait_for_readers(resolver);
	sym_snapshot_close(before);
}

/* What is mapped otherwise than before. */
struct mapped {
	bool files;
	bool code; /* which addresses are executable */
};

/* Takes `space` over on success. */
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
			space = NULL; /* the snapshot's now */
			buf_swap(&resolver->maps, &text);
		}
	}
	buf_deinit(&text);
	return error;
}

/* ---- all of it ------------------------------------------------------------------------- */

static struct written *get_written(struct sym_resolver *resolver)
{
	struct written *written;

	pthread_mutex_lock(&resolver->lock);
	written = atomic_load(&resolver->written);
	pthread_mutex_unlock(&resolver->lock);
	return written;
}

/* The names of code. */
static struct sym_error *refresh_names(struct sym_resolver *resolver, enum sym_refresh *ret)
{
	struct written *written = get_written(resolver);
	struct sym_error *error = refresh_live(resolver, ret);

	/* Nobody has asked yet: whoever asks first reads it as it is then. */
	if (error || !written || !snapshot_uses_perf_map(resolver->snapshot))
		return error;
	resolver_set_refreshed(resolver);
	return refresh_written(resolver, written, ret);
}

/* What the runtime tells is read with the assemblies that are mapped, and where nothing was written
 * before, a jitdump is found by its mapping. */
static bool needs_maps(struct sym_resolver *resolver)
{
	const struct written *written = get_written(resolver);

	return told_before(resolver) || (written && !written->source && !written->jitdump);
}

/* Code has a name when it lies in memory that was mapped before: names are read first, and mappings
 * a second time where names came that were read with them. */
static struct sym_error *refresh_process(struct sym_resolver *resolver, struct mapped *mapped,
					 enum sym_refresh *ret)
{
	bool is_first = needs_maps(resolver);
	struct sym_error *error = is_first ? refresh_maps(resolver, mapped)
					   : process_check(resolver->snapshot->process);

	if (!error)
		error = refresh_names(resolver, ret);
	if (!error && (!is_first || *ret != SYM_REFRESH_NOTHING))
		error = refresh_maps(resolver, mapped);
	return error;
}

/* What its runtime told before the process ended, and what it had written, is still to be had. */
static struct sym_error *refresh_ended(struct sym_resolver *resolver, enum sym_refresh *ret)
{
	struct live_code *rest = NULL;
	struct sym_error *error = told_before(resolver)
					  ? live_code_read_rest(atomic_load(&resolver->now),
								resolver->live_reader, &rest)
					  : NULL;

	*ret = SYM_REFRESH_ENDED;
	if (error && sym_error_code(error) == SYM_ERROR_NO_MEMORY)
		return error;
	sym_error_destroy(error);
	if (rest) {
		resolver_exchange_live(resolver, rest);
		*ret = SYM_REFRESH_APPENDED;
	}
	return NULL;
}

static struct sym_error *refresh(struct sym_resolver *resolver, enum sym_refresh *ret)
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
	if (mapped.code && *ret == SYM_REFRESH_NOTHING)
		*ret = SYM_REFRESH_APPENDED;
	if (mapped.files && *ret != SYM_REFRESH_REREAD)
		*ret = SYM_REFRESH_MAPPED;
	return error;
}

struct sym_error *sym_resolver_refresh(struct sym_resolver *resolver, enum sym_refresh *ret)
{
	enum sym_refresh found = SYM_REFRESH_NOTHING;
	struct sym_error *error;

	pthread_mutex_lock(&resolver->refresh_lock);
	error = refresh(resolver, &found);
	pthread_mutex_unlock(&resolver->refresh_lock);
	if (!error && ret)
		*ret = found;
	return error;
}
