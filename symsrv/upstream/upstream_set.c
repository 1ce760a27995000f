/* SPDX-License-Identifier: MIT */
/*
 * From options to upstreams, and from keys to their paths.
 *
 * upstream_set_create() parses "[NAME@]KIND=URL", credentials and networks. An upstream that is
 * equal to one of the previous set is shared with it, so that its breaker and counts survive a
 * reload. upstream_path() lists the paths of a key at an upstream, one for each variant: both
 * protocols for a symsrv, several spellings of a name for a store, several layouts for a
 * directory.
 */
#include "symsrv/upstream/upstream_set.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "symsrv/key/debuginfod.h"
#include "symsrv/key/percent.h"
#include "symsrv/key/ssqp.h"
#include "symsrv/store/store.h"
#include "symsrv/util/log.h"

static const char *const kind_texts[] = {
	[UPSTREAM_SSQP] = "ssqp",     [UPSTREAM_DEBUGINFOD] = "debuginfod",
	[UPSTREAM_SYMSRV] = "symsrv", [UPSTREAM_DIR] = "dir",
	[UPSTREAM_S3] = "s3",         [UPSTREAM_PEER] = "peer",
};

/* A refusal concerns every object, so it is logged once. */
static const int64_t refusal_silence_ms = 3600 * 1000;
/* Failures within this time are one outage. */
static const int64_t outage_ms = 60000;

const char *upstream_kind_text(enum upstream_kind kind)
{
	return kind_texts[kind];
}

/* ---- one upstream ---- */

static void upstream_release(struct upstream *upstream)
{
	if (!upstream || atomic_fetch_sub(&upstream->references, 1) != 1)
		return;
	pthread_mutex_destroy(&upstream->lock);
	free(upstream->name);
	free(upstream->url);
	free(upstream->user);
	free(upstream->password);
	free(upstream->authorization);
	s3_credentials_deinit(&upstream->s3);
	free(upstream);
}

DEFINE_GUARD(upstream, struct upstream *, upstream_release)

static bool find_kind(const char *text, size_t length, enum upstream_kind *ret)
{
	unsigned int i;

	for (i = 0; i < sizeof(kind_texts) / sizeof(*kind_texts); i++) {
		if (strlen(kind_texts[i]) != length || memcmp(kind_texts[i], text, length) != 0)
			continue;
		*ret = i;
		return true;
	}
	return false;
}

static char *upstream_decode(const char *text, size_t length)
{
	char *decoded = strndup(text, length);

	if (decoded && percent_decode(decoded, length, decoded, &length))
		return decoded;
	free(decoded);
	return NULL;
}

/* Parses "USER:PASSWORD", escaped as in any URL: a password may contain colons, slashes and at
 * signs. */
static bool set_user(struct upstream *upstream, const char *text, size_t length)
{
	const char *colon = memchr(text, ':', length);
	size_t user_bytes = colon ? (size_t)(colon - text) : length;

	upstream->user = upstream_decode(text, user_bytes);
	upstream->password =
		colon ? upstream_decode(colon + 1, length - user_bytes - 1) : strdup("");
	return upstream->user && upstream->password;
}

/* Moves user and password out of the URL, so that no message can show them; *why is set when it is
 * malformed. */
static bool set_url(struct upstream *upstream, const char *url, const char **why)
{
	const char *host = strstr(url, "://");
	const char *path, *at;
	size_t length = strlen(url);

	if (upstream->kind == UPSTREAM_DIR) {
		upstream->url = strdup(url);
		return *url == '/' && upstream->url;
	}
	if (!host || (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0))
		return false;
	/* In a configuration file, a comment behind the value. */
	if (url[strcspn(url, " \t\r\n")])
		return false;
	host += 3;
	path = host + strcspn(host, "/");
	at = memrchr(host, '@', (size_t)(path - host));
	if (strpbrk(at ? at : host, "?#")) {
		*why = "its URL has a query or fragment, behind which no path can stand";
		return false;
	}
	if (at) {
		if (!set_user(upstream, host, (size_t)(at - host)))
			return false;
		if (asprintf(&upstream->url, "%.*s%s", (int)(host - url), url, at + 1) < 0)
			upstream->url = NULL;
		length = upstream->url ? strlen(upstream->url) : 0;
	} else {
		upstream->url = strdup(url);
	}
	while (upstream->url && length && upstream->url[length - 1] == '/')
		upstream->url[--length] = 0;
	return upstream->url && path > host && (upstream->kind != UPSTREAM_S3 || path[0] == '/');
}

