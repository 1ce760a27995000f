/* SPDX-License-Identifier: MIT */
/*
 * How an object gets into the bucket.
 *
 *   tier_uploads_add()   one entry in the queue
 *   tier_run()           two threads take entries; each has one connection that it reuses
 *   upload_entry()       opens the object in the store, asks whether the bucket has a better one,
 * PUTs end_upload()         counted; after a transient failure the entry goes back to the queue
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

#define TIER_THREADS 2
static const size_t most_entries = 4096;
static const unsigned int most_tries = 3;
/* Between tries, and while the tier is left alone after failures. */
static const long tier_pause_ms = 1000;

struct tier_entry {
	struct tier_entry *next;
	struct upstream_set *set; /* a reference */
	unsigned int tries;
	char text[];
};

struct tier_uploads {
	struct store *store;
	pthread_t threads[TIER_THREADS];
	unsigned int thread_count;
	pthread_mutex_t lock; /* protects everything below */
	pthread_cond_t wake;
	struct tier_entry *first, **last;
	struct tier_upload_counts counts;
	atomic_bool is_stopping;
};

/* One request. */
struct tier_request {
	struct tier_uploads *uploads;
	struct upstream *tier;
	const struct upstream_set *set;
	int fd;
	uint64_t position, size_bytes;
	long status; /* 0: no answer */
	char answer[1024];
	size_t answer_bytes;
	unsigned int contents; /* of the object in the bucket */
	char trouble[160];
};

static void entry_release(struct tier_entry *entry)
{
	upstream_set_release(entry->set);
	free(entry);
}

/* ---- one request ---- */

static size_t read_upload(char *room, size_t size, size_t count, void *context)
{
	struct tier_request *request = context;
	uint64_t left = request->size_bytes - request->position;
	size_t wanted = size * count < left ? size * count : (size_t)left;
	ssize_t got = pread(request->fd, room, wanted, (off_t)request->position);

	if (got < 0)
		return CURL_READFUNC_ABORT;
	request->position += (uint64_t)got;
	return (size_t)got;
}

static int seek_upload(void *context, curl_off_t offset, int origin)
{
	struct tier_request *request = context;

	if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > request->size_bytes)
		return CURL_SEEKFUNC_FAIL;
	request->position = (uint64_t)offset;
	return CURL_SEEKFUNC_OK;
}

static size_t take_answer(char *bytes, size_t size, size_t count, void *context)
{
	struct tier_request *request = context;

	size_t room = sizeof(request->answer) - 1 - request->answer_bytes, kept;

	count *= size;
	kept = count < room ? count : room;
	memcpy(request->answer + request->answer_bytes, bytes, kept);
	request->answer_bytes += kept;
	return count;
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
	char error[CURL_ERROR_SIZE] = "", code[S3_CODE_BYTES];
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
	request->answer[request->answer_bytes] = 0;
	s3_error_code(request->answer, code);
	if (result != CURLE_OK)
		snprintf(request->trouble, sizeof(request->trouble), "%s",
			 *error ? error : curl_easy_strerror(result));
	else if (request->status >= 300)
		snprintf(request->trouble, sizeof(request->trouble), "HTTP status %ld%s%s",
			 request->status, *code ? " " : "", code);
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

	if (digest_file(request->fd, request->size_bytes, digest, NULL)) {
		snprintf(request->trouble, sizeof(request->trouble), "the object cannot be read");
		return;
	}
	hex_write_bytes(hex, digest, sizeof(digest));
	snprintf(number, sizeof(number), "%u", contents);
	set_tier_options(easy, request);
	curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
	curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->size_bytes);
	curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_upload);
	curl_easy_setopt(easy, CURLOPT_READDATA, request);
	curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, seek_upload);
	curl_easy_setopt(easy, CURLOPT_SEEKDATA, request);
	s3_sign(easy, &request->tier->s3, hex, &headers);
	s3_add_header(&headers, "x-amz-meta-contents", number);
	/* A line "Expect:" in the list would be signed. */
	curl_easy_setopt(easy, CURLOPT_EXPECT_100_TIMEOUT_MS, 200L);
	request->status = 0;
	request->answer_bytes = 0;
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
	struct store_record record;
	int fd AUTO_CLOSE = -1;
	struct stat status;
	enum upload_end end;
	bool may_be_worse;

	if (store_object_path(entry->text, path) ||
	    store_find(uploads->store, entry->text, &fd, &record) || fstat(fd, &status)) {
		upstream_report(request.tier, UPSTREAM_NOT_ASKED, clock_now_ms());
		return UPLOAD_FAILED;
	}
	may_be_worse = !strncmp(entry->text, "debuginfo/", 10) &&
		       !(record.contents & SYM_CONTENT_DEBUG_INFO);
	request.fd = fd;
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

