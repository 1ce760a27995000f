/* SPDX-License-Identifier: MIT */
/*
 * dotnet-mapgen: names for every frame of a live .NET process. This file has
 * the one table of commands; it knows neither options nor what a command does.
 */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "libsym/libsym.h"
#include "mapgen/command.h"
#include "mapgen/json_output.h"
#include "mapgen/message.h"

static const struct command commands[] = {
	{ "list", COMMAND_LIST, "[PID]",
	  "Lists the processes that host a .NET runtime, or the images of one of them", list_run },
	{ "info", COMMAND_INFO, "PID",
	  "Tells what kind of .NET process this is, and what of it has no symbols", info_run },
	{ "generate", COMMAND_GENERATE, "PID | FILE... | DIR...",
	  "Makes one relative map for each precompiled .NET image", generate_run },
	{ "merge", COMMAND_MERGE, "PID", "Completes the perf map of a live .NET process",
	  merge_run },
	{ "watch", COMMAND_WATCH, "PID", "Keeps the perf map of a live .NET process complete",
	  watch_run },
	{ "resolve", COMMAND_RESOLVE, "PID [ADDRESS | IMAGE+0xN]... | FILE+0xN...",
	  "Names addresses of a process, given as operands or one a line on standard input",
	  resolve_run },
	{ "symbolize", COMMAND_SYMBOLIZE, "[PID] [FILE]...",
	  "Puts names into stacks that other tools print: perf, bpftrace, BCC, eu-stack, LTTng",
	  symbolize_run },
	{ "symbols", COMMAND_SYMBOLS, "PID",
	  "Brings the symbols of the native images of a process that have none", symbols_run },
	{ "bcc", COMMAND_BCC, "[--] COMMAND [ARGUMENT]...",
	  "Runs a tool of BCC's that then names every frame", bcc_run },
	{ "perf-fix", COMMAND_PERF_FIX, "PERF.DATA",
	  "Makes a perf.data of which stock perf shows managed names", perf_fix_run },
	{ "standin", COMMAND_STANDIN, "install PID | install FILE... | list | remove [FILE...]",
	  "Puts names of precompiled code where live perf top finds them", standin_run },
};

enum {
	COMMANDS = sizeof(commands) / sizeof(commands[0])
};

static void print_overview(void)
{
	puts("Usage: dotnet-mapgen COMMAND [OPTION]... [OPERAND]...\n"
	     "Names for every frame of a live .NET process on Linux.\n");
	for (int i = 0; i < COMMANDS; i++)
		printf("  %-10s%s\n", commands[i].name, commands[i].summary);
	puts("\ndotnet-mapgen COMMAND --help shows the options of a command.\n"
	     "Exit status: 0 done, 1 failed, 2 wrong usage, 3 done in part (what is missing is "
	     "listed).");
}

static const struct command *find_command(const char *name)
{
	for (int i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

/* What was printed must have arrived: a full disk is a failure like any other. */
static int finish(int exit_code)
{
	if (!fflush(stdout) && !ferror(stdout))
		return json_output_has_failed() ? EXIT_FAILED : exit_code;
	message("cannot write to standard output: %s", strerror(errno));
	return EXIT_FAILED;
}

static int run_command(const struct command *command, int argc, char **argv)
{
	struct options options;
	int exit_code = EXIT_USAGE;

	switch (options_parse(command, argc, argv, &options)) {
	case OPTIONS_RUN:
		exit_code = command->run(&options);
		break;
	case OPTIONS_SHOWN:
		exit_code = EXIT_DONE;
		break;
	case OPTIONS_BAD:
		break;
	}
	options_deinit(&options);
	return finish(exit_code);
}

/* A descriptor is held for each file that a process has mapped, also by libsym inside a BCC tool.
 */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/*
 * Memory that was given back is needed again at once: a third of a merge was page faults. What
 * every command needs is asked for in one go: page by page it takes 6 % of naming one address.
 */
static void set_up_heap(void)
{
	enum {
		FIRST_BYTES = 192 << 10,
		PAGE_BYTES = 4096
	};
	void *first;

	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_TOP_PAD, 16 << 20);
	first = malloc(1);
#ifdef MADV_POPULATE_WRITE
	/* Refused before Linux 5.14, and where pages are larger; then they come one by one. */
	madvise((void *)((uintptr_t)first & -(uintptr_t)PAGE_BYTES), FIRST_BYTES,
		MADV_POPULATE_WRITE);
#endif
	free(first);
}

int main(int argc, char **argv)
{
	const struct command *command;
	const char *name = argc > 1 ? argv[1] : "";

	set_up_heap();
	json_output_begin();
	if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
		print_overview();
		return finish(EXIT_DONE);
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		printf("dotnet-mapgen %s\n", sym_version());
		return finish(EXIT_DONE);
	}
	command = find_command(name);
	if (!command) {
		message(*name ? "'%s' is not a command; see dotnet-mapgen --help"
			      : "no command%s; see dotnet-mapgen --help",
			name);
		return EXIT_USAGE;
	}
	raise_file_limit();
	/* A limit for files (ulimit -f) is an error of writing like any other. */
	signal(SIGXFSZ, SIG_IGN);
	return run_command(command, argc - 1, argv + 1);
}
