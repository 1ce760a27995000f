/* SPDX-License-Identifier: MIT */
/*
 * Sources of code outside images: what the process wrote (perf map, jitdump), and the runtime's
 * code.
 */
#include <stdlib.h>

#include "libsym/limits.h"
#include "libsym/resolver/resolver.h"
#include "libsym/snapshot/snapshot_runtime.h"

void self_reported_code_destroy(struct self_reported_code *written)
{
	if (!written)
		return;
	perfmap_source_close(written->source);
	jitdump_source_close(written->jitdump);
	free(written->reason);
	free(written);
}

struct self_reported_code *self_reported_code_read(const struct sym_snapshot *snapshot)
{
	struct self_reported_code *written = calloc(1, sizeof(*written));
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
	if (sym_error_is_no_memory(error)) {
		self_reported_code_destroy(written);
		written = NULL;
	} else if (error) {
		written->status = image_status_of_error(sym_error_code(error));
		buf_printf(&why, "%s%s", buf_separator(&why), sym_error_message(error));
	}
	if (written && why.size_bytes)
		written->reason = buf_steal(&why, NULL);
	sym_error_destroy(error);
	buf_deinit(&why);
	return written;
}

const struct self_reported_code *resolver_get_self_reported(const struct resolving *resolving)
{
	struct sym_resolver *resolver = resolving->resolver;
	struct self_reported_code *written = atomic_load(&resolver->written);

	if (written)
		return written;
	pthread_mutex_lock(&resolver->lock);
	written = atomic_load(&resolver->written);
	if (!written) {
		written = self_reported_code_read(resolving->snapshot);
		atomic_store(&resolver->written, written);
	}
	pthread_mutex_unlock(&resolver->lock);
	return written;
}

/*
 * The code as of the first look is the snapshot's. If there was no runtime then, the current
 * snapshot is used.
 */
static const struct sym_snapshot *of_runtime(const struct resolving *resolving)
{
	const struct sym_snapshot *first = resolving->resolver->snapshot;
	const struct runtime_info *runtime = snapshot_runtime(first);

	return runtime && runtime->shape ? first : resolving->snapshot;
}

const struct jitted_code *resolver_get_live(const struct resolving *resolving)
{
	const struct jitted_code *live = atomic_load(&resolving->resolver->live);

	if (!live && snapshot_uses_runtime(resolving->snapshot))
		sym_error_destroy(snapshot_live_code(of_runtime(resolving), &live));
	return live;
}

/* The perf map first: a JIT that gives up its dump continues with its map. */
enum sym_source_kind resolver_look_up_self_reported(const struct self_reported_code *written,
						    uint64_t address, struct source_match *match)
{
	enum source_outcome outcome = SOURCE_MISS;

	match->reason = NULL;
	if (written->source)
		outcome = perfmap_source_find(written->source, address, match);
	if (outcome == SOURCE_HIT)
		return SYM_SOURCE_PERF_MAP;
	if (written->jitdump)
		outcome = jitdump_source_find(written->jitdump, address, match);
	return outcome == SOURCE_HIT ? SYM_SOURCE_JITDUMP : SYM_SOURCE_NONE;
}

enum sym_source_kind resolver_look_up_live(const struct resolving *resolving,
					   const struct runtime_source *live, uint64_t address,
					   struct source_match *match)
{
	enum sym_source_kind source = SYM_SOURCE_NONE;
	const struct self_reported_code *written;
	struct source_match line;
	bool yields;

	if (!live || runtime_source_find(live, address, match, &yields) != SOURCE_HIT)
		return SYM_SOURCE_NONE;
	if (!yields)
		return SYM_SOURCE_RUNTIME;
	written = resolver_get_self_reported(resolving);
	if (written)
		source = resolver_look_up_self_reported(written, address, &line);
	if (source == SYM_SOURCE_NONE || !runtime_source_yields_to(match, &line))
		return SYM_SOURCE_RUNTIME;
	*match = line;
	return source;
}
