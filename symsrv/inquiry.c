/* SPDX-License-Identifier: MIT */
#include "symsrv/inquiry.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "symsrv/clock.h"

/* Indexed files belong to somebody else and may change: they are looked at again after this. */
static const int64_t index_valid_ms = 5000;
/* A section that two files lack may appear when a better debug file does. */
static const int64_t section_negative_ms = 60000;

/* A checksum over so much takes a few hundredths of a second; all requests share few threads. */
static const uint64_t quick_bytes = 16 << 20;

/* What went before it could be opened is fetched again. */
static const unsigned int most_losses = 3;

DEFINE_GUARD(object, struct object *, object_release)

size_t inquiry_text(const struct key *key, const char *section, char room[INQUIRY_TEXT_BYTES])
{
	size_t length = key_text(key, room);

	if (section)
		length += (size_t)snprintf(room + length, 300, "/section/%s", section);
	return length;
}

/* What is here and who is asked: another number when there may be something new. */
static unsigned int state_of(const struct holdings *holdings)
{
	return file_index_changes(holdings->index) + negative_clears(holdings->negative);
}

/* Nobody else has it. */
static bool is_negative(const struct holdings *holdings, const char *text, size_t text_bytes,
			const struct key *key, int64_t now_ms)
{
	return file_index_is_whole(holdings->index) &&
	       negative_contains(holdings->negative, text, text_bytes, key->spelling, now_ms,
				 state_of(holdings));
}

bool inquiry_is_known_missing(const struct holdings *holdings, const char *text, size_t text_bytes,
			      const struct key *key, int64_t now_ms)
{
	return is_negative(holdings, text, text_bytes, key, now_ms) &&
	       !file_index_has(holdings->index, text);
}

/* ---- what lies here ---- */

/* What could be opened, or why not. */
struct look {
	uint64_t most_bytes; /* of a checksum that may be compared on this thread */
	bool wants_debug;    /* a program with a symbol table serves only where nobody has more */
	struct object *fallback; /* such a program; the asker's */
	bool trouble;            /* it cannot be told whether it is here */
	bool takes_long;         /* not on this thread */
	bool was_moved; /* an indexed file is not where it was: nobody knows whether it is here */
};

/* Want of descriptors or memory: it may be here all the same. */
static bool may_pass(int failure)
{
	return failure == -EMFILE || failure == -ENFILE || failure == -ENOMEM;
}

/* NULL: it is not here, or what `look` says. */
static struct object *open_stored(const struct holdings *holdings, const char *text,
				  struct look *look)
{
	struct store_record record;
	struct object *object;
	int fd;
	int failure = store_find_quickly(holdings->store, text, look->most_bytes, &fd, &record);

	if (failure) {
		look->trouble |= may_pass(failure);
		look->takes_long |= failure == -EAGAIN;
		return NULL;
	}
	object = object_create(text, fd);
	look->trouble |= !object;
	if (object) {
		object->size_bytes = record.size_bytes;
		object->modified_s = record.fetched_s;
		snprintf(object->etag, sizeof(object->etag), "\"sha256-%s\"", record.sha256);
		snprintf(object->name, sizeof(object->name), "%s", record.name);
		snprintf(object->source, sizeof(object->source), "%s", record.source);
	}
	store_record_deinit(&record);
	return object;
}

static struct object *open_indexed(const struct holdings *holdings, const char *text,
				   struct look *look)
{
	struct index_file file;
	struct object *object;
	int failure = file_index_open(holdings->index, text, &file);

	if (failure) {
		look->trouble |= may_pass(failure) || failure == -EBUSY;
		look->was_moved |= failure == -ESTALE;
		return NULL;
	}
	object = object_create(text, file.fd);
	look->trouble |= !object;
	if (!object)
		return NULL;
	object->size_bytes = file.size_bytes;
	object->modified_s = file.modified.tv_sec;
	object->unchanged_since = file.modified;
	object->valid_until_ms = clock_now_ms() + index_valid_ms;
	snprintf(object->etag, sizeof(object->etag), "\"file-%s\"", file.version);
	snprintf(object->name, sizeof(object->name), "%s", file.name);
	snprintf(object->source, sizeof(object->source), "index");
	if (!look->wants_debug || (file.contents & SYM_CONTENT_DEBUG_INFO))
		return object;
	look->fallback = object;
	look->was_moved |= file.is_second_best;
	return NULL;
}

static struct object *find_here(const struct holdings *holdings, const char *text,
				struct look *look)
{
	struct object *object =
		object_table_find(holdings->objects, text, strlen(text), clock_now_ms());

