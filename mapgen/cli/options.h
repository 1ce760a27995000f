/* SPDX-License-Identifier: MIT */
/*
 * The command line. One table of options makes the parser and the text of --help; a test compares
 * man page and completion with that text. Knows which command takes which option, not what the
 * command does with it.
 */
#ifndef MAPGEN_CLI_OPTIONS_H
#define MAPGEN_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_budget;
struct sym_budget;

enum command_id {
	COMMAND_LIST = 1 << 0,
	COMMAND_GENERATE = 1 << 1,
	COMMAND_MERGE = 1 << 2,
	COMMAND_RESOLVE = 1 << 3,
	COMMAND_INFO = 1 << 4,
	COMMAND_FETCH_SYMBOLS = 1 << 5,
	COMMAND_BCC = 1 << 6,
	COMMAND_WATCH = 1 << 7,
	COMMAND_SYMBOLIZE = 1 << 8,
	COMMAND_PERF_FIX = 1 << 9,
	COMMAND_STANDIN = 1 << 10,
	COMMAND_RECORD = 1 << 11,
	COMMAND_REPORT = 1 << 12,
	COMMAND_STACK = 1 << 13,
	COMMAND_FLAME = 1 << 14,
	COMMAND_CHECK = 1 << 15,
	COMMAND_TOP = 1 << 16,
	COMMAND_EVENTS = 1 << 17,
	COMMAND_ALL = (1 << 18) - 1,
	/* commands that look at a process and take all options for that */
	COMMAND_PROCESS = COMMAND_ALL & ~(COMMAND_BCC | COMMAND_RECORD | COMMAND_REPORT |
					  COMMAND_FLAME | COMMAND_TOP | COMMAND_EVENTS),
	COMMAND_PID_FIRST = (COMMAND_PROCESS | COMMAND_TOP | COMMAND_EVENTS) &
			    ~COMMAND_PERF_FIX, /* commands whose first operand may be a PID */
	COMMAND_NAMES = COMMAND_MERGE | COMMAND_RESOLVE | COMMAND_WATCH | COMMAND_BCC |
			COMMAND_SYMBOLIZE | COMMAND_PERF_FIX, /* commands that print names */
	/* commands that print names of native code */
	COMMAND_NATIVE = COMMAND_MERGE | COMMAND_RESOLVE | COMMAND_WATCH | COMMAND_SYMBOLIZE |
			 COMMAND_STACK | COMMAND_PERF_FIX | COMMAND_REPORT | COMMAND_CHECK,
};

enum merge_mode {
	MERGE_MODE_DEFAULT = 0,
	MERGE_MODE_APPEND,
	MERGE_MODE_REPLACE,
};

/* How stock perf gets the names that perf-fix has found. */
enum perf_fix_via {
	PERF_FIX_VIA_BUILD_ID = 0, /* from symbol files in perf's build-id cache */
	PERF_FIX_VIA_PERFMAP,      /* from the perf map of the process */
};

/* The processes whose stripped native images get a symbol table. */
enum native_mode {
	NATIVE_DOTNET = 0, /* those of .NET processes */
	NATIVE_ALL,
	NATIVE_NONE,
};

enum unwind_mode {
	UNWIND_WHOLE = 0, /* by unwind data, through native and managed frames */
	UNWIND_FP,        /* by frame pointers, in the kernel */
};

/* The view that flame shows first. */
/* From the third on in the order of enum view_kind, from VIEW_GC on. */
enum flame_view {
	FLAME_VIEW_CPU = 1,
	FLAME_VIEW_OFF_CPU,
	FLAME_VIEW_GC,
};

/* How report writes a view; text by default. */
enum report_format {
	REPORT_TEXT = 0,
	REPORT_JSON,
	REPORT_CSV,
	REPORT_FOLDED,
	REPORT_SPEEDSCOPE,
	REPORT_PPROF,
	REPORT_PERF_SCRIPT,
	REPORT_HTML,
	REPORT_SVG,
};

/* Commands that show frames have enum frame_names. */
enum name_form {
	NAME_FORM_FULL = 0,
	NAME_FORM_SHORT,
	NAME_FORM_CSHARP,
};

