/* SPDX-License-Identifier: MIT */
/*
 * How an object gets into the bucket.
 *
 *   tier_uploads_add()   one entry in the queue of two threads
 *   run_entry()          tries again after a transient failure; counts
 *   upload_entry()       opens the object in the store, asks whether the bucket has a better one,
 *                        PUTs
 *
 * An S3 PUT is atomic, and its body is the whole object file with the SHA-256 in the signature, so
 * a half object cannot appear. A debug file without DWARF never replaces one with DWARF: the
 * contents of an object stand in its metadata (x-amz-meta-contents).
 */
#include "symsrv/upstream/tier_uploads.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"
#include "symsrv/upstream/s3.h"
#include "symsrv/util/clock.h"
#include "symsrv/util/digest.h"
#include "symsrv/util/log.h"
#include "symsrv/util/workers.h"

#define TIER_THREADS 2
static const size_t most_entries = 4096;
static const unsigned int most_tries = 3;
/* Between tries, and while the tier is left alone after failures. */
static const long tier_pause_ms = 1000;

struct tier_entry {
	struct job job;
	struct tier_uploads *uploads;
	struct upstream_set *set; /* a reference */
	char text[];
};

struct tier_uploads {
	struct store *store;
	struct workers *workers;
	pthread_mutex_t lock;     /* protects everything below */
	pthread_cond_t wake;      /* ends pauses */
	CURL *idle[TIER_THREADS]; /* they keep their connections */
	unsigned int idle_count;
	struct tier_upload_counts counts;
	atomic_bool is_stopping;
};

/* One request. */
struct tier_request {
	struct tier_uploads *uploads;
	struct upstream *tier;
	const struct upstream_set *set;
	FILE *file;
	uint64_t size_bytes;
	long status; /* 0: no answer */
	char answer[1024];
	unsigned int contents; /* of the object in the bucket */
	char trouble[160];
};

static void entry_release(struct tier_entry *entry)
{
	upstream_set_release(entry->set);
	free(entry);
}

/* ---- one request ---- */

static size_t take_answer(char *bytes, size_t size, size_t count, void *context)
{
	struct tier_request *request = context;

	s3_keep_body(request->answer, sizeof(request->answer), bytes, size * count);
	return size * count;
}

static int on_tier_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct tier_request *request = context;

	(void)a;
	(void)b;
	(void)c;
	(void)d;
	return request->uploads->is_stopping;
}

static curl_socket_t on_tier_socket(void *context, curlsocktype purpose,
				    struct curl_sockaddr *address)
{
	const struct tier_request *request = context;

	if (purpose != CURLSOCKTYPE_IPCXN ||
	    cidr_rules_contain(&request->set->deny, &address->addr))
		return CURL_SOCKET_BAD;
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static void set_tier_options(CURL *easy, struct tier_request *request)
{
	const struct upstream_set *set = request->set;

	curl_easy_reset(easy);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_tier_socket);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, request);
	curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_tier_progress);
	curl_easy_setopt(easy, CURLOPT_XFERINFODATA, request);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, request);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)set->connect_ms);
	curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)((set->stall_ms + 999) / 1000));
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)set->fetch_ms);
}

/* Sends the request; its status and what was wrong are in `request`. */
static void send_to_tier(CURL *easy, struct tier_request *request, const char *path,
			 struct curl_slist *headers)
{
	char error[CURL_ERROR_SIZE] = "";
	char *url AUTO_FREE = NULL;
	CURLcode result;

	if (asprintf(&url, "%s/%s", request->tier->url, path) < 0)
		return;
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
	result = curl_easy_perform(easy);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, NULL);
	if (result == CURLE_OK)
		curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &request->status);
	if (result != CURLE_OK)
		snprintf(request->trouble, sizeof(request->trouble), "%s",
			 *error ? error : curl_easy_strerror(result));
	else if (request->status >= 300)
		s3_status_text(request->status, request->answer, request->trouble);
}