/* Without a name, host and port are the name. */
static char *name_of_url(const struct upstream *upstream)
{
	const char *host = strstr(upstream->url, "://");

	if (upstream->kind == UPSTREAM_DIR || !host)
		return strdup(upstream->url);
	return strndup(host + 3, strcspn(host + 3, "/"));
}

static bool is_plain_name(const char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name <= ' ' || *name == 0x7f || strchr("\"\\'<>&@=", *name))
			return false;
	return true;
}

/* Parses "[NAME@]KIND=URL". */
static struct upstream *upstream_parse(const char *text, const char **why)
{
	struct upstream *upstream GUARDED(upstream) = calloc(1, sizeof(*upstream));
	const char *equals = strchr(text, '=');
	const char *at = equals ? memchr(text, '@', (size_t)(equals - text)) : NULL;
	const char *kind = at ? at + 1 : text;
	unsigned int i;

	if (!upstream)
		return NULL;
	upstream->references = 1;
	pthread_mutex_init(&upstream->lock, NULL);
	for (i = 0; i < UPSTREAM_QUEUES; i++)
		STAILQ_INIT(&upstream->queues[i].waiting);
	if (!equals || !find_kind(kind, (size_t)(equals - kind), &upstream->kind) ||
	    !set_url(upstream, equals + 1, why))
		return NULL;
	upstream->name = at ? strndup(text, (size_t)(at - text)) : name_of_url(upstream);
	if (!upstream->name || !*upstream->name || strlen(upstream->name) > 63 ||
	    !is_plain_name(upstream->name))
		return NULL;
	return STEAL(upstream);
}

/* Heap; NULL when it cannot be read. */
static char *read_credentials(const char *path, bool has_lines)
{
	int fd AUTO_CLOSE = open(path, O_RDONLY | O_CLOEXEC);
	struct buf content;
	char *text;

	buf_init(&content, 16 << 10);
	text = fd >= 0 && !path_read_all(fd, &content) ? buf_steal(&content, NULL) : NULL;
	buf_deinit(&content);
	if (text && !has_lines)
		text[strcspn(text, "\r\n")] = 0;
	return text;
}

/* NAME=FILE; the last line with the name counts. */
static bool set_credentials(struct upstream *upstream, const struct text_list *list)
{
	size_t length = strlen(upstream->name);
	size_t i;

	for (i = 0; i < list->count; i++) {
		const char *text = list->texts[i];

		if (strncmp(text, upstream->name, length) != 0 || text[length] != '=')
			continue;
		free(upstream->authorization);
		upstream->authorization =
			read_credentials(text + length + 1, upstream->kind == UPSTREAM_S3);
		if (!upstream->authorization)
			return false;
	}
	if (upstream->kind != UPSTREAM_S3)
		return true;
	return upstream->authorization &&
	       s3_credentials_parse(upstream->authorization, &upstream->s3);
}

static bool same_text(const char *left, const char *right)
{
	return left && right ? !strcmp(left, right) : left == right;
}

static bool upstream_is_same(const struct upstream *left, const struct upstream *right)
{
	return left->kind == right->kind && left->is_trusted == right->is_trusted &&
	       same_text(left->name, right->name) && same_text(left->url, right->url) &&
	       same_text(left->user, right->user) && same_text(left->password, right->password) &&
	       same_text(left->authorization, right->authorization);
}

bool upstream_may_ask(struct upstream *upstream, int64_t now_ms)
{
	bool may;

	pthread_mutex_lock(&upstream->lock);
	may = circuit_breaker_allows(&upstream->breaker, now_ms);
	pthread_mutex_unlock(&upstream->lock);
	return may;
}

/* The line about an upstream that is left out. */
static const char outage[] = "failed too often, not asked for a while";

/* A tier and a peer are left out when they fail, and their first failure was logged. Some failures
 * are counted before the first one is logged: then the line about the outage stands for it. */
