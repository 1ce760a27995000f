/* SPDX-License-Identifier: MIT */
/*
 * One thread runs all transfers with curl's multi interface.
 *
 * A transfer waits in the queue of its upstream until one of its places is free. Then it becomes
 * an attempt: tries with pauses between them, and each try with its redirects. Redirects are
 * followed here, not by curl, so that each address and each use of credentials is checked.
 *
 *   upstream_client_start()  other threads put transfers into `arrived` and wake the thread
 *   http_client_run()        takes arrived, delayed and finished transfers, then waits in curl
 *   judge_status(), judge_failure()   result of a try: done, redirect, or another try after a pause
 *
 * When the store has no room, the transfer is paused and resumed later; its connection stays open.
 */
#include "symsrv/upstream/http_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <sys/random.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "symsrv/upstream/s3.h"
#include "symsrv/upstream/url_origin.h"
#include "symsrv/util/clock.h"
#include "symsrv/util/version.h"

static const unsigned int most_redirects = 5;
static const int64_t retry_base_ms = 250;
static const int64_t longest_retry_ms = 5000;
static const int64_t longest_wait_ms = 10000; /* longest wait for a Retry-After */
static const curl_off_t longest_retry_after_s = 86400;
static const uint64_t most_ignored_bytes = 1 << 20;
/* Time between checks whether there is room for paused transfers. */
static const int64_t room_pause_ms = 50;

LIST_HEAD(attempts, attempt);

struct upstream_client {
	CURLM *multi;
	pthread_t thread;
	pthread_mutex_t lock; /* protects `arrived`, and setting `is_ending` */
	struct transfers arrived;
	atomic_bool is_ending;
	const char *own_name;
	struct attempts delayed; /* waiting for their next try */
	struct attempts running;
	bool has_stopped; /* some transfers wait for room in the store */
	int64_t next_look_ms;
};

/* A transfer that is running. */
struct attempt {
	struct transfer *transfer;
	struct upstream_client *client;
	CURL *easy;
	struct curl_slist *headers;
	char *url; /* URL of the present redirect; heap */
	unsigned int tries;
	unsigned int redirects;
	bool is_foreign; /* a redirect led away from the configured host */
	bool was_denied;
	bool is_stopped; /* paused until the store has room */
	int append_failure;
	size_t unnoted_bytes;   /* since heard_ms was set */
	uint64_t ignored_bytes; /* of bodies of answers other than 200 */
	char body[512];         /* of such an answer, its first bytes */
	int64_t not_before_ms;
	int64_t deadline_ms;       /* end of all tries with all their redirects */
	LIST_ENTRY(attempt) entry; /* in client->delayed or client->running */
	char curl_error[CURL_ERROR_SIZE];
};

/* ---- callbacks of libcurl ----------------------------------------------------- */

static bool is_denied(const struct attempt *attempt, const struct sockaddr *address)
{
	const struct upstream_set *set = attempt->transfer->set;

	if (cidr_rules_contain(&set->deny, address))
		return true;
	return attempt->is_foreign && net_is_internal(address) &&
	       !cidr_rules_contain(&set->allow, address);
}

/* The address is known here, after name resolution, so no name gets around the rules. */
static curl_socket_t on_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct attempt *attempt = context;

	if (purpose != CURLSOCKTYPE_IPCXN || is_denied(attempt, &address->addr)) {
		attempt->was_denied = true;
		return CURL_SOCKET_BAD;
	}
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* Also called when a connection is reused, which opens no socket. */
static int on_request(void *context, char *remote, char *local, int remote_port, int local_port)
{
	struct attempt *attempt = context;
	struct sockaddr_storage address;

	(void)local;
	(void)remote_port;
	(void)local_port;
	if (net_address_from_text(remote, &address) &&
	    !is_denied(attempt, (const struct sockaddr *)&address))
		return CURL_PREREQFUNC_OK;
	attempt->was_denied = true;
	return CURL_PREREQFUNC_ABORT;
}

