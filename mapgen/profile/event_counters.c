/* SPDX-License-Identifier: MIT */
/*
 * One row a counter, and its values of all intervals.
 *
 *   EventCounter, PollingCounter    Mean, Min and Max of an interval, and Count, the number of
 * values Incrementing...Counter          Increment: growth in an interval Counter,
 * ObservableCounter      rate: growth in an interval; empty in the first one of an
 *                                   ObservableCounter, which has grown from an unknown value
 *   UpDownCounter, observable too   value; .NET 7 has the rate only
 *   Gauge, ObservableGauge          lastValue
 *   Histogram                       quantiles, "0.5=51;0.95=96;0.99=100", and from .NET 8 on count
 * and sum, of the values of an interval; a row each
 *
 * src/libraries/System.Private.CoreLib/src/System/Diagnostics/Tracing/CounterPayload.cs and
 * src/libraries/System.Diagnostics.DiagnosticSource/src/System/Diagnostics/Metrics/MetricsEventSource.cs
 * of dotnet/runtime. Meters send numbers as texts, in the invariant culture.
 */
#include "mapgen/profile/event_counters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/error.h"
#include "mapgen/events/event_kind.h"
#include "mapgen/events/event_values.h"

enum {
	MOST_TEXT_BYTES = 1 << 16,
};

/* Values of one interval. */
struct values {
	double mean, least, most;
	uint64_t count;
};

/* A counter without a value yet has a row: its mean is not a number, or its quantiles are empty. */
static struct sym_error *find_row(struct event_report *report, const char *provider,
				  const char *name, const char *unit, struct event_row **ret)
{
	struct sym_error *error = event_rows_find(&report->counters, provider, name, ret);

	if (error || !*ret || (*ret)->note || !*unit)
		return error;
	(*ret)->note = strdup(unit);
	return (*ret)->note ? NULL : &sym_error_no_memory;
}

static void add_values(struct event_row *row, const struct values *values)
{
	if (!values->count || !isfinite(values->mean))
		return;
	if (!row->extra[0] || values->least < row->least)
		row->least = values->least;
	if (!row->extra[0] || values->most > row->most)
		row->most = values->most;
	row->last = values->mean;
	row->sum += values->mean * (double)values->count;
	row->extra[0] += values->count;
}

static struct sym_error *add_value(struct event_report *report, const char *provider,
				   const char *name, const char *unit, double value)
{
	const struct values values = { value, value, value, 1 };
	struct event_row *row;
	struct sym_error *error = find_row(report, provider, name, unit, &row);

	if (!error && row)
		add_values(row, &values);
	return error;
}

/* ---- EventCounters --------------------------------------------------------------------------- */

static void take_field(const struct nettrace_value *value, struct values *values, struct buf *name,
		       struct buf *unit)
{
	const char *field = value->field->name;

	if (!strcmp(field, "Name"))
		nettrace_value_append_text(value, name);
	else if (!strcmp(field, "DisplayUnits"))
		nettrace_value_append_text(value, unit);
	else if (!strcmp(field, "Mean") || !strcmp(field, "Increment"))
		values->mean = event_value_real(value);
	else if (!strcmp(field, "Min"))
		values->least = event_value_real(value);
	else if (!strcmp(field, "Max"))
		values->most = event_value_real(value);
	else if (!strcmp(field, "Count"))
		values->count = (uint64_t)event_value_real(value);
}

struct sym_error *event_counters_take_counter(struct event_report *report,
					      const struct runtime_event *event)
{
	struct values values = { NAN, NAN, NAN, 1 };
	struct nettrace_walk walk;
	struct nettrace_value value;
	struct buf name, unit;
	struct event_row *row;
	struct sym_error *error;

	if (!event_walk_into(event, "Payload", &walk))
		return NULL;
	buf_init(&name, MOST_TEXT_BYTES);
	buf_init(&unit, MOST_TEXT_BYTES);
	while (nettrace_walk_next(&walk, &value))
		take_field(&value, &values, &name, &unit);
	if (isnan(values.least) || isnan(values.most))
		values.least = values.most = values.mean;
	error = find_row(report, event->kind->provider, buf_string(&name) ?: "",
			 buf_string(&unit) ?: "", &row);
	if (!error && row)
		add_values(row, &values);
	buf_deinit(&name);
	buf_deinit(&unit);
	return error;
}

