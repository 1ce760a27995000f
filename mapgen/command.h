/* SPDX-License-Identifier: MIT */
/*
 * What a command of dotnet-mapgen is, and the exit codes that all of them
 * share. The one table of commands is in main.c; the options that a command
 * takes are in the one table of options.c.
 */
#ifndef MAPGEN_COMMAND_H
#define MAPGEN_COMMAND_H

#include "mapgen/options.h"

/* Exit codes of the program. */
enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_PARTLY = 3, /* done in part; what is missing has been listed */
};

struct command {
	const char *name;
	enum command_id id;
	const char *operands; /* as the usage line shows them */
	const char *summary;
	int (*run)(const struct options *options);
};

int list_run(const struct options *options);
int info_run(const struct options *options);
int generate_run(const struct options *options);
int merge_run(const struct options *options);
int watch_run(const struct options *options);
int resolve_run(const struct options *options);
int symbolize_run(const struct options *options);
int symbols_run(const struct options *options);
int bcc_run(const struct options *options);
int perf_fix_run(const struct options *options);
int standin_run(const struct options *options);

#endif
