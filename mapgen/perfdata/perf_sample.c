/* SPDX-License-Identifier: MIT */
#include "mapgen/perfdata/perf_sample.h"

#include <string.h>

#include "libsym/base/reader.h"

enum {
	HEADER_BYTES = 8,
	BRANCH_ENTRY_BYTES = 24,
};

static struct reader fields_of(const void *record, size_t size_bytes)
{
	struct reader reader = reader_over(record, size_bytes);

	reader_skip(&reader, HEADER_BYTES);
	return reader;
}

/* u64 count, then that many entries. */
static const uint8_t *read_array(struct reader *reader, size_t entry_bytes, uint64_t *count_ret)
{
	uint64_t count = reader_u64(reader);

	if (count > reader_left(reader) / entry_bytes) {
		reader_fail(reader, "an array ends beyond its record");
		count = 0;
	}
	*count_ret = count;
	return reader_bytes(reader, (size_t)count * entry_bytes);
}

static void skip_read_values(struct reader *reader, uint64_t format)
{
	uint64_t per_event = 1 + !!(format & PERF_FORMAT_ID);
	uint64_t count = 1, times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
				    !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);

#ifdef PERF_FORMAT_LOST
	per_event += !!(format & PERF_FORMAT_LOST);
#else
	per_event += !!(format & 1u << 4);
#endif
	if (format & PERF_FORMAT_GROUP)
		count = reader_u64(reader);
	if (count > UINT16_MAX)
		reader_fail(reader, "a group of events without end");
	else
		reader_skip(reader, (size_t)(count * per_event + times) * 8);
}

static void read_registers(struct reader *reader, uint64_t mask, struct perf_sample *ret)
{
	ret->registers_abi = reader_u64(reader);
	if (!ret->registers_abi)
		return;
	for (unsigned int i = 0; i < PERF_SAMPLE_REGISTERS; i++)
		if (mask & 1ull << i)
			ret->registers[i] = reader_u64(reader);
}

/* u64 size, the bytes, u64 number of bytes that are the stack's. */
static void read_stack(struct reader *reader, struct perf_sample *ret)
{
	uint64_t size_bytes = reader_u64(reader), used;

	if (!size_bytes)
		return;
	if (size_bytes > reader_left(reader)) {
		reader_fail(reader, "a stack ends beyond its record");
		return;
	}
	ret->stack = reader_bytes(reader, (size_t)size_bytes);
	used = reader_u64(reader);
	ret->stack_bytes = (size_t)(used < size_bytes ? used : size_bytes);
}

/* Up to PERIOD: fields of 8 bytes. */
static void read_fixed(struct reader *reader, uint64_t type, struct perf_sample *ret)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		ret->id = reader_u64(reader);
	if (type & PERF_SAMPLE_IP)
		ret->ip = reader_u64(reader);
	if (type & PERF_SAMPLE_TID) {
		ret->pid = reader_u32(reader);
		ret->tid = reader_u32(reader);
	}
	if (type & PERF_SAMPLE_TIME)
		ret->time_ns = reader_u64(reader);
	if (type & PERF_SAMPLE_ADDR)
		ret->address = reader_u64(reader);
	if (type & PERF_SAMPLE_ID)
		ret->id = reader_u64(reader);
	if (type & PERF_SAMPLE_STREAM_ID)
		reader_u64(reader);
	if (type & PERF_SAMPLE_CPU) {
		ret->cpu = reader_u32(reader);
		reader_u32(reader);
	}
	if (type & PERF_SAMPLE_PERIOD)
		ret->period = reader_u64(reader);
}

static void read_raw(struct reader *reader, struct perf_sample *ret)
{
	uint32_t size_bytes = reader_u32(reader);

	ret->raw = reader_bytes(reader, size_bytes);
	ret->raw_bytes = ret->raw ? size_bytes : 0;
}

static void skip_branches(struct reader *reader, const struct perf_event_attr *attr)
{
	uint64_t count = reader_u64(reader);

	if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		reader_u64(reader);
	if (count > reader_left(reader) / BRANCH_ENTRY_BYTES)
		reader_fail(reader, "branches reach beyond their record");
	else
		reader_skip(reader, (size_t)count * BRANCH_ENTRY_BYTES);
}

bool perf_sample_read(const struct perf_event_attr *attr, const void *record, size_t size_bytes,
		      struct perf_sample *ret)
{
	struct reader reader = fields_of(record, size_bytes);
	uint64_t type = attr->sample_type, count;

	memset(ret, 0, sizeof(*ret));
	read_fixed(&reader, type, ret);
	if (type & PERF_SAMPLE_READ)
		skip_read_values(&reader, attr->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		ret->chain = read_array(&reader, 8, &count);
		ret->chain_count = (size_t)count;
	}
	if (type & PERF_SAMPLE_RAW)
		read_raw(&reader, ret);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		skip_branches(&reader, attr);
	if (type & PERF_SAMPLE_REGS_USER)
		read_registers(&reader, attr->sample_regs_user, ret);
	if (type & PERF_SAMPLE_STACK_USER)
		read_stack(&reader, ret);
	return reader_ok(&reader);
}

bool perf_sample_read_time(const struct perf_event_attr *attr, const void *record,
			   size_t size_bytes, uint64_t *ret)
{
	const uint64_t before = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID;
	struct reader reader = fields_of(record, size_bytes);

	*ret = 0;
	if (!(attr->sample_type & PERF_SAMPLE_TIME))
		return true;
	reader_skip(&reader, (size_t)__builtin_popcountll(attr->sample_type & before) * 8);
	*ret = reader_u64(&reader);
	return reader_ok(&reader);
}

bool perf_sample_read_id(const struct perf_event_attr *attr, const void *record, size_t size_bytes,
			 struct perf_sample *ret)
{
	const uint64_t known = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
			       PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	uint64_t type = attr->sample_type & known;
	struct reader reader = reader_over(record, size_bytes);
	size_t trailer_bytes = (size_t)__builtin_popcountll(type) * 8;

	memset(ret, 0, sizeof(*ret));
	if (!attr->sample_id_all)
		return true;
	if (size_bytes < HEADER_BYTES + trailer_bytes)
		return false;
	reader_seek(&reader, size_bytes - trailer_bytes);
	read_fixed(&reader, type & ~(uint64_t)PERF_SAMPLE_IDENTIFIER, ret);
	if (type & PERF_SAMPLE_IDENTIFIER)
		ret->id = reader_u64(&reader);
	return reader_ok(&reader);
}

bool perf_sample_read_identifier(const void *record, size_t size_bytes, uint64_t *ret)
{
	struct reader reader = reader_over(record, size_bytes);
	uint32_t type = reader_u32(&reader);

	if (size_bytes < HEADER_BYTES + 8)
		return false;
	reader_seek(&reader, type == PERF_RECORD_SAMPLE ? HEADER_BYTES : size_bytes - 8);
	*ret = reader_u64(&reader);
	return reader_ok(&reader);
}
