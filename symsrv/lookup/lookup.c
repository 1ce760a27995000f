/* SPDX-License-Identifier: MIT */
/*
 * The phases of a look-up.
 *
 * A key has one phase; a section has two: the debug file, then the program. An object that can be
 * made from others has those of derived_object.h. Each phase looks here
 * first (find_here(): table of objects, store, indexed files). On a request's thread only small
 * checksums are compared; for a large one the look-up moves to a checker thread. When nothing is
 * here, lookup_run() joins a flight (single_flight.h), whose end calls on_fetched().
 *
 * A miss is certain only if every source was complete: the index was scanned, all upstreams
 * answered, and nothing changed since the look-up began (`state`).
 */
#include "symsrv/lookup/lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "symsrv/lookup/derived_object.h"
#include "symsrv/lookup/known_image.h"
#include "symsrv/util/clock.h"

/* An indexed file may be changed by others, so it is looked up again after this time. */
static const int64_t index_valid_ms = 5000;
/* A section that two files lack may appear with a better debug file. */
static const int64_t section_negative_ms = 60000;

/* A checksum over this many bytes takes a few hundredths of a second; all requests share few
 * threads. */
static const uint64_t quick_bytes = 16 << 20;

/* An object that was evicted before it could be opened is fetched again. */
static const unsigned int most_losses = 3;

DEFINE_GUARD(object, struct object *, object_release)

size_t lookup_text(const struct key *key, const char *section, char room[LOOKUP_TEXT_BYTES])
{
	size_t length = key_text(key, room);

	if (section)
		length += (size_t)snprintf(room + length, 300, "/section/%s", section);
	return length;
}

/* Changes when the store, the index or the upstreams may have something new. */
static unsigned int state_of(const struct holdings *holdings)
{
	return file_index_changes(holdings->index) + negative_cache_clears(holdings->negative);
}

/* No other server has it. */
static bool is_negative(const struct holdings *holdings, const char *text, const struct key *key,
			int64_t now_ms)
{
	return file_index_is_whole(holdings->index) &&
	       negative_cache_contains(holdings->negative, text, key->spelling, now_ms,
				       state_of(holdings));
}

/* Under which text a miss is remembered. That no upstream has an object says nothing of whether it
 * can be made. */
static void miss_text(enum key_kind wanted, const char *text, char room[LOOKUP_TEXT_BYTES])
{
	snprintf(room, LOOKUP_TEXT_BYTES, "%s%s", text, derived_object_is(wanted) ? "/made" : "");
}

bool lookup_is_known_missing(const struct holdings *holdings, const char *text,
			     const struct key *key, int64_t now_ms)
{
	char miss[LOOKUP_TEXT_BYTES];

	miss_text(key->kind, text, miss);
	return is_negative(holdings, miss, key, now_ms) &&
	       (derived_object_is(key->kind) || !file_index_has(holdings->index, text));
}

/* ---- what is stored here ------------------------------------------------------ */

/* An opened object, or why there is none. */
struct look {
	uint64_t most_bytes; /* most bytes whose checksum may be compared on this thread */
	bool wants_debug; /* a program with a symbol table is used only when there is no better file
			   */
	struct object *fallback; /* such a program; owned by the caller */
	bool trouble;            /* it is unknown whether the object is here */
	bool takes_long;         /* must be done on another thread */
	bool was_moved; /* an indexed file is not at its place, so it is unknown whether the object
			   is here */
};

/* Out of descriptors or memory: the object may be here. */
static bool may_pass(int failure)
{
	return failure == -EMFILE || failure == -ENFILE || failure == -ENOMEM;
}

/* NULL: the object is not here, or `look` has the reason. */
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
	object->valid_until_ms = holdings->now_ms() + index_valid_ms;
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
	struct object *object = object_table_find(holdings->objects, text, holdings->now_ms());

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

