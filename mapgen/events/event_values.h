/* SPDX-License-Identifier: MIT */
/* Values of an event's fields, by name or all of them. */
#ifndef MAPGEN_EVENTS_EVENT_VALUES_H
#define MAPGEN_EVENTS_EVENT_VALUES_H

#include "mapgen/events/event_kind.h"
#include "mapgen/events/runtime_event.h"

/* 0 where the event has no such field, or ends before it. */
uint64_t event_number(const struct runtime_event *event, const char *field);
double event_real(const struct runtime_event *event, const char *field);
bool event_has(const struct runtime_event *event, const char *field);

/* The number of a value, whatever its type is. */
double event_value_real(const struct nettrace_value *value);

/* Appends a text; nothing where there is none. */
void event_text(const struct runtime_event *event, const char *field, struct buf *text);

/* Appends the name of the method that an event of methods is about: "Ns.Type::Method". */
void event_method_name(const struct runtime_event *event, struct buf *text);

/* Appends all fields on one line: NAME=VALUE, texts in quotes. */
void event_print(const struct runtime_event *event, struct buf *text);

/* A walk through the structure in the field `field` of an event; false: there is none. */
bool event_walk_into(const struct runtime_event *event, const char *field,
		     struct nettrace_walk *ret);

/* "//1/2/3" of an activity of an EventSource, else a GUID. */
void event_activity_text(const uint8_t *activity, struct buf *text);

#endif