	if (object)
		return object;
	object = open_indexed(holdings, text, look);
	if (!object)
		object = open_stored(holdings, text, look);
	if (!object)
		return NULL;
	object_release(look->fallback);
	look->fallback = NULL;
	object_table_add(holdings->objects, object);
	return object;
}

/* A section is a range of the file: same descriptor, own tag. */
static struct object *cut_section(const struct inquiry *inquiry, const struct object *file,
				  struct look *look)
{
	uint64_t offset, size_bytes;
	struct sym_error *error = sym_elf_section_find(file->fd, file->size_bytes, inquiry->section,
						       &offset, &size_bytes);
	struct object *object;
	int fd;

	if (error) {
		sym_error_destroy(error);
		return NULL;
	}
	fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 3);
	object = fd >= 0 ? object_create(inquiry->text, fd) : NULL;
	if (!object) {
		look->trouble = true;
		return NULL;
	}
	object->offset = offset;
	object->size_bytes = size_bytes;
	object->modified_s = file->modified_s;
	object->unchanged_since = file->unchanged_since;
	object->valid_until_ms = file->valid_until_ms;
	object->may_be_bettered = file->may_be_bettered;
	/* The file's tag without its closing quote. */
	snprintf(object->etag, sizeof(object->etag), "%.*s-%llx-%llx\"",
		 (int)strcspn(file->etag + 1, "\"") + 1, file->etag, (unsigned long long)offset,
		 (unsigned long long)size_bytes);
	memcpy(object->name, file->name, sizeof(object->name));
	memcpy(object->source, file->source, sizeof(object->source));
	object_table_add(inquiry->holdings->objects, object);
	return object;
}

/* ---- the way ---- */

static void set_fallback(struct inquiry *inquiry, struct object *object)
{
	object_release(inquiry->fallback);
	inquiry->fallback = object;
}

static void finish(struct inquiry *inquiry, enum inquiry_outcome outcome, struct object *object)
{
	set_fallback(inquiry, NULL);
	free(inquiry->part_text);
	inquiry->part_text = NULL;
	inquiry->object = object;
	inquiry->outcome = outcome;
	inquiry->done(inquiry);
}

/* There may be something that was not there when this inquiry began to look. */
static bool is_outdated(const struct inquiry *inquiry)
{
	return state_of(inquiry->holdings) != inquiry->state;
}

/* No phase is left. */
static void finish_without(struct inquiry *inquiry)
{
	inquiry->was_transient |=
		!file_index_is_whole(inquiry->holdings->index) || is_outdated(inquiry);
	if (inquiry->section && !inquiry->was_transient && !inquiry->unasked[0])
		negative_add(inquiry->holdings->negative, inquiry->text, NULL,
			     clock_now_ms() + section_negative_ms, inquiry->state);
	finish(inquiry, inquiry->was_transient ? INQUIRY_TRANSIENT : INQUIRY_MISSING, NULL);
}

/* The file of this phase; false when there is no further one. */
static bool enter_phase(struct inquiry *inquiry)
{
	char text[KEY_TEXT_BYTES];

	if (inquiry->phase > (inquiry->section ? 1u : 0u))
		return false;
	if (inquiry->section)
		inquiry->key.kind = inquiry->phase ? KEY_EXECUTABLE : KEY_DEBUGINFO;
	set_fallback(inquiry, NULL);
	free(inquiry->part_text);
	key_text(&inquiry->key, text);
	inquiry->part_text = strdup(text);
	inquiry->was_transient |= !inquiry->part_text;
	return inquiry->part_text != NULL;
}

static void run(struct job *job);

static void run_on_checker(struct job *job)
{
	struct inquiry *inquiry = (struct inquiry *)((char *)job - offsetof(struct inquiry, job));

	/* Others may have taken long. */
	if (clock_now_ms() >= inquiry->deadline_ms) {
		finish(inquiry, INQUIRY_TRANSIENT, NULL);
		return;
	}
	inquiry->may_check = true;
	run(job);
}

/* True when the inquiry has ended, or goes on elsewhere. */
static bool answer_from_here(struct inquiry *inquiry)
{
	struct look look = { .most_bytes = inquiry->may_check ? UINT64_MAX : quick_bytes,
			     .wants_debug = inquiry->key.kind == KEY_DEBUGINFO };
	struct object *file GUARDED(object) = NULL;
	struct object *object = NULL;

	file = find_here(inquiry->holdings, inquiry->part_text, &look);
	set_fallback(inquiry, look.fallback);
	inquiry->has_file = file != NULL;
	if (!file && look.was_moved)
		hops_add_unasked(inquiry->unasked, inquiry->holdings->own_name, NULL);
	if (!file && look.trouble)
		finish(inquiry, INQUIRY_TRANSIENT, NULL);
	else if (!file && look.takes_long)
		workers_submit(inquiry->holdings->checkers, &inquiry->job, run_on_checker);
	if (!file)
		return look.trouble || look.takes_long;
	if (!inquiry->section) {
		finish(inquiry, INQUIRY_FOUND, STEAL(file));
		return true;
	}
	object = cut_section(inquiry, file, &look);
	if (object)
		finish(inquiry, INQUIRY_FOUND, object);
	else if (look.trouble)
		finish(inquiry, INQUIRY_TRANSIENT, NULL);
	return object || look.trouble;
}