/* A section is a range of the file, with the same descriptor and its own tag. */
static struct object *cut_section(const struct lookup *lookup, const struct object *file,
				  struct look *look)
{
	uint64_t offset, size_bytes;
	struct sym_error *error = sym_elf_section_find(file->fd, file->size_bytes, lookup->section,
						       &offset, &size_bytes);
	struct object *object;
	int fd;

	if (error) {
		sym_error_destroy(error);
		return NULL;
	}
	fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 3);
	object = fd >= 0 ? object_create(lookup->text, fd) : NULL;
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
	/* The tag of the file without its closing quote. */
	snprintf(object->etag, sizeof(object->etag), "%.*s-%llx-%llx\"",
		 (int)strcspn(file->etag + 1, "\"") + 1, file->etag, (unsigned long long)offset,
		 (unsigned long long)size_bytes);
	memcpy(object->name, file->name, sizeof(object->name));
	memcpy(object->source, file->source, sizeof(object->source));
	object_table_add(lookup->holdings->objects, object);
	return object;
}

/* ---- the steps of a look-up --------------------------------------------------- */

static void set_fallback(struct lookup *lookup, struct object *object)
{
	object_release(lookup->fallback);
	lookup->fallback = object;
}

static void lookup_finish(struct lookup *lookup, enum lookup_outcome outcome, struct object *object)
{
	set_fallback(lookup, NULL);
	object_release(lookup->made_from);
	lookup->made_from = NULL;
	free(lookup->part_text);
	lookup->part_text = NULL;
	free(lookup->image_text);
	lookup->image_text = NULL;
	lookup->object = object;
	lookup->outcome = outcome;
	lookup->done(lookup);
}

/* There may be something that did not exist when this look-up began. */
static bool is_outdated(const struct lookup *lookup)
{
	return state_of(lookup->holdings) != lookup->state;
}

/* Whether the object can be made from another one. */
static bool is_made(const struct lookup *lookup)
{
	return derived_object_is(lookup->wanted);
}

/* Called when no phase is left. */
static void finish_without(struct lookup *lookup)
{
	char miss[LOOKUP_TEXT_BYTES];

	lookup->was_transient |=
		!file_index_is_whole(lookup->holdings->index) || is_outdated(lookup);
	miss_text(lookup->wanted, lookup->text, miss);
	if ((lookup->section || is_made(lookup)) && !lookup->was_transient && !lookup->unqueried[0])
		negative_cache_add(lookup->holdings->negative, miss, NULL,
				   lookup->holdings->now_ms() + section_negative_ms, lookup->state);
	lookup_finish(lookup, lookup->was_transient ? LOOKUP_TRANSIENT : LOOKUP_MISSING, NULL);
}

/* The key of an r2rmap becomes that of its image; false when no image is known. */
static bool enter_image(struct lookup *lookup)
{
	/* The phase begins once more when the image was evicted. */
	if (lookup->image_text)
		return true;
	lookup->image_text = known_image_of_map(lookup->holdings, &lookup->key);
	return lookup->image_text && key_from_text(&lookup->key, lookup->image_text);
}

/* The file of this phase; false when there is no further phase. */
static bool enter_phase(struct lookup *lookup)
{
	char text[KEY_TEXT_BYTES];

	if (lookup->section)
		lookup->key.kind = lookup->phase > 1 ? KEY_NONE
				   : lookup->phase   ? KEY_EXECUTABLE
						     : KEY_DEBUGINFO;
	else
		lookup->key.kind = derived_object_phase(lookup->wanted, lookup->phase);
	if (!lookup->key.kind ||
	    (lookup->wanted == KEY_MAP && lookup->key.kind == KEY_PE && !enter_image(lookup)))
		return false;
	set_fallback(lookup, NULL);
	free(lookup->part_text);
	key_text(&lookup->key, text);
	lookup->part_text = strdup(text);
	lookup->was_transient |= !lookup->part_text;
	return lookup->part_text != NULL;
}

