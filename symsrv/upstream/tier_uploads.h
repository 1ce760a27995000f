/* SPDX-License-Identifier: MIT */
/*
 * Write-behind to the second tier: objects that an upstream sent are uploaded as object files of
 * the store, with their records. Nothing waits for it: the queue is bounded, and what does not fit
 * is dropped and counted.
 */
#ifndef SYMSRV_UPSTREAM_TIER_UPLOADS_H
#define SYMSRV_UPSTREAM_TIER_UPLOADS_H

#include "symsrv/store/store.h"
#include "symsrv/upstream/upstream_set.h"

struct tier_uploads;

/* Returns 0 or a negative errno. */
int tier_uploads_create(struct store *store, struct tier_uploads **ret);
/* Ends the threads; an upload that runs is broken off. NULL is allowed. */
void tier_uploads_destroy(struct tier_uploads *uploads);

/* Takes an object of the store into the queue; nothing happens if the set has no tier. */
void tier_uploads_add(struct tier_uploads *uploads, struct upstream_set *set, const char *text);

struct tier_upload_counts {
	uint64_t stored, bytes;
	uint64_t kept;    /* the tier has a better object */
	uint64_t failed;  /* after all tries, or evicted before its turn */
	uint64_t dropped; /* the queue was full */
	size_t waiting;
};
void tier_uploads_counts(struct tier_uploads *uploads, struct tier_upload_counts *ret);

#endif