/* ---- the queue ---- */

/* Lock held. */
static void tier_push(struct tier_uploads *uploads, struct tier_entry *entry)
{
	entry->next = NULL;
	*uploads->last = entry;
	uploads->last = &entry->next;
	uploads->counts.waiting++;
	pthread_cond_signal(&uploads->wake);
}

/* Lock held; NULL: the threads end. */
static struct tier_entry *tier_pop(struct tier_uploads *uploads)
{
	struct tier_entry *entry;

	while (!uploads->first && !uploads->is_stopping)
		pthread_cond_wait(&uploads->wake, &uploads->lock);
	if (uploads->is_stopping)
		return NULL;
	entry = uploads->first;
	uploads->first = entry->next;
	if (!uploads->first)
		uploads->last = &uploads->first;
	uploads->counts.waiting--;
	return entry;
}

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

static void end_upload(struct tier_uploads *uploads, struct tier_entry *entry, enum upload_end end)
{
	pthread_mutex_lock(&uploads->lock);
	if (end == UPLOAD_AGAIN && ++entry->tries < most_tries && !uploads->is_stopping) {
		tier_push(uploads, entry);
		tier_pause(uploads);
		entry = NULL;
	}
	uploads->counts.stored += entry && end == UPLOAD_STORED;
	uploads->counts.kept += entry && end == UPLOAD_KEPT;
	uploads->counts.failed += entry && (end == UPLOAD_FAILED || end == UPLOAD_AGAIN);
	pthread_mutex_unlock(&uploads->lock);
	if (entry)
		entry_release(entry);
}

static void *tier_run(void *context)
{
	struct tier_uploads *uploads = context;
	CURL *easy = curl_easy_init();
	struct tier_entry *entry;

	for (;;) {
		pthread_mutex_lock(&uploads->lock);
		entry = tier_pop(uploads);
		while (entry && !uploads->is_stopping &&
		       !upstream_may_ask(entry->set->tier, clock_now_ms()))
			tier_pause(uploads);
		pthread_mutex_unlock(&uploads->lock);
		if (!entry)
			break;
		end_upload(uploads, entry,
			   easy && !uploads->is_stopping ? upload_entry(uploads, easy, entry)
							 : UPLOAD_FAILED);
	}
	curl_easy_cleanup(easy);
	return NULL;
}

int tier_uploads_create(struct store *store, struct tier_uploads **ret)
{
	struct tier_uploads *uploads = calloc(1, sizeof(*uploads));
	pthread_condattr_t attributes;
	int failure = 0;

	if (!uploads)
		return -ENOMEM;
	uploads->store = store;
	uploads->last = &uploads->first;
	pthread_mutex_init(&uploads->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&uploads->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	while (!failure && uploads->thread_count < TIER_THREADS) {
		failure = pthread_create(&uploads->threads[uploads->thread_count], NULL, tier_run,
					 uploads);
		uploads->thread_count += !failure;
	}
	if (failure)
		tier_uploads_destroy(uploads);
	else
		*ret = uploads;
	return -failure;
}

void tier_uploads_destroy(struct tier_uploads *uploads)
{
	struct tier_entry *entry;

	if (!uploads)
		return;
	pthread_mutex_lock(&uploads->lock);
	uploads->is_stopping = true;
	pthread_cond_broadcast(&uploads->wake);
	pthread_mutex_unlock(&uploads->lock);
	while (uploads->thread_count)
		pthread_join(uploads->threads[--uploads->thread_count], NULL);
	while ((entry = uploads->first)) {
		uploads->first = entry->next;
		entry_release(entry);
	}
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
	entry->set = upstream_set_take(set);
	pthread_mutex_lock(&uploads->lock);
	if (uploads->counts.waiting < most_entries && !uploads->is_stopping) {
		tier_push(uploads, entry);
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
	pthread_mutex_unlock(&uploads->lock);
}
