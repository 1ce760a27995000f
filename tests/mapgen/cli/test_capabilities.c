/* SPDX-License-Identifier: MIT */
/* Compares the table of SECURITY.md with the capabilities that a command keeps, as the kernel
 * reports them. */
#include <criterion/criterion.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mapgen/cli/capabilities.h"

static const struct {
	const char *name;
	unsigned int number;
} known[] = {
	{ "CHOWN", CAP_CHOWN },
	{ "DAC_OVERRIDE", CAP_DAC_OVERRIDE },
	{ "DAC_READ_SEARCH", CAP_DAC_READ_SEARCH },
	{ "FOWNER", CAP_FOWNER },
	{ "SETGID", CAP_SETGID },
	{ "SETUID", CAP_SETUID },
	{ "SYS_PTRACE", CAP_SYS_PTRACE },
	{ "SYSLOG", CAP_SYSLOG },
	{ "SYS_RESOURCE", CAP_SYS_RESOURCE },
	{ "IPC_LOCK", CAP_IPC_LOCK },
	{ "SYS_NICE", CAP_SYS_NICE },
	{ "PERFMON", 38 },
	{ "BPF", 39 },
	{ "CHECKPOINT_RESTORE", 40 },
};

static const struct {
	const char *name;
	enum command_id command;
} rows[] = {
	{ "list", COMMAND_LIST },
	{ "info", COMMAND_INFO },
	{ "generate", COMMAND_GENERATE },
	{ "merge", COMMAND_MERGE },
	{ "watch", COMMAND_WATCH },
	{ "resolve", COMMAND_RESOLVE },
	{ "symbolize", COMMAND_SYMBOLIZE },
	{ "fetch-symbols", COMMAND_FETCH_SYMBOLS },
	{ "bcc", COMMAND_BCC },
	{ "perf-fix", COMMAND_PERF_FIX },
	{ "standin", COMMAND_STANDIN },
	{ "record", COMMAND_RECORD },
	{ "report", COMMAND_REPORT },
	{ "check", COMMAND_CHECK },
	{ "stack", COMMAND_STACK },
	{ "top", COMMAND_TOP },
	{ "events", COMMAND_EVENTS },
	{ "flame", COMMAND_FLAME },
};

enum {
	ROWS = sizeof(rows) / sizeof(rows[0])
};

static uint64_t mask_of(char *cell)
{
	uint64_t mask = 0;
	char *word;

	if (!strcmp(cell, " all "))
		return UINT64_MAX;
	while ((word = strsep(&cell, " `"))) {
		size_t i = 0;

		while (i < sizeof(known) / sizeof(known[0]) && strcmp(known[i].name, word))
			i++;
		if (*word)
			cr_assert_lt(i, sizeof(known) / sizeof(known[0]), "%s", word);
		if (*word)
			mask |= UINT64_C(1) << known[i].number;
	}
	return mask;
}

/* The last cell of the row that begins with | `dotnet-mapgen NAME` |. */
static uint64_t documented(const char *name)
{
	FILE *file = fopen("SECURITY.md", "re");
	char line[4096], begin[64];
	uint64_t mask = 0;
	bool is_found = false;

	cr_assert(file);
	snprintf(begin, sizeof(begin), "| `dotnet-mapgen %s` |", name);
	while (!is_found && fgets(line, sizeof(line), file)) {
		char *end = strrchr(line, '|');

		if (strncmp(line, begin, strlen(begin)) != 0)
			continue;
		*end = 0;
		mask = mask_of(strrchr(line, '|') + 1);
		is_found = true;
	}
	fclose(file);
	cr_assert(is_found, "SECURITY.md has no row for %s", name);
	return mask;
}

Test(capabilities, of_each_command_are_those_of_the_manual)
{
	unsigned int all = 0;

	for (int i = 0; i < ROWS; i++) {
		all |= rows[i].command;
		cr_expect_eq(capabilities_of(rows[i].command), documented(rows[i].name), "%s",
			     rows[i].name);
	}
	cr_expect_eq(all, COMMAND_ALL, "a command has no row here");
}

static uint64_t status(const char *name)
{
	FILE *file = fopen("/proc/self/status", "re");
	uint64_t value = UINT64_MAX;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			value = strtoull(line + strlen(name), NULL, 16);
	if (file)
		fclose(file);
	return value;
}

/* In a process of its own, because capabilities that were given up do not come back. */
static int keep_and_look(uint64_t kept)
{
	uint64_t had = status("CapPrm:"), bound = status("CapBnd:");

	/* Before Linux 5.9 CAP_SYS_ADMIN stands for CHECKPOINT_RESTORE. */
	if (prctl(PR_CAPBSET_READ, 40, 0, 0, 0) < 0)
		kept |= UINT64_C(1) << CAP_SYS_ADMIN;
	if (capabilities_keep(kept))
		return 1;
	if (status("CapEff:") != (had & kept) || status("CapPrm:") != (had & kept))
		return 2;
	if (status("CapInh:") || status("CapAmb:") || status("NoNewPrivs:") != 1)
		return 3;
	if (had & 1 << CAP_SETPCAP && status("CapBnd:") != (bound & kept))
		return 4;
	return 0;
}

Test(capabilities, that_are_not_kept_are_gone_for_children_too)
{
	for (int i = 0; i < ROWS; i++) {
		uint64_t kept = capabilities_of(rows[i].command);
		int result = -1;
		pid_t child;

		if (kept == UINT64_MAX)
			continue;
		child = fork();
		if (!child)
			_exit(keep_and_look(kept));
		waitpid(child, &result, 0);
		cr_expect_eq(result, 0, "%s: %d", rows[i].name, WEXITSTATUS(result));
	}
}
