/* SPDX-License-Identifier: MIT */
#include "libsym/format/nettrace/nettrace_trace.h"

#include <string.h>
#include <time.h>

#include "libsym/base/leb.h"

static const uint64_t usual_ticks_per_second = 1000000000;

/* Year, month, day of the week, day, hour, minute, second, millisecond. */
static int64_t read_date(struct reader *head)
{
	struct tm date = { 0 };
	uint16_t parts[8];

	for (size_t i = 0; i < 8; i++)
		parts[i] = reader_u16(head);
	date.tm_year = parts[0] - 1900;
	date.tm_mon = parts[1] - 1;
	date.tm_mday = parts[3];
	date.tm_hour = parts[4];
	date.tm_min = parts[5];
	date.tm_sec = parts[6];
	return (int64_t)timegm(&date) * 1000 + parts[7];
}

static void read_common(struct nettrace_trace *trace, struct reader *head)
{
	trace->sync_utc_ms = read_date(head);
	trace->sync_ticks = reader_u64(head);
	trace->ticks_per_second = reader_u64(head);
	trace->pointer_bytes = reader_u32(head);
	if (!trace->ticks_per_second || trace->ticks_per_second > INT64_MAX)
		trace->ticks_per_second = usual_ticks_per_second;
	if (trace->pointer_bytes != 4)
		trace->pointer_bytes = 8;
}

void nettrace_trace_read_v4(struct nettrace_trace *trace, struct reader head)
{
	read_common(trace, &head);
	trace->pid = (int32_t)reader_u32(&head);
}

/* Text of a number; 0 where it is none. */
static int32_t number_of(const uint8_t *text, size_t size_bytes)
{
	int64_t number = 0;

	for (size_t i = 0; i < size_bytes; i++) {
		if (text[i] < '0' || text[i] > '9')
			return 0;
		number = number * 10 + (text[i] - '0');
		if (number > INT32_MAX)
			return 0;
	}
	return (int32_t)number;
}

bool nettrace_trace_read_v6(struct nettrace_trace *trace, struct reader head)
{
	static const char pid_key[] = "ProcessId";
	uint32_t count;

	read_common(trace, &head);
	count = reader_u32(&head);
	for (uint32_t i = 0; i < count && reader_ok(&head); i++) {
		size_t key_bytes = (size_t)leb_unsigned(&head);
		const uint8_t *key = reader_bytes(&head, key_bytes);
		size_t value_bytes = (size_t)leb_unsigned(&head);
		const uint8_t *value = reader_bytes(&head, value_bytes);

		if (key && value && key_bytes == strlen(pid_key) &&
		    !memcmp(key, pid_key, key_bytes))
			trace->pid = number_of(value, value_bytes);
	}
	return reader_ok(&head);
}