static bool is_told_of(struct upstream *upstream, bool has_opened, int64_t now_ms)
{
	bool is_told = upstream->told[0];

	if (!upstream_is_optional(upstream))
		return false;
	if (has_opened && !is_told) {
		snprintf(upstream->told, sizeof(upstream->told), "%s", outage);
		upstream->told_ms = now_ms;
	}
	return is_told;
}

void upstream_report(struct upstream *upstream, enum upstream_report report, int64_t now_ms)
{
	enum circuit_breaker_state before, after;
	bool is_told;

	pthread_mutex_lock(&upstream->lock);
	before = upstream->breaker.state;
	if (report == UPSTREAM_ANSWERED)
		circuit_breaker_succeeded(&upstream->breaker);
	else if (report == UPSTREAM_FAILED)
		circuit_breaker_failed(&upstream->breaker, now_ms);
	else
		circuit_breaker_withdrawn(&upstream->breaker);
	after = upstream->breaker.state;
	is_told = is_told_of(upstream, before == BREAKER_CLOSED && after != BREAKER_CLOSED, now_ms);
	/* The next outage is news. A tier whose uploads work closes it although reading fails. */
	if (before != BREAKER_CLOSED && after == BREAKER_CLOSED &&
	    now_ms - upstream->told_ms >= outage_ms)
		upstream->told[0] = '\0';
	pthread_mutex_unlock(&upstream->lock);
	/* Logged once, not for each request that is skipped. */
	if (before == BREAKER_CLOSED && after != BREAKER_CLOSED && !is_told)
		log_message(LOG_LEVEL_WARNING, "upstream %s: %s", upstream->name, outage);
	else if (before != BREAKER_CLOSED && after == BREAKER_CLOSED)
		log_message(LOG_LEVEL_INFO, "upstream %s: answers again", upstream->name);
}

void upstream_rests(struct upstream *upstream, int64_t now_ms, int64_t rest_ms)
{
	bool is_news;

	pthread_mutex_lock(&upstream->lock);
	is_news = upstream->breaker.state == BREAKER_CLOSED;
	circuit_breaker_rests(&upstream->breaker, now_ms, rest_ms);
	pthread_mutex_unlock(&upstream->lock);
	if (is_news)
		log_message(LOG_LEVEL_WARNING,
			    "upstream %s: asked for a pause of %lld s, not asked until then",
			    upstream->name, (long long)rest_ms / 1000);
}

enum circuit_breaker_state upstream_state(struct upstream *upstream)
{
	enum circuit_breaker_state state;

	pthread_mutex_lock(&upstream->lock);
	state = upstream->breaker.state;
	pthread_mutex_unlock(&upstream->lock);
	return state;
}

void upstream_note_trouble(struct upstream *upstream, const char *text)
{
	pthread_mutex_lock(&upstream->lock);
	snprintf(upstream->trouble, sizeof(upstream->trouble), "%s", text);
	upstream->trouble_s = time(NULL);
	pthread_mutex_unlock(&upstream->lock);
}

static bool is_status(const char *text)
{
	return !strncmp(text, "HTTP status", strlen("HTTP status"));
}

/*
 * The answer to a HEAD has the status only: its text is the beginning of another's. A failure
 * without an answer belongs to the one before: a server that dies resets connections, then accepts
 * none; a store that refuses may be slow too.
 */
static bool is_same_refusal(const char *told, const char *text)
{
	size_t told_bytes = strlen(told), text_bytes = strlen(text);

	if (!told_bytes || !is_status(text))
		return told_bytes;
	if (!strcmp(told, outage))
		return !strncmp(text, "HTTP status 5", strlen("HTTP status 5"));
	return is_status(told) &&
	       !strncmp(told, text, told_bytes < text_bytes ? told_bytes : text_bytes);
}

bool upstream_refusal_is_news(struct upstream *upstream, const char *text, int64_t now_ms)
{
	bool is_news;

	pthread_mutex_lock(&upstream->lock);
	is_news = !is_same_refusal(upstream->told, text) ||
		  now_ms - upstream->told_ms >= refusal_silence_ms;
	if (is_news) {
		snprintf(upstream->told, sizeof(upstream->told), "%s", text);
		upstream->told_ms = now_ms;
	}
	pthread_mutex_unlock(&upstream->lock);
	return is_news;
}

