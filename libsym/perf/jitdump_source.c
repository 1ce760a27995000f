/* SPDX-License-Identifier: MIT */
/*
 * How a jitdump is read and answered.
 *
 * Each record becomes an event: code was loaded at an address, or moved there.
 * The file order decides what a move moves. The time stamps decide which event is the latest at an
 * address.
 *
 *   index_lsm         answers look-ups as of now; a refresh adds a small index
 *   jitdump_history   answers look-ups at a time, finds what a move moves; built when first needed
 *   jitdump_lines     source lines, read from the file on request
 *
 * A refresh whose events are in order and contain no move is added to the index; any other one
 * rebuilds it.
 */
#include "libsym/perf/jitdump_source.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/format/perf/jitdump.h"
#include "libsym/format/perf/perfmap.h"
#include "libsym/format/perf/perfmap_tier.h"
#include "libsym/index/index.h"
#include "libsym/index/index_lsm.h"
#include "libsym/index/index_sort.h"
#include "libsym/index/string_pool.h"
#include "libsym/limits.h"
#include "libsym/perf/growing_file.h"
#include "libsym/perf/jitdump_history.h"
#include "libsym/perf/jitdump_lines.h"

enum {
	/* First read of a record; most names fit. */
	STEP_BYTES = 4096,
	/* Code has left this place: no name applies. */
	GONE_BIT = 2 * PERFMAP_STUB_BIT
};

/* For a stay: an event's code has left its old place. */
static const uint32_t left_behind = UINT32_MAX;

/* A record about a place. */
struct jitdump_event {
	uint64_t timestamp;
	uint64_t start, size_bytes;
	uint64_t old_start;    /* of a move */
	uint64_t lines_offset; /* of the lines of the code in the file; 0: none */
	uint32_t name;         /* among the names */
	uint32_t value;        /* as in a perf map (perfmap_tier.h), and GONE_BIT */
	bool is_move;
	bool has_name;
};

/* How far a file was read. */
struct jitdump_place {
	uint64_t next_offset; /* of the first record that was not read */
	/* The last lines read before the record of their code, and the code's address. */
	uint64_t lines_offset, lines_address;
	uint64_t file_bytes;
	uint64_t size_bytes; /* with the unflushed bytes */
	struct timespec modified;
	bool cut;
	bool closed; /* the process wrote its closing record */
};

struct jitdump_source {
	struct index_lsm levels; /* of the events; value: that of an event */
	struct string_pool *names;
	bool opened_cut;
	uint32_t no_name; /* the name of a place that code has left */
	/* In the order of the file; those of moves are found when an index is built. */
	struct jitdump_event *events;
	size_t count, capacity;
	uint64_t last_timestamp; /* the highest */
	struct jitdump_place place;
	uint8_t header[JITDUMP_HEADER_BYTES];
	bool swapped;         /* in the other byte order */
	bool cycles;          /* time stamps are not in ns */
	pthread_mutex_t lock; /* protects the events during look-ups, and the next three: */
	bool has_history;     /* the history is of all current events */
	struct jitdump_history *history; /* NULL: not built yet, or not possible */
	struct jitdump_lines lines;
	uint32_t pid;
	struct budget_account *account; /* NULL: none */
	uint64_t charged_bytes;
	struct address_ranges only; /* as of jitdump_source_open(); no items: NULL */
	struct growing_file file;
	char *path;
};

struct jitdump_reader {
	struct jitdump_source *source;
	struct jitdump_place place;
	char *room; /* STEP_BYTES, then as much as a name needs */
	size_t room_bytes;
};

void jitdump_source_close(struct jitdump_source *source)
{
	if (!source)
		return;
	index_lsm_deinit(&source->levels);
	string_pool_destroy(source->names);
	jitdump_history_destroy(source->history);
	jitdump_lines_deinit(&source->lines);
	pthread_mutex_destroy(&source->lock);
	address_ranges_deinit(&source->only);
	free(source->events);
	budget_release(source->account, source->charged_bytes);
	free(source->path);
	growing_file_deinit(&source->file);
	free(source);
}

enum {
	/* of an event, with its part of the index and of the history */
	EVENT_BYTES = 192,
	MANY_NAME_BYTES = 64 /* a shorter name counts as part of its event */
};

