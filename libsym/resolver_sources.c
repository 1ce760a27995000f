/* SPDX-License-Identifier: MIT */
/*
 * Where a resolver looks for code that is in no image: in what the process wrote (a perf map, a
 * jitdump), and in what its runtime tells.
 */
#include <stdlib.h>

#include "libsym/limits.h"
#include "libsym/resolver.h"

void written_destroy(struct written *written)
{
	if (!written)
		return;
	perfmap_source_close(written->source);
	jitdump_source_close(written->jitdump);
	free(written->reason);
	free(written);
}

struct written *read_written(const struct sym_snapshot *snapshot)
{
	struct written *written = calloc(1, sizeof(*written));
	struct sym_error *error = NULL;
	struct buf why;

	if (!written)
		return NULL;
	buf_init(&why, LIMIT_NAME_BYTES);
	written->status = SYM_NO_SYMBOLS;
	if (snapshot_uses_perf_map(snapshot))
		error = snapshot_read_perf_map(snapshot, snapshot->ground->perf_map_flags, &why,
					       &written->source);
	if (!error && snapshot_uses_perf_map(snapshot))
		error = snapshot_read_jitdump(snapshot, &why, &written->jitdump);
	if (error && sym_error_code(error) == SYM_ERROR_NO_MEMORY) {
		written_destroy(written);
		written = NULL;
	} else if (error) {
		written->status = module_status_of_error(sym_error_code(error));
		buf_printf(&why, "%s%s", buf_separator(&why), sym_error_message(error));
	}
	if (written && why.size_bytes)
		written->reason = buf_steal(&why, NULL);
	sym_error_destroy(error);
	buf_deinit(&why);
	return written;
}

const struct written *resolver_get_written(const struct resolving *resolving)
{
	struct sym_resolver *resolver = resolving->resolver;
	_Atomic(struct written *) *place = resolver_written_place(resolving);
	struct written *written = atomic_load(place);

	if (written)
		return written;
	pthread_mutex_lock(&resolver->lock);
	written = atomic_load(place);
	if (!written) {
		written = read_written(resolving->snapshot);
		atomic_store(&resolver->first, written);
		atomic_store(&resolver->written, written);
	}
	pthread_mutex_unlock(&resolver->lock);
	return written;
}

/* What the runtime told at first is the snapshot's; one that was not there then is asked when it
 * is. */
static const struct sym_snapshot *of_runtime(const struct resolving *resolving)
{
	const struct sym_snapshot *first = resolving->resolver->snapshot;
	const struct runtime_info *runtime = snapshot_runtime(first);

	return runtime && runtime->shape ? first : resolving->snapshot;
}

const struct live_code *resolver_get_live(const struct resolving *resolving)
{
	const struct live_code *live = NULL;

	if (resolving->refreshed)
		live = atomic_load(&resolving->resolver->live);
	if (!live && snapshot_uses_runtime(resolving->snapshot))
		sym_error_destroy(live_code_get(of_runtime(resolving), &live));
	return live;
}

/* The perf map first: a jit that gives up its dump in the middle goes on with its map. */
enum sym_source_kind resolver_look_up_written(const struct resolving *resolving,
					      const struct written *written, uint64_t address,
					      struct source_match *match)
{
	enum source_outcome outcome = SOURCE_MISS;

	match->reason = NULL;
	if (written->source)
		outcome = resolving->refreshed
				  ? perfmap_source_find(written->source, address, match)
				  : perfmap_source_find_first(written->source, address, match);
	if (outcome == SOURCE_HIT)
		return SYM_SOURCE_PERF_MAP;
	if (written->jitdump)
		outcome = resolving->refreshed
				  ? jitdump_source_find(written->jitdump, address, match)
				  : jitdump_source_find_first(written->jitdump, address, match);
	return outcome == SOURCE_HIT ? SYM_SOURCE_JITDUMP : SYM_SOURCE_NONE;
}

enum sym_source_kind resolver_look_up_live(const struct resolving *resolving,
					   const struct runtime_source *live, uint64_t address,
					   struct source_match *match)
{
	enum sym_source_kind source = SYM_SOURCE_NONE;
	const struct written *written;
	struct source_match line;
	bool yields;

	if (!live || runtime_source_find(live, address, match, &yields) != SOURCE_HIT)
		return SYM_SOURCE_NONE;
	if (!yields)
		return SYM_SOURCE_RUNTIME;
	written = resolver_get_written(resolving);
	if (written)
		source = resolver_look_up_written(resolving, written, address, &line);
	if (source == SYM_SOURCE_NONE || !runtime_source_yields_to(match, &line))
		return SYM_SOURCE_RUNTIME;
	*match = line;
	return source;
}
