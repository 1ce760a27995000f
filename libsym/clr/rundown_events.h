/* SPDX-License-Identifier: MIT */
/*
 * Events of a tracing session that tell of methods and modules, gathered in the order
 * in which they come. Knows two providers: that of the rundown, which lists what there is,
 * and the runtime's own, which tells what is added and taken away.
 */
#ifndef LIBSYM_CLR_RUNDOWN_EVENTS_H
#define LIBSYM_CLR_RUNDOWN_EVENTS_H

#include "libsym/base/buf.h"
#include "libsym/clr/rundown.h"
#include "libsym/format/nettrace.h"

/* Texts are offsets into `names` until rundown_place_texts(). */
struct rundown_gathering {
	struct rundown *rundown;
	size_t module_capacity, method_capacity;
	struct buf names;
	bool changes; /* take the runtime's own events, not those of a rundown */
	bool no_memory;
};

void rundown_gathering_init(struct rundown_gathering *gathering, struct rundown *rundown);
void rundown_gathering_deinit(struct rundown_gathering *gathering);

/* For struct nettrace_sink; the context is a struct rundown_gathering. */
bool rundown_take_event(void *context, const struct nettrace_event *event);

/* Hands the names to the rundown. Errors: NO_MEMORY, LIMIT. */
struct sym_error *rundown_place_texts(struct rundown_gathering *gathering);

#endif
