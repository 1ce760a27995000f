/* SPDX-License-Identifier: MIT */
/*
 * Documentation/trace/uprobetracer.rst:
 *
 *   uprobe_events   "p:GROUP/NAME PATH:0xOFFSET" adds, "-:GROUP/NAME" removes; one line a write
 *   events/GROUP/NAME/id
 */
#include "mapgen/record/trace_event.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/error.h"

#define GROUP_PREFIX "dotnet_mapgen_"

static const char *const roots[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

/* The directory that has uprobe_events; the first if there is none. */
static const char *find_root(void)
{
	char path[64];

	for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++) {
		snprintf(path, sizeof(path), "%s/uprobe_events", roots[i]);
		if (!access(path, F_OK))
			return roots[i];
	}
	return roots[0];
}

/* Returns 0 or an errno. */
static int write_line(const char *line)
{
	char path[64];
	int fd AUTO_CLOSE = -1;

	snprintf(path, sizeof(path), "%s/uprobe_events", find_root());
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return errno;
	return write(fd, line, strlen(line)) < 0 ? errno : 0;
}

static struct sym_error *trace_event_error(int failure)
{
	return sym_error_create(failure == ENOENT                       ? SYM_ERROR_UNSUPPORTED
				: failure == EACCES || failure == EPERM ? SYM_ERROR_PERMISSION
									: SYM_ERROR_IO,
				"uprobe_events of tracefs: %s", strerror(failure));
}

struct sym_error *trace_event_add(const char *name, const char *path, uint64_t offset,
				  uint64_t *id_ret)
{
	char line[512], id_path[256];
	FILE *file GUARDED(file) = NULL;
	int failure;

	snprintf(line, sizeof(line), "p:" GROUP_PREFIX "%d/%s %s:0x%" PRIx64 "\n", (int)getpid(),
		 name, path, offset);
	failure = write_line(line);
	if (failure)
		return trace_event_error(failure);
	snprintf(id_path, sizeof(id_path), "%s/events/" GROUP_PREFIX "%d/%s/id", find_root(),
		 (int)getpid(), name);
	file = fopen(id_path, "re");
	if (!file || fscanf(file, "%" SCNu64, id_ret) != 1)
		return trace_event_error(errno);
	return NULL;
}

/* "p:GROUP/NAME PATH:0xOFFSET": the number in GROUP, and where NAME ends; 0: another one's. */
static int32_t owner_of(const char *line, size_t *end_ret)
{
	static const char begin[] = "p:" GROUP_PREFIX;
	char *end;
	long pid;

	if (strncmp(line, begin, sizeof(begin) - 1) != 0)
		return 0;
	pid = strtol(line + sizeof(begin) - 1, &end, 10);
	*end_ret = strcspn(line, " \n");
	return *end == '/' && pid > 0 && pid < INT32_MAX ? (int32_t)pid : 0;
}

static void remove_all(bool (*is_wanted)(int32_t pid))
{
	char path[64], line[1024];
	FILE *file GUARDED(file) = NULL;

	snprintf(path, sizeof(path), "%s/uprobe_events", find_root());
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		char request[1024];
		size_t end;
		int32_t pid = owner_of(line, &end);

		if (!pid || !is_wanted(pid))
			continue;
		snprintf(request, sizeof(request), "-%.*s\n", (int)end - 1, line + 1);
		(void)write_line(request);
	}
}

static bool is_own(int32_t pid)
{
	return pid == getpid();
}

static bool is_gone(int32_t pid)
{
	return kill(pid, 0) && errno == ESRCH;
}

void trace_event_remove_own(void)
{
	remove_all(is_own);
}

void trace_event_remove_left(void)
{
	remove_all(is_gone);
}
