/* SPDX-License-Identifier: MIT */
#include "mapgen/perfmap/running_tools.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/libsym.h"

/* The maps of a Python process have some 20 KB. */
static const size_t longest_maps_bytes = (size_t)16 << 20;

static bool read_file(int32_t pid, const char *name, struct buf *buf)
{
	char path[64];
	int fd AUTO_CLOSE = -1;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	buf_clear(buf);
	return fd >= 0 && !path_read_all(fd, buf) && buf_string(buf);
}

static bool executable_begins(int32_t pid, const char *start)
{
	char path[64], target[4096];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return false;
	target[length] = '\0';
	return !strncmp(path_file_name(target), start, strlen(start));
}

/* Most BCC tools are Python scripts, so only their maps are read. */
static const char *advice_for(int32_t pid, struct buf *buf)
{
	if (executable_begins(pid, "bpftrace"))
		return "bpftrace keeps the symbols that it has read; start it again, with "
		       "BPFTRACE_CACHE_USER_SYMBOLS=1, to see these";
	if (executable_begins(pid, "python") && read_file(pid, "maps", buf) &&
	    strstr(buf->data, "/libbcc.so"))
		return "a symbol cache that BCC has made already does not see these; start the "
		       "tool again unless it prints at its end only";
	return NULL;
}

size_t running_tools_find(struct running_tool *tools, size_t room)
{
	int32_t *pids AUTO_FREE = NULL;
	size_t count = 0, found = 0;
	struct sym_error *error = sym_process_ids(NULL, &pids, &count);
	struct buf buf;

	sym_error_destroy(error);
	buf_init(&buf, longest_maps_bytes);
	for (size_t i = 0; i < count && found < room; i++) {
		const char *advice = advice_for(pids[i], &buf);

		if (!advice)
			continue;
		tools[found] = (struct running_tool){ .pid = pids[i], .advice = advice };
		if (read_file(pids[i], "comm", &buf))
			snprintf(tools[found].comm, sizeof(tools[found].comm), "%.*s",
				 (int)strcspn(buf.data, "\n"), buf.data);
		found++;
	}
	buf_deinit(&buf);
	return found;
}
