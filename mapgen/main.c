/* SPDX-License-Identifier: MIT */
/*
 * dotnet-mapgen: names for every frame of a live .NET process. This file has the one table of
 * commands, with the examples of their help, and runs the command that was asked for.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "libsym/base/terminal.h"
#include "libsym/libsym.h"
#include "mapgen/cli/capabilities.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/failed_calls.h"
#include "mapgen/cli/json_output.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/run_budget.h"
#include "mapgen/cli/suggest.h"

static const struct command commands[] = {
	{ "list", COMMAND_LIST, "[PID | NAME]",
	  "Lists the .NET processes, or the images of one of them", list_run,
	  "  dotnet-mapgen list\n"
	  "  dotnet-mapgen list Store.Web\n"
	  "  dotnet-mapgen list --json | jq '.[].pid'\n" },
	{ "info", COMMAND_INFO, "PID | NAME",
	  "Describes a .NET process and the code in it that has no symbols", info_run,
	  "  dotnet-mapgen info 4711\n"
	  "  dotnet-mapgen info --json Store.Web\n" },
	{ "record", COMMAND_RECORD, "[PID | NAME]... | -- PROGRAM [ARGUMENT]...",
	  "Records whole stacks of processes, with a name for every frame", record_run,
	  "  dotnet-mapgen record -d 10 Store.Web\n"
	  "  dotnet-mapgen record -o build.data -- dotnet build\n"
	  "  dotnet-mapgen record -d 10 --off-cpu 4711\n"
	  "  dotnet-mapgen record -d 10 -o store.data 4711 && perf report -i store.data\n" },
	{ "flame", COMMAND_FLAME, "PID | NAME | -i FILE",
	  "Draws where time goes, as one page that opens anywhere", flame_run,
	  "  dotnet-mapgen flame 4711\n"
	  "  dotnet-mapgen flame --view=off-cpu -d 30 Store.Web\n"
	  "  dotnet-mapgen flame -i store.trace.zip --diff=yesterday.trace.zip -o store.html\n" },
	{ "top", COMMAND_TOP, "[PID | NAME]",
	  "Shows which functions use the CPU now, again every two seconds", top_run,
	  "  dotnet-mapgen top 4711\n"
	  "  dotnet-mapgen top --batch -n 1 Store.Web\n" },
	{ "events", COMMAND_EVENTS, "PID | NAME",
	  "Prints what a .NET runtime does, a line an event, as it comes", events_run,
	  "  dotnet-mapgen events 4711\n"
	  "  dotnet-mapgen events --events=exceptions --stacks=managed Store.Web\n"
	  "  dotnet-mapgen events -d 10 --events=My-Company-Orders:0x1:5 4711\n" },
	{ "stack", COMMAND_STACK, "PID | NAME | --core=FILE",
	  "Shows what each thread of a process does at this moment", stack_run,
	  "  dotnet-mapgen stack 4711\n"
	  "  dotnet-mapgen stack --core=core.4711\n" },
	{ "report", COMMAND_REPORT, "[VIEW] -i FILE",
	  "Answers from a recording: who uses the CPU, waits, allocates, throws", report_run,
	  "  dotnet-mapgen report -i Store.Web-20261128-130501.trace.zip\n"
	  "  dotnet-mapgen report cpu -i perf.data --callers-of=TopByTag --top=50\n"
	  "  dotnet-mapgen report off-cpu -i store.trace.zip --by=thread\n"
	  "  dotnet-mapgen report gc -i store.nettrace\n" },
	{ "check", COMMAND_CHECK, "[PID | NAME | -i FILE]",
	  "Says what of a process or recording has names, and what helps", check_run,
	  "  dotnet-mapgen check\n"
	  "  dotnet-mapgen check Store.Web\n"
	  "  dotnet-mapgen check -i store.trace.zip --min=95\n" },
	{ "symbolize", COMMAND_SYMBOLIZE, "[PID | NAME] [FILE]...",
	  "Names frames that perf, bpftrace, BCC, eu-stack, LTTng print", symbolize_run,
	  "  perf script -F +pid | dotnet-mapgen symbolize > stacks.txt\n"
	  "  eu-stack -p 4711 | dotnet-mapgen symbolize --names=short 4711\n"
	  "  dotnet-mapgen symbolize 4711 stacks.txt\n" },
	{ "perf-fix", COMMAND_PERF_FIX, "PERF.DATA",
	  "Rewrites a perf.data so that stock perf names managed code", perf_fix_run,
	  "  perf record -g -p 4711 -- sleep 10; dotnet-mapgen perf-fix --in-place perf.data\n"
	  "  dotnet-mapgen perf-fix -o fixed.data perf.data && perf report -i fixed.data\n"
	  "  dotnet-mapgen perf-fix --undo perf.data\n" },
	{ "bcc", COMMAND_BCC, "[--] COMMAND [ARGUMENT]...",
	  "Runs a BCC tool so that it names every frame", bcc_run,
	  "  dotnet-mapgen bcc -- profile-bpfcc -p 4711 10\n"
	  "  dotnet-mapgen bcc --names=short --tiers=strip -- offcputime-bpfcc -f -p 4711 10\n" },
	{ "merge", COMMAND_MERGE, "PID | NAME", "Completes the perf map of a live .NET process",
	  merge_run,
	  "  dotnet-mapgen merge 4711\n"
	  "  dotnet-mapgen merge -o - --names=short Store.Web\n"
	  "  dotnet-mapgen merge --in-target 4711     for a tool inside the container\n" },
	{ "watch", COMMAND_WATCH, "PID | NAME",
	  "Keeps the perf map of a live .NET process complete", watch_run,
	  "  dotnet-mapgen watch 4711\n"
	  "  dotnet-mapgen watch -d 60 --interval=0.5 Store.Web\n" },
	{ "resolve", COMMAND_RESOLVE, "PID [ADDRESS | IMAGE+0xN]... | FILE+0xN...",
	  "Names addresses of a process, from operands or standard input", resolve_run,
	  "  dotnet-mapgen resolve 4711 0x7f2a1c3b4d50\n"
	  "  dotnet-mapgen resolve --lines --inlines /usr/lib/libfoo.so+0x1a2b\n"
	  "  dotnet-mapgen resolve --core=core.4711 0x401136\n"
	  "  perf script -F ip | dotnet-mapgen resolve 4711\n" },
	{ "fetch-symbols", COMMAND_FETCH_SYMBOLS, "PID | NAME",
	  "Downloads debug files for stripped native images of a process", fetch_symbols_run,
	  "  sudo dotnet-mapgen fetch-symbols 4711\n"
	  "  dotnet-mapgen fetch-symbols --offline Store.Web\n"
	  "  dotnet-mapgen fetch-symbols --server=http://symbols:8002 --debug-tree=/srv/debug "
	  "4711\n" },
	{ "generate", COMMAND_GENERATE, "PID | NAME | FILE... | DIR...",
	  "Writes a relative map for each precompiled .NET image", generate_run,
	  "  dotnet-mapgen generate 4711\n"
	  "  dotnet-mapgen generate -o maps "
	  "/usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.12\n"
	  "  dotnet-mapgen generate --format=r2rmap -o maps Store.Web.dll\n" },
	{ "standin", COMMAND_STANDIN, "install PID | install FILE... | list | remove [FILE...]",
	  "Puts symbol files where live perf top finds them", standin_run,
	  "  dotnet-mapgen standin install 4711 && perf top -p 4711\n"
	  "  dotnet-mapgen standin list\n"
	  "  dotnet-mapgen standin remove\n" },
};

enum {
	COMMANDS = sizeof(commands) / sizeof(commands[0])
};

static void print_overview(FILE *stream)
{
	fputs("Usage: dotnet-mapgen COMMAND [OPTION]... [OPERAND]...\n"
	      "Names for every frame of a live .NET process on Linux.\n\n",
	      stream);
	for (int i = 0; i < COMMANDS; i++)
		fprintf(stream, "  %-15s%s\n", commands[i].name, commands[i].summary);
	fputs("\nExamples:\n"
	      "  dotnet-mapgen list                                    which .NET processes run\n"
	      "  dotnet-mapgen record -d 10 Store.Web                  whole stacks, all named\n"
	      "  perf script -F +pid | dotnet-mapgen symbolize         names for other tools\n"
	      "\ndotnet-mapgen help COMMAND prints the options of a command and examples.\n"
	      "Exit status: 0 done, 1 failed, 2 wrong usage, 3 done in part (the rest is "
	      "listed).\n",
	      stream);
}

static const struct command *find_command(const char *name)
{
	struct suggestion suggestion = suggestion_of(name, strlen(name));

	for (int i = 0; i < COMMANDS; i++) {
		if (!strcmp(commands[i].name, name))
			return &commands[i];
		suggestion_offer(&suggestion, commands[i].name);
	}
	if (suggestion.best)
		message("'%s' is not a command; did you mean '%s'?", name, suggestion.best);
	else
		message("'%s' is not a command; see dotnet-mapgen --help", name);
	return NULL;
}

/* dotnet-mapgen help [COMMAND] */
static int print_help(const char *name)
{
	const struct command *command = name ? find_command(name) : NULL;

	if (name && !command)
		return EXIT_USAGE;
	if (command)
		options_print_help(command);
	else
		print_overview(stdout);
	return EXIT_DONE;
}