void upstream_report_slowness(struct upstream *upstream, const char *how, int64_t now_ms)
{
	bool is_failure = upstream->kind == UPSTREAM_S3;

	if (is_failure) {
		upstream_note_trouble(upstream, how);
		if (upstream_refusal_is_news(upstream, how, now_ms))
			log_message(LOG_LEVEL_WARNING, "upstream %s: %s", upstream->name, how);
	}
	upstream_report(upstream, is_failure ? UPSTREAM_FAILED : UPSTREAM_NOT_ASKED, now_ms);
}

int64_t upstream_last_trouble(struct upstream *upstream, char room[160])
{
	int64_t when_s;

	pthread_mutex_lock(&upstream->lock);
	memcpy(room, upstream->trouble, sizeof(upstream->trouble));
	when_s = upstream->trouble_s;
	pthread_mutex_unlock(&upstream->lock);
	return when_s;
}

/* ---- the set ---- */

struct upstream_set *upstream_set_take(struct upstream_set *set)
{
	atomic_fetch_add(&set->references, 1);
	return set;
}

void upstream_set_release(struct upstream_set *set)
{
	size_t i;

	if (!set || atomic_fetch_sub(&set->references, 1) != 1)
		return;
	for (i = 0; i < set->count; i++)
		upstream_release(set->list[i]);
	free(set->list);
	text_list_deinit(&set->deny);
	text_list_deinit(&set->allow);
	free(set->self);
	free(set);
}

DEFINE_GUARD(upstream_set, struct upstream_set *, upstream_set_release)

static bool copy_nets(const struct text_list *list, struct text_list *ret, const char **bad)
{
	struct cidr_rule rule;
	size_t i;

	for (i = 0; i < list->count; i++) {
		*bad = list->texts[i];
		if (!cidr_rule_parse(*bad, &rule) || !text_list_add(ret, *bad))
			return false;
	}
	return true;
}

/* Takes the upstream of the previous set if it is the same. */
static bool add_parsed(struct upstream_set *set, const struct options *options,
		       struct upstream *upstream, struct upstream_set *previous, const char **why)
{
	struct upstream *kept GUARDED(upstream) = upstream;
	size_t i;

	for (i = 0; i < set->count; i++) {
		*why = "a name that another upstream has";
		if (!strcmp(set->list[i]->name, upstream->name))
			return false;
	}
	upstream->is_trusted =
		upstream->kind == UPSTREAM_PEER || text_list_has(&options->trusted, upstream->name);
	*why = upstream->kind == UPSTREAM_S3
		       ? "needs --credentials NAME=FILE with aws_access_key_id and "
			 "aws_secret_access_key"
		       : "its credentials cannot be read";
	if (!set_credentials(upstream, &options->credentials))
		return false;
	for (i = 0; previous && i < previous->count; i++) {
		if (!upstream_is_same(previous->list[i], upstream))
			continue;
		upstream_release(upstream);
		kept = previous->list[i];
		atomic_fetch_add(&kept->references, 1);
		break;
	}
	set->list[set->count++] = STEAL(kept);
	return true;
}

static bool add_upstream(struct upstream_set *set, const struct options *options, const char *text,
			 struct upstream_set *previous, const char **why)
{
	struct upstream *upstream GUARDED(upstream) = NULL;

	*why = "needs a kind before its URL, as in ssqp=https://HOST (ssqp, debuginfod, symsrv) or "
	       "dir=/PATH";
	upstream = upstream_parse(text, why);
	if (!upstream || upstream->kind > UPSTREAM_DIR)
		return false;
	return add_parsed(set, options, STEAL(upstream), previous, why);
}

static bool add_tier(struct upstream_set *set, const struct options *options,
		     struct upstream_set *previous, const char **why)
{
	struct upstream *upstream GUARDED(upstream) = NULL;

	if (!options->tier)
		return true;
	*why = "needs the form NAME@s3=https://HOST/BUCKET";
	upstream = upstream_parse(options->tier, why);
	if (!upstream || upstream->kind != UPSTREAM_S3 ||
	    !add_parsed(set, options, STEAL(upstream), previous, why))
		return false;
	set->tier = set->list[set->count - 1];
	return true;
}

