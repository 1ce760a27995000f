/* SPDX-License-Identifier: MIT */
#include "libsym/source/jitdump_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/format/jitdump.h"
#include "libsym/format/perfmap.h"
#include "libsym/index.h"
#include "libsym/index_sort.h"
#include "libsym/limits.h"
#include "libsym/source/tier_table.h"

enum {
	/* What of a record is looked at first; names mostly fit. */
	STEP_BYTES = 4096,
	STUB_BIT = TIER_TABLE_ROOM,
	/* Code has left this place: nothing has a name there. */
	GONE_BIT = 2 * TIER_TABLE_ROOM
};

struct jitdump_source {
	struct index *index; /* value: number of the tier, STUB_BIT, GONE_BIT */
	struct tier_table tiers;
	uint64_t records;
	bool cut;
};

/* What is said of a place, until all is put in order of time. */
struct jitdump_event {
	uint64_t timestamp;
	uint64_t start, size_bytes;
	uint32_t name_offset, name_bytes;
	uint32_t value;
	bool is_move;
	uint64_t old_start;
};

struct jitdump_reader {
	struct jitdump_source *source;
	uint32_t pid;
	int fd;
	const char *path;
	char *room; /* STEP_BYTES, then as much as a name may need */
	size_t room_bytes;
	struct buf names;
	struct jitdump_event *events;
	size_t count, capacity;
};

void jitdump_source_close(struct jitdump_source *source)
{
	if (!source)
		return;
	index_destroy(source->index);
	free(source);
}

static bool is_stub(const char *name, size_t name_bytes)
{
	return name_bytes > 5 && !memcmp(name, "stub", 4) && (name[4] == ' ' || name[4] == '<');
}

static struct sym_error *add_event(struct jitdump_reader *reader,
				   const struct jitdump_record *record)
{
	struct jitdump_event event = { .timestamp = record->timestamp,
				       .start = record->code_address,
				       .size_bytes = record->code_size_bytes,
				       .is_move = record->id == JITDUMP_MOVE,
				       .old_start = record->old_address };

	if ((reader->pid && record->pid != reader->pid) || !record->code_size_bytes)
		return NULL;
	if (reader->count == reader->capacity) {
		size_t capacity = reader->capacity ? 2 * reader->capacity : 256;
		struct jitdump_event *events;

		if (capacity > LIMIT_INDEX_SYMBOLS)
			return sym_error_create_path(SYM_ERROR_LIMIT, reader->path,
						     SYM_OFFSET_UNKNOWN, "more than %zu records",
						     LIMIT_INDEX_SYMBOLS / 2);
		events = reallocarray(reader->events, capacity, sizeof(*events));
		if (!events)
			return &sym_error_no_memory;
		reader->events = events;
		reader->capacity = capacity;
	}
	if (!event.is_move) {
		const char *tier;

		event.name_offset = (uint32_t)reader->names.size_bytes;
		event.name_bytes =
			(uint32_t)perfmap_split_tier(record->name, record->name_bytes, &tier);
		event.value = tier_table_number(&reader->source->tiers, tier);
		if (is_stub(record->name, record->name_bytes))
			event.value |= STUB_BIT;
		/* Without a name it still tells that what was there is not there any more. */
		if (!event.name_bytes)
			event.value = GONE_BIT;
		if (!buf_append(&reader->names, record->name, event.name_bytes))
			return sym_error_from_buf(&reader->names, "names of a jitdump");
	}
	reader->events[reader->count++] = event;
	reader->source->records++;
	return NULL;
}

/* At most `bytes`; the number that there are, or -1. */
static ssize_t read_at(const struct jitdump_reader *reader, uint64_t offset, size_t bytes)
{
	size_t got = 0;

	while (got < bytes) {
		ssize_t more =
			pread(reader->fd, reader->room + got, bytes - got, (off_t)(offset + got));

		if (more < 0 && errno == EINTR)
			continue;
		if (more < 0)
			return -1;
		if (!more)
			break;
		got += (size_t)more;
	}
	return (ssize_t)got;
}

/* The record at `offset`; its code is not read. */
static struct sym_error *read_record(struct jitdump_reader *reader, uint64_t offset,
				     enum jitdump_outcome *outcome_ret, struct jitdump_record *ret)
{
	size_t wanted = STEP_BYTES;

	for (;;) {
		ssize_t got = read_at(reader, offset, wanted);

		if (got < 0)
			return sym_error_from_errno(errno, reader->path, "cannot read");
		*outcome_ret = jitdump_record_read(reader->room, (size_t)got, ret);
		/* A longer name, or the end of the file. */
		if (*outcome_ret != JITDUMP_SHORT || (size_t)got < wanted ||
		    wanted == reader->room_bytes)
			return NULL;
		wanted = reader->room_bytes;
	}
}

static struct sym_error *read_header(struct jitdump_reader *reader, uint64_t *offset_ret)
{
	struct jitdump_header header;
	ssize_t got = read_at(reader, 0, JITDUMP_HEADER_BYTES);
	const char *failure;

	if (got < 0)
		return sym_error_from_errno(errno, reader->path, "cannot read");
	failure = jitdump_header_read(reader->room, (size_t)got, &header);
	if (!failure && reader->pid && header.pid != reader->pid)
		failure = "the jitdump of another process";
	if (failure)
		return sym_error_create_path(SYM_ERROR_FORMAT, reader->path, 0, "%s", failure);
	*offset_ret = header.size_bytes;
	return NULL;
}

