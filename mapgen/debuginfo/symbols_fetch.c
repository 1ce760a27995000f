/* SPDX-License-Identifier: MIT */
/*
 * How the debug file of one build-id gets into the tree.
 *
 *   symbols_find()       in the tree, or in the standard tree: nothing to fetch
 *   ask_servers()        each server in order, each with both protocols (try_url())
 *   wanted_file_objection()  identity of what arrived; otherwise it is discarded
 *   commit_output()      one rename gives the file its name
 *
 * Where lines are wanted, a file without DWARF is kept only if no server has one with it. A server
 * that cannot be reached is not asked again in this run.
 */
#include "mapgen/debuginfo/symbols_fetch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "libsym/base/foreign_file.h"
#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "mapgen/cli/message.h"
#include "mapgen/debuginfo/libcurl_dlopen.h"
#include "mapgen/debuginfo/symbol_servers.h"
#include "mapgen/debuginfo/wanted_file.h"

/* No published debug file of a runtime is larger; that of a browser has 2 GB. */
static const curl_off_t longest_file_bytes = (curl_off_t)4 << 30;
static const long connect_s = 10;
/* An upstream of the server may have to unpack an archive first; libdebuginfod waits as long. */
static const long stall_s = 90;
/* Average over stall_s: a slow trickle must not last forever. */
static const long slowest_bytes_s = 1024;

/* A server may unpack for a long time for one file; the next file is still asked for. */
static const unsigned int most_silences = 2;

struct server {
	const char *url;
	char *shown;    /* heap, without user and password */
	char *given_up; /* heap: why it is no longer asked, or NULL */
	unsigned int silences;
};

struct symbols_fetcher {
	const struct options *options;
	struct symbols_choice choice;
	const struct curl_api *api;
	CURL *curl; /* NULL: no server is asked */
	struct server *servers;
	size_t server_count;
	struct progress *progress; /* NULL: none */
};

static const uint32_t any_symbols = SYM_CONTENT_DEBUG_INFO | SYM_CONTENT_SYMBOL_TABLE;

static const char *const outcome_texts[SYMBOLS_OUTCOMES] = {
	[SYMBOLS_OWN] = "own",         [SYMBOLS_HERE] = "here",     [SYMBOLS_FETCHED] = "fetched",
	[SYMBOLS_MISSING] = "missing", [SYMBOLS_FAILED] = "failed", [SYMBOLS_NO_ID] = "no-build-id",
};

const char *symbols_outcome_text(enum symbols_outcome outcome)
{
	return outcome_texts[outcome];
}

void symbols_result_deinit(struct symbols_result *result)
{
	free(result->path);
	free(result->reason);
	*result = (struct symbols_result){ 0 };
}

static bool make_servers(struct symbols_fetcher *fetcher)
{
	const char **urls = fetcher->choice.servers;

	while (urls[fetcher->server_count])
		fetcher->server_count++;
	fetcher->servers = calloc(fetcher->server_count + 1, sizeof(*fetcher->servers));
	for (size_t i = 0; fetcher->servers && i < fetcher->server_count; i++) {
		fetcher->servers[i].url = urls[i];
		fetcher->servers[i].shown = symbol_server_without_password(urls[i]);
		if (!fetcher->servers[i].shown)
			return false;
	}
	return fetcher->servers != NULL;
}

/* False, with a message. */
static bool begin_fetching(struct symbols_fetcher *fetcher)
{
	const char *reason;

	if (!symbols_choice_can_keep(&fetcher->choice))
		return false;
	fetcher->api = curl_api_get(&reason);
	if (!fetcher->api) {
		message("cannot fetch: libcurl is missing (Debian: libcurl4): %s", reason);
		return false;
	}
	fetcher->curl = fetcher->api->easy_init();
	if (fetcher->curl && make_servers(fetcher))
		return true;
	message("cannot fetch: out of memory");
	return false;
}

struct symbols_fetcher *symbols_fetcher_create(const struct options *options,
					       struct progress *progress)
{
	struct symbols_fetcher *fetcher = calloc(1, sizeof(*fetcher));

	if (!fetcher) {
		message("out of memory");
		return NULL;
	}
	fetcher->options = options;
	fetcher->progress = progress;
	if (symbols_choice_make(options, &fetcher->choice) &&
	    (options->offline || begin_fetching(fetcher)))
		return fetcher;
	symbols_fetcher_destroy(fetcher);
	return NULL;
}

const struct symbols_choice *symbols_fetcher_choice(const struct symbols_fetcher *fetcher)
{
	return &fetcher->choice;
}

