/* SPDX-License-Identifier: MIT */
/*
 * The jitted code of a process, from its runtime: with which method it was read, and why the others
 * did not work.
 * It is read once, when it is first needed, and kept for all snapshots of the process. The process
 * may keep compiling.
 */
#ifndef LIBSYM_CLR_JITTED_CODE_H
#define LIBSYM_CLR_JITTED_CODE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "libsym/clr/clr_target.h"
#include "libsym/clr/runtime_source.h"
#include "libsym/error.h"

struct jitted_code {
	struct sym_jit_info info;
	struct runtime_source *source; /* NULL: no method worked; `info` explains it */
	/*
	 * Used where `source` has nothing; may be NULL.
	 * If no method worked: stubs found in memory.
	 * If a rundown followed a reading by contract: the latter, because a rundown lacks the
	 * former bodies of edited methods.
	 */
	struct runtime_source *below;
	bool had_runtime; /* when it was read */
	char *contract_reason, *rundown_reason;
	struct jitted_code *before; /* the code that this replaced, while its names are in use */
};

/* The code of a process, for all its snapshots. All zero: not read yet. */
struct jitted_code_slot {
	pthread_mutex_t lock;
	_Atomic(struct jitted_code *) code;
	_Atomic(uint64_t) changes; /* number of changes */
};

/* State between two readings of a process. It must end before the process does. */
struct jitted_reader;

void jitted_reader_close(struct jitted_reader *reader);

void jitted_code_slot_init(struct jitted_code_slot *slot);
void jitted_code_slot_deinit(struct jitted_code_slot *slot);

/*
 * Reads the code once. Thread safe.
 * Errors: NO_MEMORY only; other failures are in `info`.
 */
struct sym_error *jitted_code_get(const struct clr_target *target, struct jitted_code_slot *slot,
				  const struct jitted_code **ret)
	__attribute__((warn_unused_result));

/*
 * Reads what `*reader` (NULL at first) has not seen, with the method of `known`, if any.
 * *ret is NULL when nothing differs from `known`; else the caller owns it.
 * Its names live as long as the last object with the same jitted_code_names(), which change only
 * when most of them are unused.
 *
 * A runtime that did not answer in time is not asked again.
 * After an error the next call reads everything.
 * For one thread at a time.
 */
struct sym_error *jitted_code_read_again(const struct clr_target *target,
					 const struct jitted_code *known,
					 struct jitted_reader **reader, struct jitted_code **ret)
	__attribute__((warn_unused_result));
/* Reads what the runtime of a process reported before the process ended. `reader` may be NULL. */
struct sym_error *jitted_code_read_rest(const struct clr_target *target,
					struct jitted_reader *reader, struct jitted_code **ret)
	__attribute__((warn_unused_result));
/* Also destroys what it replaced. NULL is accepted. */
void jitted_code_destroy(struct jitted_code *code);

/* NULL: the names are not shared. */
const struct string_interner *jitted_code_names(const struct jitted_code *code);

#endif
