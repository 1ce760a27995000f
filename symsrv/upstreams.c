/* SPDX-License-Identifier: MIT */
#include "symsrv/upstreams.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "symsrv/debuginfod.h"
#include "symsrv/log.h"
#include "symsrv/percent.h"
#include "symsrv/ssqp.h"

static const char *const kind_texts[] = {
	[UPSTREAM_SSQP] = "ssqp",
	[UPSTREAM_DEBUGINFOD] = "debuginfod",
	[UPSTREAM_SYMSRV] = "symsrv",
	[UPSTREAM_DIR] = "dir",
};

/* A refusal meets every object alike: one line says it. */
static const int64_t refusal_silence_ms = 3600 * 1000;

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

static char *decode(const char *text, size_t length)
{
	char *decoded = strndup(text, length);

	if (decoded && percent_decode(decoded, length, decoded, &length))
		return decoded;
	free(decoded);
	return NULL;
}

/* "USER:PASSWORD", escaped as in any URL: a password may have colons, slashes and at signs. */
static bool set_user(struct upstream *upstream, const char *text, size_t length)
{
	const char *colon = memchr(text, ':', length);
	size_t user_bytes = colon ? (size_t)(colon - text) : length;

	upstream->user = decode(text, user_bytes);
	upstream->password = colon ? decode(colon + 1, length - user_bytes - 1) : strdup("");
	return upstream->user && upstream->password;
}

/* Takes user and password out of the URL, so that nothing that shows it shows them; *why may
 * become another text when it is wrong. */
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
	/* A comment behind it, in a configuration file. */
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
	return upstream->url && path > host;
}

/* The host and port serve as a name when none is given. */
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

/* "[NAME@]KIND=URL" */
static struct upstream *parse(const char *text, const char **why)
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
		upstream->queues[i].last_waiting = &upstream->queues[i].waiting;
	if (!equals || !find_kind(kind, (size_t)(equals - kind), &upstream->kind) ||
	    !set_url(upstream, equals + 1, why))
		return NULL;
	upstream->name = at ? strndup(text, (size_t)(at - text)) : name_of_url(upstream);
	if (!upstream->name || !*upstream->name || strlen(upstream->name) > 63 ||
	    !is_plain_name(upstream->name))
		return NULL;
	return STEAL(upstream);
}

static char *read_credentials(const char *path)
{
	int fd AUTO_CLOSE = open(path, O_RDONLY | O_CLOEXEC);
	struct buf content;
	char *text;

	buf_init(&content, 16 << 10);
	text = fd >= 0 && !path_read_all(fd, &content) ? buf_steal(&content, NULL) : NULL;
	buf_deinit(&content);
	if (text)
		text[strcspn(text, "\r\n")] = 0;
	return text;
}

/* NAME=FILE, of the last line that names the upstream. */
static bool set_credentials(struct upstream *upstream, const struct text_list *list)
{
	size_t length = strlen(upstream->name);
	size_t i;

	for (i = 0; i < list->count; i++) {
		const char *text = list->texts[i];

		if (strncmp(text, upstream->name, length) != 0 || text[length] != '=')
			continue;
		free(upstream->authorization);
		upstream->authorization = read_credentials(text + length + 1);
		if (!upstream->authorization)
			return false;
	}
	return true;
}

static bool same_text(const char *left, const char *right)
{
	return left && right ? !strcmp(left, right) : left == right;
}

static bool same(const struct upstream *left, const struct upstream *right)
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
	may = breaker_allows(&upstream->breaker, now_ms);
	pthread_mutex_unlock(&upstream->lock);
	return may;
}

void upstream_report(struct upstream *upstream, enum upstream_report report, int64_t now_ms)
{
	enum breaker_state before, after;

	pthread_mutex_lock(&upstream->lock);
	before = upstream->breaker.state;
	if (report == UPSTREAM_ANSWERED)
		breaker_succeeded(&upstream->breaker);
	else if (report == UPSTREAM_FAILED)
		breaker_failed(&upstream->breaker, now_ms);
	else
		breaker_withdrawn(&upstream->breaker);
	after = upstream->breaker.state;
	pthread_mutex_unlock(&upstream->lock);
	/* Once for all that is not asked until then. */
	if (before == BREAKER_CLOSED && after != BREAKER_CLOSED)
		log_message(LOG_LEVEL_WARNING,
			    "upstream %s: failed too often, not asked for a while", upstream->name);
	else if (before != BREAKER_CLOSED && after == BREAKER_CLOSED)
		log_message(LOG_LEVEL_INFO, "upstream %s: answers again", upstream->name);
}

void upstream_rests(struct upstream *upstream, int64_t now_ms, int64_t rest_ms)
{
	bool is_news;

	pthread_mutex_lock(&upstream->lock);
	is_news = upstream->breaker.state == BREAKER_CLOSED;
	breaker_rests(&upstream->breaker, now_ms, rest_ms);
	pthread_mutex_unlock(&upstream->lock);
	if (is_news)
		log_message(LOG_LEVEL_WARNING,
			    "upstream %s: wants a rest of %lld s, not asked for a while",
			    upstream->name, (long long)rest_ms / 1000);
}

