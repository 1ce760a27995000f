/* SPDX-License-Identifier: MIT */
#include "mapgen/events/event_values.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

enum {
	TEXT_LIMIT = 1 << 20,
	MOST_DEPTH = 6,
	MOST_ELEMENTS = 1000, /* of an array, as text */
};

static void begin(struct nettrace_walk *walk, const struct runtime_event *event)
{
	nettrace_walk_begin(walk, event->kind->fields, event->payload, event->payload_bytes,
			    event->kind->pointer_bytes);
}

static bool find(const struct runtime_event *event, const char *field, struct nettrace_walk *walk,
		 struct nettrace_value *ret)
{
	begin(walk, event);
	while (nettrace_walk_next(walk, ret))
		if (!strcmp(ret->field->name, field))
			return true;
	return false;
}

uint64_t event_number(const struct runtime_event *event, const char *field)
{
	struct nettrace_walk walk;
	struct nettrace_value value;

	return find(event, field, &walk, &value) ? value.number : 0;
}

double event_value_real(const struct nettrace_value *value)
{
	if (nettrace_type_is_real(value->type))
		return value->real;
	return nettrace_type_is_signed(value->type) ? (double)value->signed_number
						    : (double)value->number;
}

double event_real(const struct runtime_event *event, const char *field)
{
	struct nettrace_walk walk;
	struct nettrace_value value;

	return find(event, field, &walk, &value) ? event_value_real(&value) : 0;
}

bool event_has(const struct runtime_event *event, const char *field)
{
	struct nettrace_walk walk;
	struct nettrace_value value;

	return find(event, field, &walk, &value);
}

void event_text(const struct runtime_event *event, const char *field, struct buf *text)
{
	struct nettrace_walk walk;
	struct nettrace_value value;

	if (find(event, field, &walk, &value))
		nettrace_value_append_text(&value, text);
}

void event_method_name(const struct runtime_event *event, struct buf *text)
{
	event_text(event, "MethodNamespace", text);
	buf_append_string(text, "::");
	event_text(event, "MethodName", text);
}

bool event_walk_into(const struct runtime_event *event, const char *field,
		     struct nettrace_walk *ret)
{
	struct nettrace_walk walk;
	struct nettrace_value value;

	begin(&walk, event);
	while (nettrace_walk_next(&walk, &value)) {
		if (value.type != NETTRACE_OBJECT)
			continue;
		nettrace_walk_into(&walk, &value, ret);
		if (!strcmp(value.field->name, field))
			return true;
		/* EventSource.Write() puts all that it is given into a structure without a name. */
		if (*value.field->name || !nettrace_walk_next(ret, &value) ||
		    value.type != NETTRACE_OBJECT || strcmp(value.field->name, field) != 0)
			continue;
		walk = *ret;
		nettrace_walk_into(&walk, &value, ret);
		return true;
	}
	return false;
}

/* ---- text ------------------------------------------------------------------------------------ */

