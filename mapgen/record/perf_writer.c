/* SPDX-License-Identifier: MIT */
#include "mapgen/record/perf_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "libsym/base/buf.h"
#include "mapgen/record/recording_file.h"

enum {
	HEADER_BYTES = 104,
	FEATURE_KERNEL_RELEASE = 4,
	FEATURE_COMMAND_LINE = 11,
	FEATURE_EVENT_DESC = 12,
	FEATURE_SAMPLE_TIME = 21,
	FEATURE_CLOCK_ID = 23,
	NAME_ALIGNMENT = 64, /* of strings in features */
	RECORD_FINISHED_ROUND = 68,
	MOST_SYNTHETIC_BYTES = 8192,
	TRAILER_BYTES = 32, /* TID, TIME, CPU, IDENTIFIER */
	MOST_LOSS_BYTES = 256,
	TABLES_LIMIT = 1 << 28,
};

static void note_failure(struct perf_writer *writer)
{
	writer->has_failed = true;
	writer->failure = errno;
}

static void put_bytes(struct perf_writer *writer, const void *bytes, size_t size_bytes)
{
	if (!writer->has_failed && fwrite(bytes, 1, size_bytes, writer->file) != size_bytes)
		note_failure(writer);
}

void perf_writer_begin(struct perf_writer *writer, FILE *file, bool keeps_stacks)
{
	static const uint8_t nothing[HEADER_BYTES];

	*writer = (struct perf_writer){ .file = file, .keeps_stacks = keeps_stacks };
	put_bytes(writer, nothing, sizeof(nothing));
}

void perf_writer_put(struct perf_writer *writer, const void *record, size_t size_bytes)
{
	if (writer->ring) {
		if (!writer->has_failed && !perf_ring_put(writer->ring, record, size_bytes))
			note_failure(writer);
		return;
	}
	put_bytes(writer, record, size_bytes);
	writer->data_bytes += size_bytes;
}

void perf_writer_put_of_probe(struct perf_writer *writer, const struct perf_event_header *record)
{
	const uint64_t id = perf_writer_probe_id(0);
	uint8_t copy[MOST_LOSS_BYTES];

	/* Larger ones are of no such event. */
	if (record->size > sizeof(copy) || record->size < sizeof(*record) + sizeof(id))
		return;
	memcpy(copy, record, record->size);
	memcpy(copy + record->size - sizeof(id), &id, sizeof(id));
	perf_writer_put(writer, copy, record->size);
}

void perf_writer_end_round(struct perf_writer *writer)
{
	const struct perf_event_header round = { .type = RECORD_FINISHED_ROUND,
						 .size = sizeof(round) };

	perf_writer_put(writer, &round, sizeof(round));
}

/* ---- samples ----------------------------------------------------------------------------------
 */

/* Fields one after the other, in room that is large enough for all of them. */
struct fields {
	union {
		struct perf_event_header header;
		_Alignas(8) uint8_t bytes[UINT16_MAX];
	};
	size_t count;
};

/* Room for a record, behind its header. The room is reused by the next record. */
static struct fields *begin_fields(void)
{
	static _Thread_local struct fields fields;

	fields.count = sizeof(fields.header);
	return &fields;
}

static void add(struct fields *fields, const void *bytes, size_t count)
{
	if (count > sizeof(fields->bytes) - fields->count)
		return;
	memcpy(fields->bytes + fields->count, bytes, count);
	fields->count += count;
}

static void add_u64(struct fields *fields, uint64_t value)
{
	add(fields, &value, sizeof(value));
}

static void add_u32(struct fields *fields, uint32_t value)
{
	add(fields, &value, sizeof(value));
}

static void add_chain(struct fields *fields, const struct perf_sample *sample,
		      const uint64_t *frames, size_t frame_count)
{
	add_u64(fields, sample->chain_count + (frame_count ? frame_count + 1 : 0));
	add(fields, sample->chain, sample->chain_count * 8);
	if (!frame_count)
		return;
	add_u64(fields, (uint64_t)PERF_CONTEXT_USER);
	add(fields, frames, frame_count * 8);
}