/* Nothing better was found; `elsewhere`: for certain, at all upstreams. True when the inquiry has
 * ended. Another symsrv would keep for good what is no certain answer. */
static bool answer_with_fallback(struct inquiry *inquiry, bool elsewhere)
{
	bool for_certain = elsewhere && !inquiry->unasked[0] && !is_outdated(inquiry) &&
			   file_index_is_whole(inquiry->holdings->index);
	struct look look = { 0 };
	struct object *object;

	if (!inquiry->fallback || (inquiry->depth && !for_certain))
		return false;
	if (inquiry->section) {
		inquiry->fallback->may_be_bettered = !for_certain;
		object = cut_section(inquiry, inquiry->fallback, &look);
		inquiry->was_transient |= look.trouble;
	} else {
		object = STEAL(inquiry->fallback);
		object->may_be_bettered = !for_certain;
		if (for_certain)
			object_table_add(inquiry->holdings->objects, object);
	}
	if (!object)
		return false;
	inquiry->was_fetched = false;
	finish(inquiry, INQUIRY_FOUND, object);
	return true;
}

static void on_fetched(struct fetch_waiter *waiter, enum fetch_outcome outcome);

static void run(struct job *job)
{
	struct inquiry *inquiry = (struct inquiry *)((char *)job - offsetof(struct inquiry, job));
	const struct holdings *holdings = inquiry->holdings;

	for (; enter_phase(inquiry); inquiry->phase++) {
		struct object *file GUARDED(object) = NULL;
		int64_t now = clock_now_ms();

		/* What comes after the first look has to be looked for again. */
		if (!inquiry->phase)
			inquiry->state = state_of(holdings);
		if (answer_from_here(inquiry))
			return;
		file = object_table_find(holdings->objects, inquiry->part_text,
					 strlen(inquiry->part_text), now);
		if (file || is_negative(holdings, inquiry->part_text, strlen(inquiry->part_text),
					&inquiry->key, now)) {
			if (answer_with_fallback(inquiry, true))
				return;
			continue;
		}
		if (inquiry->is_local) {
			if (answer_with_fallback(inquiry, false))
				return;
			hops_add_unasked(inquiry->unasked, holdings->own_name, NULL);
			continue;
		}
		if (now >= inquiry->deadline_ms) {
			inquiry->was_transient = true;
			break;
		}
		inquiry->waiter = (struct fetch_waiter){ .key = &inquiry->key,
							 .text = inquiry->part_text,
							 .forwarded_for = inquiry->forwarded_for,
							 .depth = inquiry->depth,
							 .state = inquiry->state,
							 .deadline_ms = inquiry->deadline_ms,
							 .done = on_fetched };
		fetcher_join(holdings->fetcher, &inquiry->waiter);
		return;
	}
	finish_without(inquiry);
}

static void on_fetched(struct fetch_waiter *waiter, enum fetch_outcome outcome)
{
	struct inquiry *inquiry =
		(struct inquiry *)((char *)waiter - offsetof(struct inquiry, waiter));

	inquiry->was_fetched = true;
	if (outcome == FETCH_STORED) {
		if (answer_from_here(inquiry))
			return;
		if (!inquiry->has_file && ++inquiry->losses <= most_losses) {
			run(&inquiry->job);
			return;
		}
		inquiry->was_transient |= !inquiry->has_file;
	}
	if ((outcome == FETCH_MISSING || outcome == FETCH_UNSURE) && is_outdated(inquiry) &&
	    answer_from_here(inquiry))
		return;
	if (answer_with_fallback(inquiry, outcome == FETCH_MISSING))
		return;
	inquiry->was_transient |= outcome == FETCH_TRANSIENT;
	if (outcome == FETCH_UNSURE)
		hops_add_unasked(inquiry->unasked, waiter->unasked, NULL);
	inquiry->phase++;
	run(&inquiry->job);
}

void inquiry_start(struct inquiry *inquiry)
{
	workers_submit(inquiry->holdings->workers, &inquiry->job, run);
}