/* -ENOSPC: its length is more than the store can hold; -EAGAIN: more than it can hold now. The
 * length of a compressed body is its compressed length. */
static int expect_length(struct attempt *attempt)
{
	struct curl_header *encoding;
	curl_off_t bytes = -1;

	curl_easy_getinfo(attempt->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &bytes);
	if (bytes < 0 ||
	    !curl_easy_header(attempt->easy, "Content-Encoding", 0, CURLH_HEADER, -1, &encoding))
		return 0;
	return store_reserve(attempt->transfer->incoming, (uint64_t)bytes);
}

static int http_client_append(struct attempt *attempt, const char *bytes, size_t count)
{
	const struct transfer *transfer = attempt->transfer;
	uint64_t before = store_incoming_bytes(transfer->incoming);
	int failure = before ? 0 : expect_length(attempt);

	/* Counted here too, because a compressed or chunked body has no length. */
	if (!failure && before + count > transfer->set->max_object_bytes)
		failure = -EFBIG;
	return failure ? failure : store_append(transfer->incoming, bytes, count);
}

/* A tier that sends a few bytes now and then is of no more use than one that is silent. */
static void note_bytes(struct attempt *attempt, size_t count)
{
	attempt->unnoted_bytes += count;
	if (attempt->transfer->upstream->kind == UPSTREAM_S3 &&
	    attempt->unnoted_bytes < S3_LEAST_BYTES)
		return;
	attempt->unnoted_bytes = 0;
	*attempt->transfer->heard_ms = clock_now_ms();
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
	struct attempt *attempt = context;
	long status = 0;

	count *= size;
	curl_easy_getinfo(attempt->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200) {
		s3_keep_body(attempt->body, sizeof(attempt->body), bytes, count);
		/* Read up to a limit, so that the connection can be reused. */
		attempt->ignored_bytes += count;
		return attempt->ignored_bytes <= most_ignored_bytes ? count : 0;
	}
	note_bytes(attempt, count);
	attempt->append_failure = http_client_append(attempt, bytes, count);
	if (attempt->append_failure != -EAGAIN)
		return attempt->append_failure ? 0 : count;
	/* The other side waits, and the same bytes come again later. */
	attempt->append_failure = 0;
	attempt->is_stopped = attempt->client->has_stopped = true;
	return CURL_WRITEFUNC_PAUSE;
}

static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct attempt *attempt = context;

	(void)a;
	(void)b;
	(void)c;
	(void)d;
	return *attempt->transfer->cancel;
}

/* ---- one hop ---- */

static void set_headers(struct attempt *attempt)
{
	const struct transfer *transfer = attempt->transfer;

	curl_slist_free_all(attempt->headers);
	attempt->headers = NULL;
	if (transfer->upstream->kind == UPSTREAM_S3) {
		s3_sign(attempt->easy, &transfer->upstream->s3, S3_EMPTY_SHA256, &attempt->headers);
		curl_easy_setopt(attempt->easy, CURLOPT_ACCEPT_ENCODING, NULL);
		curl_easy_setopt(attempt->easy, CURLOPT_HTTPHEADER, attempt->headers);
		return;
	}
	if (transfer->upstream->kind == UPSTREAM_PEER)
		s3_add_header(&attempt->headers, PEER_HEADER ": %s", "1");
	s3_add_header(&attempt->headers, "Via: 1.1 %s", attempt->client->own_name);
	if (transfer->accepts_msfz)
		s3_add_header(&attempt->headers, "Accept: %s", "application/msfz0, */*");
	if (transfer->forwarded_for)
		s3_add_header(&attempt->headers, "X-Forwarded-For: %s", transfer->forwarded_for);
	if (transfer->upstream->authorization && !attempt->is_foreign)
		s3_add_header(&attempt->headers, "Authorization: %s",
			      transfer->upstream->authorization);
	curl_easy_setopt(attempt->easy, CURLOPT_HTTPHEADER, attempt->headers);
	curl_easy_setopt(attempt->easy, CURLOPT_USERNAME,
			 attempt->is_foreign ? NULL : transfer->upstream->user);
	curl_easy_setopt(attempt->easy, CURLOPT_PASSWORD,
			 attempt->is_foreign ? NULL : transfer->upstream->password);
}