static void add_user_state(struct fields *fields, const struct perf_event_attr *attr,
			   const struct perf_sample *sample)
{
	size_t padded_bytes = (sample->stack_bytes + 7) & ~(size_t)7;

	add_u64(fields, sample->registers_abi);
	for (unsigned int i = 0; sample->registers_abi && i < PERF_SAMPLE_REGISTERS; i++)
		if (attr->sample_regs_user & 1ull << i)
			add_u64(fields, sample->registers[i]);
	/* The size in the attribute is a limit; each sample says its own. */
	add_u64(fields, padded_bytes);
	add(fields, sample->stack, padded_bytes);
	if (padded_bytes)
		add_u64(fields, sample->stack_bytes);
}

static void note_time(struct perf_writer *writer, uint64_t time_ns)
{
	if (!writer->first_time_ns || time_ns < writer->first_time_ns)
		writer->first_time_ns = time_ns;
	if (time_ns > writer->last_time_ns)
		writer->last_time_ns = time_ns;
	writer->sample_count++;
}

const struct perf_event_header *perf_writer_make_sample(struct perf_writer *writer,
							const struct perf_event_attr *attr,
							const struct perf_event_header *header,
							const struct perf_sample *sample,
							const uint64_t *frames, size_t frame_count)
{
	struct fields *fields = begin_fields();

	fields->header = *header;
	add_u64(fields, sample->id);
	add_u64(fields, sample->ip);
	add_u32(fields, sample->pid);
	add_u32(fields, sample->tid);
	add_u64(fields, sample->time_ns);
	add_u64(fields, sample->cpu);
	add_u64(fields, sample->period);
	add_chain(fields, sample, frames, frame_count);
	if (writer->keeps_stacks && attr->sample_type & PERF_SAMPLE_STACK_USER)
		add_user_state(fields, attr, sample);
	fields->header.size = (uint16_t)fields->count;
	note_time(writer, sample->time_ns);
	return &fields->header;
}

/* ---- what was there before ---------------------------------------------------------------------
 */

/* With its NUL, padded to 8 bytes; what does not fit is cut. */
static void add_text(struct fields *record, const char *text)
{
	size_t room = MOST_SYNTHETIC_BYTES - TRAILER_BYTES - 8 - record->count;
	size_t count = strnlen(text, room);

	add(record, text, count);
	do
		record->bytes[record->count++] = 0;
	while (record->count % 8);
}

static void put_synthetic(struct perf_writer *writer, struct fields *record, uint32_t type,
			  uint16_t misc, int32_t pid, int32_t tid)
{
	add_u32(record, (uint32_t)pid);
	add_u32(record, (uint32_t)tid);
	add_u64(record, 0); /* before all that was recorded */
	add_u64(record, 0);
	add_u64(record, 0);
	record->header = (struct perf_event_header){ .type = type,
						     .misc = misc,
						     .size = (uint16_t)record->count };
	perf_writer_put(writer, record->bytes, record->count);
}

void perf_writer_put_comm(struct perf_writer *writer, int32_t pid, int32_t tid, const char *comm)
{
	struct fields *record = begin_fields();

	add_u32(record, (uint32_t)pid);
	add_u32(record, (uint32_t)tid);
	add_text(record, comm);
	put_synthetic(writer, record, PERF_RECORD_COMM, 0, pid, tid);
}

void perf_writer_put_mapping(struct perf_writer *writer, int32_t pid,
			     const struct sym_mapping *mapping)
{
	struct fields *record = begin_fields();

	add_u32(record, (uint32_t)pid);
	add_u32(record, (uint32_t)pid);
	add_u64(record, mapping->start_address);
	add_u64(record, mapping->end_address - mapping->start_address);
	add_u64(record, mapping->offset);
	add_u32(record, mapping->device_major);
	add_u32(record, mapping->device_minor);
	add_u64(record, mapping->inode);
	add_u64(record, 0);
	add_u32(record, mapping->protection & 7);
	add_u32(record, 2); /* MAP_PRIVATE */
	add_text(record, mapping->path[0] ? mapping->path : "//anon");
	put_synthetic(writer, record, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, pid, pid);
}

