/* SPDX-License-Identifier: MIT */
#include "symsrv/util/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"

enum option_kind {
	OPTION_FLAG,
	OPTION_TEXT,
	OPTION_LIST,
	OPTION_COUNT,
	OPTION_SIZE, /* bytes; suffix K, M, G, T */
	OPTION_TIME, /* seconds; suffix ms, m, h; kept in ms */
};

struct option_row {
	const char *name;
	enum option_kind kind;
	size_t offset;
	const char *argument;
	const char *initial; /* default, or NULL */
	const char *help;
};

#define AT(field) offsetof(struct options, field)

static const struct option_row rows[] = {
	{ "store", OPTION_TEXT, AT(store), "DIR", NULL, "directory of the store; required" },
	{ "upstream", OPTION_LIST, AT(upstreams), "[NAME@]KIND=URL", NULL,
	  "ask this server: ssqp, debuginfod, symsrv, or dir=PATH" },
	{ "tier", OPTION_TEXT, AT(tier), "NAME@s3=URL", NULL,
	  "keep objects in this bucket of an S3-compatible store too" },
	{ "peer", OPTION_LIST, AT(peers), "URL", NULL,
	  "another server of the fleet: one of them asks the upstreams for an object" },
	{ "self", OPTION_TEXT, AT(self), "URL", NULL,
	  "the URL of this server in the lists of its peers" },
	{ "index", OPTION_LIST, AT(index), "DIR", NULL, "serve the files below DIR by identity" },
	{ "listen", OPTION_LIST, AT(listen), "ADDR:PORT", NULL,
	  "where to listen [127.0.0.1:8002]" },
	{ "user", OPTION_TEXT, AT(user), "NAME", NULL,
	  "become this user once the sockets are bound; needs root" },
	{ "config", OPTION_TEXT, AT(config), "FILE", NULL,
	  "read more options, one a line; read again on SIGHUP" },
	{ "scrub", OPTION_FLAG, AT(scrub), NULL, NULL,
	  "check every object of the store, remove what is damaged, and exit" },
	{ "export", OPTION_TEXT, AT(export), "DIR", NULL,
	  "write the objects of the store to DIR, as files for clients without a server, and "
	  "exit" },
	{ "ask", OPTION_TEXT, AT(ask), "HOW", "order", "ask upstreams in 'order' or 'together'" },
	{ "trust", OPTION_LIST, AT(trusted), "NAME", NULL,
	  "accept from this upstream what cannot be verified, such as source files" },
	{ "credentials", OPTION_LIST, AT(credentials), "NAME=FILE", NULL,
	  "FILE has the Authorization header for this upstream" },
	{ "deny-net", OPTION_LIST, AT(deny_nets), "CIDR", NULL,
	  "never connect to addresses in this network" },
	{ "allow-net", OPTION_LIST, AT(allow_nets), "CIDR", NULL,
	  "internal network that redirects may lead to" },
	{ "max-bytes", OPTION_SIZE, AT(max_bytes), "SIZE", "10G", "size of the store" },
	{ "max-object-bytes", OPTION_SIZE, AT(max_object_bytes), "SIZE", "2G",
	  "largest object that is fetched" },
	{ "max-fetches", OPTION_COUNT, AT(max_fetches), "N", "32",
	  "most fetches from an upstream at a time" },
	{ "retries", OPTION_COUNT, AT(retries), "N", "2",
	  "further tries after a transient failure" },
	{ "negative-ttl", OPTION_TIME, AT(negative_cache_ms), "TIME", "1h",
	  "how long a miss is remembered" },
	{ "connect-timeout", OPTION_TIME, AT(connect_ms), "TIME", "5",
	  "limit for connecting to an upstream" },
	{ "stall-timeout", OPTION_TIME, AT(stall_ms), "TIME", "60",
	  "limit for an upstream that sends nothing" },
	{ "fetch-timeout", OPTION_TIME, AT(fetch_ms), "TIME", "10m", "limit for one fetch" },
	{ "wait-timeout", OPTION_TIME, AT(wait_ms), "TIME", "80",
	  "how long a client waits for a fetch" },
	{ "transient", OPTION_TEXT, AT(transient), "HOW", "auto",
	  "answer to a transient failure: '503', 'reset', or 'auto' (reset for elfutils)" },
	{ "threads", OPTION_COUNT, AT(threads), "N", "0",
	  "threads that serve; 0 is one for each processor" },
	{ "connections", OPTION_COUNT, AT(connections), "N", "8192", "most connections at a time" },
	{ "connections-per-client", OPTION_COUNT, AT(connections_per_client), "N", "0",
	  "most connections from one address; 0 is any number" },
	{ "header-timeout", OPTION_TIME, AT(header_ms), "TIME", "10",
	  "limit for the whole header of a request" },
	{ "idle-timeout", OPTION_TIME, AT(idle_ms), "TIME", "60",
	  "limit for a connection on which nothing happens" },
	{ "min-rate", OPTION_SIZE, AT(min_rate_bytes), "SIZE", "4K",
	  "bytes per second that a client must read" },
	{ "forwarded-limit", OPTION_COUNT, AT(forwarded_limit), "N", "8",
	  "servers that a request may have passed" },
	{ "drain-timeout", OPTION_TIME, AT(drain_ms), "TIME", "30",
	  "limit for unfinished requests at SIGTERM" },
	{ "rescan", OPTION_TIME, AT(rescan_ms), "TIME", "10m",
	  "time between scans of the directories of --index" },
	{ "access-log", OPTION_TEXT, AT(access_log), "FILE", NULL,
	  "write a line for every request; '-' is standard error" },
	{ "upload-token", OPTION_TEXT, AT(upload_token), "FILE", NULL,
	  "take uploads from clients that give the token in FILE" },
	{ "help", OPTION_FLAG, AT(help), NULL, NULL, "print this help" },
	{ "version", OPTION_FLAG, AT(version), NULL, NULL, "print the version" },
};

