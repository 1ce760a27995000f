/* SPDX-License-Identifier: MIT */
#include "mapgen/view/waits.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/grow.h"
#include "libsym/base/hash.h"
#include "libsym/error.h"
#include "mapgen/view/frame_groups.h"
#include "mapgen/view/frame_text.h"

/* The first that is part of a name of the stack holds: what .NET says before what the system says,
 * because everything ends in a futex. */
static const struct {
	const char *part, *cause;
} causes[] = {
	{ "Thread::Sleep", "sleep" },
	{ "Thread::Join", "end of a thread" },
	{ "Monitor::Wait", "Monitor.Wait" },
	{ "Monitor::ObjWait", "Monitor.Wait" },
	{ "Monitor::Enter", "lock" },
	{ "Monitor::ReliableEnter", "lock" },
	{ "Monitor::TryEnter", "lock" },
	{ "AwareLock::Enter", "lock" },
	{ "Threading.Lock::", "lock" },
	{ "ReaderWriterLock", "reader-writer lock" },
	{ "SpinLock::", "lock" },
	{ "SemaphoreSlim::Wait", "semaphore" },
	{ "CountdownEvent::Wait", "event" },
	{ "Barrier::SignalAndWait", "barrier" },
	{ "BlockingCollection`1", "queue" },
	{ "Tasks.Task::InternalWait", "task" },
	{ "Tasks.Task::SpinThenBlockingWait", "task" },
	{ "ManualResetEventSlim::Wait", "event" },
	{ "WaitHandle::Wait", "event" },
	{ "LowLevelLifoSemaphore::Wait", "work (thread pool)" },
	{ "SocketAsyncEngine::", "network events" },
	{ "Sockets.Socket", "network" },
	{ "FileStream", "file" },
	{ "RandomAccess::", "file" },
	{ "Diagnostics.Process::WaitFor", "child process" },
	{ "SuspendEE", "GC" },
	{ "WaitUntilGCComplete", "GC" },
	{ "WaitLongerIfGC", "GC" },
	{ "gc_heap::", "GC" },
	{ "nanosleep", "sleep" },
	{ "ep_poll", "events (epoll)" },
	{ "epoll_wait", "events (epoll)" },
	{ "do_poll", "events (poll)" },
	{ "do_select", "events (select)" },
	{ "tcp_", "network" },
	{ "inet_", "network" },
	{ "unix_stream", "socket" },
	{ "sock_", "socket" },
	{ "pipe_read", "pipe" },
	{ "pipe_write", "pipe" },
	{ "=do_wait", "child process" },
	{ "io_schedule", "disk" },
	{ "folio_wait", "disk" },
	{ "jbd2_", "disk" },
	{ "n_tty_read", "terminal" },
	{ "futex", "lock or event" },
};

enum {
	CAUSES = sizeof(causes) / sizeof(*causes),
	NOT_ASKED = 255,
};

struct wait_key {
	uint32_t where, caller, cause;
};

struct row_entry {
	struct wait_key key;
	size_t row;
	UT_hash_handle hh;
};

struct adding {
	const struct frame_table *frames;
	struct waits waits;
	struct row_entry *entries;
	uint8_t *causes;  /* by frame */
	uint32_t *groups; /* frame_groups.h */
};

void waits_deinit(struct waits *waits)
{
	free(waits->rows);
	*waits = (struct waits){ 0 };
}

/* A pattern that begins with '=' is the whole name. */
static bool matches(const char *name, const char *part)
{
	return *part == '=' ? !strcmp(name, part + 1) : strstr(name, part) != NULL;
}

static uint8_t cause_of_frame(const struct adding *adding, uint32_t frame)
{
	const char *name = frame_table_at(adding->frames, frame)->name;
	uint8_t cause = 0;

	if (adding->causes[frame] != NOT_ASKED)
		return adding->causes[frame];
	while (cause < CAUSES && !matches(name, causes[cause].part))
		cause++;
	adding->causes[frame] = cause;
	return cause;
}

static uint32_t cause_of(const struct adding *adding, const struct selected *item)
{
	uint8_t found = CAUSES;

	for (uint32_t i = item->frame_count; i > 0; i--) {
		uint8_t cause = cause_of_frame(adding, item->frames[i - 1]);

		if (cause < found)
			found = cause;
	}
	return found;
}