static void set_limits(struct attempt *attempt)
{
	const struct upstream_set *set = attempt->transfer->set;
	CURL *easy = attempt->easy;

	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)set->connect_ms);
	/* Otherwise a timeout lasts until the resolver thread has its answer, and blocks all other
	 * transfers. */
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)((set->stall_ms + 999) / 1000));
	curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)set->max_object_bytes);
}

static void set_behaviour(struct attempt *attempt)
{
	CURL *easy = attempt->easy;

	curl_easy_setopt(easy, CURLOPT_PRIVATE, attempt);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, attempt->curl_error);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION,
			 0L); /* redirects are followed here, after a check of each */
	curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	/* With a proxy, the address of the proxy would be checked. */
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "symsrv/" SYMSRV_VERSION);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, attempt);
	curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_request);
	curl_easy_setopt(easy, CURLOPT_PREREQDATA, attempt);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, attempt);
	curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(easy, CURLOPT_XFERINFODATA, attempt);
}

static bool begin_hop(struct attempt *attempt)
{
	int64_t left_ms = attempt->deadline_ms - clock_now_ms();

	curl_easy_setopt(attempt->easy, CURLOPT_TIMEOUT_MS, left_ms > 0 ? (long)left_ms : 1L);
	curl_easy_setopt(attempt->easy, CURLOPT_URL, attempt->url);
	/* A password in a redirect comes from the upstream, not from the operator. */
	curl_easy_setopt(attempt->easy, CURLOPT_DISALLOW_USERNAME_IN_URL,
			 (long)(attempt->redirects > 0));
	set_headers(attempt);
	attempt->curl_error[0] = 0;
	attempt->ignored_bytes = 0;
	attempt->body[0] = 0;
	return !curl_multi_add_handle(attempt->client->multi, attempt->easy);
}

static bool begin_try(struct attempt *attempt)
{
	const struct transfer *transfer = attempt->transfer;

	free(attempt->url);
	if (asprintf(&attempt->url, "%s/%s", transfer->upstream->url, transfer->path) < 0)
		attempt->url = NULL;
	attempt->is_foreign = attempt->was_denied = attempt->is_stopped = false;
	attempt->redirects = 0;
	attempt->append_failure = 0;
	return attempt->url && begin_hop(attempt);
}

/* ---- turns ---- */

static struct upstream_queue *queue_of(const struct transfer *transfer)
{
	unsigned int last = UPSTREAM_QUEUES - 1;

	return &transfer->upstream->queues[transfer->depth < last ? transfer->depth : last];
}

static void start_waiting(struct upstream_client *client, struct upstream_queue *queue);

static void http_client_finish(struct transfer *transfer, enum transfer_outcome outcome,
			       const char *error)
{
	transfer->outcome = outcome;
	snprintf(transfer->error, sizeof(transfer->error), "%s", error);
	transfer->done(transfer);
}

static void end_attempt(struct attempt *attempt, enum transfer_outcome outcome, const char *error)
{
	struct transfer *transfer = attempt->transfer;
	struct upstream_queue *queue = queue_of(transfer);

	/* A trial without a report must not block the breaker for ever. */
	upstream_report(transfer->upstream, UPSTREAM_NOT_ASKED, 0);
	LIST_REMOVE(attempt, entry);
	queue->active--;
	start_waiting(attempt->client, queue);
	http_client_finish(transfer, outcome, error);
	curl_easy_cleanup(attempt->easy);
	curl_slist_free_all(attempt->headers);
	free(attempt->url);
	free(attempt);
}

