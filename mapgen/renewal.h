/* SPDX-License-Identifier: MIT */
/*
 * What a process has compiled, freed and mapped since is taken up between two looks at all of it:
 * that costs little, so it is done often. Memory of a jit is used again, so also what has a name
 * may have another by now. Of the time that passes a part may go into it, of all processes
 * together; what is not used is saved, so whoever asks now and then has answers of the moment.
 */
#ifndef MAPGEN_RENEWAL_H
#define MAPGEN_RENEWAL_H

#include <stdbool.h>

struct sym_resolver;
struct sym_snapshot;

/* Times are of CLOCK_MONOTONIC. */

/* Of whoever has them all. Zero at first. */
struct renewal_purse {
	double saved_s;   /* that may go into renewals, as of... */
	double counted_s; /* ...then */
};

/* Of one process. */
struct renewal {
	double next_s;         /* while nothing is missed, or looking for it was in vain */
	bool has_begun;        /* the first, which reads all */
	bool was_in_vain;      /* the last told nothing new */
	bool has_said;         /* whether the process is followed: */
	bool comes_late;       /* it is */
	double serves_until_s; /* it has told something new, and will do so */
};

/* After a look at all of it (the first: of a renewal that is zero), which has cost so much: as long
 * passes before the first. */
void renewal_begin(struct renewal *renewal, double cost_s);

/* If it is time to. `told`: the snapshot, where the runtime has told of its code, so that it is
 * said that it goes on; else NULL. `is_missed`: an answer lacks a name that what is new may have.
 * False: nothing is otherwise than before. */
bool renewal_take(struct renewal *renewal, struct renewal_purse *purse,
		  struct sym_resolver *resolver, struct sym_snapshot *told, bool is_missed);

/* A look at all would tell no more. */
bool renewal_serves(const struct renewal *renewal);

#endif
