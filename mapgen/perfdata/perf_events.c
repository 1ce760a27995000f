/* SPDX-License-Identifier: MIT */
#include "mapgen/perfdata/perf_events.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/grow.h"
#include "libsym/base/path.h"
#include "libsym/base/reader.h"
#include "libsym/error.h"
#include "mapgen/perfdata/perf_sample.h"

enum {
	FEATURE_KERNEL_RELEASE = 4,
	FEATURE_PROCESSORS = 7,
	FEATURE_EVENT_DESC = 12,
	MOST_EVENTS = 1 << 12,
	MOST_TABLE_BYTES = 64 << 20,
	FIRST_ATTR_BYTES = 64, /* PERF_ATTR_SIZE_VER0 */
	UPDATE_NAME = 2,
};

void perf_events_deinit(struct perf_events *events)
{
	for (size_t i = 0; i < events->count; i++) {
		free(events->items[i]->name);
		free(events->items[i]);
	}
	free(events->items);
	address_table_deinit(&events->by_id);
	free(events->kernel_release);
	*events = (struct perf_events){ 0 };
}

static const char *name_by_number(const struct perf_event_attr *attr)
{
	static const char *const software[] = { "cpu-clock",        "task-clock",
						"page-faults",      "context-switches",
						"cpu-migrations",   "minor-faults",
						"major-faults",     "alignment-faults",
						"emulation-faults", "dummy" };
	static const char *const hardware[] = { "cycles",       "instructions", "cache-references",
						"cache-misses", "branches",     "branch-misses",
						"bus-cycles" };

	if (attr->type == PERF_TYPE_SOFTWARE && attr->config < sizeof(software) / sizeof(*software))
		return software[attr->config];
	if (attr->type == PERF_TYPE_HARDWARE && attr->config < sizeof(hardware) / sizeof(*hardware))
		return hardware[attr->config];
	return "event";
}

/* Newer fields do not matter: a bit of sample_type announces them, and they stand behind those that
 * are read here. */
static struct sym_error *add_event(struct perf_events *events, const uint8_t *bytes, size_t count,
				   size_t *ret)
{
	struct recorded_event *event;

	if (events->count == MOST_EVENTS)
		return sym_error_create(SYM_ERROR_LIMIT, "more than %d events", MOST_EVENTS);
	if (!grow_items((void **)&events->items, &events->capacity, events->count,
			sizeof(struct recorded_event *)))
		return &sym_error_no_memory;
	event = calloc(1, sizeof(*event));
	if (!event)
		return &sym_error_no_memory;
	memcpy(&event->attr, bytes, count < sizeof(event->attr) ? count : sizeof(event->attr));
	event->name = strdup(name_by_number(&event->attr));
	if (!event->name) {
		free(event);
		return &sym_error_no_memory;
	}
	events->has_switches |= event->attr.context_switch;
	*ret = events->count;
	events->items[events->count++] = event;
	return NULL;
}

static struct sym_error *add_id(struct perf_events *events, uint64_t id, size_t event)
{
	if (!id || address_table_find(&events->by_id, id))
		return NULL;
	if (events->by_id.count == MOST_TABLE_BYTES / 8)
		return sym_error_create(SYM_ERROR_LIMIT, "more than %d ids of events",
					MOST_TABLE_BYTES / 8);
	return address_table_add(&events->by_id, id, (void *)(event + 1)) ? NULL
									  : &sym_error_no_memory;
}

static struct sym_error *add_ids(struct perf_events *events, struct reader *reader, size_t event)
{
	struct sym_error *error = NULL;

	while (!error && reader_left(reader) >= 8) {
		error = add_id(events, reader_u64(reader), event);
		events->items[event]->id_count++;
	}
	return error;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Heap; NULL with *error_ret on failure. Reads nothing when `count` is 0. */
static uint8_t *read_table(int fd, uint64_t offset, uint64_t size_bytes,
			   struct sym_error **error_ret)
{
	uint8_t *bytes;