static void lookup_run(struct job *job);

/* Makes the object from `made_from`. Many may want it at once, so it may exist by now. */
static void run_maker(struct job *job)
{
	struct lookup *lookup = (struct lookup *)((char *)job - offsetof(struct lookup, job));
	struct look look = { .most_bytes = UINT64_MAX };
	const struct derivation derivation = {
		.store = lookup->holdings->store,
		.maker = lookup->holdings->map_maker,
		.file = lookup->made_from,
		.kind = lookup->key.kind,
		.wanted = lookup->wanted,
		.text = lookup->text,
		.deadline_ms = lookup->deadline_ms,
	};
	struct object *object = NULL;
	int failure;

	if (clock_now_ms() >= lookup->deadline_ms) {
		lookup_finish(lookup, LOOKUP_TRANSIENT, NULL);
		return;
	}
	object = find_here(lookup->holdings, lookup->text, &look);
	if (!object) {
		failure = derived_object_make(&derivation);
		if (!failure)
			object = find_here(lookup->holdings, lookup->text, &look);
		lookup->was_transient |= (failure && failure != -EBADMSG) || (!failure && !object);
	}
	if (object) {
		lookup_finish(lookup, LOOKUP_FOUND, object);
		return;
	}
	object_release(lookup->made_from);
	lookup->made_from = NULL;
	lookup->phase++;
	lookup_run(job);
}

static void run_on_checker(struct job *job)
{
	struct lookup *lookup = (struct lookup *)((char *)job - offsetof(struct lookup, job));

	/* Other look-ups may have taken long. */
	if (clock_now_ms() >= lookup->deadline_ms) {
		lookup_finish(lookup, LOOKUP_TRANSIENT, NULL);
		return;
	}
	lookup->may_check = true;
	lookup_run(job);
}

/* True when the look-up has ended, or continues on another thread. */
static bool answer_from_here(struct lookup *lookup)
{
	struct look look = { .most_bytes = lookup->may_check ? UINT64_MAX : quick_bytes,
			     /* Names of a program are as good as those of its debug file. */
			     .wants_debug = lookup->key.kind == KEY_DEBUGINFO && !is_made(lookup) };
	struct object *file GUARDED(object) = NULL;
	struct object *object = NULL;

	file = find_here(lookup->holdings, lookup->part_text, &look);
	set_fallback(lookup, look.fallback);
	lookup->has_file = file != NULL;
	if (!file && look.was_moved)
		proxy_loop_add_unqueried(lookup->unqueried, lookup->holdings->own_name, NULL);
	if (!file && look.trouble)
		lookup_finish(lookup, LOOKUP_TRANSIENT, NULL);
	else if (!file && look.takes_long)
		workers_submit(lookup->holdings->checkers, &lookup->job, run_on_checker);
	if (!file)
		return look.trouble || look.takes_long;
	if (!lookup->section && lookup->key.kind == lookup->wanted) {
		lookup_finish(lookup, LOOKUP_FOUND, STEAL(file));
		return true;
	}
	if (!lookup->section) {
		lookup->made_from = STEAL(file);
		workers_submit(lookup->holdings->checkers, &lookup->job, run_maker);
		return true;
	}
	object = cut_section(lookup, file, &look);
	if (object)
		lookup_finish(lookup, LOOKUP_FOUND, object);
	else if (look.trouble)
		lookup_finish(lookup, LOOKUP_TRANSIENT, NULL);
	return object || look.trouble;
}

/* No better file was found; `elsewhere`: certainly at no upstream. True when the look-up has ended.
 * Another symsrv would keep an uncertain answer. */
