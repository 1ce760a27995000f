/* SPDX-License-Identifier: MIT */
#include "tests/support/recorded.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/program.h"

char *recorded_pid(void)
{
	DIR *entries = opendir(RECORDED_ROOT "/proc");
	struct dirent *entry;
	char *pid = NULL;

	cr_assert(entries, "the tests run in the top directory of the tree");
	while (!pid && (entry = readdir(entries)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			pid = strdup(entry->d_name);
	closedir(entries);
	cr_assert(pid);
	return pid;
}

static char *read_recorded(const char *format, const char *pid)
{
	char path[256], *text;

	snprintf(path, sizeof(path), format, RECORDED_ROOT, pid);
	text = scratch_read(path, NULL);
	cr_assert(text, "%s", path);
	return text;
}

uint64_t recorded_method(const char *pid, char **name_ret)
{
	char *text = read_recorded("%s/tmp/perf-%s.map", pid), *found = strstr(text, "::");
	uint64_t start, size_bytes;
	int name;

	cr_assert(found);
	while (found > text && found[-1] != '\n')
		found--;
	cr_assert_eq(sscanf(found, "%" SCNx64 " %" SCNx64 " %n", &start, &size_bytes, &name), 2);
	*name_ret = strndup(found + name, strcspn(found + name, "\n"));
	free(text);
	return start;
}

uint64_t recorded_file_offset(const char *pid, uint64_t address, char **file_ret)
{
	char *text = read_recorded("%s/proc/%s/maps", pid);
	uint64_t found = UINT64_MAX;

	for (char *line = text; *line; line = strchr(line, '\n') + 1) {
		uint64_t start, end, offset;
		char protection[5];
		int name = 0;

		cr_assert_eq(sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n",
				    &start, &end, protection, &offset, &name),
			     4);
		if (address < start || address >= end || protection[2] != 'x')
			continue;
		found = offset + (address - start);
		*file_ret = strndup(line + name, strcspn(line + name, "\n"));
	}
	cr_assert_neq(found, UINT64_MAX);
	free(text);
	return found;
}
