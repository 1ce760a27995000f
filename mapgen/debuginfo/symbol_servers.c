/* SPDX-License-Identifier: MIT */
#include "mapgen/debuginfo/symbol_servers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "mapgen/cli/message.h"

/* Microsoft's symbol server for the runtimes that it builds. */
static const char microsoft_server[] = "https://msdl.microsoft.com/download/symbols";

/* Splits `words` in place. */
static const char **collect_servers(const struct options *options, char *words)
{
	size_t room = options->servers.count + (words ? strlen(words) : 0) + 2, count = 0;
	const char **servers = calloc(room, sizeof(*servers));
	char *word;

	if (!servers)
		return NULL;
	for (; count < options->servers.count; count++)
		servers[count] = options->servers.items[count];
	if (count)
		return servers;
	while (words && (word = strsep(&words, " \t\n")))
		if (!strncasecmp(word, "http://", 7) || !strncasecmp(word, "https://", 8) ||
		    !strncasecmp(word, "file://", 7))
			servers[count++] = word;
	servers[count] = microsoft_server;
	return servers;
}

bool symbols_choice_make(const struct options *options, struct symbols_choice *ret)
{
	const char *variable = getenv("DEBUGINFOD_URLS");

	*ret = (struct symbols_choice){
		.tree = options->debug_tree ? options->debug_tree : SYMBOLS_STANDARD_TREE,
		.words = variable ? strdup(variable) : NULL,
	};
	ret->servers = collect_servers(options, ret->words);
	if (!ret->servers) {
		message("out of memory");
		symbols_choice_deinit(ret);
		return false;
	}
	ret->is_microsoft_only = ret->servers[0] == microsoft_server;
	return true;
}

void symbols_choice_deinit(struct symbols_choice *choice)
{
	free(choice->servers);
	free(choice->words);
	*choice = (struct symbols_choice){ 0 };
}

char *symbol_server_without_password(const char *url)
{
	const char *host = strstr(url, "://");
	size_t length;
	const char *at;

	if (!host)
		return strdup(url);
	host += 3;
	length = strcspn(host, "/?#");
	at = memrchr(host, '@', length);
	return at ? message_format("%.*s%s", (int)(host - url), url, at + 1) : strdup(url);
}

bool symbols_choice_can_keep(const struct symbols_choice *choice)
{
	char *path AUTO_FREE = message_format("%s/.build-id", choice->tree);
	int failure = path_make_directories(path, 0755);

	if (!failure && faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS))
		failure = -errno;
	if (failure == -EACCES || failure == -EPERM || failure == -EROFS)
		message("cannot write %s (%s): try sudo, or --debug-tree=DIR; fetch-symbols "
			"--offline only reports what is missing",
			path, strerror(-failure));
	else if (failure)
		message("cannot create %s: %s", path, strerror(-failure));
	return !failure;
}
