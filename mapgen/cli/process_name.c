/* SPDX-License-Identifier: MIT */
#include "mapgen/cli/process_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/error.h"
#include "mapgen/cli/message.h"

enum {
	ARGUMENTS_BYTES = 1 << 16,
	PATH_BYTES = 4096,
	MOST_NAMED_PIDS = 10,
};

/* Options of the host that have a value and stand before the assembly. */
static bool has_value(const char *option)
{
	static const char *const options[] = { "--additionalprobingpath", "--depsfile",
					       "--runtimeconfig",         "--fx-version",
					       "--roll-forward",          "--additional-deps" };

	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (!strcmp(option, options[i]))
			return true;
	return false;
}

/* The assembly that "dotnet [exec] [OPTION]... ASSEMBLY.dll" runs; NULL when there is none. */
static const char *find_assembly(const char *arguments, size_t size_bytes)
{
	const char *end = arguments + size_bytes, *argument = arguments;

	for (int i = 0; argument < end; i++, argument += strlen(argument) + 1) {
		size_t length = strlen(argument);

		if (i == 0 || !strcmp(argument, "exec"))
			continue;
		if (has_value(argument)) {
			argument += length + 1;
			if (argument >= end)
				return NULL;
			continue;
		}
		if (argument[0] != '-')
			return length > 4 && path_ends_with(argument, ".dll")
				       ? path_file_name(argument)
				       : NULL;
	}
	return NULL;
}

/* The name from the contents of /proc/PID/cmdline (NUL after each argument) and the path of the
 * executable; heap. */
static char *process_name_from(const char *arguments, size_t size_bytes, const char *executable)
{
	const char *program = path_file_name(executable), *assembly = NULL;

	/* The last argument must be terminated. */
	if (size_bytes && !arguments[size_bytes - 1] && !strcmp(program, "dotnet"))
		assembly = find_assembly(arguments, size_bytes);
	return assembly ? strndup(assembly, strlen(assembly) - 4) : strdup(program);
}

static size_t read_arguments(int32_t pid, char *room, size_t room_bytes)
{
	char path[64];
	size_t count;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	count = fread(room, 1, room_bytes, file);
	fclose(file);
	return count;
}

char *process_name_of(int32_t pid)
{
	char *arguments AUTO_FREE = malloc(ARGUMENTS_BYTES);
	char path[64], executable[PATH_BYTES];
	static const char deleted[] = " (deleted)";
	ssize_t length;

	if (!arguments)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	length = readlink(path, executable, sizeof(executable) - 1);
	if (length <= 0)
		return NULL;
	executable[length] = '\0';
	if ((size_t)length > strlen(deleted) &&
	    !strcmp(executable + length - strlen(deleted), deleted))
		executable[(size_t)length - strlen(deleted)] = '\0';
	return process_name_from(arguments, read_arguments(pid, arguments, ARGUMENTS_BYTES),
				 executable);
}

struct sym_error *process_name_find(const char *name, int32_t **ret, size_t *count_ret)
{
	int32_t *pids;
	size_t count, found = 0;
	struct sym_error *error = sym_process_ids(NULL, &pids, &count);

	if (error)
		return error;
	for (size_t i = 0; i < count; i++) {
		char *other AUTO_FREE = process_name_of(pids[i]);

		if (other && pids[i] != getpid() && !strcmp(other, name))
			pids[found++] = pids[i];
	}
	*ret = pids;
	*count_ret = found;
	return NULL;
}

char *process_name_list_pids(const int32_t *pids, size_t count)
{
	char text[MOST_NAMED_PIDS * 12 + 32] = "";
	size_t length = 0;

	for (size_t i = 0; i < count && i < MOST_NAMED_PIDS; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%" PRId32,
					   i ? ", " : "", pids[i]);
	if (count > MOST_NAMED_PIDS)
		snprintf(text + length, sizeof(text) - length, " and %zu more",
			 count - MOST_NAMED_PIDS);
	return strdup(text);
}

bool process_name_choose(const char *name, int32_t *ret)
{
	int32_t *pids AUTO_FREE = NULL;
	size_t count = 0;
	struct sym_error *error = process_name_find(name, &pids, &count);

	if (!message_error(error))
		return false;
	if (!count) {
		message("'%s' is neither a process id nor the name of a process", name);
		return false;
	}
	if (count > 1) {
		char *text AUTO_FREE = process_name_list_pids(pids, count);

		message("%zu processes are called '%s': choose one by its PID: %s", count, name,
			text ? text : "");
		return false;
	}
	*ret = pids[0];
	return true;
}