static struct attempt *create_attempt(struct upstream_client *client, struct transfer *transfer)
{
	struct attempt *attempt = calloc(1, sizeof(*attempt));

	if (!attempt)
		return NULL;
	attempt->easy = curl_easy_init();
	if (!attempt->easy) {
		free(attempt);
		return NULL;
	}
	attempt->client = client;
	attempt->transfer = transfer;
	attempt->deadline_ms = clock_now_ms() + transfer->set->fetch_ms;
	set_behaviour(attempt);
	set_limits(attempt);
	return attempt;
}

static void http_client_begin(struct upstream_client *client, struct transfer *transfer)
{
	struct upstream *upstream = transfer->upstream;
	struct attempt *attempt;

	if (*transfer->cancel) {
		http_client_finish(transfer, TRANSFER_CANCELLED, "cancelled");
		return;
	}
	if (!upstream_may_ask(upstream, clock_now_ms())) {
		http_client_finish(transfer, TRANSFER_TRANSIENT,
				   "not asked: it failed too often of late");
		return;
	}
	/* Not earlier: transfers that wait would hold a descriptor each. */
	if (!transfer->incoming && store_begin(transfer->store, &transfer->incoming)) {
		upstream_report(upstream, UPSTREAM_NOT_ASKED, clock_now_ms());
		http_client_finish(transfer, TRANSFER_NO_ROOM, "cannot create a file in the store");
		return;
	}
	attempt = create_attempt(client, transfer);
	if (!attempt) {
		upstream_report(upstream, UPSTREAM_NOT_ASKED, clock_now_ms());
		http_client_finish(transfer, TRANSFER_TRANSIENT, "out of memory");
		return;
	}
	queue_of(transfer)->active++;
	upstream->counts.asked++;
	LIST_INSERT_HEAD(&client->running, attempt, entry);
	if (!begin_try(attempt))
		end_attempt(attempt, TRANSFER_TRANSIENT, "cannot start the transfer");
}

/* Starts as many as may run. Each upstream has its own queue, so a slow one delays no other. */
static void start_waiting(struct upstream_client *client, struct upstream_queue *queue)
{
	struct transfer *transfer;

	while ((transfer = STAILQ_FIRST(&queue->waiting)) &&
	       queue->active < transfer->set->max_fetches) {
		STAILQ_REMOVE_HEAD(&queue->waiting, next);
		http_client_begin(client, transfer);
	}
}

static void take_arrived(struct upstream_client *client)
{
	struct transfers arrived = STAILQ_HEAD_INITIALIZER(arrived);
	struct transfer *transfer;

	pthread_mutex_lock(&client->lock);
	STAILQ_CONCAT(&arrived, &client->arrived);
	pthread_mutex_unlock(&client->lock);
	while ((transfer = STAILQ_FIRST(&arrived))) {
		struct upstream_queue *queue = queue_of(transfer);

		STAILQ_REMOVE_HEAD(&arrived, next);
		STAILQ_INSERT_TAIL(&queue->waiting, transfer, next);
		start_waiting(client, queue);
	}
}

/* ---- ends of hops ---- */