/* ---- Meters ---------------------------------------------------------------------------------- */

/* The texts of one event; they are those of the instrument. */
struct instrument {
	struct buf meter, name, unit, value;
};

static void deinit_instrument(struct instrument *instrument)
{
	buf_deinit(&instrument->meter);
	buf_deinit(&instrument->name);
	buf_deinit(&instrument->unit);
	buf_deinit(&instrument->value);
}

static void read_instrument(const struct runtime_event *event, struct instrument *ret)
{
	buf_init(&ret->meter, MOST_TEXT_BYTES);
	buf_init(&ret->name, MOST_TEXT_BYTES);
	buf_init(&ret->unit, MOST_TEXT_BYTES);
	buf_init(&ret->value, MOST_TEXT_BYTES);
	event_text(event, "meterName", &ret->meter);
	event_text(event, "unit", &ret->unit);
	event_text(event, "tags", &ret->value);
	event_text(event, "instrumentName", &ret->name);
	if (ret->value.size_bytes)
		buf_printf(&ret->name, "[%s]", buf_string(&ret->value));
}

/* An empty text is no value. */
static double number_of(const char *text)
{
	char *end;
	double number = strtod(text, &end);

	return *text && !*end ? number : NAN;
}

/* A row of its own: "latency[route=/orders] p95". */
static struct sym_error *add_part(struct event_report *report, struct instrument *instrument,
				  const char *part, const char *unit, double value)
{
	struct buf name;
	struct sym_error *error;

	buf_init(&name, MOST_TEXT_BYTES);
	buf_printf(&name, "%s %s", buf_string(&instrument->name) ?: "", part);
	error = add_value(report, buf_string(&instrument->meter) ?: "", buf_string(&name) ?: "",
			  unit, value);
	buf_deinit(&name);
	return error;
}

static struct sym_error *take_histogram(struct event_report *report,
					const struct runtime_event *event,
					struct instrument *instrument)
{
	const char *unit = buf_string(&instrument->unit) ?: "";
	struct sym_error *error = NULL;
	char *text, *item;

	if (event_has(event, "count")) {
		error = add_part(report, instrument, "count", "", event_real(event, "count"))
				?: add_part(report, instrument, "sum", unit,
					    event_real(event, "sum"));
	}
	buf_clear(&instrument->value);
	event_text(event, "quantiles", &instrument->value);
	text = buf_string(&instrument->value) ? instrument->value.data : NULL;
	while (!error && (item = strsep(&text, ";"))) {
		const char *quantile = strsep(&item, "=");
		char part[32];

		if (!item)
			continue;
		snprintf(part, sizeof(part), "p%.6g", 100 * number_of(quantile));
		error = add_part(report, instrument, part, unit, number_of(item));
	}
	return error;
}

struct sym_error *event_counters_take_meter(struct event_report *report,
					    const struct runtime_event *event)
{
	bool is_rate = !strncmp(event->kind->name, "CounterRate", strlen("CounterRate"));
	const char *field = is_rate                         ? "rate"
			    : event_has(event, "lastValue") ? "lastValue"
			    : event_has(event, "value")     ? "value"
							    : "rate";
	struct instrument instrument;
	struct sym_error *error;

	read_instrument(event, &instrument);
	if (event_has(event, "quantiles")) {
		error = take_histogram(report, event, &instrument);
	} else {
		buf_clear(&instrument.value);
		event_text(event, field, &instrument.value);
		error = add_value(report, buf_string(&instrument.meter) ?: "",
				  buf_string(&instrument.name) ?: "",
				  buf_string(&instrument.unit) ?: "",
				  number_of(buf_string(&instrument.value) ?: ""));
	}
	deinit_instrument(&instrument);
	return error;
}
