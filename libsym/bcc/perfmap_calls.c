/* SPDX-License-Identifier: MIT */
/*
 * The functions of bcc_perf_map.h: where libbcc finds the perf map of a process, and how it reads
 * lines.
 * There are no checks of trust (owner, age, links), and nothing is sorted. The live engine uses
 * libsym in place of these functions.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/foreign_file.h"
#include "libsym/bcc/libsym-bcc.h"
#include "libsym/bcc/perfmap_calls.h"

bool bcc_is_perf_map(const char *path)
{
	const char *dot = path ? strrchr(path, '.') : NULL;

	return dot && !strcmp(dot, ".map");
}

bool bcc_is_valid_perf_map(const char *path)
{
	return bcc_is_perf_map(path) && access(path, R_OK) == 0;
}

int bcc_perf_map_nstgid(int pid)
{
	AUTO_FREE char *line = NULL;
	FILE *status GUARDED(file) = NULL;
	char path[64];
	size_t room = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	status = fopen(path, "re");
	while (status && getline(&line, &room, status) > 0) {
		/* One number for each nested namespace, the innermost last. */
		const char *last = strrchr(line, '\t');

		if (!strncmp(line, "NStgid:", 7) && last)
			return (int)strtol(last, NULL, 10);
	}
	return -1;
}

void host_perf_map_path(char *room, size_t room_bytes, int pid)
{
	snprintf(room, room_bytes, "/tmp/perf-%d.map", pid);
}

bool bcc_perf_map_path(char *map_path, size_t map_len, int pid)
{
	char link[64], root[PATH_MAX], inside[64];
	ssize_t length;

	if (!map_path)
		return false;
	snprintf(link, sizeof(link), "/proc/%d/root", pid);
	length = readlink(link, root, sizeof(root) - 1);
	if (length < 0)
		return false;
	root[length] = '\0';
	host_perf_map_path(inside, sizeof(inside), bcc_perf_map_nstgid(pid));
	snprintf(map_path, map_len, "%s%s", strcmp(root, "/") ? root : "", inside);
	return true;
}

/* Parses a hexadecimal number followed by a space. Returns the text after the space, or NULL. */
static char *take_number(char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 16);
	if (*end != ' ' || (*ret == ULLONG_MAX && errno == ERANGE))
		return NULL;
	while (isspace((unsigned char)*end))
		end++;
	return end;
}

int bcc_perf_map_foreach_sym(const char *path, bcc_perf_map_symcb callback, void *payload)
{
	int fd AUTO_CLOSE = path && callback ? foreign_file_open(-1, path, 0, NULL, NULL) : -1;
	FILE *map GUARDED(file) = fd < 0 ? NULL : fdopen(fd, "r");
	AUTO_FREE char *line = NULL;
	size_t room = 0;

	if (!map)
		return -1;
	steal_fd(&fd);
	while (getline(&line, &room, map) > 0) {
		uint64_t start, size_bytes;
		char *name = take_number(line, &start);

		if (!name || !start)
			continue;
		name = take_number(name, &size_bytes);
		if (!name)
			continue;
		name[strcspn(name, "\n")] = '\0';
		callback(name, start, size_bytes, payload);
	}
	return 0;
}