static uint32_t word(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static void append_guid(const uint8_t *guid, struct buf *text)
{
	buf_printf(text, "%08x-%04x-%04x-%02x%02x-", word(guid),
		   (unsigned int)(guid[4] | guid[5] << 8), (unsigned int)(guid[6] | guid[7] << 8),
		   guid[8], guid[9]);
	for (int i = 10; i < 16; i++)
		buf_printf(text, "%02x", guid[i]);
}

static bool is_characters(const struct nettrace_value *value)
{
	uint8_t element;

	if (nettrace_type_is_text(value->type))
		return true;
	if (!nettrace_type_is_array(value->type) || !value->field->inner.count)
		return false;
	element = value->field->inner.items->type;
	return element == NETTRACE_CHAR16 || element == NETTRACE_CHAR8;
}

static void append_quoted(const struct nettrace_value *value, struct buf *text)
{
	struct buf plain;

	buf_init(&plain, TEXT_LIMIT);
	nettrace_value_append_text(value, &plain);
	buf_append_char(text, '"');
	for (size_t i = 0; i < plain.size_bytes; i++) {
		if (plain.data[i] == '"' || plain.data[i] == '\\')
			buf_append_char(text, '\\');
		if (plain.data[i] == '\n')
			buf_append_string(text, "\\n");
		else
			buf_append_char(text, plain.data[i]);
	}
	buf_append_char(text, '"');
	buf_deinit(&plain);
}

static void append_value(const struct nettrace_walk *walk, const struct nettrace_value *value,
			 struct buf *text, unsigned int depth);

static void append_fields(struct nettrace_walk *walk, struct buf *text, unsigned int depth)
{
	struct nettrace_value value;
	const char *separator = "";

	while (nettrace_walk_next(walk, &value)) {
		buf_append_string(text, separator);
		if (*value.field->name)
			buf_printf(text, "%s=", value.field->name);
		append_value(walk, &value, text, depth);
		separator = " ";
	}
}

static void append_elements(struct nettrace_walk *walk, struct buf *text, unsigned int depth)
{
	struct nettrace_value value;
	const char *separator = "";

	for (size_t i = 0; nettrace_walk_element(walk, &value); i++) {
		buf_append_string(text, separator);
		if (i == MOST_ELEMENTS) {
			buf_append_string(text, "...");
			return;
		}
		append_value(walk, &value, text, depth);
		separator = ", ";
	}
}

static void append_parts(const struct nettrace_walk *walk, const struct nettrace_value *value,
			 struct buf *text, unsigned int depth)
{
	bool is_array = nettrace_type_is_array(value->type);
	struct nettrace_walk inner;

	buf_append_char(text, is_array ? '[' : '{');
	nettrace_walk_into(walk, value, &inner);
	if (depth >= MOST_DEPTH)
		buf_append_string(text, "...");
	else if (is_array)
		append_elements(&inner, text, depth + 1);
	else
		append_fields(&inner, text, depth + 1);
	buf_append_char(text, is_array ? ']' : '}');
}

/* As .NET writes what is no number. */
static void append_real(double number, struct buf *text)
{
	if (isnan(number))
		buf_append_string(text, "NaN");
	else if (isinf(number))
		buf_append_string(text, number < 0 ? "-Infinity" : "Infinity");
	else
		buf_printf(text, "%.15g", number);
}

/* A FILETIME: units of 100 ns since 1601, in UTC. */
static void append_date(uint64_t filetime, struct buf *text)
{
	static const uint64_t units = 10000000, seconds_to_1970 = 11644473600;
	time_t seconds = (time_t)(filetime / units) - (time_t)seconds_to_1970;
	char room[40];
	struct tm date;

	if (!gmtime_r(&seconds, &date) ||
	    !strftime(room, sizeof(room), "%Y-%m-%dT%H:%M:%S", &date)) {
		buf_printf(text, "%" PRIu64, filetime);
		return;
	}
	buf_append_string(text, room);
	if (filetime % units)
		buf_printf(text, ".%07u", (unsigned int)(filetime % units));
	buf_append_char(text, 'Z');
}

static void append_value(const struct nettrace_walk *walk, const struct nettrace_value *value,
			 struct buf *text, unsigned int depth)
{
	if (is_characters(value))
		append_quoted(value, text);
	else if (value->type == NETTRACE_OBJECT || nettrace_type_is_array(value->type))
		append_parts(walk, value, text, depth);
	else if (value->type == NETTRACE_GUID)
		append_guid(value->bytes, text);
	else if (value->type == NETTRACE_DECIMAL)
		buf_append_string(text, "?");
	else if (value->type == NETTRACE_DATE)
		append_date(value->number, text);
	else if (value->type == NETTRACE_BOOL32 || value->type == NETTRACE_BOOL8)
		buf_append_string(text, value->number ? "true" : "false");
	else if (value->type == NETTRACE_POINTER)
		buf_printf(text, "0x%" PRIx64, value->number);
	else if (nettrace_type_is_real(value->type))
		append_real(value->real, text);
	else if (nettrace_type_is_signed(value->type))
		buf_printf(text, "%" PRId64, value->signed_number);
	else
		buf_printf(text, "%" PRIu64, value->number);
}

void event_print(const struct runtime_event *event, struct buf *text)
{
	struct nettrace_walk walk;

	begin(&walk, event);
	append_fields(&walk, text, 0);
	/* EventPipe describes no field of an event that has an array. */
	if (!event->kind->fields->count && event->payload_bytes)
		buf_printf(text, "(%zu bytes, which the stream does not describe)",
			   event->payload_bytes);
}

/* ---- activities ------------------------------------------------------------------------------ */

/*
 * src/libraries/System.Private.CoreLib/src/System/Diagnostics/Tracing/ActivityTracker.cs: twelve
 * bytes of a path, then the sum of the three words and a constant, mixed with the process id. In
 * the path a nibble of 1 to 10 is a number; 12 to 15 begin a number of 1 to 4 bytes that begins
 * with the next byte; 11 before that says that it is a serial number; 0 ends the path.
 */
enum {
	PATH_NIBBLES = 24,
	NIBBLE_LAST_NUMBER = 10,
	NIBBLE_SERIAL = 11,
};

/* Process ids have up to 22 bits. */
static bool is_path(const uint8_t *activity)
{
	uint32_t sum = word(activity) + word(activity + 4) + word(activity + 8) + 0x599d99ad;

	return (sum ^ word(activity + 12)) < 1u << 22;
}

static unsigned int nibble_at(const uint8_t *activity, unsigned int position)
{
	return position % 2 ? activity[position / 2] & 15 : activity[position / 2] >> 4;
}

static void append_path(const uint8_t *activity, struct buf *text)
{
	unsigned int at = 0;

	buf_append_char(text, '/');
	while (at < PATH_NIBBLES) {
		unsigned int nibble = nibble_at(activity, at++), count;
		char separator = '/';
		uint32_t number;

		if (nibble == NIBBLE_SERIAL && at < PATH_NIBBLES) {
			separator = '$';
			nibble = nibble_at(activity, at++);
		}
		if (!nibble)
			return;
		if (nibble <= NIBBLE_LAST_NUMBER) {
			buf_printf(text, "/%u", nibble);
			continue;
		}
		count = nibble - NIBBLE_SERIAL;
		number = at % 2 ? nibble_at(activity, at++) : 0;
		if (at + 2 * count > PATH_NIBBLES)
			return;
		for (unsigned int i = count; i > 0; i--)
			number = number << 8 | activity[at / 2 + i - 1];
		at += 2 * count;
		buf_printf(text, "%c%u", separator, number);
	}
}

void event_activity_text(const uint8_t *activity, struct buf *text)
{
	if (is_path(activity))
		append_path(activity, text);
	else
		append_guid(activity, text);
}