static struct sym_error *jitdump_source_charge(struct jitdump_source *source, uint64_t bytes)
{
	struct sym_error *error = budget_check_time(source->account, source->path);

	if (!error)
		error = budget_charge(source->account, bytes, source->path);
	if (!error)
		source->charged_bytes += bytes;
	return error;
}

static struct sym_error *make_room(struct jitdump_source *source)
{
	size_t capacity = source->capacity ? 2 * source->capacity : 256;
	struct jitdump_event *events;
	struct sym_error *error;

	if (source->count < source->capacity)
		return NULL;
	if (capacity > LIMIT_INDEX_SYMBOLS)
		return sym_error_create_path(SYM_ERROR_LIMIT, source->path, SYM_OFFSET_UNKNOWN,
					     "more than %zu records", LIMIT_INDEX_SYMBOLS);
	error = jitdump_source_charge(source,
				      (capacity - source->capacity) * (uint64_t)EVENT_BYTES);
	if (error)
		return error;
	events = reallocarray(source->events, capacity, sizeof(*events));
	if (!events)
		return &sym_error_no_memory;
	source->events = events;
	source->capacity = capacity;
	return NULL;
}

static struct sym_error *add_name(struct jitdump_source *source, const char *name,
				  size_t name_bytes, uint32_t *ret)
{
	if (name_bytes > MANY_NAME_BYTES) {
		struct sym_error *error = jitdump_source_charge(source, name_bytes);

		if (error)
			return error;
	}
	return string_pool_add(source->names, name, name_bytes, ret);
}

static struct sym_error *name_event(struct jitdump_source *source,
				    const struct jitdump_record *record,
				    struct jitdump_event *event)
{
	uint32_t value;
	size_t name_bytes = perfmap_tier_find(record->name, record->name_bytes, &value);

	/* Without a name the record still ends what was there before. */
	event->has_name = name_bytes > 0;
	event->name = source->no_name;
	event->value = GONE_BIT;
	if (!name_bytes)
		return NULL;
	event->value = value;
	if (perfmap_is_stub(record->name, record->name_bytes))
		event->value |= PERFMAP_STUB_BIT;
	return add_name(source, record->name, name_bytes, &event->name);
}

static bool is_taken(const struct jitdump_source *source, const struct jitdump_record *record)
{
	uint64_t size_bytes = record->code_size_bytes;

	if (!size_bytes)
		return false;
	if (!source->only.items)
		return !source->pid || record->pid == source->pid;
	return address_ranges_contain(&source->only, record->code_address, size_bytes) ||
	       (record->id == JITDUMP_MOVE &&
		address_ranges_contain(&source->only, record->old_address, size_bytes));
}

static struct sym_error *add_event(struct jitdump_reader *reader,
				   const struct jitdump_record *record)
{
	struct jitdump_source *source = reader->source;
	struct jitdump_place *place = &reader->place;
	struct jitdump_event event = { .timestamp = record->timestamp,
				       .start = record->code_address,
				       .size_bytes = record->code_size_bytes,
				       .is_move = record->id == JITDUMP_MOVE,
				       .old_start = record->old_address };
	struct sym_error *error;

	if (record->id == JITDUMP_LOAD && record->code_address == place->lines_address) {
		event.lines_offset = place->lines_offset;
		place->lines_offset = 0;
	}
	if (!is_taken(source, record))
		return NULL;
	error = make_room(source);
	if (!error && !event.is_move)
		error = name_event(source, record, &event);
	if (error)
		return error;
	source->events[source->count++] = event;
	return NULL;
}

/* Records lines, whose code follows. */
static void note_lines(struct jitdump_reader *reader, const struct jitdump_record *record)
{
	jitdump_lines_note(&reader->source->lines, record);
	reader->place.lines_offset = reader->place.next_offset;
	reader->place.lines_address = record->code_address;
}

/* Reads up to `bytes`; returns how many, or a negative errno. */
static ssize_t read_at(const struct jitdump_reader *reader, uint64_t offset, size_t bytes)
{
	return growing_file_read(&reader->source->file, reader->room, bytes, offset);
}

/* Reads the record at `offset`, without its code. */
static struct sym_error *read_record(struct jitdump_reader *reader, uint64_t offset,
				     enum jitdump_outcome *outcome_ret, struct jitdump_record *ret)
{
	size_t wanted = STEP_BYTES;