#undef AT

static const size_t row_count = sizeof(rows) / sizeof(*rows);

/* ---- values ---- */

/* Counts must fit an unsigned int; a time must not overflow when added to the clock. */
static const uint64_t most_count = INT32_MAX;
static const uint64_t most_ms = UINT64_C(100) * 366 * 24 * 3600 * 1000;

struct unit {
	const char *suffix;
	uint64_t factor;
};

static bool settings_parse_number(const char *text, const struct unit *units, uint64_t *ret)
{
	unsigned long long value;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	for (; !errno && units->suffix; units++)
		if (!strcmp(end, units->suffix))
			return !__builtin_mul_overflow((uint64_t)value, units->factor, ret);
	return false;
}

static bool settings_parse_value(const struct option_row *row, const char *text, void *field)
{
	static const struct unit none[] = { { "", 1 }, { 0 } };
	static const struct unit sizes[] = {
		{ "", 1 },        { "K", 1 << 10 },           { "M", 1 << 20 },
		{ "G", 1 << 30 }, { "T", (uint64_t)1 << 40 }, { 0 }
	};
	static const struct unit times[] = { { "", 1000 },   { "ms", 1 },      { "s", 1000 },
					     { "m", 60000 }, { "h", 3600000 }, { 0 } };

	switch (row->kind) {
	case OPTION_COUNT:
		return settings_parse_number(text, none, field) && *(uint64_t *)field <= most_count;
	case OPTION_SIZE:
		return settings_parse_number(text, sizes, field);
	case OPTION_TIME:
		return settings_parse_number(text, times, field) && *(uint64_t *)field <= most_ms;
	default:
		return true;
	}
}

bool text_list_add(struct text_list *list, const char *text)
{
	char **grown = reallocarray(list->texts, list->count + 1, sizeof(*list->texts));

	if (!grown)
		return false;
	list->texts = grown;
	list->texts[list->count] = strdup(text);
	return list->texts[list->count] && ++list->count;
}

bool text_list_has(const struct text_list *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->texts[i], text))
			return true;
	return false;
}

void text_list_deinit(struct text_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->texts[i]);
	free(list->texts);
	*list = (struct text_list){ 0 };
}

/* ---- parsing ---- */

struct parsing {
	struct options *options;
	bool is_set[sizeof(rows) / sizeof(*rows)]; /* on the command line */
	/* parsing defaults or a file, which do not replace values of the command line */
	bool is_file;
	char *message;
	size_t message_bytes;
};

static bool settings_refuse(struct parsing *parsing, const char *name, const char *what)
{
	snprintf(parsing->message, parsing->message_bytes, "--%s: %s", name, what);
	return false;
}

static bool settings_set_option(struct parsing *parsing, const struct option_row *row,
				const char *text)
{
	void *field = (char *)parsing->options + row->offset;
	size_t index = (size_t)(row - rows);

	if (row->kind == OPTION_FLAG) {
		*(bool *)field = true;
		return true;
	}
	if (row->kind == OPTION_LIST)
		return text_list_add(field, text) ||
		       settings_refuse(parsing, row->name, "out of memory");
	if (parsing->is_file && parsing->is_set[index])
		return true;
	if (!settings_parse_value(row, text, field))
		return settings_refuse(parsing, row->name, "not a valid value");
	if (row->kind == OPTION_TEXT) {
		free(*(char **)field);
		*(char **)field = strdup(text);
	}
	parsing->is_set[index] |= !parsing->is_file;
	return true;
}

static const struct option_row *settings_find_row(const char *name, size_t length)
{
	size_t i;

	for (i = 0; i < row_count; i++)
		if (strlen(rows[i].name) == length && !memcmp(rows[i].name, name, length))
			return &rows[i];
	return NULL;
}

