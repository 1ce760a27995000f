/* SPDX-License-Identifier: MIT */
/* Arbitrary bytes as a configuration file: it is accepted, or rejected with one line, including its
 * upstreams; no message contains a password. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/base/path.h"
#include "symsrv/upstream/upstream_set.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_upstreams(struct options *options)
{
	char message[256];
	struct upstream_set *set;
	size_t i;

	/* Files that the bytes happen to name must not be opened. */
	while (options->credentials.count)
		free(options->credentials.texts[--options->credentials.count]);
	if (!upstream_set_create(options, NULL, message, sizeof(message), &set)) {
		if (strchr(message, '\n') || !message[0])
			abort();
		return;
	}
	for (i = 0; i < set->count; i++)
		if (!set->list[i]->name[0] || strchr(set->list[i]->name, '"') || !set->list[i]->url)
			abort();
	upstream_set_release(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *arguments[] = { "symsrv", "--store", "/nowhere", "--config", NULL };
	int fd = memfd_create("settings", MFD_CLOEXEC);
	char path[64], message[256] = "";
	struct options options;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	arguments[4] = path;
	if (fd >= 0 && !path_write_all(fd, data, size)) {
		if (settings_parse(&options, 5, arguments, message, sizeof(message))) {
			check_upstreams(&options);
			settings_deinit(&options);
		} else if (!message[0]) {
			abort();
		}
	}
	if (fd >= 0)
		close(fd);
	return 0;
}