/* A peer that is this server itself stands in the list too, so that all servers may have one
 * configuration. */
static bool add_peers(struct upstream_set *set, const struct options *options,
		      struct upstream_set *previous, const char **why)
{
	size_t length;

	*why = "out of memory";
	set->self = options->self ? strdup(options->self) : NULL;
	if (options->self && !set->self)
		return false;
	for (length = set->self ? strlen(set->self) : 0; length && set->self[length - 1] == '/';)
		set->self[--length] = 0;
	for (size_t i = 0; i < options->peers.count; i++) {
		struct upstream *upstream GUARDED(upstream) = NULL;
		char *text AUTO_FREE = NULL;

		*why = "needs a URL, as in http://HOST:PORT";
		if (asprintf(&text, "peer=%s", options->peers.texts[i]) < 0)
			return false;
		upstream = upstream_parse(text, why);
		if (!upstream)
			return false;
		if (!strcmp(upstream->url, set->self))
			continue;
		if (!add_parsed(set, options, STEAL(upstream), previous, why))
			return false;
		set->peer_count++;
	}
	return true;
}

/* NAME or NAME=... of each text. A misspelt name would leave an upstream without trust or
 * credentials. */
static bool all_known(const struct upstream_set *set, const struct text_list *list,
		      const char *option, char *message, size_t message_bytes)
{
	size_t i, k;

	for (i = 0; i < list->count; i++) {
		size_t length = strcspn(list->texts[i], "=");

		for (k = 0; k < set->count; k++)
			if (strlen(set->list[k]->name) == length &&
			    !memcmp(set->list[k]->name, list->texts[i], length))
				break;
		if (k < set->count)
			continue;
		snprintf(message, message_bytes, "--%s: no upstream is called %.*s", option,
			 (int)length, list->texts[i]);
		return false;
	}
	return true;
}

bool upstream_set_create(const struct options *options, struct upstream_set *previous,
			 char *message, size_t message_bytes, struct upstream_set **ret)
{
	struct upstream_set *set GUARDED(upstream_set) = calloc(1, sizeof(*set));
	const char *bad = "", *why;
	size_t i;

	snprintf(message, message_bytes, "out of memory");
	if (!set)
		return false;
	set->references = 1;
	set->list = calloc(options->upstreams.count + options->peers.count + 2,
			   sizeof(struct upstream *));
	if (!set->list)
		return false;
	set->ask_together = !strcmp(options->ask, "together");
	set->max_object_bytes = options->max_object_bytes;
	set->connect_ms = (int64_t)options->connect_ms;
	set->stall_ms = (int64_t)options->stall_ms;
	set->fetch_ms = (int64_t)options->fetch_ms;
	set->negative_cache_ms = (int64_t)options->negative_cache_ms;
	set->retries = (unsigned int)options->retries;
	set->max_fetches = (unsigned int)options->max_fetches;
	set->forwarded_limit = options->forwarded_limit;
	if (!copy_nets(&options->deny_nets, &set->deny, &bad) ||
	    !copy_nets(&options->allow_nets, &set->allow, &bad)) {
		snprintf(message, message_bytes, "not a network: %s", bad);
		return false;
	}
	if (!add_tier(set, options, previous, &why)) {
		snprintf(message, message_bytes, "--tier: %s", why);
		return false;
	}
	if (!add_peers(set, options, previous, &why)) {
		snprintf(message, message_bytes, "--peer: %s", why);
		return false;
	}
	for (i = 0; i < options->upstreams.count; i++) {
		if (add_upstream(set, options, options->upstreams.texts[i], previous, &why))
			continue;
		/* The text itself is not printed, because it may contain a password. */
		snprintf(message, message_bytes, "upstream number %zu: %s", i + 1, why);
		return false;
	}
	if (!all_known(set, &options->trusted, "trust", message, message_bytes) ||
	    !all_known(set, &options->credentials, "credentials", message, message_bytes))
		return false;
	*ret = STEAL(set);
	return true;
}

/* ---- paths ---- */

/* Lower case first, as the convention requires; then as the client wrote it, for servers that are
 * plain directories. */