/* 0: the header is missing. */
static int64_t retry_after_ms(const struct attempt *attempt)
{
	curl_off_t retry_after_s = 0;

	curl_easy_getinfo(attempt->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
	if (retry_after_s > longest_retry_after_s)
		retry_after_s = longest_retry_after_s;
	return retry_after_s * 1000;
}

/* Full jitter: many servers that failed together do not retry together. */
static int64_t retry_delay_ms(const struct attempt *attempt)
{
	int64_t most = retry_base_ms << (attempt->tries < 6 ? attempt->tries : 6);
	int64_t told_ms = retry_after_ms(attempt);
	uint32_t random = 0;

	if (told_ms)
		return told_ms;
	if (most > longest_retry_ms)
		most = longest_retry_ms;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = 0;
	return 1 + random % most;
}

/* Returns false if there is no time for another try. */
static bool put_off(struct attempt *attempt)
{
	struct transfer *transfer = attempt->transfer;

	attempt->not_before_ms = clock_now_ms() + retry_delay_ms(attempt);
	if (*transfer->cancel || attempt->not_before_ms >= attempt->deadline_ms ||
	    store_restart(transfer->incoming))
		return false;
	LIST_REMOVE(attempt, entry);
	LIST_INSERT_HEAD(&attempt->client->delayed, attempt, entry);
	return true;
}

static void retry_or_end(struct attempt *attempt, bool may_retry, const char *error)
{
	const struct upstream *upstream = attempt->transfer->upstream;

	/* There is another way to the object, without waiting. */
	if (may_retry && !upstream_is_optional(upstream) &&
	    attempt->tries < attempt->transfer->set->retries && put_off(attempt))
		attempt->tries++;
	else
		end_attempt(attempt, TRANSFER_TRANSIENT, error);
}

static void follow_redirect(struct attempt *attempt)
{
	char *target = NULL;
	char *url;

	curl_easy_getinfo(attempt->easy, CURLINFO_REDIRECT_URL, &target);
	if (!target || attempt->redirects >= most_redirects) {
		end_attempt(attempt, TRANSFER_DENIED,
			    target ? "too many redirects" : "a redirect to nowhere");
		return;
	}
	if (strncmp(target, "https://", 8) != 0 &&
	    (strncmp(target, "http://", 7) != 0 || !strncmp(attempt->url, "https://", 8))) {
		end_attempt(attempt, TRANSFER_DENIED, "a redirect away from HTTPS or HTTP");
		return;
	}
	url = strdup(target);
	if (!url) {
		end_attempt(attempt, TRANSFER_TRANSIENT, "out of memory");
		return;
	}
	/* Once a redirect has left the configured host, credentials stay off: the next URL may
	 * contain what a foreign server put in. */
	attempt->is_foreign |= !url_same_origin(attempt->transfer->upstream->url, url);
	attempt->redirects++;
	free(attempt->url);
	attempt->url = url;
	if (!begin_hop(attempt))
		end_attempt(attempt, TRANSFER_TRANSIENT, "cannot start the transfer");
}

static void take_unqueried(struct attempt *attempt)
{
	struct curl_header *header;

	if (!curl_easy_header(attempt->easy, PROXY_LOOP_UNASKED_HEADER, 0, CURLH_HEADER, -1,
			      &header))
		attempt->transfer->came_back = proxy_loop_add_unqueried(
			attempt->transfer->unqueried, header->value, attempt->client->own_name);
}

/*
 * Whether the answer is about the server, not about the object: a symsrv sends 503 with Retry-After
 * for objects that its upstreams may have, and still serves all others.
 */
static bool is_server_failure(const struct attempt *attempt, long status)
{
	return status >= 500 &&
	       (status != 503 ||
		(attempt->transfer->upstream->kind != UPSTREAM_SYMSRV &&
		 attempt->transfer->upstream->kind != UPSTREAM_PEER) ||
		!retry_after_ms(attempt) || retry_after_ms(attempt) > longest_wait_ms);
}

static void judge_status(struct attempt *attempt)
{
	struct upstream *upstream = attempt->transfer->upstream;
	long status = 0;
	char text[S3_STATUS_BYTES];

	curl_easy_getinfo(attempt->easy, CURLINFO_RESPONSE_CODE, &status);
	attempt->transfer->status = status;
	s3_status_text(status, attempt->body, text);
	if (upstream->kind == UPSTREAM_S3 && status >= 300 && status < 400)
		status = 400;
	if (status == 301 || status == 302 || status == 303 || status == 307 || status == 308) {
		follow_redirect(attempt);
		return;
	}
	if (status >= 500 || status == 408 || status == 429 || status < 200) {
		/* The network works, but a flood of 5xx deserves a pause too. */
		upstream_report(upstream,
				is_server_failure(attempt, status) ? UPSTREAM_FAILED
								   : UPSTREAM_ANSWERED,
				clock_now_ms());
		if (retry_after_ms(attempt) > longest_wait_ms) {
			upstream_rests(upstream, clock_now_ms(), retry_after_ms(attempt));
			end_attempt(attempt, TRANSFER_TRANSIENT, text);
			return;
		}
		retry_or_end(attempt, true, text);
		return;
	}
	upstream_report(upstream, UPSTREAM_ANSWERED, clock_now_ms());
	if (status == 404)
		take_unqueried(attempt);
	if (status == 200)
		end_attempt(attempt, TRANSFER_GOT, "");
	else if (status == 404 || status == 410)
		end_attempt(attempt, TRANSFER_MISSING, text);
	else
		end_attempt(attempt, TRANSFER_REFUSED, text);
}

static void judge_failure(struct attempt *attempt, CURLcode code)
{
	struct transfer *transfer = attempt->transfer;
	const char *error = attempt->curl_error[0] ? attempt->curl_error : curl_easy_strerror(code);
	bool is_ours = attempt->was_denied || attempt->append_failure || attempt->is_stopped ||
		       code == CURLE_FILESIZE_EXCEEDED || *transfer->cancel ||
		       code == CURLE_OUT_OF_MEMORY;
	const char *slowness = *transfer->cancel ? s3_slowness(attempt->easy) : NULL;

	if (slowness)
		upstream_report_slowness(transfer->upstream, slowness, clock_now_ms());
	else
		upstream_report(transfer->upstream, is_ours ? UPSTREAM_NOT_ASKED : UPSTREAM_FAILED,
				clock_now_ms());
	if (attempt->was_denied)
		end_attempt(attempt, TRANSFER_DENIED, "an address that must not be reached");
	else if (*transfer->cancel)
		end_attempt(attempt, TRANSFER_CANCELLED, "cancelled");
	else if (attempt->append_failure == -EFBIG || code == CURLE_FILESIZE_EXCEEDED)
		end_attempt(attempt, TRANSFER_TOO_LARGE, "larger than --max-object-bytes");
	else if (attempt->append_failure == -EDEADLK && put_off(attempt))
		return; /* not a failure of the server, so no try */
	else if (attempt->append_failure == -ENOSPC || attempt->append_failure == -EDEADLK ||
		 attempt->is_stopped)
		end_attempt(attempt, TRANSFER_NO_ROOM, "no room for it in the store");
	else if (attempt->append_failure)
		end_attempt(attempt, TRANSFER_NO_ROOM, strerror(-attempt->append_failure));
	else
		retry_or_end(attempt, code != CURLE_OPERATION_TIMEDOUT, error);
}

static void take_finished(struct upstream_client *client)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(client->multi, &left))) {
		CURL *easy = message->easy_handle;
		CURLcode code = message->data.result;
		struct attempt *attempt;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&attempt);
		curl_multi_remove_handle(client->multi, easy);
		if (code == CURLE_OK || attempt->ignored_bytes > most_ignored_bytes)
			judge_status(attempt);
		else
			judge_failure(attempt, code);
	}
}

