/* SPDX-License-Identifier: MIT */
#include "mapgen/view/units.h"

#include <inttypes.h>
#include <stdio.h>

static const double ns_per_second = 1e9, ns_per_ms = 1e6, ns_per_us = 1e3;

/* Below ten with a digit behind the point; seconds below a hundred with two. */
const char *units_time(uint64_t ns, char *room)
{
	double value = (double)ns;

	if (value >= 99.995 * ns_per_second)
		snprintf(room, UNITS_ROOM, "%.0f s", value / ns_per_second);
	else if (value >= 0.9995 * ns_per_second)
		snprintf(room, UNITS_ROOM, "%.2f s", value / ns_per_second);
	else if (value >= 9.95 * ns_per_ms)
		snprintf(room, UNITS_ROOM, "%.0f ms", value / ns_per_ms);
	else if (value >= 0.9995 * ns_per_ms)
		snprintf(room, UNITS_ROOM, "%.1f ms", value / ns_per_ms);
	else
		snprintf(room, UNITS_ROOM, "%.0f us", value / ns_per_us);
	return room;
}

const char *units_bytes(uint64_t bytes, char *room)
{
	static const char *const units[] = { "KB", "MB", "GB", "TB", "PB" };
	double value = (double)bytes / 1000;
	size_t unit = 0;

	if (bytes < 1000) {
		snprintf(room, UNITS_ROOM, "%" PRIu64 " B", bytes);
		return room;
	}
	for (; value >= 999.5 && unit + 1 < sizeof(units) / sizeof(*units); unit++)
		value /= 1000;
	snprintf(room, UNITS_ROOM, "%.*f %s", value < 99.95, value, units[unit]);
	return room;
}

/* With a comma between each three digits. */
const char *units_count(uint64_t count, char *room)
{
	char digits[UNITS_ROOM];
	size_t length = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, count), at = 0;

	for (size_t i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			room[at++] = ',';
		room[at++] = digits[i];
	}
	room[at] = '\0';
	return room;
}

const char *units_things(uint64_t count, const char *one, const char *many, char *room)
{
	char digits[UNITS_ROOM];

	snprintf(room, UNITS_ROOM, "%.26s %.12s", units_count(count, digits),
		 count == 1 ? one : many);
	return room;
}

const char *units_percent(uint64_t part, uint64_t whole, char *room)
{
	snprintf(room, UNITS_ROOM, "%.1f %%", whole ? 100.0 * (double)part / (double)whole : 0.0);
	return room;
}