enum tier_form {
	TIER_FORM_KEEP = 0,
	TIER_FORM_STRIP,
};

/* Values of an option that may be repeated; NULL terminated once parsed. */
struct text_list {
	const char **items;
	size_t count;
};

/* The strings belong to argv; only the arrays are allocated. */
struct options {
	int32_t pid;              /* 0: not given */
	const char *process_name; /* given instead of a PID, until options_parse() has found it */
	bool json;
	bool in_target;
	bool undo;
	bool enable_perfmap;
	bool rva;
	bool no_demangle;
	bool lines;
	bool inlines;
	bool urls;
	bool return_addresses;
	bool fetch;
	bool names_only;
	bool offline;
	bool report;
	bool verbose;
	bool in_place;
	bool no_limits;
	bool whole_system;
	bool no_kernel;
	bool keep_stack_bytes;
	bool perfview;
	bool idle;
	bool shows_all;
	bool batch;         /* draws nothing on a terminal */
	bool on_behalf;     /* called by another command, which uses standard output */
	bool out_of_memory; /* while they were read */
	const char *buildid_dir;
	const char *debug_tree;
	const char *symbolize_at;
	struct text_list servers;
	const char *root;
	const char *core;
	const char *output;
	const char *input;
	const char *diff;
	const char *callers_of;
	const char *callees_of;
	const char *event;
	const char *thread;
	const char *crossgen;
	const char *events;  /* event_choice.h; NULL: not given */
	const char *stop_on; /* stop_condition.h; NULL: not given */
	struct text_list platform_dirs;
	struct text_list relmap_dirs;
	struct text_list perfmap_dirs;
	struct text_list debug_dirs;
	int format;                  /* enum sym_map_format or enum report_format; 0: not given */
	int mode;                    /* enum merge_mode */
	int via;                     /* enum perf_fix_via */
	int native;                  /* enum native_mode */
	int names;                   /* enum name_form or enum frame_names */
	int tiers;                   /* enum tier_form */
	int jit;                     /* enum sym_jit_method */
	int unwind;                  /* enum unwind_mode */
	int stacks;                  /* of events: enum event_stacks */
	uint32_t frequency_hz;       /* 0: not given; UINT32_MAX: none */
	uint32_t top;                /* 0: not given; UINT32_MAX: all */
	int view;                    /* enum flame_view; 0: not given */
	uint32_t number_of_pictures; /* 0: until a signal */
	int by;                      /* enum totals_by + 1; 0: not given */
	uint32_t off_cpu_us;         /* 0: not given; 1: each context switch */
	char **program;              /* what stands behind --, of record; NULL: nothing */
	double for_seconds;          /* 0: not given */
	double from_seconds;         /* 0: the beginning */
	double min_percent;          /* 0: not given */
	double to_seconds;           /* 0: the end */
	double interval_seconds;     /* 0: not given */
	double ring_seconds;         /* 0: not given */
	char **operands;             /* without the PID */
	size_t operand_count;
	struct sym_budget *budget;     /* of the run; NULL: no limits */
	struct run_budget *run_budget; /* run_budget.h */
};

struct command;

/* The result of options_parse(). */
enum options_outcome {
	OPTIONS_RUN,
	OPTIONS_SHOWN,  /* --help or --version has been answered */
	OPTIONS_BAD,    /* one line says why */
	OPTIONS_FAILED, /* out of memory; one line says so */
};

/*
 * Reads the arguments behind the name of `command` (argv[0] is that name). A first operand of
 * decimal digits is the PID, unless --pid was given or the command has several operands and needs
 * no process. Where a PID may stand, the name of a process may stand too (process_name.h).
 */
enum options_outcome options_parse(const struct command *command, int argc, char **argv,
				   struct options *ret);
void options_deinit(struct options *options);

/* Prints the --help text of a command: usage, options with their defaults, examples. */
void options_print_help(const struct command *command);

/* False, with a message, unless there is one PID and nothing else. */
bool options_have_one_pid(const struct options *options, const char *command_name);

/* Reads a decimal process id; false when it is none. */
bool options_read_pid(const char *text, int32_t *ret);

#endif