	for (;;) {
		ssize_t got = read_at(reader, offset, wanted);

		if (got < 0)
			return sym_error_from_errno((int)-got, reader->source->path, "cannot read");
		*outcome_ret = jitdump_record_read(reader->room, (size_t)got,
						   reader->source->swapped, ret);
		/* A longer name, or the end of the file. */
		if (*outcome_ret != JITDUMP_SHORT || (size_t)got < wanted ||
		    wanted == reader->room_bytes)
			return NULL;
		wanted = reader->room_bytes;
	}
}

static struct sym_error *read_header(struct jitdump_reader *reader)
{
	struct jitdump_source *source = reader->source;
	struct jitdump_header header;
	ssize_t got = read_at(reader, 0, JITDUMP_HEADER_BYTES);
	const char *failure;

	if (got < 0)
		return sym_error_from_errno((int)-got, source->path, "cannot read");
	failure = jitdump_header_read(reader->room, (size_t)got, &header);
	if (!failure && source->pid && header.pid != source->pid)
		failure = "the jitdump of another process";
	if (failure)
		return sym_error_create_path(SYM_ERROR_FORMAT, source->path, 0, "%s", failure);
	source->swapped = header.swapped;
	source->cycles = header.flags & JITDUMP_CYCLES;
	memcpy(source->header, reader->room, JITDUMP_HEADER_BYTES);
	reader->place.next_offset = header.size_bytes;
	return NULL;
}

/* Reads from where the last reading ended to the end of the file. */
static struct sym_error *read_records(struct jitdump_reader *reader)
{
	struct jitdump_place *place = &reader->place;
	struct jitdump_record record;
	enum jitdump_outcome outcome = JITDUMP_SHORT;
	struct sym_error *error = NULL;

	while (!error && !place->closed) {
		ssize_t any = read_at(reader, place->next_offset - 1, 2);

		if (any < 0)
			return sym_error_from_errno((int)-any, reader->source->path, "cannot read");
		/* Last byte of the previous record, then first byte of the next one. */
		place->cut = any == 0;
		if (any < 2)
			return NULL;
		error = read_record(reader, place->next_offset, &outcome, &record);
		place->cut = !error && outcome != JITDUMP_GOOD;
		if (error || place->cut)
			break;
		if (record.id == JITDUMP_LOAD || record.id == JITDUMP_MOVE)
			error = add_event(reader, &record);
		else if (record.id == JITDUMP_LINES)
			note_lines(reader, &record);
		place->closed = record.id == JITDUMP_CLOSE;
		place->next_offset += record.size_bytes;
	}
	return error;
}

/* ---- in order of time ------------------------------------------------------------------ */

/*
 * Lists which event put code where. A move also ends the stay at its old place. NULL when out of
 * memory.
 */
static struct jitdump_stay *list_stays(const struct jitdump_source *source, size_t *count_ret)
{
	struct jitdump_stay *stays = calloc(2 * source->count + 1, sizeof(*stays));
	uint32_t *order AUTO_FREE =
		index_sort(&source->events->timestamp, sizeof(*source->events), source->count);
	size_t count = 0;

	for (size_t i = 0; stays && order && i < source->count; i++) {
		const struct jitdump_event *event = &source->events[order[i]];
		struct jitdump_stay stay = { event->timestamp, event->start, event->size_bytes,
					     order[i] };

		if (event->is_move)
			stays[count++] = (struct jitdump_stay){ event->timestamp, event->old_start,
								event->size_bytes, left_behind };
		stays[count++] = stay;
	}
	if (stays && order) {
		*count_ret = count;
		return stays;
	}
	free(stays);
	return NULL;
}

/* With the lock. NULL when there is no history. */
static const struct jitdump_history *get_history(struct jitdump_source *source)
{
	struct jitdump_stay *stays;
	size_t count;

	if (source->has_history || !source->count)
		return source->history;
	jitdump_history_destroy(source->history);
	stays = list_stays(source, &count);
	source->history = stays ? jitdump_history_create(stays, count) : NULL;
	source->has_history = true;
	return source->history;
}

/*
 * Finds the record of the code that a move moves.
 * Names follow the file order, so it is the latest load or move to the old place before this one.
 * NULL when other code has covered it since or it has left: its name would be wrong.
 */
