/* SPDX-License-Identifier: MIT */
/*
 * The jitted code of a process, told by the runtime in it: by which
 * way, and why not by another. Reads once, when somebody first asks, and keeps
 * it for all looks at the process; the process may go on compiling meanwhile.
 */
#ifndef LIBSYM_LIVE_CODE_H
#define LIBSYM_LIVE_CODE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "libsym/error.h"
#include "libsym/source/runtime_source.h"

struct live_code {
	struct sym_jit_info info;
	struct runtime_source *source; /* NULL: no way served; info says why */
	/* What holds where nothing else tells: stubs that its memory shows where no way served;
	 * what was read by contract before the runtime had to be asked, which does not tell of the
	 * former bodies of methods that were edited. May be NULL. */
	struct runtime_source *below;
	bool had_runtime; /* the process, when it was read */
	char *contract_reason, *rundown_reason;
	struct live_code *before; /* what this took the place of, while its names are in use */
};

/* Of a process, for all looks at it. Zero is nothing read yet. */
struct live_code_slot {
	pthread_mutex_t lock;
	_Atomic(struct live_code *) code;
	_Atomic(uint64_t) changes; /* of it, counted */
};

/* What is kept of one look at a process for the next one. Must end before the process does. */
struct live_reader;

void live_reader_close(struct live_reader *reader);

void live_code_slot_init(struct live_code_slot *slot);
void live_code_slot_deinit(struct live_code_slot *slot);

/* Reads when it has not been read. Thread safe. Errors: NO_MEMORY only; everything else is in the
 * info. */
struct sym_error *live_code_get(const struct sym_snapshot *snapshot, const struct live_code **ret)
	__attribute__((warn_unused_result));

/*
 * Looks again, reading only what `*reader` (NULL at first) has not seen, and exchanges
 * what is in the snapshot. *changed_ret: it is not what it was. Errors: whatever made this look
 * fail; then everything is as it was. What was there before is kept until
 * live_code_forget(). Not for several threads.
 */
struct sym_error *live_code_refresh(struct sym_snapshot *snapshot, struct live_reader **reader,
				    bool *changed_ret) __attribute__((warn_unused_result));

/* The same for a process that has ended: what its runtime told before that. `reader` may be NULL.
 */
struct sym_error *live_code_end(struct sym_snapshot *snapshot, struct live_reader *reader,
				bool *changed_ret) __attribute__((warn_unused_result));

void live_code_forget(struct live_code_slot *slot);

/*
 * The same for one of several who hold what a process told: by the way by which `known` was told,
 * if any. *ret is NULL when nothing is otherwise than in `known`; else it is the caller's. Its
 * names stay as long as the last one that has the same live_code_names(), which change only when
 * most of them are of no more use.
 *
 * Asks nobody who did not answer in time before. Errors: whatever made this look fail; the next
 * one then reads everything. For one thread at a time.
 */
struct sym_error *live_code_read_again(const struct sym_snapshot *snapshot,
				       const struct live_code *known, struct live_reader **reader,
				       struct live_code **ret) __attribute__((warn_unused_result));
/* The same for a process that has ended: what its runtime told before that. `reader` may be NULL.
 */
struct sym_error *live_code_read_rest(const struct sym_snapshot *snapshot,
				      struct live_reader *reader, struct live_code **ret)
	__attribute__((warn_unused_result));
/* And what it took the place of. NULL is accepted. */
void live_code_destroy(struct live_code *code);

/* NULL: none that others have too. */
const struct index_name_set *live_code_names(const struct live_code *code);

/* A reader of the runtime's memory by its data contract; NOT_FOUND, UNSUPPORTED where there is
 * none. */
struct sym_error *live_open_contract(const struct sym_snapshot *snapshot, struct jit_reader **ret)
	__attribute__((warn_unused_result));

#endif
