/* SPDX-License-Identifier: MIT */
/* /metrics: the counters of all parts, in the Prometheus exposition format. */
#include "symsrv/lookup/prefetch.h"
#include "symsrv/lookup/upload.h"
#include "symsrv/report/report.h"
#include "symsrv/util/clock.h"
#include "symsrv/util/version.h"

static void report_gauge(struct buf *buf, const char *name, const char *help, uint64_t value)
{
	metrics_family(buf, name, "gauge", help);
	buf_printf(buf, "%s %llu\n", name, (unsigned long long)value);
}

static void format_store(const struct reported *reported, struct buf *buf)
{
	struct store_usage usage;
	struct index_counts index;

	store_usage(reported->holdings->store, &usage);
	file_index_counts(reported->holdings->index, &index);
	report_gauge(buf, "symsrv_store_bytes", "Bytes of objects.", usage.used_bytes);
	report_gauge(buf, "symsrv_store_arriving_bytes", "Bytes of unfinished fetches.",
		     usage.arriving_bytes);
	report_gauge(buf, "symsrv_store_max_bytes", "Size that the store may reach.",
		     usage.max_bytes);
	report_gauge(buf, "symsrv_store_objects", "Objects in the store.", usage.object_count);
	report_gauge(buf, "symsrv_store_free_bytes", "Free bytes of its file system.",
		     usage.free_bytes);
	metrics_counter(buf, "symsrv_store_evicted_total", "Objects that made room for others.",
			usage.evicted_count);
	metrics_counter(buf, "symsrv_store_corrupt_total",
			"Objects removed because their bytes changed.", usage.corrupt_count);
	report_gauge(buf, "symsrv_index_keys", "Keys of indexed files.", index.keys);
	report_gauge(buf, "symsrv_index_files", "Indexed files.", index.files);
	report_gauge(buf, "symsrv_index_files_seen", "Files that the last scan looked at.",
		     index.files_seen);
}

static void format_fetches(const struct reported *reported, struct buf *buf)
{
	const struct holdings *holdings = reported->holdings;
	struct fetch_counts counts;

	fetcher_counts(holdings->fetcher, &counts);
	report_gauge(buf, "symsrv_flights", "Objects that are being fetched.", counts.flights);
	report_gauge(buf, "symsrv_waiters", "Requests that wait for them.", counts.waiters);
	metrics_counter(buf, "symsrv_flights_total", "Fetches begun.", counts.started);
	metrics_counter(buf, "symsrv_joined_total", "Requests that joined a fetch under way.",
			counts.joined);
	metrics_counter(buf, "symsrv_stored_total", "Fetches that brought an object.",
			counts.stored);
	report_gauge(buf, "symsrv_negative_entries", "Misses that are remembered.",
		     negative_cache_count(holdings->negative));
	report_gauge(buf, "symsrv_jobs_waiting", "Jobs that wait for a thread.",
		     workers_waiting(holdings->workers));
	report_gauge(buf, "symsrv_connections", "Open connections.", reported->connections);
}

static void format_upstreams(const struct reported *reported, struct buf *buf)
{
	static const struct {
		const char *result;
		size_t offset;
	} counts[] = {
		{ "found", offsetof(struct upstream_counts, found) },
		{ "missing", offsetof(struct upstream_counts, missing) },
		{ "refused", offsetof(struct upstream_counts, refused) },
		{ "transient", offsetof(struct upstream_counts, transient) },
		{ "rejected", offsetof(struct upstream_counts, rejected) },
		{ "denied", offsetof(struct upstream_counts, denied) },
	};
	struct upstream_set *set = fetcher_upstreams(reported->holdings->fetcher);
	size_t i, k;

	metrics_family(buf, "symsrv_upstream_answers_total", "counter", "Answers of upstreams.");
	for (i = 0; i < set->count; i++)
		for (k = 0; k < sizeof(counts) / sizeof(*counts); k++)
			buf_printf(buf,
				   "symsrv_upstream_answers_total{upstream=\"%s\",result=\"%s\"} "
				   "%llu\n",
				   set->list[i]->name, counts[k].result,
				   (unsigned long long)*(
					   atomic_ullong *)((char *)&set->list[i]->counts +
							    counts[k].offset));
	metrics_family(buf, "symsrv_upstream_requests_total", "counter", "Objects asked for.");
	for (i = 0; i < set->count; i++)
		buf_printf(buf, "symsrv_upstream_requests_total{upstream=\"%s\"} %llu\n",
			   set->list[i]->name, (unsigned long long)set->list[i]->counts.asked);
	metrics_family(buf, "symsrv_upstream_bytes_total", "counter", "Bytes of good objects.");
	for (i = 0; i < set->count; i++)
		buf_printf(buf, "symsrv_upstream_bytes_total{upstream=\"%s\"} %llu\n",
			   set->list[i]->name, (unsigned long long)set->list[i]->counts.bytes);
	metrics_family(buf, "symsrv_upstream_available", "gauge",
		       "0 while an upstream is not asked because it failed too often.");
	for (i = 0; i < set->count; i++)
		buf_printf(buf, "symsrv_upstream_available{upstream=\"%s\"} %d\n",
			   set->list[i]->name, upstream_state(set->list[i]) == BREAKER_CLOSED);
	upstream_set_release(set);
}