static bool settings_parse_arguments(struct parsing *parsing, int argc, const char *const *argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		const char *name = argv[i] + 2;
		size_t length = strncmp(argv[i], "--", 2) ? 0 : strcspn(name, "=");
		const struct option_row *row = length ? settings_find_row(name, length) : NULL;
		const char *value = NULL;

		if (!row) {
			snprintf(parsing->message, parsing->message_bytes, "no such option: %s",
				 argv[i]);
			return false;
		}
		if (row->kind == OPTION_FLAG) {
			if (name[length])
				return settings_refuse(parsing, row->name, "takes no value");
		} else {
			value = name[length] ? name + length + 1 : argv[++i];
			if (!value)
				return settings_refuse(parsing, row->name, "needs a value");
		}
		if (!settings_set_option(parsing, row, value))
			return false;
	}
	return true;
}

static bool settings_parse_line(struct parsing *parsing, char *line)
{
	const struct option_row *row;
	size_t length;

	line += strspn(line, " \t");
	if (!*line || *line == '#')
		return true;
	length = strcspn(line, " \t=");
	row = settings_find_row(line, length);
	if (!row || row->kind == OPTION_FLAG || !strcmp(row->name, "config")) {
		snprintf(parsing->message, parsing->message_bytes, "%s: no such option: %.*s",
			 parsing->options->config, (int)length, line);
		return false;
	}
	line += length;
	line += strspn(line, " \t");
	if (*line == '=')
		line += 1 + strspn(line + 1, " \t");
	for (length = strlen(line); length && strchr(" \t\r", line[length - 1]);)
		line[--length] = 0;
	return settings_set_option(parsing, row, line);
}

static bool settings_parse_file(struct parsing *parsing)
{
	int fd AUTO_CLOSE = open(parsing->options->config, O_RDONLY | O_CLOEXEC);
	char *text AUTO_FREE = NULL;
	struct buf content;
	char *rest, *line;

	buf_init(&content, 1 << 20);
	if (fd < 0 || path_read_all(fd, &content)) {
		buf_deinit(&content);
		return settings_refuse(parsing, "config", "cannot read the file");
	}
	rest = text = buf_steal(&content, NULL);
	if (!text)
		return settings_refuse(parsing, "config", "out of memory");
	parsing->is_file = true;
	while ((line = strsep(&rest, "\n")))
		if (!settings_parse_line(parsing, line))
			return false;
	return true;
}

static bool settings_set_defaults(struct parsing *parsing)
{
	size_t i;

	parsing->is_file = true;
	for (i = 0; i < row_count; i++)
		if (rows[i].initial && !settings_set_option(parsing, &rows[i], rows[i].initial))
			return false;
	parsing->is_file = false;
	return true;
}

static bool settings_is_one_of(const char *text, const char *a, const char *b, const char *c)
{
	return !strcmp(text, a) || !strcmp(text, b) || !strcmp(text, c);
}

static bool settings_check(struct parsing *parsing)
{
	const struct options *options = parsing->options;

	if (options->help || options->version)
		return true;
	if (!options->store)
		return settings_refuse(parsing, "store", "is needed");
	if (!settings_is_one_of(options->ask, "order", "together", "together"))
		return settings_refuse(parsing, "ask", "'order' or 'together'");
	if (!settings_is_one_of(options->transient, "auto", "reset", "503"))
		return settings_refuse(parsing, "transient", "'503', 'reset' or 'auto'");
	if (options->peers.count && !options->self)
		return settings_refuse(parsing, "peer", "needs --self");
	if (!options->max_fetches || !options->connections)
		return settings_refuse(parsing,
				       options->connections ? "max-fetches" : "connections",
				       "must not be 0");
	return true;
}

bool settings_parse(struct options *options, int argc, const char *const *argv, char *message,
		    size_t message_bytes)
{
	struct parsing parsing = { .options = options,
				   .message = message,
				   .message_bytes = message_bytes };

	*options = (struct options){ 0 };
	if (settings_set_defaults(&parsing) && settings_parse_arguments(&parsing, argc, argv) &&
	    (!options->config || settings_parse_file(&parsing)) && settings_check(&parsing))
		return true;
	settings_deinit(options);
	return false;
}

void settings_deinit(struct options *options)
{
	size_t i;

	for (i = 0; i < row_count; i++) {
		void *field = (char *)options + rows[i].offset;

		if (rows[i].kind == OPTION_TEXT)
			free(*(char **)field);
		else if (rows[i].kind == OPTION_LIST)
			text_list_deinit(field);
	}
	*options = (struct options){ 0 };
}

void settings_print_help(void)
{
	size_t i;

	printf("Usage: symsrv --store DIR [--upstream KIND=URL]... [--index DIR]... [OPTION]...\n"
	       "Serves symbols over SSQP (/symbols/) and debuginfod (/buildid/) from one checked "
	       "store.\n\n");
	for (i = 0; i < row_count; i++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s%s%s", rows[i].name, rows[i].argument ? " " : "",
			 rows[i].argument ? rows[i].argument : "");
		printf("  %-28s %s%s%s%s\n", left, rows[i].help, rows[i].initial ? " [" : "",
		       rows[i].initial ? rows[i].initial : "", rows[i].initial ? "]" : "");
	}
	printf("\nSizes take K, M, G, T; times are seconds or take ms, s, m, h.\n");
}