/* Starts the tries that are due; returns the time until the next one. */
static int64_t take_delayed(struct upstream_client *client)
{
	int64_t now = clock_now_ms();
	int64_t wait = 1000;
	struct attempt *attempt, *next;

	for (attempt = LIST_FIRST(&client->delayed); attempt; attempt = next) {
		next = LIST_NEXT(attempt, entry);
		if (attempt->not_before_ms > now && !*attempt->transfer->cancel) {
			if (attempt->not_before_ms - now < wait)
				wait = attempt->not_before_ms - now;
			continue;
		}
		LIST_REMOVE(attempt, entry);
		LIST_INSERT_HEAD(&client->running, attempt, entry);
		if (*attempt->transfer->cancel)
			end_attempt(attempt, TRANSFER_CANCELLED, "cancelled");
		else if (!begin_try(attempt))
			end_attempt(attempt, TRANSFER_TRANSIENT, "cannot start the transfer");
	}
	return wait;
}

/* Resumes paused transfers, as far as there is room. */
static void resume_stopped(struct upstream_client *client)
{
	int64_t now = clock_now_ms();
	struct attempt *attempt, *next;

	if (!client->has_stopped || now < client->next_look_ms)
		return;
	client->has_stopped = false;
	client->next_look_ms = now + room_pause_ms;
	for (attempt = LIST_FIRST(&client->running); attempt; attempt = next) {
		CURLcode code;

		next = LIST_NEXT(attempt, entry);
		if (!attempt->is_stopped)
			continue;
		attempt->is_stopped = false;
		code = curl_easy_pause(attempt->easy, CURLPAUSE_CONT);
		if (code == CURLE_OK)
			continue;
		/* Then the bytes that curl had buffered are lost, and no other callback reports it.
		 */
		curl_multi_remove_handle(client->multi, attempt->easy);
		judge_failure(attempt, code);
	}
}