/* The innermost function of the program, else of .NET, else of all but the kernel. */
static void find_where(const struct adding *adding, const struct selected *item,
		       struct wait_key *ret)
{
	uint32_t managed = FRAME_NONE, native = FRAME_NONE;

	ret->where = ret->caller = FRAME_NONE;
	for (uint32_t i = item->frame_count; i > 0; i--) {
		uint32_t number = adding->groups[item->frames[i - 1]];
		const struct profile_frame *frame = frame_table_at(adding->frames, number);

		if (native == FRAME_NONE && frame->kind != FRAME_KIND_KERNEL)
			native = number;
		if (managed == FRAME_NONE && frame_text_says_where(frame))
			managed = number;
		if (frame_text_is_framework(frame))
			continue;
		if (ret->where != FRAME_NONE && number != ret->where) {
			ret->caller = number;
			return;
		}
		ret->where = number;
	}
	if (ret->where == FRAME_NONE)
		ret->where = managed != FRAME_NONE ? managed : native;
	if (ret->where == FRAME_NONE && item->frame_count)
		ret->where = adding->groups[item->frames[item->frame_count - 1]];
}

static struct sym_error *find_row(struct adding *adding, const struct wait_key *key,
				  struct wait_row **ret)
{
	struct row_entry *entry;

	HASH_FIND(hh, adding->entries, key, sizeof(*key), entry);
	if (entry) {
		*ret = &adding->waits.rows[entry->row];
		return NULL;
	}
	if (!grow_items((void **)&adding->waits.rows, &adding->waits.capacity, adding->waits.count,
			sizeof(*adding->waits.rows)))
		return &sym_error_no_memory;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return &sym_error_no_memory;
	entry->key = *key;
	entry->row = adding->waits.count;
	HASH_ADD(hh, adding->entries, key, sizeof(entry->key), entry);
	if (!hash_added(entry)) {
		free(entry);
		return &sym_error_no_memory;
	}
	*ret = &adding->waits.rows[adding->waits.count++];
	**ret = (struct wait_row){ .where = key->where,
				   .caller = key->caller,
				   .cause = key->cause < CAUSES ? causes[key->cause].cause : "" };
	return NULL;
}

static struct sym_error *add_item(struct adding *adding, const struct selected *item)
{
	struct wait_key key = { .cause = cause_of(adding, item) };
	struct wait_row *row;
	struct sym_error *error;

	/* Two patterns may have one cause. */
	for (uint32_t i = 0; i < key.cause && key.cause < CAUSES; i++)
		if (!strcmp(causes[i].cause, causes[key.cause].cause))
			key.cause = i;
	find_where(adding, item, &key);
	error = find_row(adding, &key, &row);
	if (error)
		return error;
	row->count += item->count;
	row->weight += item->weight;
	if (item->longest > row->longest)
		row->longest = item->longest;
	return NULL;
}

static int compare(const void *left, const void *right)
{
	const struct wait_row *a = left, *b = right;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	if (a->where != b->where)
		return a->where < b->where ? -1 : 1;
	return (a->caller > b->caller) - (a->caller < b->caller);
}

static void adding_deinit(struct adding *adding)
{
	HASH_DESTROY(adding->entries, free);
	free(adding->causes);
	free(adding->groups);
}

struct sym_error *waits_make(const struct selection *selection, struct waits *ret)
{
	struct adding adding = { .frames = selection->profile->frames };
	size_t frame_count = frame_table_count(adding.frames);
	struct sym_error *error = NULL;

	adding.causes = malloc(frame_count + 1);
	adding.groups = frame_groups_make(adding.frames);
	if (!adding.causes || !adding.groups) {
		adding_deinit(&adding);
		return &sym_error_no_memory;
	}
	memset(adding.causes, NOT_ASKED, frame_count + 1);
	for (size_t i = 0; !error && i < selection->count; i++)
		error = add_item(&adding, &selection->items[i]);
	adding_deinit(&adding);
	if (error) {
		waits_deinit(&adding.waits);
		return error;
	}
	if (adding.waits.count)
		qsort(adding.waits.rows, adding.waits.count, sizeof(*adding.waits.rows), compare);
	*ret = adding.waits;
	return NULL;
}
