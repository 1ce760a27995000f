/* SPDX-License-Identifier: MIT */
#include "symsrv/report/metrics.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Every status that the server sends; 0: the connection was reset. */
static const unsigned int statuses[METRICS_STATUS_COUNT] = { 200, 206, 304, 400, 404, 405,
							     406, 413, 416, 500, 503, 0 };

/* Upper limits of the buckets in microseconds. */
static const int64_t buckets_us[METRICS_BUCKET_COUNT] = { 100,     250,     500,      1000,
							  2500,    10000,   50000,    250000,
							  1000000, 5000000, 30000000, 90000000 };

static const char *const result_texts[RESULT_COUNT] = {
	[RESULT_HIT] = "file",        [RESULT_FETCHED] = "upstream",
	[RESULT_MISSING] = "missing", [RESULT_TRANSIENT] = "transient",
	[RESULT_REFUSED] = "refused", [RESULT_OTHER] = "other",
};

const char *metrics_result_text(enum answer_result result)
{
	return result_texts[result];
}

struct metrics *metrics_create(void)
{
	struct metrics *metrics = calloc(1, sizeof(*metrics));

	if (metrics)
		pthread_mutex_init(&metrics->recent_lock, NULL);
	return metrics;
}

void metrics_destroy(struct metrics *metrics)
{
	if (!metrics)
		return;
	pthread_mutex_destroy(&metrics->recent_lock);
	free(metrics);
}

static unsigned int status_index(unsigned int status)
{
	unsigned int i;

	for (i = 0; i < METRICS_STATUS_COUNT; i++)
		if (statuses[i] == status)
			return i;
	return METRICS_STATUS_COUNT - 1;
}

