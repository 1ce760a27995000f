/* SPDX-License-Identifier: MIT */
/*
 * Names of managed code from the events of a stream itself: methods that were loaded while it ran,
 * and those that are listed at its end. As of the time when they were loaded, so code that was
 * freed and used again keeps its name.
 */
#ifndef MAPGEN_PROFILE_EVENT_METHODS_H
#define MAPGEN_PROFILE_EVENT_METHODS_H

#include "mapgen/events/runtime_event.h"
#include "mapgen/profile/address_names.h"

struct event_methods;

struct sym_error *event_methods_create(struct event_methods **ret)
	__attribute__((warn_unused_result));
void event_methods_destroy(struct event_methods *methods);

/* Errors: NO_MEMORY, LIMIT. */
struct sym_error *event_methods_take(struct event_methods *methods,
				     const struct runtime_event *event)
	__attribute__((warn_unused_result));

/* No event comes any more. *ret borrows `methods`. Errors: NO_MEMORY. */
struct sym_error *event_methods_finish(struct event_methods *methods, struct address_names *ret)
	__attribute__((warn_unused_result));

#endif
