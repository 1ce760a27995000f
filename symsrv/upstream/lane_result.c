/* SPDX-License-Identifier: MIT */
#include "symsrv/upstream/lane_result.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "symsrv/upstream/image_note.h"
#include "symsrv/upstream/verify.h"
#include "symsrv/util/clock.h"
#include "symsrv/util/log.h"

/* The end of a message about a store that cannot be written. */
#define STORE_NOTE " (more of this is not logged for an hour)"

static void set_transient(struct flight *flight)
{
	pthread_mutex_lock(&flight->fetcher->lock);
	flight->was_transient = true;
	pthread_mutex_unlock(&flight->fetcher->lock);
}

/* Whether an upstream in `names` may have it. */
static void set_unsure(struct flight *flight, const char *names)
{
	pthread_mutex_lock(&flight->fetcher->lock);
	proxy_loop_add_unqueried(flight->unqueried, names, NULL);
	pthread_mutex_unlock(&flight->fetcher->lock);
}

static void name_file(struct store_record *record, const struct key *key)
{
	const char *name = key->spelling ? key->spelling : key->name;

	if (name && key->kind == KEY_SOURCE && strrchr(name, '/'))
		name = strrchr(name, '/') + 1;
	if (name)
		snprintf(record->name, sizeof(record->name), "%s", name);
}

static void give_up(struct flight *flight, int failure)
{
	if (log_limit_allows(&flight->fetcher->store_lines, clock_now_ms()))
		log_message(LOG_LEVEL_ERROR, "store: %s: %s" STORE_NOTE, flight->text,
			    strerror(-failure));
	set_transient(flight);
}

/* An object of the tier is the object file of a store, with its record. What cannot be verified
 * must have come from an upstream that is trusted here. */
static int unwrap_of_tier(const struct flight *flight, struct store_incoming *incoming,
			  struct store_record *record, char *reason, size_t reason_bytes)
{
	struct store_record found = { 0 };
	int failure = store_unwrap(incoming, flight->text, &found);
	bool is_trusted = key_is_verifiable(flight->key.kind);

	if (failure == -EBADMSG)
		snprintf(reason, reason_bytes, "not the object of this key, or damaged");
	if (failure)
		return failure;
	for (size_t i = 0; i < flight->set->count; i++)
		is_trusted |= flight->set->list[i]->is_trusted &&
			      !strcmp(flight->set->list[i]->name, found.source);
	memcpy(record->name, found.name, sizeof(record->name));
	memcpy(record->source, found.source, sizeof(record->source));
	store_record_deinit(&found);
	if (is_trusted)
		return 0;
	snprintf(reason, reason_bytes, "not from a trusted upstream");
	return -EBADMSG;
}

/* Returns true if the object is in the store now; *arrival is then NULL if a better one came during
 * the fetch, by an upload. */
static bool take_in(struct lane *lane, struct store_incoming **arrival)
{
	struct store_incoming *incoming = *arrival;
	struct flight *flight = lane->flight;
	struct upstream *upstream = lane->upstream;
	struct store_record record = { .key = flight->text };
	char reason[160];
	int failure = 0;

	if (upstream->kind == UPSTREAM_S3)
		failure = unwrap_of_tier(flight, incoming, &record, reason, sizeof(reason));
	if (!failure)
		failure =
			verify_content(store_incoming_fd(incoming), store_incoming_bytes(incoming),
				       &flight->key, &record.contents, reason, sizeof(reason));
	if (failure && failure != -EBADMSG) {
		store_abandon(incoming);
		give_up(flight, failure);
		return false;
	}
	if (failure) {
		upstream->counts.rejected++;
		if (log_limit_allows(&upstream->rejected_lines, clock_now_ms()))
			log_message(LOG_LEVEL_WARNING,
				    "upstream %s: %s: rejected: %s" LOG_LIMIT_NOTE, upstream->name,
				    flight->text, reason);
		upstream_note_trouble(upstream, reason);
		if (upstream->kind != UPSTREAM_S3)
			set_unsure(flight, flight->fetcher->parts.own_name);
		store_abandon(incoming);
		return false;
	}
	upstream->counts.found++;
	upstream->counts.bytes += store_incoming_bytes(incoming);
	if (upstream->kind != UPSTREAM_S3) {
		name_file(&record, &flight->key);
		snprintf(record.source, sizeof(record.source), "%s", upstream->name);
	}
	if (flight->key.kind == KEY_PE)
		image_note_add(flight->fetcher->parts.store, store_incoming_fd(incoming),
			       store_incoming_bytes(incoming), flight->text);
	failure = store_publish_held(incoming, &record);
	if (failure == -EEXIST) {
		store_abandon(incoming);
		*arrival = NULL;
		return true;
	}
	if (failure) {
		store_abandon(incoming);
		give_up(flight, failure);
		return false;
	}
	return true;
}

