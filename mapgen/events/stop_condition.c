/* SPDX-License-Identifier: MIT */
#include "mapgen/events/stop_condition.h"

#include <stdlib.h>
#include <string.h>

#include "mapgen/events/event_values.h"

enum {
	REASON_STARVATION = 6, /* of ThreadPoolWorkerThreadAdjustmentAdjustment */
	MOST_NAME_BYTES = 1 << 16,
};

static const char *read_pause(const char *text, struct stop_condition *ret)
{
	static const char problem[] = "is gc-pause>MS, as gc-pause>200ms";
	char *end;
	double amount = strtod(text, &end), unit_ns = 1e6;

	if (end == text || !(amount > 0) || amount > 1e9)
		return problem;
	if (!strcmp(end, "us"))
		unit_ns = 1e3;
	else if (!strcmp(end, "s"))
		unit_ns = 1e9;
	else if (*end && strcmp(end, "ms") != 0)
		return problem;
	ret->longest_pause_ns = (uint64_t)(amount * unit_ns);
	return NULL;
}

const char *stop_condition_read(const char *text, struct stop_condition *ret)
{
	static const char pause[] = "gc-pause>", exception[] = "exception=";

	*ret = (struct stop_condition){ 0 };
	if (!strncmp(text, pause, sizeof(pause) - 1)) {
		ret->kind = STOP_ON_PAUSE;
		return read_pause(text + sizeof(pause) - 1, ret);
	}
	if (!strncmp(text, exception, sizeof(exception) - 1) && text[sizeof(exception) - 1]) {
		ret->kind = STOP_ON_EXCEPTION;
		ret->type = text + sizeof(exception) - 1;
		return NULL;
	}
	if (!strcmp(text, "pool-starvation")) {
		ret->kind = STOP_ON_STARVATION;
		return NULL;
	}
	return "is gc-pause>MS, exception=TYPE or pool-starvation";
}

const char *stop_condition_group(const struct stop_condition *condition)
{
	switch (condition->kind) {
	case STOP_ON_PAUSE:
		return "gc";
	case STOP_ON_EXCEPTION:
		return "exceptions";
	default:
		return "threadpool";
	}
}

static bool ends_long_pause(struct stop_condition *condition, const struct runtime_event *event)
{
	return event_measures_pause(&condition->pause, event) > condition->longest_pause_ns;
}

static bool is_type(const struct stop_condition *condition, const struct runtime_event *event)
{
	size_t length = strlen(condition->type);
	struct buf name;
	bool ret;

	if (event->kind->meaning != EVENT_EXCEPTION)
		return false;
	buf_init(&name, MOST_NAME_BYTES);
	event_text(event, "ExceptionType", &name);
	ret = name.size_bytes >= length &&
	      !memcmp(name.data + name.size_bytes - length, condition->type, length) &&
	      (name.size_bytes == length || name.data[name.size_bytes - length - 1] == '.' ||
	       name.data[name.size_bytes - length - 1] == '+');
	buf_deinit(&name);
	return ret;
}

bool stop_condition_take(struct stop_condition *condition, const struct runtime_event *event)
{
	bool is_true = false;

	if (condition->happened_ns)
		return true;
	if (condition->kind == STOP_ON_PAUSE)
		is_true = ends_long_pause(condition, event);
	else if (condition->kind == STOP_ON_EXCEPTION)
		is_true = is_type(condition, event);
	else if (condition->kind == STOP_ON_STARVATION)
		is_true = event->kind->meaning == EVENT_POOL_ADJUSTMENT &&
			  event_number(event, "Reason") == REASON_STARVATION;
	if (is_true)
		condition->happened_ns = event->time_ns;
	return is_true;
}