static bool ssqp_path(const struct key *key, unsigned int variant, struct buf *path)
{
	bool differs = key->name && key->spelling && strcmp(key->name, key->spelling) != 0;

	return variant < 1u + differs && ssqp_format(path, key, variant == 1);
}

/* The names of an ELF file in build-id trees, caches of libdebuginfod and on file:// servers. */
static bool tree_path(const struct key *key, unsigned int variant, struct buf *path)
{
	bool is_debug = key->kind == KEY_DEBUGINFO;
	char id[2 * KEY_MAX_ID + 1];

	if (!is_debug && key->kind != KEY_EXECUTABLE)
		return false;
	hex_write_bytes(id, key->id, key->id_bytes);
	switch (variant) {
	case 0:
		return buf_printf(path, ".build-id/%.2s/%s%s", id, id + 2,
				  is_debug ? ".debug" : "");
	case 1:
		return buf_printf(path, "buildid/%s/%s", id, key_kind_text(key->kind));
	case 2:
		return buf_printf(path, "%s/%s", id, key_kind_text(key->kind));
	default:
		return false;
	}
}

/* symstore.exe writes the identities of PDBs in upper case, which is another path where case
 * matters. */
static bool store_path(const struct key *key, unsigned int variant, struct buf *path)
{
	bool is_pdb =
		key->kind == KEY_PDB || key->kind == KEY_MSFZ || key->kind == KEY_PORTABLE_PDB;
	unsigned int known = key->spelling && strcmp(key->name, key->spelling) != 0 ? 2 : 1;
	size_t start = path->size_bytes;
	char *letter;

	if (variant < known || !is_pdb)
		return ssqp_path(key, variant, path);
	if (variant > known || !ssqp_format(path, key, true))
		return false;
	letter = memchr(path->data + start, '/', path->size_bytes - start);
	while (*++letter != '/')
		*letter = (char)(*letter >= 'a' && *letter <= 'f' ? *letter & ~0x20 : *letter);
	return true;
}

/* The first `count` variants are debuginfod paths; SSQP paths follow. */
static bool both_paths(const struct key *key, unsigned int variant, struct buf *path)
{
	struct key named = *key;
	size_t start = path->size_bytes;

	if (debuginfod_format(path, key)) {
		if (!variant)
			return true;
		buf_truncate(path, start);
		variant--;
		/* The other symsrv needs the name only for upstreams that go by name. */
		if (!named.name)
			return false;
	}
	buf_append_string(path, "symbols/");
	return ssqp_path(&named, variant, path);
}

/* As in the store: hex digits and slashes, whatever the key has. */
static bool tier_path(const struct key *key, unsigned int variant, struct buf *path)
{
	char text[KEY_TEXT_BYTES], place[STORE_OBJECT_PATH_BYTES];

	key_text(key, text);
	return !variant && !store_object_path(text, place) && buf_append_string(path, place);
}

bool upstream_has_kind(const struct upstream *upstream, enum key_kind kind)
{
	if (kind == KEY_PE_R2RMAP || kind == KEY_PE_MAP || kind == KEY_IMAGE_OF_MAP ||
	    kind == KEY_IMAGE_OF_PDB)
		return false;
	if (kind == KEY_NAMES)
		return upstream->kind == UPSTREAM_SYMSRV || upstream->kind == UPSTREAM_PEER;
	return true;
}

bool upstream_path(const struct upstream *upstream, const struct key *key, unsigned int variant,
		   struct buf *path)
{
	size_t start = path->size_bytes;

	switch (upstream->kind) {
	case UPSTREAM_SSQP:
		return store_path(key, variant, path);
	case UPSTREAM_DEBUGINFOD:
		return variant == 0 && debuginfod_format(path, key);
	case UPSTREAM_SYMSRV:
	case UPSTREAM_PEER:
		return both_paths(key, variant, path);
	case UPSTREAM_S3:
		return tier_path(key, variant, path);
	default:
		break;
	}
	if (tree_path(key, variant, path))
		return true;
	buf_truncate(path, start);
	if (key->kind == KEY_EXECUTABLE || key->kind == KEY_DEBUGINFO)
		variant -= 3;
	return store_path(key, variant, path);
}
