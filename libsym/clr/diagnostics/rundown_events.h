/* SPDX-License-Identifier: MIT */
/*
 * Events about methods and modules in a tracing session, gathered in the order of arrival.
 * Two providers: the rundown lists what exists; the runtime's own reports what is loaded and
 * unloaded.
 */
#ifndef LIBSYM_CLR_DIAGNOSTICS_RUNDOWN_EVENTS_H
#define LIBSYM_CLR_DIAGNOSTICS_RUNDOWN_EVENTS_H

#include "libsym/base/buf.h"
#include "libsym/clr/diagnostics/rundown.h"
#include "libsym/format/nettrace/nettrace.h"

#define RUNDOWN_PROVIDER "Microsoft-Windows-DotNETRuntimeRundown"

/* Texts are offsets into `names` until rundown_gathering_finish(). */
struct rundown_gathering {
	struct rundown *rundown;
	size_t module_capacity, method_capacity;
	struct buf names;
	bool changes; /* use the runtime's own events, not those of a rundown */
	bool no_memory;
};

void rundown_gathering_init(struct rundown_gathering *gathering, struct rundown *rundown);
void rundown_gathering_deinit(struct rundown_gathering *gathering);

/* For struct nettrace_sink; `context` is a struct rundown_gathering. */
bool rundown_take_event(void *context, const struct nettrace_event *event);

/* Sorts what a rundown has listed, and passes the names to it. Errors: NO_MEMORY, LIMIT. */
struct sym_error *rundown_gathering_finish(struct rundown_gathering *gathering);

#endif
