/* SPDX-License-Identifier: MIT */
#include "mapgen/record/thread_id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_text(int32_t pid, int32_t tid, const char *name, char *text, size_t size)
{
	char path[64];
	FILE *file;
	size_t count;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	count = fread(text, 1, size - 1, file);
	fclose(file);
	text[count] = '\0';
	return count > 0;
}

bool thread_id_read(int32_t pid, int32_t tid, struct thread_id *ret)
{
	char status[4096];
	const char *ids;

	*ret = (struct thread_id){ .container_tid = tid };
	if (!read_text(pid, tid, "comm", ret->comm, sizeof(ret->comm)) ||
	    !read_text(pid, tid, "status", status, sizeof(status)))
		return false;
	ret->comm[strcspn(ret->comm, "\n")] = '\0';
	/* "NSpid:\t4711\t12": outermost first. */
	ids = strstr(status, "\nNSpid:");
	for (ids = ids ? strchr(ids, '\t') : NULL; ids && *ids == '\t';) {
		char *end;
		long id = strtol(ids, &end, 10);

		if (id > 0 && id <= INT32_MAX)
			ret->container_tid = (int32_t)id;
		ids = end;
	}
	return true;
}