	*error_ret = NULL;
	if (size_bytes > MOST_TABLE_BYTES) {
		*error_ret = sym_error_create(SYM_ERROR_LIMIT, "a table of more than %d bytes",
					      MOST_TABLE_BYTES);
		return NULL;
	}
	bytes = malloc(size_bytes + 1);
	if (!bytes)
		*error_ret = &sym_error_no_memory;
	else if (path_read_at(fd, bytes, size_bytes, offset))
		*error_ret = sym_error_create(SYM_ERROR_FORMAT,
					      "perf.data ends before its tables do; was perf "
					      "killed while it recorded?");
	if (!*error_ret)
		return bytes;
	free(bytes);
	return NULL;
}

static struct sym_error *read_attributes(struct perf_events *events, int fd,
					 const struct perf_file_header *header)
{
	struct sym_error *error = NULL;
	uint8_t *table AUTO_FREE = NULL;

	if (header->attribute_bytes < FIRST_ATTR_BYTES + 16 || header->attribute_bytes > UINT16_MAX)
		return sym_error_create(SYM_ERROR_FORMAT, "attributes of an impossible size");
	table = read_table(fd, header->attributes_offset, header->attributes_bytes, &error);
	for (uint64_t at = 0; !error && header->attributes_bytes - at >= header->attribute_bytes;
	     at += header->attribute_bytes) {
		struct reader ids = reader_over(table + at + header->attribute_bytes - 16, 16);
		uint64_t offset = reader_u64(&ids), size_bytes = reader_u64(&ids);
		uint8_t *bytes AUTO_FREE = NULL;
		size_t event;

		error = add_event(events, table + at, (size_t)header->attribute_bytes - 16, &event);
		if (!error)
			bytes = read_table(fd, offset, size_bytes, &error);
		if (error)
			break;
		ids = reader_over(bytes, (size_t)size_bytes);
		error = add_ids(events, &ids, event);
	}
	return error;
}

static bool rename_event(struct recorded_event *event, const uint8_t *bytes, size_t count)
{
	char *name = strndup((const char *)bytes, count);

	if (!name)
		return false;
	free(event->name);
	event->name = name;
	return true;
}

/* The feature has the events in the order of the attributes. */
static struct sym_error *take_names(struct perf_events *events, struct reader *reader)
{
	uint32_t count = reader_u32(reader), attr_bytes = reader_u32(reader);

	for (uint32_t i = 0; i < count && i < events->count; i++) {
		uint32_t ids, name_bytes;
		const uint8_t *name;

		reader_skip(reader, attr_bytes);
		ids = reader_u32(reader);
		name_bytes = reader_u32(reader);
		name = reader_bytes(reader, name_bytes);
		if (!name || ids > reader_left(reader) / 8)
			return NULL;
		if (*name && !rename_event(events->items[i], name, name_bytes))
			return &sym_error_no_memory;
		reader_skip(reader, (size_t)ids * 8);
	}
	return NULL;
}

static struct sym_error *take_release(struct perf_events *events, struct reader *reader)
{
	uint32_t size_bytes = reader_u32(reader);
	const uint8_t *text = reader_bytes(reader, size_bytes);

	if (!text || events->kernel_release)
		return NULL;
	events->kernel_release = strndup((const char *)text, size_bytes);
	return events->kernel_release ? NULL : &sym_error_no_memory;
}

static void take_processors(struct perf_events *events, struct reader *reader)
{
	uint32_t online;

	reader_skip(reader, 4);
	online = reader_u32(reader);
	if (reader_ok(reader))
		events->online_cpus = online;
}

static struct sym_error *take_feature(struct perf_events *events, uint64_t feature,
				      struct reader *reader)
{
	if (feature == FEATURE_EVENT_DESC)
		return take_names(events, reader);
	if (feature == FEATURE_PROCESSORS)
		take_processors(events, reader);
	return feature == FEATURE_KERNEL_RELEASE ? take_release(events, reader) : NULL;
}

/* Features are informative only: a damaged one is skipped. */
static struct sym_error *read_feature(struct perf_events *events, int fd,
				      const struct perf_file_header *header, unsigned int feature)
{
	const uint64_t before = header->features[0] & ((1ull << feature) - 1);
	uint64_t at = header->data_offset + header->data_bytes;
	struct sym_error *error = NULL;
	uint8_t row[16], *table AUTO_FREE = NULL;
	struct reader reader = reader_over(row, sizeof(row));
	uint64_t offset, size_bytes;

	if (!perf_file_has_feature(header, feature))
		return NULL;
	at += 16 * (uint64_t)__builtin_popcountll(before);
	if (path_read_at(fd, row, sizeof(row), at))
		return NULL;
	offset = reader_u64(&reader);
	size_bytes = reader_u64(&reader);
	table = read_table(fd, offset, size_bytes, &error);
	if (error)
		return sym_error_only_no_memory(error);
	reader = reader_over(table, (size_t)size_bytes);
	return take_feature(events, feature, &reader);
}

struct sym_error *perf_events_read(struct perf_events *events, int fd)
{
	uint8_t bytes[PERF_FILE_HEADER_BYTES];
	struct perf_file_header header;
	struct sym_error *error;