/* Counts a try without a result; true when the lane continues with its next path. The upstreams
 * decide: what the tier answers never makes a miss uncertain. A peer that answers has asked them
 * for this server too, and one that does not answer is left out. */
static bool count_failure(struct lane *lane)
{
	bool is_tier = lane->upstream->kind == UPSTREAM_S3;
	bool is_peer = lane->upstream->kind == UPSTREAM_PEER;
	struct upstream_counts *counts = &lane->upstream->counts;
	const struct transfer *transfer = &lane->transfer;
	struct flight *flight = lane->flight;
	bool is_503 = transfer->status == 503;

	switch (transfer->outcome) {
	case TRANSFER_MISSING:
		counts->missing++;
		if (is_tier)
			return false;
		set_unsure(flight, transfer->unqueried);
		/* With a wrong --self, this server is its own peer. */
		lane->is_decisive = is_peer && !transfer->came_back;
		return true;
	case TRANSFER_TRANSIENT:
		counts->transient++;
		if (!is_tier && (!is_peer || is_503))
			set_transient(flight);
		lane->is_decisive |= is_peer && is_503;
		return false;
	case TRANSFER_TOO_LARGE:
		/* Counts as a miss: another try may cost the same number of bytes again. */
		counts->refused += is_tier;
		counts->rejected += !is_tier && !is_peer;
		return false;
	case TRANSFER_NO_ROOM:
		counts->refused += is_tier;
		if (!is_tier && !is_peer)
			set_transient(flight);
		return false;
	default:
		break;
	}
	if (is_tier || is_peer) {
		counts->refused++;
		return false;
	}
	counts->refused += transfer->outcome == TRANSFER_REFUSED;
	counts->denied += transfer->outcome == TRANSFER_DENIED;
	if (transfer->outcome != TRANSFER_CANCELLED)
		set_unsure(flight, flight->fetcher->parts.own_name);
	return transfer->outcome == TRANSFER_REFUSED;
}

static void log_failure(const struct lane *lane)
{
	const struct transfer *transfer = &lane->transfer;

	if (transfer->outcome == TRANSFER_MISSING || transfer->outcome == TRANSFER_CANCELLED)
		return;
	/* The pause of the upstream was logged once, and is shown on the page. */
	if (!strncmp(transfer->error, "not asked", 9))
		return;
	if (transfer->outcome == TRANSFER_NO_ROOM) {
		if (log_limit_allows(&lane->flight->fetcher->store_lines, clock_now_ms()))
			log_message(LOG_LEVEL_WARNING, "upstream %s: %s: %s" STORE_NOTE,
				    lane->upstream->name, lane->flight->text, transfer->error);
		return;
	}
	upstream_note_trouble(lane->upstream, transfer->error);
	if ((transfer->outcome == TRANSFER_REFUSED || upstream_is_optional(lane->upstream)) &&
	    !upstream_refusal_is_news(lane->upstream, transfer->error, clock_now_ms()))
		return;
	log_message(LOG_LEVEL_WARNING, "upstream %s: %s: %s", lane->upstream->name,
		    lane->flight->text, transfer->error);
}

enum lane_result lane_judge(struct lane *lane, struct store_incoming **stored_ret)
{
	struct transfer *transfer = &lane->transfer;
	struct store_incoming *incoming = transfer->incoming;

	transfer->incoming = NULL;
	if (transfer->outcome == TRANSFER_GOT) {
		if (!take_in(lane, &incoming))
			return LANE_GOES_ON;
		*stored_ret = incoming;
		return LANE_GOT;
	}
	store_abandon(incoming);
	log_failure(lane);
	return count_failure(lane) ? LANE_GOES_ON : LANE_ENDS;
}