/* Whether the bucket has an object with DWARF; true with request->trouble: unknown. */
static bool has_better(CURL *easy, struct tier_request *request, const char *path)
{
	struct curl_slist *headers = NULL;
	struct curl_header *header;

	set_tier_options(easy, request);
	curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	s3_sign(easy, &request->tier->s3, S3_EMPTY_SHA256, &headers);
	send_to_tier(easy, request, path, headers);
	curl_slist_free_all(headers);
	if (request->status == 404) {
		request->trouble[0] = 0;
		return false;
	}
	if (request->status == 200 &&
	    !curl_easy_header(easy, "x-amz-meta-contents", 0, CURLH_HEADER, -1, &header))
		request->contents = (unsigned int)strtoul(header->value, NULL, 10);
	return request->trouble[0] || request->contents & SYM_CONTENT_DEBUG_INFO;
}

static void put_object(CURL *easy, struct tier_request *request, const char *path,
		       unsigned int contents)
{
	char hex[2 * DIGEST_SHA256_BYTES + 1], number[16];
	uint8_t digest[DIGEST_SHA256_BYTES];
	struct curl_slist *headers = NULL;

	if (digest_file(fileno(request->file), request->size_bytes, sizeof(digest), digest)) {
		snprintf(request->trouble, sizeof(request->trouble), "the object cannot be read");
		return;
	}
	hex_write_bytes(hex, digest, sizeof(digest));
	snprintf(number, sizeof(number), "%u", contents);
	set_tier_options(easy, request);
	curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
	curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->size_bytes);
	/* libcurl reads it, and begins again where it must. */
	curl_easy_setopt(easy, CURLOPT_READDATA, request->file);
	s3_sign(easy, &request->tier->s3, hex, &headers);
	s3_add_header(&headers, "x-amz-meta-contents: %s", number);
	/* A line "Expect:" in the list would be signed. */
	curl_easy_setopt(easy, CURLOPT_EXPECT_100_TIMEOUT_MS, 200L);
	request->status = 0;
	request->answer[0] = 0;
	send_to_tier(easy, request, path, headers);
	curl_slist_free_all(headers);
}

/* ---- one entry ---- */

enum upload_end {
	UPLOAD_STORED,
	UPLOAD_KEPT,
	UPLOAD_FAILED,
	UPLOAD_AGAIN,
};

static enum upload_end judge_upload(const struct tier_request *request)
{
	bool is_answer = request->status > 0 && request->status < 500;

	upstream_report(request->tier, is_answer ? UPSTREAM_ANSWERED : UPSTREAM_FAILED,
			clock_now_ms());
	if (!request->trouble[0])
		return UPLOAD_STORED;
	upstream_note_trouble(request->tier, request->trouble);
	if (upstream_refusal_is_news(request->tier, request->trouble, clock_now_ms()))
		log_message(LOG_LEVEL_WARNING, "tier %s: upload: %s", request->tier->name,
			    request->trouble);
	return is_answer ? UPLOAD_FAILED : UPLOAD_AGAIN;
}

static enum upload_end upload_entry(struct tier_uploads *uploads, CURL *easy,
				    const struct tier_entry *entry)
{
	struct tier_request request = { .uploads = uploads,
					.tier = entry->set->tier,
					.set = entry->set };
	char path[STORE_OBJECT_PATH_BYTES];
	FILE *file GUARDED(file) = NULL;
	struct store_record record = { 0 };
	int fd AUTO_CLOSE = -1;
	struct stat status;
	enum upload_end end;
	bool may_be_worse;

	if (store_object_path(entry->text, path) ||
	    store_find(uploads->store, entry->text, &fd, &record) || fstat(fd, &status) ||
	    !(file = fdopen(fd, "r"))) {
		upstream_report(request.tier, UPSTREAM_NOT_ASKED, clock_now_ms());
		store_record_deinit(&record);
		return UPLOAD_FAILED;
	}
	may_be_worse = !strncmp(entry->text, "debuginfo/", 10) &&
		       !(record.contents & SYM_CONTENT_DEBUG_INFO);
	steal_fd(&fd);
	request.file = file;
	request.size_bytes = (uint64_t)status.st_size;
	if (may_be_worse && has_better(easy, &request, path) && !request.trouble[0]) {
		end = UPLOAD_KEPT;
		upstream_report(request.tier, UPSTREAM_ANSWERED, clock_now_ms());
	} else {
		if (!request.trouble[0])
			put_object(easy, &request, path, record.contents);
		end = judge_upload(&request);
	}
	store_record_deinit(&record);
	pthread_mutex_lock(&uploads->lock);
	uploads->counts.bytes += end == UPLOAD_STORED ? request.size_bytes : 0;
	pthread_mutex_unlock(&uploads->lock);
	return end;
}