static void format_tier(const struct reported *reported, struct buf *buf)
{
	struct tier_upload_counts counts;

	tier_uploads_counts(reported->holdings->uploads, &counts);
	metrics_counter(buf, "symsrv_tier_stored_total", "Objects uploaded to the tier.",
			counts.stored);
	metrics_counter(buf, "symsrv_tier_stored_bytes_total", "Bytes of these.", counts.bytes);
	metrics_counter(buf, "symsrv_tier_kept_total",
			"Objects not uploaded because the tier has a better one.", counts.kept);
	metrics_counter(buf, "symsrv_tier_failed_total", "Uploads that failed.", counts.failed);
	metrics_counter(buf, "symsrv_tier_dropped_total",
			"Objects not uploaded because too many were waiting.", counts.dropped);
	report_gauge(buf, "symsrv_tier_waiting", "Objects that wait for their upload.",
		     counts.waiting);
}

static void format_processes(const struct reported *reported, struct buf *buf)
{
	struct symbol_worker_counts counts;

	symbol_workers_counts(reported->processes, &counts);
	report_gauge(buf, "symsrv_symbol_workers", "Processes that read debug information.",
		     counts.running);
	metrics_counter(buf, "symsrv_symbol_workers_started_total", "Such processes started.",
			counts.started);
	metrics_counter(buf, "symsrv_symbol_questions_total", "Questions to them, one a module.",
			counts.questions);
	metrics_family(buf, "symsrv_symbol_failures_total", "counter",
		       "Questions that were not answered, or in part.");
	buf_printf(buf,
		   "symsrv_symbol_failures_total{reason=\"crash\"} %llu\n"
		   "symsrv_symbol_failures_total{reason=\"deadline\"} %llu\n"
		   "symsrv_symbol_failures_total{reason=\"unreadable\"} %llu\n",
		   (unsigned long long)counts.crashed, (unsigned long long)counts.late,
		   (unsigned long long)counts.refused);
	metrics_family(buf, "symsrv_maps_total", "counter",
		       "Processes that made a map of a PE image, found none, or failed.");
	buf_printf(buf,
		   "symsrv_maps_total{result=\"made\"} %llu\n"
		   "symsrv_maps_total{result=\"none\"} %llu\n"
		   "symsrv_maps_total{result=\"failed\"} %llu\n",
		   (unsigned long long)reported->maps->counts.made,
		   (unsigned long long)reported->maps->counts.unmade,
		   (unsigned long long)reported->maps->counts.failed);
}

static void format_intake(const struct reported *reported, struct buf *buf)
{
	struct prefetch_counts prefetch;
	struct uploads_counts uploads;

	prefetch_counts(reported->prefetch, &prefetch);
	uploads_counts(reported->uploads, &uploads);
	report_gauge(buf, "symsrv_prefetch_waiting",
		     "Objects that wait to be fetched for no client.", prefetch.waiting);
	metrics_counter(buf, "symsrv_prefetch_found_total",
			"Objects fetched for no client, or found here.", prefetch.found);
	metrics_counter(buf, "symsrv_prefetch_missing_total", "Objects that do not exist.",
			prefetch.missing);
	metrics_counter(buf, "symsrv_prefetch_failed_total", "Objects that could not be fetched.",
			prefetch.failed);
	metrics_counter(buf, "symsrv_prefetch_dropped_total",
			"Objects not fetched because too many were waiting.", prefetch.dropped);
	metrics_counter(buf, "symsrv_uploads_stored_total", "Uploads that were stored.",
			uploads.stored);
	metrics_counter(buf, "symsrv_uploads_kept_total",
			"Uploads not stored because what is here is as good.", uploads.kept);
	metrics_counter(buf, "symsrv_uploads_refused_total", "Uploads that could not be verified.",
			uploads.refused);
	metrics_counter(buf, "symsrv_uploads_failed_total", "Uploads that could not be stored.",
			uploads.failed);
	metrics_counter(buf, "symsrv_uploads_denied_total", "Requests without the token.",
			uploads.denied);
}

void report_metrics(const struct reported *reported, struct buf *buf)
{
	metrics_format(reported->metrics, buf);
	format_store(reported, buf);
	format_fetches(reported, buf);
	format_upstreams(reported, buf);
	format_tier(reported, buf);
	format_processes(reported, buf);
	format_intake(reported, buf);
	report_gauge(buf, "symsrv_request_memory_bytes",
		     "Memory for bodies, and for answers that clients have not read.",
		     reported->memory->used_bytes);
	metrics_counter(buf, "symsrv_request_memory_refused_total",
			"Requests refused because that had reached its limit.",
			reported->memory->refused);
	report_gauge(buf, "ready", "1 when the server takes requests.", reported->is_ready);
	report_gauge(buf, "symsrv_uptime_seconds", "Time since the start.",
		     (uint64_t)(clock_now_ms() - reported->started_ms) / 1000);
	metrics_family(buf, "symsrv_build_info", "gauge", "The version.");
	buf_printf(buf, "symsrv_build_info{version=\"%s\"} 1\n", SYMSRV_VERSION);
}
