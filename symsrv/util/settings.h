/* SPDX-License-Identifier: MIT */
/*
 * The table of options. It defines the command line, the configuration file and --help, and a test
 * compares symsrv.8 with it. This file knows how a value is written, not what is done with it.
 *
 * A configuration file has the same options, one a line: NAME VALUE. Single values of the command
 * line replace those of the file; lists are joined.
 */
#ifndef SYMSRV_UTIL_SETTINGS_H
#define SYMSRV_UTIL_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text_list {
	char **texts;
	size_t count;
};

/* Copies the text; returns false if there is no memory. */
bool text_list_add(struct text_list *list, const char *text);
bool text_list_has(const struct text_list *list, const char *text);
void text_list_deinit(struct text_list *list);

struct options {
	char *store;
	char *user;
	char *config;
	char *access_log;
	char *ask;
	char *transient;
	char *tier, *self, *export, *upload_token;
	struct text_list listen, upstreams, trusted, credentials, index, deny_nets, allow_nets,
		peers;
	uint64_t max_bytes, max_object_bytes, min_rate_bytes;
	uint64_t threads, connections, connections_per_client, max_fetches, retries,
		forwarded_limit;
	uint64_t negative_cache_ms, connect_ms, stall_ms, fetch_ms, wait_ms, header_ms, idle_ms,
		drain_ms, rescan_ms;
	bool scrub, help, version;
};

/*
 * Parses the command line and the configuration file. If it returns false, `message` (message_bytes
 * long) has one line, and the options need no settings_deinit().
 */
bool settings_parse(struct options *options, int argc, const char *const *argv, char *message,
		    size_t message_bytes);
void settings_deinit(struct options *options);

/* Prints the text of --help. */
void settings_print_help(void);

#endif