/* ---- tables ------------------------------------------------------------------------------------
 */

static const char *const event_names[] = { "cpu-clock", "context-switches" };

/* Far above those that the kernel counts from 1. */
static const uint64_t first_probe_id = UINT64_C(1) << 62;

uint64_t perf_writer_probe_id(uint32_t probe)
{
	return first_probe_id + probe;
}

/* Events of the file: those of the kernel, then one a probe. */
static size_t file_event_count(const struct perf_writer *writer)
{
	return EVENT_PROBE + writer->probe_count;
}

static bool is_in_file(const struct event_set *events, size_t number)
{
	return number >= EVENT_PROBE || events->is_open[number];
}

static struct perf_event_attr attribute_in_file(const struct perf_writer *writer,
						const struct event_set *events, size_t number)
{
	struct perf_event_attr attr =
		events->attributes[number < EVENT_PROBE ? number : EVENT_PROBE];

	attr.exclude_callchain_user = 0;
	attr.sample_type &= ~(uint64_t)PERF_SAMPLE_RAW;
	attr.sample_type |= PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN;
	if (number >= EVENT_PROBE)
		attr.config = PERF_COUNT_SW_DUMMY;
	if (!writer->keeps_stacks) {
		attr.sample_type &= ~(uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
		attr.sample_regs_user = 0;
		attr.sample_stack_user = 0;
	}
	return attr;
}

static void put_number(struct buf *buf, uint64_t value, size_t size_bytes)
{
	if (buf)
		buf_append(buf, &value, size_bytes);
}

static void put_text(struct buf *buf, const char *text)
{
	size_t count = strlen(text) + 1;
	size_t padded = (count + NAME_ALIGNMENT - 1) / NAME_ALIGNMENT * NAME_ALIGNMENT;

	put_number(buf, padded, 4);
	buf_append(buf, text, count);
	for (size_t i = count; i < padded; i++)
		buf_append(buf, "", 1);
}

/* Ids of one event of the file; how many there were. `buf` may be NULL. */
static size_t put_ids(struct buf *buf, const struct event_set *events, size_t number)
{
	size_t count = 0;

	if (number >= EVENT_PROBE) {
		put_number(buf, perf_writer_probe_id((uint32_t)(number - EVENT_PROBE)), 8);
		return 1;
	}
	for (const struct event_member *member = events->members; member;
	     member = member->hh.next) {
		if ((size_t)member->kind != number)
			continue;
		put_number(buf, member->id, 8);
		count++;
	}
	return count;
}

static void put_event_name(struct buf *buf, const struct perf_writer *writer, size_t number)
{
	char name[NAME_ALIGNMENT];

	if (number < EVENT_PROBE) {
		put_text(buf, event_names[number]);
		return;
	}
	snprintf(name, sizeof(name), RECORDING_PROBE_PREFIX "%s",
		 writer->probe_names[number - EVENT_PROBE]);
	put_text(buf, name);
}

static void put_event_desc(struct buf *buf, const struct perf_writer *writer,
			   const struct event_set *events)
{
	uint32_t count = 0;

	for (size_t i = 0; i < file_event_count(writer); i++)
		count += is_in_file(events, i);
	put_number(buf, count, 4);
	put_number(buf, sizeof(struct perf_event_attr), 4);
	for (size_t i = 0; i < file_event_count(writer); i++) {
		struct perf_event_attr attr = attribute_in_file(writer, events, i);

		if (!is_in_file(events, i))
			continue;
		buf_append(buf, &attr, sizeof(attr));
		put_number(buf, put_ids(NULL, events, i), 4);
		put_event_name(buf, writer, i);
		put_ids(buf, events, i);
	}
}

struct tables {
	struct buf bytes;  /* what stands behind the records */
	uint64_t begin;    /* offset of its first byte in the file */
	uint64_t features; /* a bit each */
	uint64_t attributes_offset, attributes_bytes;
};

static void put_features(struct tables *tables, const struct perf_writer *writer,
			 const struct event_set *events, const char *command_line)
{
	static const unsigned int features[] = { FEATURE_KERNEL_RELEASE, FEATURE_COMMAND_LINE,
						 FEATURE_EVENT_DESC, FEATURE_SAMPLE_TIME,
						 FEATURE_CLOCK_ID };
	enum {
		COUNT = sizeof(features) / sizeof(*features)
	};
	struct buf parts[COUNT];
	struct utsname system;
	uint64_t offset = tables->begin + COUNT * 16;

	for (int i = 0; i < COUNT; i++)
		buf_init(&parts[i], TABLES_LIMIT);
	put_text(&parts[0], uname(&system) ? "" : system.release);
	put_number(&parts[1], 1, 4);
	put_text(&parts[1], command_line);
	put_event_desc(&parts[2], writer, events);
	put_number(&parts[3], writer->first_time_ns, 8);
	put_number(&parts[3], writer->last_time_ns, 8);
	put_number(&parts[4], 1, 8); /* CLOCK_MONOTONIC: nanoseconds a tick */
	for (int i = 0; i < COUNT; i++) {
		tables->features |= 1ull << features[i];
		put_number(&tables->bytes, offset, 8);
		put_number(&tables->bytes, parts[i].size_bytes, 8);
		offset += parts[i].size_bytes;
	}
	for (int i = 0; i < COUNT; i++) {
		buf_append(&tables->bytes, parts[i].data, parts[i].size_bytes);
		buf_deinit(&parts[i]);
	}
}

static void put_attributes(struct tables *tables, const struct perf_writer *writer,
			   const struct event_set *events)
{
	uint64_t ids_offset = tables->begin + tables->bytes.size_bytes;
	size_t count = file_event_count(writer);

	for (size_t i = 0; i < count; i++)
		put_ids(&tables->bytes, events, i);
	tables->attributes_offset = tables->begin + tables->bytes.size_bytes;
	for (size_t i = 0; i < count; i++) {
		struct perf_event_attr attr = attribute_in_file(writer, events, i);
		uint64_t ids_bytes = put_ids(NULL, events, i) * 8;

		if (is_in_file(events, i)) {
			buf_append(&tables->bytes, &attr, sizeof(attr));
			put_number(&tables->bytes, ids_offset, 8);
			put_number(&tables->bytes, ids_bytes, 8);
		}
		ids_offset += ids_bytes;
	}
	tables->attributes_bytes =
		tables->begin + tables->bytes.size_bytes - tables->attributes_offset;
}

static void put_header(struct perf_writer *writer, const struct tables *tables)
{
	const uint64_t fields[HEADER_BYTES / 8] = {
		0x32454c4946524550, /* PERFILE2 */
		HEADER_BYTES,
		sizeof(struct perf_event_attr) + 16,
		tables->attributes_offset,
		tables->attributes_bytes,
		HEADER_BYTES,
		writer->data_bytes,
		0,
		0,
		tables->features,
	};

	if (fseeko(writer->file, 0, SEEK_SET))
		note_failure(writer);
	put_bytes(writer, fields, sizeof(fields));
}

bool perf_writer_finish(struct perf_writer *writer, const struct event_set *events,
			const char *command_line)
{
	struct tables tables;

	if (writer->ring && !writer->has_failed &&
	    !perf_ring_write(writer->ring, writer->ring_from_ns, writer->file, &writer->data_bytes))
		note_failure(writer);
	tables = (struct tables){ .begin = HEADER_BYTES + writer->data_bytes };
	buf_init(&tables.bytes, TABLES_LIMIT);
	put_features(&tables, writer, events, command_line);
	put_attributes(&tables, writer, events);
	if (tables.bytes.failure) {
		errno = ENOMEM;
		note_failure(writer);
	}
	put_bytes(writer, tables.bytes.data, tables.bytes.size_bytes);
	put_header(writer, &tables);
	buf_deinit(&tables.bytes);
	if (!writer->has_failed && fflush(writer->file))
		note_failure(writer);
	return !writer->has_failed;
}