static void metrics_add(atomic_ullong *counter, unsigned long long value)
{
	atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

/* Under load some requests are left out of the list, because nothing waits for it. */
static void metrics_remember(struct metrics *metrics, const struct metrics_answer *answer)
{
	struct metrics_recent *recent;
	size_t length;

	if (pthread_mutex_trylock(&metrics->recent_lock))
		return;
	recent = &metrics->recent[metrics->next_recent++ % METRICS_RECENT_COUNT];
	length = strnlen(answer->path, sizeof(recent->path) - 1);
	memcpy(recent->path, answer->path, length);
	recent->path[length] = 0;
	recent->status = answer->status;
	recent->result = answer->result;
	recent->bytes = answer->bytes;
	recent->duration_us = answer->duration_us;
	recent->time_s = time(NULL);
	pthread_mutex_unlock(&metrics->recent_lock);
}

void metrics_count(struct metrics *metrics, const struct metrics_answer *answer)
{
	unsigned int status = status_index(answer->status);
	unsigned int bucket = 0;

	metrics_add(&metrics->requests[answer->kind], 1);
	metrics_add(&metrics->results[answer->result], 1);
	metrics_add(&metrics->count[answer->kind][status], 1);
	metrics_add(&metrics->bytes[answer->kind][status], answer->bytes);
	metrics_add(&metrics->duration_us[answer->kind][status],
		    (unsigned long long)answer->duration_us);
	while (bucket < METRICS_BUCKET_COUNT && answer->duration_us > buckets_us[bucket])
		bucket++;
	metrics_add(&metrics->buckets[bucket], 1);
	if (answer->was_aborted)
		metrics_add(&metrics->aborted, 1);
	if (route_is_of_object(answer->kind))
		metrics_remember(metrics, answer);
}

void metrics_family(struct buf *buf, const char *name, const char *type, const char *help)
{
	buf_printf(buf, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* NAME_sum and NAME_count by status and kind of path. These are debuginfod's names, which have the
 * form of a summary. */
static void format_by_status(struct metrics *metrics, struct buf *buf, const char *name,
			     const char *help,
			     atomic_ullong table[ROUTE_KIND_COUNT][METRICS_STATUS_COUNT],
			     unsigned int divisor)
{
	unsigned int kind, status;

	metrics_family(buf, name, "summary", help);
	for (kind = 0; kind < ROUTE_KIND_COUNT; kind++)
		for (status = 0; status < METRICS_STATUS_COUNT; status++) {
			unsigned long long count = metrics->count[kind][status];

			if (!count)
				continue;
			buf_printf(buf, "%s_sum{code=\"%u\",type=\"%s\"} %llu\n", name,
				   statuses[status], route_kind_text(kind),
				   table[kind][status] / divisor);
			buf_printf(buf, "%s_count{code=\"%u\",type=\"%s\"} %llu\n", name,
				   statuses[status], route_kind_text(kind), count);
		}
}

static void format_histogram(struct metrics *metrics, struct buf *buf)
{
	static const char name[] = "symsrv_response_duration_seconds";
	unsigned long long total = 0, sum = 0;
	unsigned int i, kind;

	metrics_family(buf, name, "histogram",
		       "Time from the head of a request to the end of its answer.");
	for (i = 0; i < METRICS_BUCKET_COUNT; i++) {
		total += metrics->buckets[i];
		buf_printf(buf, "%s_bucket{le=\"%g\"} %llu\n", name, (double)buckets_us[i] / 1e6,
			   total);
	}
	total += metrics->buckets[i];
	for (kind = 0; kind < ROUTE_KIND_COUNT; kind++)
		for (i = 0; i < METRICS_STATUS_COUNT; i++)
			sum += metrics->duration_us[kind][i];
	buf_printf(buf, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.6f\n%s_count %llu\n", name, total,
		   name, (double)sum / 1e6, name, total);
}

void metrics_counter(struct buf *buf, const char *name, const char *help, uint64_t value)
{
	metrics_family(buf, name, "counter", help);
	buf_printf(buf, "%s %llu\n", name, (unsigned long long)value);
}

void metrics_format(struct metrics *metrics, struct buf *buf)
{
	unsigned int i;

	metrics_family(buf, "http_requests_total", "counter", "Requests by kind of path.");
	for (i = 0; i < ROUTE_KIND_COUNT; i++)
		buf_printf(buf, "http_requests_total{type=\"%s\"} %llu\n", route_kind_text(i),
			   (unsigned long long)metrics->requests[i]);
	metrics_family(buf, "http_responses_total", "counter", "Answers by where they came from.");
	for (i = 0; i < RESULT_COUNT; i++)
		buf_printf(buf, "http_responses_total{result=\"%s\"} %llu\n", result_texts[i],
			   (unsigned long long)metrics->results[i]);
	format_by_status(metrics, buf, "http_responses_transfer_bytes", "Bytes of bodies.",
			 metrics->bytes, 1);
	format_by_status(metrics, buf, "http_responses_duration_milliseconds",
			 "Time spent on answers.", metrics->duration_us, 1000);
	format_histogram(metrics, buf);
	metrics_counter(buf, "symsrv_aborted_responses_total",
			"Answers that the client did not take.", metrics->aborted);
	metrics_counter(buf, "symsrv_connections_shut_down_total",
			"Connections that missed a deadline.", metrics->shut_down);
	metrics_counter(buf, "symsrv_connections_dismissed_total",
			"Idle connections ended to make room for others.", metrics->dismissed);
	metrics_counter(buf, "symsrv_reloads_total", "Configurations read again.",
			metrics->reloads);
	metrics_counter(buf, "symsrv_failed_reloads_total", "Configurations refused.",
			metrics->failed_reloads);
}

unsigned int metrics_recent(struct metrics *metrics,
			    struct metrics_recent room[METRICS_RECENT_COUNT])
{
	unsigned int count, i;

	pthread_mutex_lock(&metrics->recent_lock);
	count = metrics->next_recent < METRICS_RECENT_COUNT ? metrics->next_recent
							    : METRICS_RECENT_COUNT;
	for (i = 0; i < count; i++)
		room[i] = metrics->recent[(metrics->next_recent - 1 - i) % METRICS_RECENT_COUNT];
	pthread_mutex_unlock(&metrics->recent_lock);
	return count;
}