static const struct jitdump_event *moved_event(const struct jitdump_source *source,
					       size_t stay_count, uint64_t place)
{
	const struct jitdump_stay *stay =
		jitdump_history_before(source->history, place, stay_count);
	const struct jitdump_event *event;

	if (!stay || stay->number == left_behind)
		return NULL;
	event = &source->events[stay->number];
	return event->start == place && event->has_name ? event : NULL;
}

/* `stay_count`: stays in the history before this move. */
static void add_move(struct jitdump_source *source, struct index_builder *builder,
		     size_t stay_count, struct jitdump_event *move)
{
	const struct jitdump_event *from =
		source->only.items ? NULL : moved_event(source, stay_count, move->old_start);

	/* When the moved code is unknown, the code at its new place is gone all the same. */
	move->has_name = from != NULL;
	move->name = from ? from->name : source->no_name;
	move->value = from ? from->value : GONE_BIT;
	move->lines_offset = from ? from->lines_offset : 0;
	index_builder_add_number(builder, move->old_start, move->size_bytes, source->no_name,
				 GONE_BIT);
	index_builder_add_number(builder, move->start, move->size_bytes, move->name, move->value);
}

static bool has_moves(const struct jitdump_source *source)
{
	for (size_t i = 0; i < source->count; i++)
		if (source->events[i].is_move)
			return true;
	return false;
}

static struct sym_error *add_all(struct jitdump_source *source, struct index_builder *builder)
{
	uint32_t *order AUTO_FREE = NULL;
	size_t stay_count = 0;

	if (!source->count)
		return NULL;
	order = index_sort(&source->events->timestamp, sizeof(*source->events), source->count);
	if (!order || (has_moves(source) && !get_history(source)))
		return &sym_error_no_memory;
	for (size_t i = 0; i < source->count; i++) {
		struct jitdump_event *event = &source->events[order[i]];

		if (event->is_move)
			add_move(source, builder, stay_count, event);
		else
			index_builder_add_number(builder, event->start, event->size_bytes,
						 event->name, event->value);
		stay_count += event->is_move ? 2 : 1;
	}
	return NULL;
}

/*
 * True when the events from `first` on are ordered by time, after the others, and none is a move.
 */
static bool is_plain_tail(const struct jitdump_source *source, size_t first)
{
	uint64_t last = source->last_timestamp;

	for (size_t i = first; i < source->count; last = source->events[i++].timestamp)
		if (source->events[i].is_move || source->events[i].timestamp < last)
			return false;
	return first > 0;
}

/* Adds the events from `first` on; the levels already contain those before. */
static struct sym_error *index_events(struct jitdump_source *source, size_t first)
{
	struct index_builder *builder AUTO_INDEX_BUILDER = NULL;
	struct sym_error *error = index_builder_create_numbered(&builder);
	struct index *index AUTO_INDEX = NULL;
	bool is_tail = is_plain_tail(source, first);

	if (!error && !is_tail)
		error = add_all(source, builder);
	for (size_t i = first; !error && is_tail && i < source->count; i++)
		index_builder_add_number(builder, source->events[i].start,
					 source->events[i].size_bytes, source->events[i].name,
					 source->events[i].value);
	if (!error)
		error = index_freeze(builder, &index);
	if (!error && is_tail)
		error = index_lsm_add(&source->levels, index);
	else if (!error)
		error = index_lsm_replace(&source->levels, index);
	if (!error)
		index = NULL; /* owned by the levels now */
	return error;
}

/* ---- the file ----------------------------------------------------------------------------- */

/*
 * Reads what the file has beyond the reader's place, which becomes the source's on success. With
 * the lock.
 */
static struct sym_error *take_up(struct jitdump_reader *reader)
{
	struct jitdump_source *source = reader->source;
	size_t before = source->count;
	struct sym_error *error = read_records(reader);

	source->has_history &= source->count == before;
	if (!error && (source->count > before || !index_lsm_current(&source->levels)))
		error = index_events(source, before);
	if (error) {
		source->count = before;
		source->has_history = false;
		return error;
	}
	reader->place.file_bytes = (uint64_t)source->file.status.st_size;
	reader->place.size_bytes = growing_file_bytes(&source->file);
	reader->place.modified = source->file.status.st_mtim;
	source->place = reader->place;
	for (size_t i = before; i < source->count; i++)
		if (source->events[i].timestamp > source->last_timestamp)
			source->last_timestamp = source->events[i].timestamp;
	return NULL;
}

