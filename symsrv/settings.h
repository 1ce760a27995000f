/* SPDX-License-Identifier: MIT */
/*
 * The one table of options: command line, configuration file, --help and the
 * manual are held against it. Knows how a value is spelt, not what is done with it.
 *
 * A configuration file holds the same options, a line each: NAME VALUE. Options
 * of the command line come first and win where only one value is taken.
 */
#ifndef SYMSRV_SETTINGS_H
#define SYMSRV_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text_list {
	char **texts;
	size_t count;
};

/* Copies the text; false: out of memory. */
bool text_list_add(struct text_list *list, const char *text);
bool text_list_has(const struct text_list *list, const char *text);
void text_list_deinit(struct text_list *list);

struct options {
	char *store;
	char *config;
	char *access_log;
	char *ask;
	char *transient;
	struct text_list listen, upstreams, trusted, credentials, index, deny_nets, allow_nets;
	uint64_t max_bytes, max_object_bytes, min_rate_bytes;
	uint64_t threads, connections, connections_per_client, max_fetches, retries,
		forwarded_limit;
	uint64_t negative_ms, connect_ms, stall_ms, fetch_ms, wait_ms, header_ms, idle_ms, drain_ms,
		rescan_ms;
	bool scrub, help, version;
};

/*
 * Parses command line and configuration file; false after writing one line to
 * `message` (message_bytes long). The result is ended in any case.
 */
bool options_parse(struct options *options, int argc, const char *const *argv, char *message,
		   size_t message_bytes);
void options_deinit(struct options *options);

/* Text of --help, for stdout. */
void options_print_help(void);

#endif