void symbols_fetcher_destroy(struct symbols_fetcher *fetcher)
{
	if (!fetcher)
		return;
	for (size_t i = 0; fetcher->servers && i < fetcher->server_count; i++) {
		free(fetcher->servers[i].shown);
		free(fetcher->servers[i].given_up);
	}
	free(fetcher->servers);
	if (fetcher->curl)
		fetcher->api->easy_cleanup(fetcher->curl);
	symbols_choice_deinit(&fetcher->choice);
	free(fetcher);
}

/* ---- what is in the tree, and whether it fits ---- */

static bool look_in(const char *tree, const struct wanted_file *wanted, struct symbols_result *ret)
{
	char *path AUTO_FREE = wanted_file_path(wanted, tree);
	int fd AUTO_CLOSE = foreign_file_open(-1, path, 0, NULL, NULL);

	const char *why = fd < 0 ? NULL : wanted_file_objection(wanted, fd, &ret->size_bytes);

	/* A server has the file, but it is useless: of two such reasons the first counts. */
	if (why && !ret->reason)
		ret->reason = message_format("%s: %s", path, why);
	if (fd < 0 || why)
		return false;
	free(ret->reason);
	ret->reason = NULL;
	ret->outcome = SYMBOLS_HERE;
	ret->path = STEAL(path);
	return true;
}

static void symbols_find(const char *tree, const struct wanted_file *wanted,
			 struct symbols_result *ret)
{
	*ret = (struct symbols_result){ .outcome = SYMBOLS_MISSING };
	if (!look_in(tree, wanted, ret) && strcmp(tree, SYMBOLS_STANDARD_TREE) != 0)
		look_in(SYMBOLS_STANDARD_TREE, wanted, ret);
}

/* ---- fetching ---- */

struct download {
	int fd;
	uint64_t bytes;
	int failure;    /* negative errno of writing */
	bool is_unsure; /* the server did not ask all its upstreams */
};

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
	struct download *download = context;

	count *= size;
	download->bytes += count;
	/* Counted here too, because a compressed body has no length. */
	download->failure = download->bytes > (uint64_t)longest_file_bytes
				    ? -EFBIG
				    : path_write_all(download->fd, bytes, count);
	return download->failure ? 0 : count;
}

/* A header of symsrv, sent with a miss. */
static size_t on_header(char *bytes, size_t size, size_t count, void *context)
{
	static const char unasked[] = "x-symsrv-unasked:";
	struct download *download = context;

	if (size * count >= sizeof(unasked) && !strncasecmp(bytes, unasked, sizeof(unasked) - 1))
		download->is_unsure = true;
	return size * count;
}

static int on_progress(void *context, curl_off_t total_bytes, curl_off_t bytes, curl_off_t a,
		       curl_off_t b)
{
	(void)a;
	(void)b;
	if (context)
		progress_bytes(context, (uint64_t)bytes, (uint64_t)total_bytes);
	return 0;
}

static void set_options(struct symbols_fetcher *fetcher, struct download *download)
{
	const struct curl_api *api = fetcher->api;
	CURL *curl = fetcher->curl;

	api->easy_reset(curl);
	api->easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	api->easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	api->easy_setopt(curl, CURLOPT_XFERINFODATA, fetcher->progress);
	/* libdebuginfod reads directories too. */
	api->easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https,file");
	api->easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	api->easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
	api->easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
	api->easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
	api->easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	api->easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "");
	api->easy_setopt(curl, CURLOPT_USERAGENT, "dotnet-mapgen");
	api->easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, connect_s);
	api->easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L); /* name servers included */
	api->easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, slowest_bytes_s);
	api->easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, stall_s);
	api->easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE, longest_file_bytes);
	api->easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	api->easy_setopt(curl, CURLOPT_WRITEDATA, download);
	api->easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	api->easy_setopt(curl, CURLOPT_HEADERDATA, download);
}

static bool is_directory(const char *url)
{
	return !strncasecmp(url, "file://", 7);
}

enum answer {
	ANSWER_GOT,
	ANSWER_MISSING,
	ANSWER_FAILED,
	ANSWER_SILENCE,     /* the server sent nothing until the time limit */
	ANSWER_UNREACHABLE, /* and it will fail for the next file too */
};

