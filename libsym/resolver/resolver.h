/* SPDX-License-Identifier: MIT */
/* The data of a resolver, for look-ups (resolver.c) and for refreshes (resolver_refresh.c). */
#ifndef LIBSYM_RESOLVER_RESOLVER_H
#define LIBSYM_RESOLVER_RESOLVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "libsym/base/epoch.h"
#include "libsym/base/text_set.h"
#include "libsym/format/linux/mapping_name.h"
#include "libsym/perf/perfmap_source.h"
#include "libsym/resolver/answer_cache.h"
#include "libsym/snapshot/snapshot.h"

/* Perf map and jitdump of the process, read when the first address needs them. */
struct self_reported_code {
	struct perfmap_source *source;  /* NULL: no map, or none that may be used */
	struct jitdump_source *jitdump; /* NULL: none */
	enum sym_status status;         /* without a source */
	char *reason;                   /* without a source; NULL: the process writes no map */
};

/*
 * A refresh frees old data, so it waits until no reader can still use it: readers register
 * (base/epoch.h).
 */
struct sym_resolver {
	struct sym_snapshot *snapshot; /* the user's */
	/* The mappings as of the last refresh: the user's snapshot, or one of ours. */
	_Atomic(struct sym_snapshot *) now;
	struct sym_snapshot *before; /* ours too, while its names are valid; may be NULL */
	struct buf maps;       /* the text of maps for `now`; empty before the first refresh */
	struct text_set paths; /* of mappings, which live as long as the resolver */
	pthread_mutex_t lock;
	_Atomic(struct self_reported_code *) written;
	/* Number of calls of resolver_changed(). */
	_Atomic(uint64_t) changes;
	struct answer_cache *answers;
	pthread_mutex_t refresh_lock;
	struct self_reported_code *previous[2]; /* the last one first; their names are valid */
	/* The runtime's code as of the last refresh; NULL: the snapshot's. */
	_Atomic(struct jitted_code *) live;
	struct jitted_code *live_before; /* its names are valid, and not among those of `live` */
	struct jitted_reader *jitted_reader;
	struct epoch readers;
	struct lazy kernel; /* struct sym_kernel */
};

/* One batch of addresses. */
struct resolving {
	struct sym_resolver *resolver;
	const struct sym_snapshot *snapshot; /* the mappings */
	unsigned int reading;                /* of epoch_enter() */
	struct answer_state state;
	uint64_t begin_ns; /* for several addresses: kernel_clock_ns(); UINT64_MAX for one */
};

/* Invalidates all cached answers: their data were replaced. */
static inline void resolver_changed(struct sym_resolver *resolver)
{
	atomic_fetch_add(&resolver->changes, 1);
}

/*
 * Replaces the runtime's code by `fresh`, and takes ownership of it.
 * Returns when no thread reads the old one. Its names stay until the next change of their set.
 * For one thread at a time.
 */
void resolver_exchange_live(struct sym_resolver *resolver, struct jitted_code *fresh);

/* Reads perf map and jitdump of the process at the first call. NULL when out of memory. */
const struct self_reported_code *resolver_get_self_reported(const struct resolving *resolving);

/* The runtime's code; NULL when it is not requested, or when out of memory. */
const struct jitted_code *resolver_get_live(const struct resolving *resolving);

/*
 * The source that names code outside images, or SYM_SOURCE_NONE. A lost name of a perf map sets
 * `match->reason`.
 */
enum sym_source_kind resolver_look_up_self_reported(const struct self_reported_code *written,
						    uint64_t address, struct source_match *match);

/*
 * As resolver_look_up_self_reported(), with the runtime's code first; `live` may be NULL. Stubs
 * without a kind yield to a perf map.
 */
enum sym_source_kind resolver_look_up_live(const struct resolving *resolving,
					   const struct runtime_source *live, uint64_t address,
					   struct source_match *match);

static inline void resolver_take_match(struct sym_answer *answer, enum sym_source_kind source,
				       const struct source_match *match)
{
	answer->status = SYM_RESOLVED;
	answer->source = source;
	answer->name = match->name;
	answer->tier = match->tier;
	answer->kind = match->kind;
	answer->offset_bytes = answer->address - match->start;
	answer->size_bytes = match->size_bytes;
	answer->reason = NULL;
}

/* Memory that the kernel has named, where no JIT puts code. */
static inline bool resolver_is_kernel_path(const char *path)
{
	return mapping_name_kind(path, strlen(path)) == MAPPING_NAME_KERNEL;
}

/*
 * .NET (10.0 with W^X, seen) writes stubs at addresses of a temporary view. A file may be mapped
 * there since. A stub inside a file is therefore wrong.
 */
static inline bool resolver_is_stub_in_file(const struct sym_answer *answer,
					    const struct source_match *match)
{
	return answer->image && match->kind == SYM_SYMBOL_STUB;
}

/* Replaces answers as of now by those of their times (resolver_at.c). */
void resolver_answer_then(const struct resolving *resolving, const uint64_t *times_ns,
			  struct sym_result *result);

/*
 * Adds the fields that the result requests to all answers (resolver_describe.c). `times_ns` may be
 * NULL. Errors: NO_MEMORY.
 */
struct sym_error *resolver_describe(const struct resolving *resolving, const uint64_t *times_ns,
				    struct sym_result *result) __attribute__((warn_unused_result));

/* Lines and inlined methods of the jitted methods among answers (resolver_lines.c). */
struct resolver_jitted {
	struct jitted_place *places; /* in the order of the answers */
	size_t count, next;
};

/* Errors: NO_MEMORY; resolver_jitted_deinit() is needed in any case. */
struct sym_error *resolver_find_jitted_lines(const struct resolving *resolving,
					     const struct sym_result *result,
					     struct resolver_jitted *ret)
	__attribute__((warn_unused_result));
/* Fills one answer, if it is jitted. For all answers in their order. Errors: NO_MEMORY. */
struct sym_error *resolver_take_jitted_line(struct resolver_jitted *jitted,
					    struct sym_result *result, size_t number)
	__attribute__((warn_unused_result));
void resolver_jitted_deinit(struct resolver_jitted *jitted);

/*
 * Appends the addresses as uint64_t at which the lines of managed methods may change
 * (resolver_lines.c). `methods`: answers to an address of each. Errors: NO_MEMORY.
 */
struct sym_error *resolver_append_rows(const struct resolving *resolving,
				       const struct sym_result *methods, struct buf *ret)
	__attribute__((warn_unused_result));

/* NULL when out of memory: the next look-up tries again. */
struct self_reported_code *self_reported_code_read(const struct sym_snapshot *snapshot);
void self_reported_code_destroy(struct self_reported_code *written);

/* The resolver of a live process; exec() replaces it. */
struct sym_resolver *live_resolver(const struct sym_live *live);

#endif