static struct sym_error *read_all(struct jitdump_source *source)
{
	struct jitdump_reader reader = { .source = source,
					 .room_bytes = STEP_BYTES + LIMIT_NAME_BYTES };
	int result = growing_file_look(&source->file);
	struct sym_error *error = NULL;

	if (result)
		return sym_error_from_errno(-result, source->path, "cannot read");
	reader.room = malloc(reader.room_bytes);
	if (!reader.room)
		return &sym_error_no_memory;
	error = read_header(&reader);
	if (!error)
		error = add_name(source, "", 0, &source->no_name);
	if (!error)
		error = take_up(&reader);
	source->opened_cut = source->place.cut;
	free(reader.room);
	return error;
}

struct sym_error *jitdump_source_open(struct budget_account *account, int fd, const char *path,
				      uint32_t pid, const struct address_ranges *only,
				      struct unflushed writer, struct jitdump_source **ret)
{
	struct budget_account *span AUTO_BUDGET_SPAN = budget_span(account);
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = calloc(1, sizeof(*source));
	struct sym_error *error;

	if (!source) {
		unflushed_close(&writer);
		return &sym_error_no_memory;
	}
	source->pid = pid;
	source->account = account;
	pthread_mutex_init(&source->lock, NULL);
	growing_file_init(&source->file, fcntl(fd, F_DUPFD_CLOEXEC, 0), writer);
	if (source->file.fd < 0)
		return sym_error_from_errno(errno, path, "cannot read");
	source->path = strdup(path);
	source->names = string_pool_create();
	if (!source->path || !source->names || (only && !address_ranges_copy(only, &source->only)))
		return &sym_error_no_memory;
	error = read_all(source);
	if (!error)
		*ret = STEAL(source);
	return error;
}

/* True when nothing was written since, flushed or not. */
static bool is_unchanged(const struct jitdump_source *source)
{
	const struct jitdump_place *place = &source->place;
	const struct stat *status = &source->file.status;

	return (uint64_t)status->st_size == place->file_bytes &&
	       growing_file_bytes(&source->file) == place->size_bytes &&
	       !memcmp(&status->st_mtim, &place->modified, sizeof(status->st_mtim));
}

/* True when the file still has what was read. */
static bool is_same_dump(struct jitdump_reader *reader)
{
	const struct jitdump_source *source = reader->source;

	/* The end of a last record without its code lies beyond the end of the file. */
	return (uint64_t)source->file.status.st_size >= source->place.file_bytes &&
	       read_at(reader, 0, JITDUMP_HEADER_BYTES) == JITDUMP_HEADER_BYTES &&
	       !memcmp(reader->room, source->header, JITDUMP_HEADER_BYTES);
}

/* With the lock. */
static struct sym_error *jitdump_source_read_new(struct jitdump_reader *reader,
						 enum jitdump_refresh *ret)
{
	struct jitdump_source *source = reader->source;
	size_t before = source->count;
	int result = growing_file_look(&source->file);
	struct sym_error *error;

	if (result)
		return sym_error_from_errno(-result, source->path, "cannot read");
	if (is_unchanged(source))
		return NULL;
	reader->place = source->place;
	reader->room = malloc(reader->room_bytes);
	if (!reader->room)
		return &sym_error_no_memory;
	if (!is_same_dump(reader)) {
		*ret = JITDUMP_REPLACED;
		return NULL;
	}
	error = take_up(reader);
	if (!error && source->opened_cut && !source->place.cut)
		*ret = JITDUMP_REPLACED;
	else if (!error && source->count > before)
		*ret = JITDUMP_APPENDED;
	return error;
}

struct sym_error *jitdump_source_refresh(struct jitdump_source *source, enum jitdump_refresh *ret)
{
	struct jitdump_reader reader = { .source = source,
					 .room_bytes = STEP_BYTES + LIMIT_NAME_BYTES };
	struct sym_error *error;

	*ret = JITDUMP_UNCHANGED;
	pthread_mutex_lock(&source->lock);
	error = jitdump_source_read_new(&reader, ret);
	pthread_mutex_unlock(&source->lock);
	free(reader.room);
	return error;
}