static bool is_unreachable(const struct symbols_fetcher *fetcher, CURLcode code)
{
	curl_off_t connected_us = 0;
	long redirects = 0;

	/* The redirect was its answer, and the next file may be redirected elsewhere. */
	fetcher->api->easy_getinfo(fetcher->curl, CURLINFO_REDIRECT_COUNT, &redirects);
	if (redirects)
		return false;
	fetcher->api->easy_getinfo(fetcher->curl, CURLINFO_CONNECT_TIME_T, &connected_us);
	return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY ||
	       code == CURLE_COULDNT_CONNECT || code == CURLE_SSL_CONNECT_ERROR ||
	       code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_UNSUPPORTED_PROTOCOL ||
	       code == CURLE_URL_MALFORMAT || (code == CURLE_OPERATION_TIMEDOUT && !connected_us);
}

/* Servers of the other protocol answer 400 and 405. A server that refuses (403) did not say that
 * the file is missing. */
static bool is_miss(long status)
{
	return status == 404 || status == 410 || status == 400 || status == 405 || status == 204;
}

static enum answer failure_of(const struct symbols_fetcher *fetcher, CURLcode code,
			      const struct download *download)
{
	if (is_unreachable(fetcher, code))
		return ANSWER_UNREACHABLE;
	return code == CURLE_OPERATION_TIMEDOUT && !download->bytes ? ANSWER_SILENCE
								    : ANSWER_FAILED;
}

/* *reason_ret: heap, unless it is ANSWER_GOT or ANSWER_MISSING. */
static enum answer symbols_ask(struct symbols_fetcher *fetcher, const char *url, const char *header,
			       int fd, char **reason_ret)
{
	struct curl_slist headers = { (char *)(uintptr_t)header, NULL };
	struct download download = { .fd = fd };
	long status = 0;
	CURLcode code;

	set_options(fetcher, &download);
	fetcher->api->easy_setopt(fetcher->curl, CURLOPT_URL, url);
	if (header)
		fetcher->api->easy_setopt(fetcher->curl, CURLOPT_HTTPHEADER, &headers);
	code = fetcher->api->easy_perform(fetcher->curl);
	fetcher->api->easy_getinfo(fetcher->curl, CURLINFO_RESPONSE_CODE, &status);
	if (code == CURLE_OK && (status == 200 || is_directory(url)))
		return ANSWER_GOT;
	if (code == CURLE_FILE_COULDNT_READ_FILE ||
	    ((code == CURLE_OK || code == CURLE_HTTP_RETURNED_ERROR) && is_miss(status) &&
	     !download.is_unsure))
		return ANSWER_MISSING;
	if (download.is_unsure)
		*reason_ret = message_format("it could not ask all its upstreams");
	else if (download.failure)
		*reason_ret = message_format("cannot keep it: %s", strerror(-download.failure));
	else if (code == CURLE_OK || code == CURLE_HTTP_RETURNED_ERROR)
		*reason_ret = message_format(
			"status %ld%s", status,
			status == 401 || status == 403 || status == 407 ? ": refused" : "");
	else
		*reason_ret = message_format("%s", fetcher->api->easy_strerror(code));
	return failure_of(fetcher, code, &download);
}

static void give_up(struct symbols_fetcher *fetcher, struct server *server, const char *reason)
{
	if (fetcher->progress)
		progress_hide(fetcher->progress);
	message("cannot reach %s: %s; it is not asked again", server->shown, reason);
	server->given_up = message_format("%s", reason);
}

static void set_reason(struct symbols_result *result, const char *server, const char *reason)
{
	free(result->reason);
	result->reason = message_format("%s: %s", server, reason);
}

/* One try. The file is truncated first, so that a retry never appends. */
static enum answer try_url(struct symbols_fetcher *fetcher, struct server *server, const char *url,
			   int fd, const struct wanted_file *wanted, struct symbols_result *ret)
{
	char *reason AUTO_FREE = NULL, *header AUTO_FREE = wanted_file_header(wanted);
	const char *wrong;
	enum answer answer;

	if (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET) < 0)
		return ANSWER_FAILED;
	answer = symbols_ask(fetcher, url, header, fd, &reason);
	if (answer == ANSWER_GOT) {
		wrong = wanted_file_objection(wanted, fd, &ret->size_bytes);
		if (!wrong)
			return ANSWER_GOT;
		reason = message_format("its answer was discarded: %s", wrong);
		answer = ANSWER_FAILED;
	}
	server->silences = answer == ANSWER_SILENCE ? server->silences + 1 : 0;
	if (reason && (answer == ANSWER_UNREACHABLE || server->silences == most_silences))
		give_up(fetcher, server, reason);
	if (answer != ANSWER_MISSING && reason)
		set_reason(ret, server->shown, reason);
	return answer;
}