static bool answer_with_fallback(struct lookup *lookup, bool elsewhere)
{
	bool for_certain = elsewhere && !lookup->unqueried[0] && !is_outdated(lookup) &&
			   file_index_is_whole(lookup->holdings->index);
	struct look look = { 0 };
	struct object *object;

	if (!lookup->fallback || (lookup->depth && !for_certain))
		return false;
	if (lookup->section) {
		lookup->fallback->may_be_bettered = !for_certain;
		object = cut_section(lookup, lookup->fallback, &look);
		lookup->was_transient |= look.trouble;
	} else {
		object = STEAL(lookup->fallback);
		object->may_be_bettered = !for_certain;
		if (for_certain)
			object_table_add(lookup->holdings->objects, object);
	}
	if (!object)
		return false;
	lookup->was_fetched = false;
	lookup_finish(lookup, LOOKUP_FOUND, object);
	return true;
}

/* An object that was made before. */
static bool answer_with_made(struct lookup *lookup)
{
	struct look look = { .most_bytes = quick_bytes };
	struct object *object;

	if (!is_made(lookup) || lookup->phase)
		return false;
	object = find_here(lookup->holdings, lookup->text, &look);
	if (object)
		lookup_finish(lookup, LOOKUP_FOUND, object);
	return object != NULL;
}

static void on_fetched(struct fetch_waiter *waiter, enum fetch_outcome outcome);

static void lookup_run(struct job *job)
{
	struct lookup *lookup = (struct lookup *)((char *)job - offsetof(struct lookup, job));
	const struct holdings *holdings = lookup->holdings;

	for (; enter_phase(lookup); lookup->phase++) {
		struct object *file GUARDED(object) = NULL;
		int64_t now = holdings->now_ms();

		/* An object may have appeared after the first look. */
		if (!lookup->phase)
			lookup->state = state_of(holdings);
		if (answer_with_made(lookup) || answer_from_here(lookup))
			return;
		file = object_table_find(holdings->objects, lookup->part_text, now);
		if (file || is_negative(holdings, lookup->part_text, &lookup->key, now)) {
			if (answer_with_fallback(lookup, true))
				return;
			continue;
		}
		if (lookup->is_local) {
			if (answer_with_fallback(lookup, false))
				return;
			proxy_loop_add_unqueried(lookup->unqueried, holdings->own_name, NULL);
			continue;
		}
		if (clock_now_ms() >= lookup->deadline_ms) {
			lookup->was_transient = true;
			break;
		}
		lookup->waiter = (struct fetch_waiter){ .key = &lookup->key,
							.text = lookup->part_text,
							.forwarded_for = lookup->forwarded_for,
							.depth = lookup->depth,
							.from_peer = lookup->from_peer,
							.state = lookup->state,
							.deadline_ms = lookup->deadline_ms,
							.done = on_fetched };
		fetcher_join(holdings->fetcher, &lookup->waiter);
		return;
	}
	finish_without(lookup);
}

static void on_fetched(struct fetch_waiter *waiter, enum fetch_outcome outcome)
{
	struct lookup *lookup = (struct lookup *)((char *)waiter - offsetof(struct lookup, waiter));

	lookup->was_fetched = true;
	if (outcome == FETCH_STORED) {
		if (answer_from_here(lookup))
			return;
		if (!lookup->has_file && ++lookup->losses <= most_losses) {
			lookup_run(&lookup->job);
			return;
		}
		lookup->was_transient |= !lookup->has_file;
	}
	if ((outcome == FETCH_MISSING || outcome == FETCH_UNSURE) && is_outdated(lookup) &&
	    answer_from_here(lookup))
		return;
	if (answer_with_fallback(lookup, outcome == FETCH_MISSING))
		return;
	lookup->was_transient |= outcome == FETCH_TRANSIENT;
	if (outcome == FETCH_UNSURE)
		proxy_loop_add_unqueried(lookup->unqueried, waiter->unqueried, NULL);
	lookup->phase++;
	lookup_run(&lookup->job);
}

void lookup_start(struct lookup *lookup)
{
	lookup->wanted = lookup->key.kind;
	workers_submit(lookup->holdings->workers, &lookup->job, lookup_run);
}
