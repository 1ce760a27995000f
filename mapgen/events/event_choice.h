/* SPDX-License-Identifier: MIT */
/*
 * Turns the value of --events ("gc,exceptions,My-Source:0x3:5:ARG=1") into providers of a session
 * and the tracepoints at which native stacks are taken. The groups of events are defined here.
 */
#ifndef MAPGEN_EVENTS_EVENT_CHOICE_H
#define MAPGEN_EVENTS_EVENT_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/libsym.h"

enum {
	EVENT_CHOICE_PROVIDERS = 64, /* at most */
	EVENT_CHOICE_IDS = 64,
	EVENT_CHOICE_PROBES = 16,
};

/* Cheap, and useful for most questions. */
#define EVENT_CHOICE_DEFAULT "default"

struct event_choice {
	struct sym_event_provider providers[EVENT_CHOICE_PROVIDERS];
	size_t provider_count;
	uint32_t ids[EVENT_CHOICE_IDS];          /* of the runtime's own provider */
	const char *probes[EVENT_CHOICE_PROBES]; /* names of tracepoints */
	size_t probe_count;
	bool has_sources;    /* events of managed code, which pass no tracepoint */
	bool takes_any_id;   /* the caller has named the runtime's own provider */
	const char *missing; /* a group that the version has no events of; NULL: none */
	char *text;          /* the names and arguments; heap */
};

/* NULL when the text is well formed; else what is wrong with it, static. */
const char *event_choice_problem(const char *text);

/*
 * `major`: version of the runtime; 0: unknown, then as .NET 8. Release it with
 * event_choice_deinit(). Errors: ARGUMENT, NO_MEMORY.
 */
struct sym_error *event_choice_read(const char *text, int major, struct event_choice *ret)
	__attribute__((warn_unused_result));
/* Reads the choice for a process, and says which group its runtime does not have. NOT_FOUND: it has
 * no runtime. NO_MEMORY: there is no `info`. */
struct sym_error *event_choice_for(const struct sym_process_info *info, const char *text,
				   struct event_choice *ret) __attribute__((warn_unused_result));
void event_choice_deinit(struct event_choice *choice);

#endif
