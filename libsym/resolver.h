/* SPDX-License-Identifier: MIT */
/*
 * What a resolver holds: for those who look up with it (resolver.c) and those who
 * exchange what it holds (resolver_refresh.c).
 */
#ifndef LIBSYM_RESOLVER_H
#define LIBSYM_RESOLVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "libsym/answer_cache.h"
#include "libsym/base/readers.h"
#include "libsym/index_name_set.h"
#include "libsym/quick_look_up.h"
#include "libsym/snapshot.h"

/* What the process wrote of its code, as it was when the first address asked for it. */
struct written {
	struct perfmap_source *source;  /* NULL: there is no map, or none that may be used */
	struct jitdump_source *jitdump; /* NULL: there is none */
	enum sym_status status;         /* without a source */
	char *reason;                   /* without a source; NULL: the process writes no map */
};

/*
 * A refresh may end what was read before, so it must know that nobody reads it
 * any more: readers say so (base/readers.h). As long as there has been no refresh they need not:
 * they see `first`, which stays. Nor need they in a program without threads, where nobody refreshes
 * meanwhile.
 */
struct sym_resolver {
	struct sym_snapshot *snapshot; /* the user's */
	/* What is mapped as of the last refresh: the user's snapshot, or one of ours. */
	_Atomic(struct sym_snapshot *) now;
	struct sym_snapshot
		*before; /* ours too, while what it gave out is still good; may be NULL */
	struct buf maps; /* the text of `now`; empty before the first refresh */
	/* Of mappings, kept as long as the resolver; NULL before the first refresh. */
	struct index_name_set *paths;
	_Atomic(uint64_t) generation; /* counts the changes of `now` */
	pthread_mutex_t lock;
	_Atomic(struct written *) written;
	_Atomic(struct written *) first;
	/* What nearly every look-up needs, as long as there has been no refresh; NULL: look with
	 * care. Those before it stay as long as the resolver. */
	_Atomic(struct quick_look_up *) quick;
	struct quick_look_up *quicks; /* the last one that was made */
	/* There was one, now or before: what a glance has noted of a mapping may lack its path. */
	_Atomic(bool) had_quick;
	/*
	 * The same once there was one, for those who are counted or alone: of what is there now.
	 * Whoever exchanges something of it ends it by resolver_changed(). Whoever makes one
	 * must have seen since he began to look that `changes` is what it was; with the lock.
	 */
	_Atomic(struct quick_look_up *) quick_now;
	struct quick_look_up *quicks_replaced; /* by one that knows more; still in use */
	struct quick_look_up *quicks_dropped; /* until nobody reads them: the refreshing thread's */
	/* Counts what resolver_changed() was told. */
	_Atomic(uint64_t) changes;
	/* Of what has no quick way; NULL: nothing was answered yet, or there is no memory. */
	_Atomic(struct answer_cache *) answers;
	unsigned int quick_tries; /* since the last change */
	pthread_mutex_t refresh_lock;
	struct written *previous[2]; /* the last one first; their names are still good */
	/* What the runtime has told by the last refresh; NULL: as the snapshot has it. */
	_Atomic(struct live_code *) live;
	struct live_code *live_before; /* its names are still good, and not among those of `live` */
	struct live_reader *live_reader;
	_Atomic(bool) refreshed;
	struct readers readers;
	_Atomic(struct sym_kernel *) kernel;
};

/* One batch of addresses, while it is being resolved. */
struct resolving {
	struct sym_resolver *resolver;
	const struct sym_snapshot *snapshot; /* what is mapped */
	const struct quick_look_up *quick;   /* NULL: look with care */
	bool refreshed;                      /* since the resolver was made */
	bool counted;                        /* as `reading` says */
	struct reading reading;
	struct answer_state state;
};

/* From now on look-ups see what was taken up, and not `first`. */
static inline void resolver_set_refreshed(struct sym_resolver *resolver)
{
	readers_give_places(&resolver->readers);
	atomic_store(&resolver->refreshed, true);
	atomic_store(&resolver->quick, NULL);
}

/*
 * A look-up in executable memory took the long way; those to come may need not. What the runtime
 * told comes first, so that is for those to whom it told nothing.
 */
void resolver_learn(const struct resolving *resolving, const struct live_code *live,
		    const struct written *written, size_t line);

/* What is there was exchanged: what was made of it is for those only who have it already, and ends
 * with the next wait for them. */
void resolver_changed(struct sym_resolver *resolver);

/*
 * Look-ups that begin from now on see `fresh`, which is the resolver's then. Returns when nobody
 * looks up what was there before; its names stay for one more change of the set that they are in.
 * For one thread at a time.
 */
void resolver_exchange_live(struct sym_resolver *resolver, struct live_code *fresh);

/* Where the look-up finds what the process wrote; NULL in it: nobody has read it yet. */
static inline _Atomic(struct written *) *resolver_written_place(const struct resolving *resolving)
{
	struct sym_resolver *resolver = resolving->resolver;

	return resolving->refreshed ? &resolver->written : &resolver->first;
}

/* What the process wrote, reading it if that has not been done; NULL when there was no memory. */
const struct written *resolver_get_written(const struct resolving *resolving);

/* What the runtime tells; NULL when it is not wanted, or for want of memory. */
const struct live_code *resolver_get_live(const struct resolving *resolving);

/* The source that has a name for code in memory of no image, or SYM_SOURCE_NONE. A perf map whose
 * name is lost sets `match->reason`. */
enum sym_source_kind resolver_look_up_written(const struct resolving *resolving,
					      const struct written *written, uint64_t address,
					      struct source_match *match);

/* The same of what the runtime tells; `live` may be NULL. A map names stubs that are only known to
 * be some. */
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

/*
 * .NET (10.0 with W^X, seen) writes stubs at addresses of a view of their memory that does not
 * last; a file may be mapped there since. Elsewhere stubs lie in no file.
 */
static inline bool resolver_is_stub_in_file(const struct sym_answer *answer,
					    const struct source_match *match)
{
	return answer->image && match->kind == SYM_SYMBOL_STUB;
}

/* Of addresses that were answered as of now: what lay there at their times (resolver_times.c). */
void resolver_answer_then(const struct resolving *resolving, const uint64_t *times_ns,
			  struct sym_result *result);

/* Lines and inlined functions of all answers, as the result wants them (resolver_describe.c);
 * `times_ns` may be NULL. Errors: NO_MEMORY. */
struct sym_error *resolver_describe(const struct resolving *resolving, const uint64_t *times_ns,
				    struct sym_result *result) __attribute__((warn_unused_result));

/* NULL when there was no memory: the next look-up tries again. */
struct written *read_written(const struct sym_snapshot *snapshot);
void written_destroy(struct written *written);

#endif