/* A missing directory gives no answer. curl decodes escapes. */
static void look_at_directory(struct symbols_fetcher *fetcher, struct server *server)
{
	const char *path = server->url + strlen("file://");
	struct stat status;

	if (is_directory(server->url) && *path == '/' && !strchr(path, '%') && stat(path, &status))
		give_up(fetcher, server, strerror(errno));
}

/* Tries each protocol; true when the server had the file. */
static bool ask_server(struct symbols_fetcher *fetcher, struct server *server, int fd,
		       const struct wanted_file *wanted, struct symbols_result *ret)
{
	enum answer answer = ANSWER_MISSING;

	if (!server->given_up)
		look_at_directory(fetcher, server);
	if (server->given_up)
		set_reason(ret, server->shown, server->given_up);
	for (unsigned int protocol = 0; protocol < WANTED_PROTOCOLS && !server->given_up;
	     protocol++) {
		char *url AUTO_FREE = wanted_file_url(wanted, server->url, protocol);

		if (url)
			answer = try_url(fetcher, server, url, fd, wanted, ret);
		if (answer == ANSWER_GOT)
			ret->server = server->shown;
		if (answer == ANSWER_GOT || answer == ANSWER_SILENCE)
			break;
	}
	return answer == ANSWER_GOT;
}

/* True when a server had the file. */
static bool ask_servers(struct symbols_fetcher *fetcher, int fd, const struct wanted_file *wanted,
			struct symbols_result *ret)
{
	for (size_t i = 0; i < fetcher->server_count; i++)
		if (ask_server(fetcher, &fetcher->servers[i], fd, wanted, ret))
			return true;
	return false;
}

/* Below .build-id also a PDB, so that only complete files get a directory. */
static int open_output(const char *tree, struct path_output *output)
{
	char *path AUTO_FREE = message_format("%s/.build-id/new", tree);

	return path_output_open(output, path);
}

static int commit_output(struct path_output *output, const char *path)
{
	char *directory AUTO_FREE = strndup(path, (size_t)(path_file_name(path) - path));
	int failure = directory ? path_make_directories(directory, 0755) : -ENOMEM;

	if (failure) {
		path_output_abandon(output);
		return failure;
	}
	failure = path_output_move(output, path);
	return failure ? failure : path_output_commit(output, 0644, true);
}

static void symbols_fetch_file(struct symbols_fetcher *fetcher, const struct wanted_file *wanted,
			       struct symbols_result *ret)
{
	struct path_output output;
	char *path AUTO_FREE = NULL;
	int failure;

	symbols_find(fetcher->choice.tree, wanted, ret);
	if (ret->outcome == SYMBOLS_HERE || !fetcher->curl)
		return;
	ret->outcome = SYMBOLS_FAILED;
	path = wanted_file_path(wanted, fetcher->choice.tree);
	failure = open_output(fetcher->choice.tree, &output);
	if (failure) {
		ret->reason = message_format("cannot write %s: %s", path, strerror(-failure));
		return;
	}
	if (!ask_servers(fetcher, output.fd, wanted, ret)) {
		path_output_abandon(&output);
		ret->outcome = ret->reason ? SYMBOLS_FAILED : SYMBOLS_MISSING;
		return;
	}
	failure = commit_output(&output, path);
	free(ret->reason);
	ret->reason =
		failure ? message_format("cannot write %s: %s", path, strerror(-failure)) : NULL;
	if (!failure) {
		ret->outcome = SYMBOLS_FETCHED;
		ret->path = STEAL(path);
	}
}

static bool was_found(const struct symbols_result *result)
{
	return result->outcome == SYMBOLS_HERE || result->outcome == SYMBOLS_FETCHED;
}

void symbols_fetch(struct symbols_fetcher *fetcher, const struct sym_identity *identity,
		   const struct sym_pdb_reference *pdb, struct symbols_result *ret)
{
	struct wanted_file wanted = { .identity = identity,
				      .contents = SYM_CONTENT_DEBUG_INFO,
				      .names_only = fetcher->options->names_only,
				      .pdb = pdb };

	*ret = (struct symbols_result){ .outcome = SYMBOLS_FAILED };
	if (pdb && (!pdb->is_portable || !wanted_file_has_plain_name(pdb))) {
		ret->reason = message_format("%s", pdb->is_portable ? "its PDB has no usable name"
								    : "its PDB is a Windows PDB");
		return;
	}
	if (identity && (fetcher->options->lines || fetcher->options->inlines)) {
		symbols_fetch_file(fetcher, &wanted, ret);
		if (was_found(ret))
			return;
		symbols_result_deinit(ret);
	}
	wanted.contents = any_symbols;
	symbols_fetch_file(fetcher, &wanted, ret);
}