enum breaker_state upstream_state(struct upstream *upstream)
{
	enum breaker_state state;

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

bool upstream_refusal_is_news(struct upstream *upstream, const char *text, int64_t now_ms)
{
	bool is_news;

	pthread_mutex_lock(&upstream->lock);
	is_news = strcmp(upstream->told, text) != 0 ||
		  now_ms - upstream->told_ms >= refusal_silence_ms;
	if (is_news) {
		snprintf(upstream->told, sizeof(upstream->told), "%s", text);
		upstream->told_ms = now_ms;
	}
	pthread_mutex_unlock(&upstream->lock);
	return is_news;
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
	net_rules_deinit(&set->deny);
	net_rules_deinit(&set->allow);
	free(set);
}

DEFINE_GUARD(upstream_set, struct upstream_set *, upstream_set_release)

static bool parse_nets(const struct text_list *list, struct net_rules *rules, const char **bad)
{
	struct net_rule rule;
	size_t i;

	for (i = 0; i < list->count; i++) {
		*bad = list->texts[i];
		if (!net_rule_parse(list->texts[i], &rule) || net_rules_add(rules, &rule))
			return false;
	}
	return true;
}

static bool add_upstream(struct upstream_set *set, const struct options *options, const char *text,
			 struct upstream_set *previous, const char **why)
{
	struct upstream *upstream GUARDED(upstream) = NULL;
	size_t i;

	*why = "not [NAME@]ssqp|debuginfod|symsrv=http(s)://HOST... or [NAME@]dir=/PATH";
	upstream = parse(text, why);
	if (!upstream)
		return false;
	for (i = 0; i < set->count; i++) {
		*why = "a name that another upstream has";
		if (!strcmp(set->list[i]->name, upstream->name))
			return false;
	}
	upstream->is_trusted = text_list_has(&options->trusted, upstream->name);
	*why = "its credentials cannot be read";
	if (!set_credentials(upstream, &options->credentials))
		return false;
	for (i = 0; previous && i < previous->count; i++) {
		if (!same(previous->list[i], upstream))
			continue;
		upstream_release(upstream);
		upstream = previous->list[i];
		atomic_fetch_add(&upstream->references, 1);
		break;
	}
	set->list[set->count++] = STEAL(upstream);
	return true;
}

/* NAME or NAME=... of each text; a misspelt one would be a source that is not asked, or asked
 * without its password. */
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
	set->list = calloc(options->upstreams.count + 1, sizeof(struct upstream *));
	if (!set->list)
		return false;
	set->ask_together = !strcmp(options->ask, "together");
	set->max_object_bytes = options->max_object_bytes;
	set->connect_ms = (int64_t)options->connect_ms;
	set->stall_ms = (int64_t)options->stall_ms;
	set->fetch_ms = (int64_t)options->fetch_ms;
	set->negative_ms = (int64_t)options->negative_ms;
	set->retries = (unsigned int)options->retries;
	set->max_fetches = (unsigned int)options->max_fetches;
	set->forwarded_limit = options->forwarded_limit;
	if (!parse_nets(&options->deny_nets, &set->deny, &bad) ||
	    !parse_nets(&options->allow_nets, &set->allow, &bad)) {
		snprintf(message, message_bytes, "not a network: %s", bad);
		return false;
	}
	for (i = 0; i < options->upstreams.count; i++) {
		if (add_upstream(set, options, options->upstreams.texts[i], previous, &why))
			continue;
		/* The text itself may hold a password. */
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

/* Lower case first, as the convention has it; then as the client wrote it, for servers that are
 * plain directories. */
static bool ssqp_path(const struct key *key, unsigned int variant, struct buf *path)
{
	bool differs = key->name && key->spelling && strcmp(key->name, key->spelling) != 0;

	return variant < 1u + differs && ssqp_format(path, key, variant == 1);
}

/* What build-id trees, caches of libdebuginfod and file:// servers call an ELF file. */
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

/* symstore.exe writes the identities of PDBs in upper case; where letters count, that is another
 * path. */
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

/* `count` paths of debuginfod come before those of SSQP. */
static bool both_paths(const struct key *key, unsigned int variant, struct buf *path)
{
	struct key named = *key;
	size_t start = path->size_bytes;

	if (debuginfod_format(path, key)) {
		if (!variant)
			return true;
		buf_truncate(path, start);
		variant--;
		/* The other symsrv needs the name only for upstreams that go by it. */
		if (!named.name)
			return false;
	}
	buf_append_string(path, "symbols/");
	return ssqp_path(&named, variant, path);
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
		return both_paths(key, variant, path);
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