bool jitdump_source_has_garbage(const struct jitdump_source *source)
{
	return index_lsm_has_garbage(&source->levels);
}

void jitdump_source_collect(struct jitdump_source *source)
{
	index_lsm_collect(&source->levels);
}

bool jitdump_source_is_cut(const struct jitdump_source *source)
{
	return source->place.cut;
}

uint64_t jitdump_source_records(const struct jitdump_source *source)
{
	return source->count;
}

static enum source_outcome take_entry(const struct jitdump_source *source,
				      const struct index_entry *entry, struct source_match *ret)
{
	if (entry->value & GONE_BIT)
		return SOURCE_MISS;
	*ret = (struct source_match){
		.start = entry->symbol_start,
		.size_bytes = entry->symbol_size_bytes,
		.name = string_pool_at(source->names, entry->number),
		.tier = perfmap_tier(entry->value),
		.kind = perfmap_tier_kind(entry->value),
	};
	return SOURCE_HIT;
}

enum source_outcome jitdump_source_find(const struct jitdump_source *source, uint64_t address,
					struct source_match *ret)
{
	struct index_entry entry;

	if (!index_version_look_up(index_lsm_current(&source->levels), address, &entry))
		return SOURCE_MISS;
	return take_entry(source, &entry, ret);
}

/* ---- at a time ----------------------------------------------------------------------------- */

/* With the lock. The event of a stay; NULL when it has no name. */
static const struct jitdump_event *event_of(const struct jitdump_source *source,
					    const struct jitdump_stay *stay)
{
	const struct jitdump_event *event =
		stay->number == left_behind ? NULL : &source->events[stay->number];

	return event && !(event->value & GONE_BIT) ? event : NULL;
}

enum jitdump_then jitdump_source_find_at(struct jitdump_source *source, uint64_t address,
					 uint64_t time_ns, struct source_match *ret)
{
	enum jitdump_then then = JITDUMP_THEN_UNKNOWN;
	const struct jitdump_event *event = NULL;
	const struct jitdump_history *history;
	const struct jitdump_stay *stay = NULL;

	if (source->cycles)
		return JITDUMP_THEN_UNKNOWN;
	pthread_mutex_lock(&source->lock);
	history = get_history(source);
	if (history)
		stay = jitdump_history_find(history, address, time_ns);
	if (stay) {
		then = JITDUMP_THEN_GONE;
		event = event_of(source, stay);
	}
	if (event) {
		then = stay->timestamp > time_ns ? JITDUMP_THEN_LATER : JITDUMP_THEN_NAMED;
		*ret = (struct source_match){
			.start = event->start,
			.size_bytes = event->size_bytes,
			.name = string_pool_at(source->names, event->name),
			.tier = perfmap_tier(event->value),
			.kind = perfmap_tier_kind(event->value),
		};
	}
	pthread_mutex_unlock(&source->lock);
	return then;
}

/* ---- lines ----------------------------------------------------------------------------- */

/* With the lock. The event that named an address, at the time or last of all. */
static const struct jitdump_event *event_with_name(struct jitdump_source *source, uint64_t address,
						   uint64_t time_ns, const char *name)
{
	const struct jitdump_history *history = get_history(source);
	const uint64_t times[] = { time_ns, UINT64_MAX };

	for (size_t i = 0; history && i < sizeof(times) / sizeof(*times); i++) {
		const struct jitdump_stay *stay = jitdump_history_find(history, address, times[i]);
		const struct jitdump_event *event = stay ? event_of(source, stay) : NULL;

		/* Each record has its own name, moved or not. */
		if (event && string_pool_at(source->names, event->name) == name)
			return event;
	}
	return NULL;
}

bool jitdump_source_find_line(struct jitdump_source *source, uint64_t address, uint64_t time_ns,
			      const char *name, struct source_line *ret)
{
	struct jitdump_lines_of of = { .file = &source->file, .swapped = source->swapped };
	const struct jitdump_event *event;
	bool found = false;

	pthread_mutex_lock(&source->lock);
	event = event_with_name(source, address, time_ns, name);
	if (event && event->lines_offset) {
		of.record_offset = event->lines_offset;
		of.code_size_bytes = event->size_bytes;
		found = jitdump_lines_find(&source->lines, &of, address - event->start, ret);
	}
	pthread_mutex_unlock(&source->lock);
	return found;
}