static void end_all(struct upstream_client *client)
{
	struct attempt *attempt;

	while ((attempt = LIST_FIRST(&client->running))) {
		curl_multi_remove_handle(client->multi, attempt->easy);
		end_attempt(attempt, TRANSFER_CANCELLED, "the server stops");
	}
	while ((attempt = LIST_FIRST(&client->delayed)))
		end_attempt(attempt, TRANSFER_CANCELLED, "the server stops");
}

static void *http_client_run(void *context)
{
	struct upstream_client *client = context;
	int64_t wait_ms;
	int running;

	while (!client->is_ending) {
		take_arrived(client);
		resume_stopped(client);
		curl_multi_perform(client->multi, &running);
		take_finished(client); /* some are to be tried again */
		wait_ms = take_delayed(client);
		if (client->has_stopped && wait_ms > room_pause_ms)
			wait_ms = room_pause_ms;
		curl_multi_poll(client->multi, NULL, 0, (int)wait_ms, NULL);
	}
	take_arrived(client);
	end_all(client);
	return NULL;
}

int upstream_client_create(const char *own_name, struct upstream_client **ret)
{
	struct upstream_client *client = calloc(1, sizeof(*client));
	int failure;

	if (!client || curl_global_init(CURL_GLOBAL_DEFAULT)) {
		free(client);
		return -ENOMEM;
	}
	client->own_name = own_name;
	STAILQ_INIT(&client->arrived);
	pthread_mutex_init(&client->lock, NULL);
	client->multi = curl_multi_init();
	failure = client->multi ? pthread_create(&client->thread, NULL, http_client_run, client)
				: ENOMEM;
	if (failure) {
		curl_multi_cleanup(client->multi);
		free(client);
		return -failure;
	}
	*ret = client;
	return 0;
}

void upstream_client_stop(struct upstream_client *client)
{
	bool was_ending;

	pthread_mutex_lock(&client->lock);
	was_ending = atomic_exchange(&client->is_ending, true);
	pthread_mutex_unlock(&client->lock);
	if (was_ending)
		return;
	curl_multi_wakeup(client->multi);
	pthread_join(client->thread, NULL);
}

void upstream_client_destroy(struct upstream_client *client)
{
	if (!client)
		return;
	upstream_client_stop(client);
	curl_multi_cleanup(client->multi);
	pthread_mutex_destroy(&client->lock);
	curl_global_cleanup();
	free(client);
}

void upstream_client_start(struct upstream_client *client, struct transfer *transfer)
{
	bool is_ending;

	pthread_mutex_lock(&client->lock);
	is_ending = client->is_ending;
	if (!is_ending)
		STAILQ_INSERT_TAIL(&client->arrived, transfer, next);
	pthread_mutex_unlock(&client->lock);
	if (is_ending)
		http_client_finish(transfer, TRANSFER_CANCELLED, "the server stops");
	else
		curl_multi_wakeup(client->multi);
}
