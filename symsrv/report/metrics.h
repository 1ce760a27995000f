/* SPDX-License-Identifier: MIT */
/*
 * Statistics of answers: counts by kind of path and status, times, the last few requests. Counting
 * takes no lock. The text of /metrics follows the Prometheus exposition format, and uses
 * debuginfod's names where these exist.
 */
#ifndef SYMSRV_REPORT_METRICS_H
#define SYMSRV_REPORT_METRICS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "symsrv/key/route.h"

enum answer_result {
	RESULT_HIT,     /* the object was here */
	RESULT_FETCHED, /* was fetched from an upstream while the client waited */
	RESULT_MISSING,
	RESULT_TRANSIENT,
	RESULT_REFUSED, /* an error of the request */
	RESULT_OTHER,
	RESULT_COUNT
};

#define METRICS_STATUS_COUNT 16
#define METRICS_BUCKET_COUNT 12
#define METRICS_RECENT_COUNT 32
#define METRICS_RECENT_BYTES 160

struct metrics_answer {
	enum route_kind kind;
	enum answer_result result;
	unsigned int status; /* 0: the connection was reset */
	uint64_t bytes;
	int64_t duration_us;
	const char *path;
	bool was_aborted;
};

struct metrics_recent {
	char path[METRICS_RECENT_BYTES];
	unsigned int status;
	enum answer_result result;
	uint64_t bytes;
	int64_t duration_us;
	int64_t time_s;
};

struct metrics {
	atomic_ullong requests[ROUTE_KIND_COUNT];
	atomic_ullong results[RESULT_COUNT];
	atomic_ullong count[ROUTE_KIND_COUNT][METRICS_STATUS_COUNT];
	atomic_ullong bytes[ROUTE_KIND_COUNT][METRICS_STATUS_COUNT];
	atomic_ullong duration_us[ROUTE_KIND_COUNT][METRICS_STATUS_COUNT];
	atomic_ullong buckets[METRICS_BUCKET_COUNT + 1];
	atomic_ullong aborted;
	atomic_ullong shut_down; /* connections that missed a deadline */
	atomic_ullong dismissed; /* connections that were idle, and were closed to make room */
	atomic_ullong reloads, failed_reloads;
	pthread_mutex_t recent_lock;
	struct metrics_recent recent[METRICS_RECENT_COUNT];
	unsigned int next_recent;
};

struct metrics *metrics_create(void);
void metrics_destroy(struct metrics *metrics);
void metrics_count(struct metrics *metrics, const struct metrics_answer *answer);
/* Returns "hit", "upstream", ...; static. */
const char *metrics_result_text(enum answer_result result);
/* Appends the head of a metric; `type`: "counter", "gauge", ... */
void metrics_family(struct buf *buf, const char *name, const char *type, const char *help);
void metrics_counter(struct buf *buf, const char *name, const char *help, uint64_t value);
/* Appends the metrics of answers. */
void metrics_format(struct metrics *metrics, struct buf *buf);
/* Copies the last requests, newest first; returns how many. */
unsigned int metrics_recent(struct metrics *metrics,
			    struct metrics_recent room[METRICS_RECENT_COUNT]);

#endif
