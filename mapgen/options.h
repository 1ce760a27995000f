/* SPDX-License-Identifier: MIT */
/*
 * The command line. One table of options makes both the parsing and the text
 * of --help; the man page and the completion are compared with that text by a
 * test. Knows which command takes which option, not what it does with it.
 */
#ifndef MAPGEN_OPTIONS_H
#define MAPGEN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum command_id {
	COMMAND_LIST = 1 << 0,
	COMMAND_GENERATE = 1 << 1,
	COMMAND_MERGE = 1 << 2,
	COMMAND_RESOLVE = 1 << 3,
	COMMAND_INFO = 1 << 4,
	COMMAND_SYMBOLS = 1 << 5,
	COMMAND_BCC = 1 << 6,
	COMMAND_WATCH = 1 << 7,
	COMMAND_SYMBOLIZE = 1 << 8,
	COMMAND_PERF_FIX = 1 << 9,
	COMMAND_STANDIN = 1 << 10,
	COMMAND_ALL = (1 << 11) - 1,
	COMMAND_PROCESS = COMMAND_ALL & ~COMMAND_BCC, /* those that look at a process themselves */
	COMMAND_PID_FIRST =
		COMMAND_PROCESS & ~COMMAND_PERF_FIX, /* those whose operand may be a PID */
	COMMAND_NAMES = COMMAND_MERGE | COMMAND_RESOLVE | COMMAND_WATCH | COMMAND_BCC |
			COMMAND_SYMBOLIZE | COMMAND_PERF_FIX, /* those that give names */
	/* those that give names to native code */
	COMMAND_NATIVE = COMMAND_MERGE | COMMAND_RESOLVE | COMMAND_WATCH | COMMAND_SYMBOLIZE |
			 COMMAND_PERF_FIX,
};

enum merge_mode {
	MERGE_MODE_DEFAULT = 0,
	MERGE_MODE_APPEND,
	MERGE_MODE_REPLACE,
};

enum perf_fix_mode {
	PERF_FIX_ELF = 0,
	PERF_FIX_ANON,
};

/* Whose native images get a symbol table where they are stripped. */
enum native_mode {
	NATIVE_DOTNET = 0, /* those of .NET processes */
	NATIVE_ALL,
	NATIVE_NONE,
};

enum name_form {
	NAME_FORM_FULL = 0,
	NAME_FORM_SHORT,
	NAME_FORM_RAW, /* full; native names as symbol tables have them */
};

enum tier_form {
	TIER_FORM_KEEP = 0,
	TIER_FORM_STRIP,
};

/* Texts of an option that may be repeated; NULL terminated once parsed. */
struct text_list {
	const char **items;
	size_t count;
};

/* Everything is borrowed from argv but the arrays. */
struct options {
	int32_t pid; /* 0: not given */
	bool json;
	bool in_target;
	bool undo;
	bool enable_perfmap;
	bool rva;
	bool lines;
	bool inlines;
	bool fetch;
	bool offline;
	bool strict;
	bool report;
	bool verbose;
	bool in_place;
	bool on_behalf; /* of another command, whose output standard output is */
	const char *buildid_dir;
	const char *debug_dir; /* of standin */
	const char *store;
	struct text_list servers;
	const char *root;
	const char *core;
	const char *output;
	const char *crossgen;
	struct text_list platform_dirs;
	struct text_list map_dirs;
	struct text_list debug_dirs; /* but of standin */
	int format;                  /* enum sym_map_format; 0: not given */
	int mode;                    /* enum merge_mode or enum perf_fix_mode */
	int native;                  /* enum native_mode */
	int names;                   /* enum name_form */
	int tiers;                   /* enum tier_form */
	int jit;                     /* enum sym_jit_way */
	double for_seconds;          /* 0: not given */
	double interval_seconds;     /* 0: not given */
	char **operands;             /* without the PID */
	size_t operand_count;
};

struct command;

/* What options_parse() found. */
enum options_outcome {
	OPTIONS_RUN,
	OPTIONS_SHOWN, /* --help or --version has been answered */
	OPTIONS_BAD,   /* one line has been said */
};

/*
 * Reads the arguments behind the name of `command` (argv[0] is that name). A
 * first operand of decimal digits is the PID unless --pid was given or the
 * command was given several operands and does not need a process.
 */
enum options_outcome options_parse(const struct command *command, int argc, char **argv,
				   struct options *ret);
void options_deinit(struct options *options);

/* Prints the --help text of a command. */
void options_print_help(const struct command *command);

/* False, having said why, where there is not one PID and nothing else. */
bool options_have_one_pid(const struct options *options, const char *command_name);

/* Reads a decimal process id; false when it is none. */
bool options_read_pid(const char *text, int32_t *ret);

#endif