/* ---- the threads ---- */

/* Lock held: waits a moment, or until the threads end. */
static void tier_pause(struct tier_uploads *uploads)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += tier_pause_ms / 1000;
	while (!uploads->is_stopping &&
	       !pthread_cond_timedwait(&uploads->wake, &uploads->lock, &until))
		continue;
}

static void run_entry(struct job *job)
{
	struct tier_entry *entry =
		(struct tier_entry *)((char *)job - offsetof(struct tier_entry, job));
	struct tier_uploads *uploads = entry->uploads;
	enum upload_end end = UPLOAD_AGAIN;
	CURL *easy;

	pthread_mutex_lock(&uploads->lock);
	easy = uploads->idle[--uploads->idle_count];
	for (unsigned int tries = 0; end == UPLOAD_AGAIN && tries < most_tries; tries++) {
		if (tries)
			tier_pause(uploads);
		while (!uploads->is_stopping && !upstream_may_ask(entry->set->tier, clock_now_ms()))
			tier_pause(uploads);
		if (uploads->is_stopping)
			break;
		pthread_mutex_unlock(&uploads->lock);
		end = upload_entry(uploads, easy, entry);
		pthread_mutex_lock(&uploads->lock);
	}
	uploads->idle[uploads->idle_count++] = easy;
	uploads->counts.stored += end == UPLOAD_STORED;
	uploads->counts.kept += end == UPLOAD_KEPT;
	uploads->counts.failed += end == UPLOAD_FAILED || end == UPLOAD_AGAIN;
	pthread_mutex_unlock(&uploads->lock);
	entry_release(entry);
}

int tier_uploads_create(struct store *store, struct tier_uploads **ret)
{
	struct tier_uploads *uploads = calloc(1, sizeof(*uploads));
	pthread_condattr_t attributes;
	int failure = 0;

	if (!uploads)
		return -ENOMEM;
	uploads->store = store;
	pthread_mutex_init(&uploads->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&uploads->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	for (; !failure && uploads->idle_count < TIER_THREADS; uploads->idle_count += !failure) {
		uploads->idle[uploads->idle_count] = curl_easy_init();
		failure = uploads->idle[uploads->idle_count] ? 0 : -ENOMEM;
	}
	if (!failure)
		failure = workers_create(TIER_THREADS, &uploads->workers);
	if (failure)
		tier_uploads_destroy(uploads);
	else
		*ret = uploads;
	return failure;
}

void tier_uploads_destroy(struct tier_uploads *uploads)
{
	if (!uploads)
		return;
	pthread_mutex_lock(&uploads->lock);
	uploads->is_stopping = true;
	pthread_cond_broadcast(&uploads->wake);
	pthread_mutex_unlock(&uploads->lock);
	workers_destroy(uploads->workers);
	while (uploads->idle_count)
		curl_easy_cleanup(uploads->idle[--uploads->idle_count]);
	pthread_cond_destroy(&uploads->wake);
	pthread_mutex_destroy(&uploads->lock);
	free(uploads);
}

void tier_uploads_add(struct tier_uploads *uploads, struct upstream_set *set, const char *text)
{
	size_t length = strlen(text) + 1;
	struct tier_entry *entry = set->tier ? calloc(1, sizeof(*entry) + length) : NULL;

	if (!entry)
		return;
	memcpy(entry->text, text, length);
	entry->uploads = uploads;
	entry->set = upstream_set_take(set);
	pthread_mutex_lock(&uploads->lock);
	if (workers_waiting(uploads->workers) < most_entries && !uploads->is_stopping) {
		workers_submit(uploads->workers, &entry->job, run_entry);
		entry = NULL;
	} else {
		uploads->counts.dropped++;
	}
	pthread_mutex_unlock(&uploads->lock);
	if (entry)
		entry_release(entry);
}

void tier_uploads_counts(struct tier_uploads *uploads, struct tier_upload_counts *ret)
{
	pthread_mutex_lock(&uploads->lock);
	*ret = uploads->counts;
	ret->waiting = workers_waiting(uploads->workers);
	pthread_mutex_unlock(&uploads->lock);
}
