/* SPDX-License-Identifier: MIT */
/*
 * Writes reports of UndefinedBehaviorSanitizer to PATH.PID, with log_path=PATH in UBSAN_OPTIONS.
 *
 * GCC's libubsan ignores that option where libasan is loaded as well, and writes to standard error.
 * That is /dev/null in the child that reads DWARF, and Criterion hides it. So a report was lost,
 * and the exit code 1 looked like a failure that a command reports.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* libubsan calls this at each report. Its own definition is weak and does nothing. */
void __ubsan_on_report(void);
/* lib/ubsan/ubsan_monitor.h */
void __ubsan_get_current_report_data(const char **kind, const char **message, const char **file,
				     unsigned int *line, unsigned int *column, char **memory);

static int open_log(void)
{
	const char *options = getenv("UBSAN_OPTIONS"), *path = options;
	char name[4096];

	path = path ? strstr(path, "log_path=") : NULL;
	if (!path)
		return -1;
	path += strlen("log_path=");
	snprintf(name, sizeof(name), "%.*s.%d", (int)strcspn(path, ":"), path, getpid());
	return open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

__attribute__((visibility("default"))) void __ubsan_on_report(void)
{
	const char *kind = NULL, *message = NULL, *file = NULL;
	unsigned int line = 0, column = 0;
	char *memory = NULL;
	int fd = open_log();

	if (fd < 0)
		return;
	__ubsan_get_current_report_data(&kind, &message, &file, &line, &column, &memory);
	dprintf(fd, "%s:%u:%u: runtime error: %s (%s)\n", file ? file : "?", line, column,
		message ? message : "?", kind ? kind : "?");
	close(fd);
}