static struct sym_error *read_records(struct jitdump_reader *reader)
{
	struct jitdump_record record;
	enum jitdump_outcome outcome;
	uint64_t offset = 0;
	struct sym_error *error = read_header(reader, &offset);

	while (!error) {
		ssize_t any = read_at(reader, offset, 1);

		if (any <= 0)
			return any ? sym_error_from_errno(errno, reader->path, "cannot read")
				   : NULL;
		error = read_record(reader, offset, &outcome, &record);
		if (error)
			break;
		if (outcome != JITDUMP_GOOD) {
			reader->source->cut = true;
			return NULL;
		}
		if (record.id == JITDUMP_LOAD || record.id == JITDUMP_MOVE)
			error = add_event(reader, &record);
		if (record.id == JITDUMP_CLOSE)
			return NULL;
		offset += record.size_bytes;
		/* The last byte of the record, if it is not the one before the next. */
		any = read_at(reader, offset - 1, 1);
		if (any == 0) {
			reader->source->cut = true;
			return error;
		}
	}
	return error;
}

/* ---- in order of time ------------------------------------------------------------------ */

/*
 * Names go where they were last, so a move needs to know what lay there: the
 * latest load or move to its old place, of all that came before it.
 */
static const struct jitdump_event *moved_event(const struct jitdump_reader *reader,
					       const uint32_t *order, size_t before)
{
	const struct jitdump_event *move = &reader->events[order[before]];

	while (before-- > 0) {
		const struct jitdump_event *event = &reader->events[order[before]];

		if (event->start == move->old_start && event->name_bytes)
			return event;
	}
	return NULL;
}

static void add_named(const struct jitdump_reader *reader, struct index_builder *builder,
		      const struct jitdump_event *event)
{
	index_builder_add(builder, event->start, event->size_bytes,
			  event->name_bytes ? reader->names.data + event->name_offset : "",
			  event->name_bytes, event->value);
}

static void add_move(struct jitdump_reader *reader, struct index_builder *builder,
		     const uint32_t *order, size_t i)
{
	struct jitdump_event *move = &reader->events[order[i]];
	const struct jitdump_event *from = moved_event(reader, order, i);

	index_builder_add(builder, move->old_start, move->size_bytes, "", 0, GONE_BIT);
	if (!from) {
		/* Nobody knows what was moved; what was there before is gone in any case. */
		index_builder_add(builder, move->start, move->size_bytes, "", 0, GONE_BIT);
		return;
	}
	move->name_offset = from->name_offset;
	move->name_bytes = from->name_bytes;
	move->value = from->value;
	add_named(reader, builder, move);
}

/* A dump of nothing but moves must not take quadratic time. */
static const size_t most_move_steps = (size_t)1 << 28;

static struct sym_error *make_index(struct jitdump_reader *reader)
{
	struct index_builder *builder AUTO_INDEX_BUILDER = NULL;
	struct sym_error *error = index_builder_create(&builder);
	uint32_t *order AUTO_FREE = NULL;
	size_t steps = 0;

	if (!error && reader->count) {
		order = index_sort(&reader->events->timestamp, sizeof(*reader->events),
				   reader->count);
		error = order ? NULL : &sym_error_no_memory;
	}
	for (size_t i = 0; !error && i < reader->count; i++) {
		const struct jitdump_event *event = &reader->events[order[i]];

		if (!event->is_move) {
			add_named(reader, builder, event);
			continue;
		}
		steps += i;
		if (steps > most_move_steps)
			error = sym_error_create_path(SYM_ERROR_LIMIT, reader->path,
						      SYM_OFFSET_UNKNOWN, "too many moves");
		else
			add_move(reader, builder, order, i);
	}
	return error ? error : index_freeze(builder, &reader->source->index);
}

struct sym_error *jitdump_source_open(int fd, const char *path, uint32_t pid,
				      struct jitdump_source **ret)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = calloc(1, sizeof(*source));
	struct jitdump_reader reader = { .source = source,
					 .pid = pid,
					 .fd = fd,
					 .path = path,
					 .room_bytes = STEP_BYTES + LIMIT_NAME_BYTES };
	struct sym_error *error = NULL;

	if (!source)
		return &sym_error_no_memory;
	buf_init(&reader.names, LIMIT_INDEX_NAME_BYTES);
	reader.room = malloc(reader.room_bytes);
	error = reader.room ? read_records(&reader) : &sym_error_no_memory;
	if (!error)
		error = make_index(&reader);
	buf_deinit(&reader.names);
	free(reader.events);
	free(reader.room);
	if (error)
		return error;
	*ret = STEAL(source);
	return NULL;
}

bool jitdump_source_is_cut(const struct jitdump_source *source)
{
	return source->cut;
}

uint64_t jitdump_source_records(const struct jitdump_source *source)
{
	return source->records;
}

enum source_outcome jitdump_source_find(const struct jitdump_source *source, uint64_t address,
					struct source_match *ret)
{
	struct index_entry entry;

	if (index_look_up(source->index, address, &entry) == INDEX_NONE)
		return SOURCE_MISS;
	if (entry.value & GONE_BIT)
		return SOURCE_MISS;
	*ret = (struct source_match){
		.start = entry.symbol_start,
		.size_bytes = entry.symbol_size_bytes,
		.name = entry.name,
		.tier = source->tiers.tiers[entry.value & TIER_TABLE_MASK],
		.kind = entry.value & STUB_BIT ? SYM_SYMBOL_STUB : SYM_SYMBOL_FUNCTION,
	};
	return SOURCE_HIT;
}