/* No second message for a reason that an earlier one has named. */
static int finish_calls(int exit_code)
{
	struct failed_calls calls = failed_calls_get();

	if (!calls.count || exit_code == EXIT_USAGE)
		return exit_code;
	if (!message_has_named(calls.errno_value))
		message("%s() failed: %s; the result may be incomplete", calls.name,
			strerror(calls.errno_value));
	return exit_code == EXIT_DONE ? EXIT_PARTLY : exit_code;
}

/* Fails when output could not be written, as to a full disk. */
static int main_finish(int exit_code)
{
	if (!fflush(stdout) && !ferror(stdout)) {
		if (!json_output_has_failed())
			return finish_calls(exit_code);
		message("out of memory");
		return EXIT_FAILED;
	}
	message("cannot write to standard output: %s", strerror(errno));
	return EXIT_FAILED;
}

static int run_command(const struct command *command, int argc, char **argv)
{
	/* record gives up capabilities itself: a program that it starts keeps those of its user. */
	uint64_t kept = command->id == COMMAND_RECORD ? UINT64_MAX : capabilities_of(command->id);
	int failure = capabilities_keep(kept);
	struct options options;
	int exit_code = EXIT_USAGE;

	if (failure) {
		message("cannot give up capabilities: %s", strerror(-failure));
		return EXIT_FAILED;
	}
	switch (options_parse(command, argc, argv, &options)) {
	case OPTIONS_RUN:
		exit_code = run_budget_begin(&options) ? command->run(&options) : EXIT_FAILED;
		exit_code = run_budget_end(&options, exit_code);
		break;
	case OPTIONS_SHOWN:
		exit_code = EXIT_DONE;
		break;
	case OPTIONS_FAILED:
		exit_code = EXIT_FAILED;
		break;
	case OPTIONS_BAD:
		break;
	}
	options_deinit(&options);
	return main_finish(exit_code);
}

/* libsym holds a descriptor for each mapped file, also inside a BCC tool. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int main(int argc, char **argv)
{
	const struct command *command;
	const char *name = argc > 1 ? argv[1] : "";

	terminal_guard(&stdout);
	terminal_guard(&stderr);
	json_output_begin();
	if (!*name) {
		print_overview(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help"))
		return main_finish(print_help(argc > 2 ? argv[2] : NULL));
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		printf("dotnet-mapgen %s\n", sym_version());
		return main_finish(EXIT_DONE);
	}
	command = find_command(name);
	if (!command)
		return EXIT_USAGE;
	raise_file_limit();
	/* Beyond a limit for files (ulimit -f), write() shall fail. */
	signal(SIGXFSZ, SIG_IGN);
	return run_command(command, argc - 1, argv + 1);
}