	if (path_read_at(fd, bytes, sizeof(bytes), 0))
		return NULL;
	header = perf_file_header_read(bytes);
	if (header.header_bytes != PERF_FILE_HEADER_BYTES)
		return NULL; /* a pipe, or what perf_data_copy() refuses */
	error = read_attributes(events, fd, &header);
	if (!error)
		error = read_feature(events, fd, &header, FEATURE_KERNEL_RELEASE);
	if (!error)
		error = read_feature(events, fd, &header, FEATURE_PROCESSORS);
	return error ? error : read_feature(events, fd, &header, FEATURE_EVENT_DESC);
}

/* ---- pipes ----------------------------------------------------------------------------------- */

static struct sym_error *take_attribute(struct perf_events *events, struct reader *reader)
{
	const uint8_t *bytes = reader->data + 8;
	size_t event;
	uint32_t size_bytes;
	struct sym_error *error;

	reader_skip(reader, 4); /* type */
	size_bytes = reader_u32(reader);
	if (size_bytes < FIRST_ATTR_BYTES || size_bytes > reader->size_bytes - 8)
		return NULL;
	reader_seek(reader, 8 + size_bytes);
	error = add_event(events, bytes, size_bytes, &event);
	return error ? error : add_ids(events, reader, event);
}

static struct sym_error *take_update(struct perf_events *events, struct reader *reader)
{
	uint64_t kind = reader_u64(reader), id = reader_u64(reader);
	void *event = id ? address_table_find(&events->by_id, id) : NULL;
	size_t count = reader_left(reader);
	const uint8_t *name = reader_bytes(reader, count);

	if (kind != UPDATE_NAME || !event || !name || !count || !*name)
		return NULL;
	return rename_event(events->items[(size_t)event - 1], name, count) ? NULL
									   : &sym_error_no_memory;
}

struct sym_error *perf_events_take(struct perf_events *events, const struct perf_record *record)
{
	struct reader reader = reader_over(record->bytes, record->size_bytes);

	reader_skip(&reader, 8);
	switch (record->type) {
	case PERF_RECORD_HEADER_ATTR:
		return record->size_bytes < 16 ? NULL : take_attribute(events, &reader);
	case PERF_RECORD_EVENT_UPDATE:
		return take_update(events, &reader);
	case PERF_RECORD_HEADER_FEATURE:
		return take_feature(events, reader_u64(&reader), &reader);
	default:
		return NULL;
	}
}

/* When the id has no fixed place, all attributes are alike, so the first one is right. */
bool perf_events_find(const struct perf_events *events, const struct perf_record *record,
		      size_t *ret)
{
	const struct perf_event_attr *first;
	struct perf_sample sample;
	uint64_t id = 0;
	void *event;

	*ret = 0;
	if (events->count < 2)
		return events->count;
	first = &events->items[0]->attr;
	if (first->sample_type & PERF_SAMPLE_IDENTIFIER) {
		perf_sample_read_identifier(record->bytes, record->size_bytes, &id);
	} else if (record->type == PERF_RECORD_SAMPLE) {
		if (perf_sample_read(first, record->bytes, record->size_bytes, &sample))
			id = sample.id;
	} else if (perf_sample_read_id(first, record->bytes, record->size_bytes, &sample)) {
		id = sample.id;
	}
	event = id ? address_table_find(&events->by_id, id) : NULL;
	if (event)
		*ret = (size_t)event - 1;
	return true;
}

void perf_events_read_id(const struct perf_events *events, const struct perf_record *record,
			 struct perf_sample *ret)
{
	size_t event;

	if (!perf_events_find(events, record, &event) ||
	    !perf_sample_read_id(&events->items[event]->attr, record->bytes, record->size_bytes,
				 ret))
		*ret = (struct perf_sample){ 0 };
}
