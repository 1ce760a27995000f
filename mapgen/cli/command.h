/* SPDX-License-Identifier: MIT */
/*
 * Defines a command of dotnet-mapgen, and the exit codes that all of them share. The table of
 * commands is in main.c, the table of options in options.c.
 */
#ifndef MAPGEN_CLI_COMMAND_H
#define MAPGEN_CLI_COMMAND_H

#include "mapgen/cli/options.h"

/* Exit codes of the program. */
enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_PARTLY = 3, /* done in part; messages list what is missing */
};

struct command {
	const char *name;
	enum command_id id;
	const char *operands; /* as the usage line shows them */
	const char *summary;
	int (*run)(const struct options *options);
	const char *examples; /* two to four lines for the end of --help, each indented by two */
};

int list_run(const struct options *options);
int info_run(const struct options *options);
int generate_run(const struct options *options);
int merge_run(const struct options *options);
int watch_run(const struct options *options);
int resolve_run(const struct options *options);
int symbolize_run(const struct options *options);
int fetch_symbols_run(const struct options *options);
int bcc_run(const struct options *options);
int perf_fix_run(const struct options *options);
int standin_run(const struct options *options);
int record_run(const struct options *options);
int stack_run(const struct options *options);
int flame_run(const struct options *options);
int top_run(const struct options *options);
int events_run(const struct options *options);
int report_run(const struct options *options);
int check_run(const struct options *options);

#endif
