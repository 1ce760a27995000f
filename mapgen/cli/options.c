/* SPDX-License-Identifier: MIT */
#include "mapgen/cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/libsym.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/process_name.h"
#include "mapgen/cli/suggest.h"

enum option_kind {
	OPTION_HELP,
	OPTION_VERSION,
	OPTION_FLAG,            /* bool */
	OPTION_TEXT,            /* const char * */
	OPTION_PID,             /* int32_t, or the name of a process */
	OPTION_CHOICE,          /* int: `first_choice` + index of the word in `argument` */
	OPTION_LIST,            /* struct text_list */
	OPTION_DIRS,            /* struct text_list of directories to look in */
	OPTION_SECONDS,         /* double */
	OPTION_NUMBER,          /* uint32_t, above 0 */
	OPTION_NUMBER_OR_1,     /* the same; 1 without an argument, which stands behind = */
	OPTION_TEXT_OR_DEFAULT, /* the text "default" without an argument, which stands behind = */
	OPTION_COUNT,           /* uint32_t; 0 is all or none: UINT32_MAX */
	OPTION_PERCENT,         /* double, up to 100 */
	OPTION_POINT,           /* double: seconds from the beginning of a recording */
};

struct option_row {
	const char *name;
	char letter;
	enum option_kind kind;
	unsigned int commands;
	size_t field;         /* offset in struct options */
	const char *argument; /* as --help shows it; the words of a choice are joined by '|' */
	int first_choice;
	const char *help; /* the default stands in brackets */
};

#define FIELD(name) offsetof(struct options, name)

static const struct option_row option_rows[] = {
	{ "pid", 'p', OPTION_PID, COMMAND_PID_FIRST | COMMAND_RECORD | COMMAND_FLAME, FIELD(pid),
	  "PID", 0, "the process, by its id or its name; the same as PID as the first operand" },
	{ "pid", 'p', OPTION_PID, COMMAND_PERF_FIX, FIELD(pid), "PID", 0,
	  "fix this process only [all processes in PERF.DATA]" },
	{ "output", 'o', OPTION_TEXT, COMMAND_GENERATE, FIELD(output), "DIR", 0,
	  "write the maps into DIR [the cache]" },
	{ "output", 'o', OPTION_TEXT, COMMAND_MERGE, FIELD(output), "FILE", 0,
	  "write the map to FILE, sorted and disjoint; - is standard output "
	  "[/tmp/perf-PID.map]" },
	{ "output", 'o', OPTION_TEXT, COMMAND_WATCH, FIELD(output), "FILE", 0,
	  "write the map to FILE, sorted and disjoint [/tmp/perf-PID.map]" },
	{ "format", 0, OPTION_CHOICE, COMMAND_GENERATE, FIELD(format), "map|r2rmap",
	  SYM_MAP_RELATIVE, "the format of crossgen's maps or of crossgen2's [map]" },
	{ "crossgen", 0, OPTION_TEXT, COMMAND_GENERATE, FIELD(crossgen), "PATH", 0,
	  "let this crossgen (.NET Core 3.1) make the maps [made without it]" },
	{ "platform", 0, OPTION_DIRS, COMMAND_GENERATE, FIELD(platform_dirs), "DIR", 0,
	  "the directory of the framework; may be repeated [the directory of each file]" },
	{ "output", 'o', OPTION_TEXT, COMMAND_PERF_FIX, FIELD(output), "OUT", 0,
	  "write to OUT; - is standard output [PERF.DATA.fixed]" },
	{ "in-place", 0, OPTION_FLAG, COMMAND_PERF_FIX, FIELD(in_place), NULL, 0,
	  "replace PERF.DATA with the result" },
	{ "via", 0, OPTION_CHOICE, COMMAND_PERF_FIX, FIELD(via), "build-id|perfmap",
	  PERF_FIX_VIA_BUILD_ID,
	  "give perf the names by build-id, or by the perf map of the process [build-id]" },
	{ "buildid-dir", 0, OPTION_TEXT, COMMAND_PERF_FIX, FIELD(buildid_dir), "DIR", 0,
	  "perf's build-id cache [as perf is configured, else ~/.debug]" },
	{ "debug-tree", 0, OPTION_TEXT, COMMAND_STANDIN, FIELD(debug_tree), "DIR", 0,
	  "the tree of debug files to write to [/usr/lib/debug]" },
	{ "debug-dir", 0, OPTION_DIRS, COMMAND_NATIVE, FIELD(debug_dirs), "DIR", 0,
	  "look for debug files in DIR before /usr/lib/debug; may be repeated" },
	{ "native", 0, OPTION_CHOICE, COMMAND_PERF_FIX, FIELD(native), "dotnet|all|none",
	  NATIVE_DOTNET,
	  "name stripped native images of .NET processes, of all processes, or of none [dotnet]" },
	{ "perf-maps", 0, OPTION_DIRS, COMMAND_PERF_FIX | COMMAND_REPORT | COMMAND_CHECK,
	  FIELD(perfmap_dirs), "DIR", 0,
	  "where perf-PID.map of processes that have ended are; may be repeated [/tmp]" },
	{ "undo", 0, OPTION_FLAG, COMMAND_PERF_FIX, FIELD(undo), NULL, 0,
	  "restore PERF.DATA as it was before" },
	{ "mode", 0, OPTION_CHOICE, COMMAND_MERGE | COMMAND_WATCH, FIELD(mode), "append|replace",
	  MERGE_MODE_APPEND,
	  "append to the runtime's file, or replace it [append where the runtime is writing one]" },
	{ "names", 0, OPTION_CHOICE, COMMAND_NAMES | COMMAND_STANDIN, FIELD(names),
	  "full|short|csharp", NAME_FORM_FULL,
	  "whole signatures, type and method only, or names as in C# [full]" },
	{ "no-demangle", 0, OPTION_FLAG, COMMAND_RESOLVE, FIELD(no_demangle), NULL, 0,
	  "print native names as the symbol table has them" },
	{ "tiers", 0, OPTION_CHOICE, COMMAND_NAMES | COMMAND_STANDIN, FIELD(tiers), "keep|strip",
	  TIER_FORM_KEEP, "with [PreJIT], [OptimizedTier1], ..., or without [keep]" },
	{ "jit", 0, OPTION_CHOICE, COMMAND_NAMES | COMMAND_STACK, FIELD(jit),
	  "auto|memory|rundown|perfmap|none", SYM_JIT_AUTO,
	  "where names of jitted code come from [auto: the best that works]" },
	{ "enable-perfmap", 0, OPTION_FLAG, COMMAND_MERGE | COMMAND_WATCH, FIELD(enable_perfmap),
	  NULL, 0, "make the runtime (.NET 8 or later) write a perf map from now on" },
	{ "in-target", 0, OPTION_FLAG, COMMAND_MERGE | COMMAND_WATCH, FIELD(in_target), NULL, 0,
	  "update the map inside the container of the process" },
	{ "undo", 0, OPTION_FLAG, COMMAND_MERGE, FIELD(undo), NULL, 0,
	  "put the runtime's own map back after --mode=replace" },
	{ "maps", 0, OPTION_DIRS, COMMAND_MERGE | COMMAND_WATCH, FIELD(relmap_dirs), "DIR", 0,
	  "also use relative maps in DIR that fit; may be repeated" },
	{ "core", 0, OPTION_TEXT, COMMAND_STACK, FIELD(core), "FILE", 0,
	  "show the threads of this core file; --root says where the mapped files are" },
	{ "core", 0, OPTION_TEXT, COMMAND_RESOLVE, FIELD(core), "FILE", 0,
	  "resolve addresses of this core file; --root says where the mapped files are" },
	{ "lines", 0, OPTION_FLAG, COMMAND_RESOLVE | COMMAND_STACK | COMMAND_SYMBOLIZE,
	  FIELD(lines), NULL, 0,
	  "also print file and line, from DWARF, portable PDBs and jitdumps; ~ marks a line that "
	  "is approximate" },
	{ "return-addresses", 0, OPTION_FLAG, COMMAND_RESOLVE, FIELD(return_addresses), NULL, 0,
	  "the addresses are those of callers in a stack: look up the call before" },
	{ "inlines", 0, OPTION_FLAG, COMMAND_RESOLVE, FIELD(inlines), NULL, 0,
	  "also print inlined functions and their lines" },
	{ "urls", 0, OPTION_FLAG, COMMAND_RESOLVE | COMMAND_REPORT, FIELD(urls), NULL, 0,
	  "with lines, also print the URL of the source file, from Source Link" },
	{ "fetch", 0, OPTION_FLAG, COMMAND_RESOLVE, FIELD(fetch), NULL, 0,
	  "download debug files that are needed, as fetch-symbols does" },
	{ "symbolize-at", 0, OPTION_TEXT, COMMAND_RESOLVE | COMMAND_REPORT, FIELD(symbolize_at),
	  "URL", 0, "ask this symsrv for names and lines that this machine does not have" },
	{ "rva", 0, OPTION_FLAG, COMMAND_RESOLVE, FIELD(rva), NULL, 0,
	  "N of IMAGE+0xN is an rva [a file offset]" },
	{ "server", 0, OPTION_LIST, COMMAND_FETCH_SYMBOLS | COMMAND_RESOLVE, FIELD(servers), "URL",
	  0,
	  "ask this symsrv, debuginfod or symbol server; may be repeated [$DEBUGINFOD_URLS, then "
	  "Microsoft's]" },
	{ "debug-tree", 0, OPTION_TEXT, COMMAND_FETCH_SYMBOLS | COMMAND_RESOLVE, FIELD(debug_tree),
	  "DIR", 0, "the tree of debug files to write to, below DIR/.build-id [/usr/lib/debug]" },
	{ "names-only", 0, OPTION_FLAG, COMMAND_FETCH_SYMBOLS, FIELD(names_only), NULL, 0,
	  "fetch only the names of functions, from a symsrv: 1 % of the bytes" },
	{ "offline", 0, OPTION_FLAG, COMMAND_FETCH_SYMBOLS, FIELD(offline), NULL, 0,
	  "ask no server; only report what is missing" },
	{ "report", 0, OPTION_FLAG, COMMAND_BCC, FIELD(report), NULL, 0,
	  "print at the end how many look-ups were named, and from what" },
	{ "output", 'o', OPTION_TEXT, COMMAND_RECORD, FIELD(output), "FILE", 0,
	  "write FILE.data for stock perf, or FILE.trace.zip [NAME-DATE-TIME.trace.zip]" },
	{ "all", 'a', OPTION_FLAG, COMMAND_RECORD, FIELD(whole_system), NULL, 0,
	  "record all processes of this machine" },
	{ "for", 'd', OPTION_SECONDS, COMMAND_RECORD, FIELD(for_seconds), "SECONDS", 0,
	  "stop after this time [until the processes end, or Ctrl-C]" },
	{ "frequency", 'F', OPTION_NUMBER, COMMAND_FLAME | COMMAND_TOP, FIELD(frequency_hz), "HZ",
	  0, "CPU samples a second [99]" },
	{ "frequency", 'F', OPTION_COUNT, COMMAND_RECORD, FIELD(frequency_hz), "HZ", 0,
	  "CPU samples a second, or 0 for none [99]" },
	{ "off-cpu", 0, OPTION_NUMBER_OR_1, COMMAND_RECORD, FIELD(off_cpu_us), "MIN_US", 0,
	  "also record waits: when, how long, and the stack where it is at least MIN_US "
	  "microseconds" },
	{ "events", 0, OPTION_TEXT_OR_DEFAULT, COMMAND_RECORD, FIELD(events), "LIST", 0,
	  "also record events of the .NET runtime: gc, alloc, exceptions, contention, waits, "
	  "threadpool, jit, tasks, counters, NAME:KEYWORDS:LEVEL:ARGUMENTS" },
	{ "events", 0, OPTION_TEXT_OR_DEFAULT, COMMAND_EVENTS, FIELD(events), "LIST", 0,
	  "these events, as for record [gc, exceptions, contention, threadpool, alloc]" },
	{ "stacks", 0, OPTION_CHOICE, COMMAND_EVENTS, FIELD(stacks), "managed|none", 2,
	  "print the managed stack below each event [none]" },
	{ "for", 'd', OPTION_SECONDS, COMMAND_EVENTS, FIELD(for_seconds), "SECONDS", 0,
	  "stop after this time [until the process ends, or Ctrl-C]" },
	{ "stacks", 0, OPTION_CHOICE, COMMAND_RECORD, FIELD(stacks), "native|managed|none", 1,
	  "stacks of events: by uprobes, by the runtime, or none [native where possible]" },
	{ "stop-on", 0, OPTION_TEXT, COMMAND_RECORD, FIELD(stop_on), "EVENT", 0,
	  "stop when it happens: gc-pause>MS, exception=TYPE or pool-starvation" },
	{ "ring", 0, OPTION_SECONDS, COMMAND_RECORD, FIELD(ring_seconds), "SECONDS", 0,
	  "keep only the last seconds before the end [all]" },
	{ "unwind", 0, OPTION_CHOICE, COMMAND_RECORD, FIELD(unwind), "whole|fp", UNWIND_WHOLE,
	  "find callers by unwind data, or by frame pointers in the kernel [whole]" },
	{ "no-kernel", 0, OPTION_FLAG, COMMAND_RECORD | COMMAND_FLAME | COMMAND_TOP,
	  FIELD(no_kernel), NULL, 0, "leave out frames of the kernel" },
	{ "keep-stack-bytes", 0, OPTION_FLAG, COMMAND_RECORD, FIELD(keep_stack_bytes), NULL, 0,
	  "keep registers and stack bytes, which may hold secrets" },
	{ "perfview", 0, OPTION_FLAG, COMMAND_RECORD, FIELD(perfview), NULL, 0,
	  "also write perf.data.txt into the recording, which PerfView reads" },
	{ "output", 'o', OPTION_TEXT, COMMAND_FLAME, FIELD(output), "FILE", 0,
	  "write FILE.html, .svg, .folded, .speedscope.json or .pb.gz "
	  "[NAME-DATE-TIME.html]" },
	{ "for", 'd', OPTION_SECONDS, COMMAND_FLAME, FIELD(for_seconds), "SECONDS", 0,
	  "record for this time [10]" },
	{ "batch", 'b', OPTION_FLAG, COMMAND_TOP, FIELD(batch), NULL, 0,
	  "print one picture below the other, as without a terminal" },
	{ "number", 'n', OPTION_NUMBER, COMMAND_TOP, FIELD(number_of_pictures), "N", 0,
	  "stop after N pictures [until Ctrl-C, or the process ends]" },
	{ "view", 0, OPTION_CHOICE, COMMAND_FLAME, FIELD(view),
	  "cpu|off-cpu|gc|alloc|exceptions|contention|waits|threadpool|jit|events", FLAME_VIEW_CPU,
	  "what is shown first: use of the CPU, what threads wait for, or events of .NET [cpu]" },
	{ "diff", 0, OPTION_TEXT, COMMAND_FLAME, FIELD(diff), "OLD", 0,
	  "colour functions by how their share has changed since this recording" },
	{ "all", 0, OPTION_FLAG, COMMAND_FLAME, FIELD(shows_all), NULL, 0,
	  "also draw functions with less than 0.01 % [they are joined]" },
	{ "input", 'i', OPTION_TEXT, COMMAND_REPORT | COMMAND_FLAME | COMMAND_CHECK, FIELD(input),
	  "FILE", 0,
	  "a recording (.trace.zip), a perf.data, a .nettrace, or folded text; - is standard "
	  "input" },
	{ "output", 'o', OPTION_TEXT, COMMAND_REPORT, FIELD(output), "FILE", 0,
	  "write to FILE [standard output]" },
	{ "format", 0, OPTION_CHOICE, COMMAND_REPORT, FIELD(format),
	  "text|json|csv|folded|speedscope|pprof|perf-script|html|svg", REPORT_TEXT,
	  "a table for people, or the stacks as lines for other viewers [text]" },
	{ "by", 0, OPTION_CHOICE, COMMAND_REPORT, FIELD(by),
	  "function|thread|process|image|tree|line", 1,
	  "what a row of the table stands for [function]" },
	{ "min", 0, OPTION_PERCENT, COMMAND_CHECK, FIELD(min_percent), "PCT", 0,
	  "exit with 1 when fewer percent of the frames have names, or of the stacks are whole" },
	{ "callers-of", 0, OPTION_TEXT, COMMAND_REPORT, FIELD(callers_of), "RE", 0,
	  "only stacks with a function that matches RE, from the start of the thread to it" },
	{ "callees-of", 0, OPTION_TEXT, COMMAND_REPORT, FIELD(callees_of), "RE", 0,
	  "only stacks with a function that matches RE, from it on" },
	{ "event", 0, OPTION_TEXT, COMMAND_REPORT, FIELD(event), "RE", 0,
	  "view events: list those whose PROVIDER/NAME matches RE, with fields and stacks" },
	{ "thread", 0, OPTION_TEXT, COMMAND_REPORT | COMMAND_FLAME, FIELD(thread), "RE", 0,
	  "only threads whose name matches RE, or the thread with this id" },
	{ "from", 0, OPTION_POINT, COMMAND_REPORT, FIELD(from_seconds), "SECONDS", 0,
	  "begin at this second of the recording [0]" },
	{ "to", 0, OPTION_POINT, COMMAND_REPORT, FIELD(to_seconds), "SECONDS", 0,
	  "end at this second of the recording [its end]" },
	{ "top", 0, OPTION_COUNT, COMMAND_REPORT | COMMAND_TOP, FIELD(top), "N", 0,
	  "rows to show; 0 is all [20]" },
	{ "idle", 0, OPTION_FLAG, COMMAND_REPORT | COMMAND_FLAME, FIELD(idle), NULL, 0,
	  "also show threads that are parked in the thread pool" },
	{ "names", 0, OPTION_CHOICE, COMMAND_REPORT | COMMAND_STACK, FIELD(names),
	  "csharp|short|full", 0,
	  "names as in C#, type and method only, or whole signatures [csharp]" },
	{ "for", 'd', OPTION_SECONDS, COMMAND_WATCH, FIELD(for_seconds), "SECONDS", 0,
	  "stop after this time [until the process ends]" },
	{ "interval", 0, OPTION_SECONDS, COMMAND_WATCH, FIELD(interval_seconds), "SECONDS", 0,
	  "look for new code this often [1]" },
	{ "root", 0, OPTION_TEXT, COMMAND_PROCESS | COMMAND_REPORT, FIELD(root), "DIR", 0,
	  "look at the recorded process tree below DIR [this machine]" },
	{ "verbose", 'v', OPTION_FLAG, COMMAND_SYMBOLIZE, FIELD(verbose), NULL, 0,
	  "print at the end how many addresses got a name, and why the others did not" },
	{ "no-limits", 0, OPTION_FLAG,
	  COMMAND_PROCESS | COMMAND_BCC | COMMAND_RECORD | COMMAND_FLAME | COMMAND_TOP |
		  COMMAND_EVENTS,
	  FIELD(no_limits), NULL, 0,
	  "no limit of memory and time for processes and files of other users" },
	{ "json", 0, OPTION_FLAG, COMMAND_PROCESS, FIELD(json), NULL, 0, "print JSON" },
	{ "help", 'h', OPTION_HELP, COMMAND_ALL, 0, NULL, 0, "print this help" },
	{ "version", 'V', OPTION_VERSION, COMMAND_ALL, 0, NULL, 0, "print the version" },
};

enum {
	OPTION_ROWS = sizeof(option_rows) / sizeof(option_rows[0])
};

static const int first_code = 256; /* above every letter */

static bool read_number(const char *text, uint32_t *ret)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || !value || value > UINT32_MAX)
		return false;
	*ret = (uint32_t)value;
	return true;
}

bool options_read_pid(const char *text, int32_t *ret)
{
	uint32_t value;

	if (!read_number(text, &value) || value > INT32_MAX)
		return false;
	*ret = (int32_t)value;
	return true;
}

static bool read_choice(const struct option_row *row, const char *text, int *ret)
{
	const char *word = row->argument;
	size_t length = strlen(text);

	for (int index = row->first_choice; word; index++) {
		const char *end = strchrnul(word, '|');

		if ((size_t)(end - word) == length && !memcmp(word, text, length)) {
			*ret = index;
			return true;
		}
		word = *end ? end + 1 : NULL;
	}
	return false;
}

/* The array always has room for the closing NULL. */
static bool list_add(struct text_list *list, const char *text)
{
	const char **items = reallocarray(list->items, list->count + 2, sizeof(*items));

	if (!items) {
		message("out of memory");
		return false;
	}
	list->items = items;
	items[list->count++] = text;
	items[list->count] = NULL;
	return true;
}

/* A warning only: the directory may be created later. */
static void warn_of_missing_directory(const struct option_row *row, const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		message("--%s %s: %s", row->name, path, strerror(errno));
	else
		close(fd);
}

static bool read_point(const char *text, double *ret)
{
	char *end;
	double value = strtod(text, &end);

	if (!isdigit((unsigned char)text[0]) || text[strspn(text, "0123456789.")] || *end ||
	    !(value <= 31536000))
		return false;
	*ret = value;
	return true;
}

static bool read_numeric(const struct option_row *row, const char *text, void *field)
{
	switch (row->kind) {
	case OPTION_SECONDS:
		return read_point(text, field) && *(double *)field >= 0.05;
	case OPTION_PERCENT:
		return read_point(text, field) && *(double *)field <= 100;
	case OPTION_POINT:
		return read_point(text, field);
	case OPTION_COUNT:
		*(uint32_t *)field = UINT32_MAX;
		return !strcmp(text, "0") || read_number(text, field);
	default:
		return read_number(text, field);
	}
}

static bool read_numeric_option(const struct option_row *row, const char *text, void *field)
{
	static const char *const wanted[] = {
		[OPTION_SECONDS] = "a number of seconds from 0.05 to 31536000",
		[OPTION_NUMBER] = "a number above 0",
		[OPTION_NUMBER_OR_1] = "a number above 0",
		[OPTION_COUNT] = "a number, or 0",
		[OPTION_PERCENT] = "a number from 0 to 100",
		[OPTION_POINT] = "a number of seconds",
	};

	if (read_numeric(row, text, field))
		return true;
	message("--%s is %s, not '%s'", row->name, wanted[row->kind], text);
	return false;
}

static bool read_option(const struct option_row *row, const char *text, struct options *options)
{
	void *field = (char *)options + row->field;

	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return true;
	case OPTION_TEXT_OR_DEFAULT:
		text = text ?: "default";
		__attribute__((fallthrough));
	case OPTION_TEXT:
		if (!*text) {
			message("--%s needs a %s", row->name, row->argument);
			return false;
		}
		*(const char **)field = text;
		return true;
	case OPTION_PID:
		if (!options_read_pid(text, field))
			options->process_name = text;
		return true;
	case OPTION_CHOICE:
		if (read_choice(row, text, field))
			return true;
		message("--%s is %s, not '%s'", row->name, row->argument, text);
		return false;
	case OPTION_DIRS:
		warn_of_missing_directory(row, text);
		__attribute__((fallthrough));
	case OPTION_LIST:
		options->out_of_memory = !list_add(field, text);
		return !options->out_of_memory;
	case OPTION_SECONDS:
	case OPTION_POINT:
	case OPTION_PERCENT:
	case OPTION_COUNT:
	case OPTION_NUMBER_OR_1:
	case OPTION_NUMBER:
		return read_numeric_option(row, text ?: "1", field);
	default:
		return true;
	}
}

/* The rows of one command, as getopt_long() takes them. */
struct getopt_tables {
	struct option longs[OPTION_ROWS + 1];
	char letters[2 * OPTION_ROWS + 3];
};

static bool is_optional(const struct option_row *row)
{
	return row->kind == OPTION_NUMBER_OR_1 || row->kind == OPTION_TEXT_OR_DEFAULT;
}

static int argument_kind(const struct option_row *row)
{
	if (is_optional(row))
		return optional_argument;
	return row->argument ? required_argument : no_argument;
}

static void fill_tables(const struct command *command, struct getopt_tables *tables)
{
	size_t count = 0, letters = 0;

	if (command->id == COMMAND_BCC)
		tables->letters[letters++] = '+'; /* options after COMMAND belong to COMMAND */
	tables->letters[letters++] = ':';         /* report a missing argument as ':', not as '?' */
	for (int i = 0; i < OPTION_ROWS; i++) {
		const struct option_row *row = &option_rows[i];

		if (!(row->commands & command->id))
			continue;
		tables->longs[count++] = (struct option){
			.name = row->name,
			.has_arg = argument_kind(row),
			.val = first_code + i,
		};
		if (!row->letter)
			continue;
		tables->letters[letters++] = row->letter;
		if (row->argument)
			tables->letters[letters++] = ':';
	}
	tables->letters[letters] = '\0';
	tables->longs[count] = (struct option){ 0 };
}

static const struct option_row *row_of_code(const struct command *command, int code)
{
	if (code >= first_code)
		return &option_rows[code - first_code];
	for (int i = 0; i < OPTION_ROWS; i++)
		if (option_rows[i].letter == code && (option_rows[i].commands & command->id))
			return &option_rows[i];
	return NULL;
}

enum {
	HELP_COLUMN = 28,
	HELP_WIDTH = 80,
};

/* From HELP_COLUMN on; words that do not fit stand on further lines. */
static void print_wrapped(const char *text)
{
	size_t column = HELP_COLUMN;

	while (*text) {
		size_t length = strcspn(text, " ");

		if (column == HELP_COLUMN) {
			column += length;
		} else if (column + 1 + length <= HELP_WIDTH) {
			putchar(' ');
			column += 1 + length;
		} else {
			printf("\n%*s", HELP_COLUMN, "");
			column = HELP_COLUMN + length;
		}
		printf("%.*s", (int)length, text);
		text += length;
		text += strspn(text, " ");
	}
	putchar('\n');
}

static void print_option_help(const struct option_row *row)
{
	char start[80];
	bool has_optional = is_optional(row);
	int length =
		snprintf(start, sizeof(start), "  %c%c%c --%s%s%s%s%s", row->letter ? '-' : ' ',
			 row->letter ? row->letter : ' ', row->letter ? ',' : ' ', row->name,
			 has_optional ? "[" : "", row->argument ? "=" : "", row->argument ?: "",
			 has_optional ? "]" : "");

	if (length < HELP_COLUMN)
		printf("%-*s", HELP_COLUMN, start);
	else
		printf("%s\n%*s", start, HELP_COLUMN, "");
	print_wrapped(row->help);
}

void options_print_help(const struct command *command)
{
	printf("Usage: dotnet-mapgen %s [OPTION]... %s\n%s.\n\n", command->name, command->operands,
	       command->summary);
	for (int i = 0; i < OPTION_ROWS; i++)
		if (option_rows[i].commands & command->id)
			print_option_help(&option_rows[i]);
	if (command->examples)
		printf("\nExamples:\n%s", command->examples);
	puts("\nSee also: man dotnet-mapgen");
}

/* ---- the process ---------------------------------------------------------------------------- */

/* Whether the first operand, which is not a number, should be the name of a process. */
static bool operand_may_be_name(const struct command *command, const struct options *options)
{
	const char *operand = options->operands[0];

	switch (command->id) {
	case COMMAND_GENERATE:
		return options->operand_count == 1 && access(operand, F_OK) != 0;
	case COMMAND_SYMBOLIZE:
		return access(operand, F_OK) != 0;
	case COMMAND_RESOLVE:
		return !strchr(operand, '+');
	case COMMAND_STANDIN:
		return false; /* its first operand is what to do */
	default:
		return options->operand_count == 1;
	}
}

/* Operands of generate, symbolize and resolve have a meaning of their own when no process has the
 * name. */
static bool operand_must_be_name(const struct command *command)
{
	return !(command->id & (COMMAND_GENERATE | COMMAND_SYMBOLIZE | COMMAND_RESOLVE));
}

static bool find_named_operand(const struct command *command, struct options *options)
{
	int32_t *pids AUTO_FREE = NULL;
	const char *name = options->operands[0];
	size_t count = 0;

	if (!operand_must_be_name(command)) {
		struct sym_error *error = process_name_find(name, &pids, &count);

		sym_error_destroy(error);
		if (!count)
			return true;
	} else if (!access(name, F_OK)) {
		/* A process may have the same name as a file. */
		sym_error_destroy(process_name_find(name, &pids, &count));
		if (!count) {
			message("%s takes a PID; '%s' is a file", command->name, name);
			return false;
		}
	}
	options->process_name = name;
	options->operands++;
	options->operand_count--;
	return true;
}

/*
 * A lone number is a PID. Where files are possible too, several operands are files; operands beside
 * --core are addresses. False, with a message, when a name is not that of one process.
 */
static bool find_process(const struct command *command, struct options *options)
{
	bool is_given = options->pid || options->process_name || options->core ||
			!options->operand_count || !(command->id & COMMAND_PID_FIRST) ||
			(command->id == COMMAND_GENERATE && options->operand_count > 1);

	if (!is_given && options_read_pid(options->operands[0], &options->pid)) {
		options->operands++;
		options->operand_count--;
	} else if (!is_given && !options->root && operand_may_be_name(command, options) &&
		   !find_named_operand(command, options)) {
		return false;
	}
	if (!options->process_name)
		return true;
	if (!options->root && command->id != COMMAND_PERF_FIX)
		return process_name_choose(options->process_name, &options->pid);
	message("'%s' is not a process id", options->process_name);
	return false;
}

bool options_have_one_pid(const struct options *options, const char *command_name)
{
	if (options->pid && !options->operand_count)
		return true;
	if (options->pid)
		message("%s takes one PID and nothing else; see dotnet-mapgen %s --help",
			command_name, command_name);
	else if (options->operand_count)
		message("%s takes one PID or the name of one process, not '%s'; see dotnet-mapgen "
			"%s --help",
			command_name, options->operands[0], command_name);
	else
		message("%s needs a PID or the name of a process; see dotnet-mapgen %s --help",
			command_name, command_name);
	return false;
}

/* ---- what is not understood ----------------------------------------------------------------- */

static const char *nearest_option(const struct command *command, const char *word)
{
	struct suggestion suggestion;

	if (strncmp(word, "--", 2) != 0)
		return NULL;
	suggestion = suggestion_of(word + 2, strcspn(word + 2, "="));
	for (int i = 0; i < OPTION_ROWS; i++)
		if (option_rows[i].commands & command->id)
			suggestion_offer(&suggestion, option_rows[i].name);
	return suggestion.best;
}

/* `word`: the argument that was read last; it may hold several letters. */
static void report_bad_option(const struct command *command, int code, const char *word)
{
	const char *what = "is not an option here", *nearest = NULL;
	const char letter[] = { '-', (char)optopt, '\0' };

	if (code == ':')
		what = "needs an argument";
	else if (optopt >= first_code)
		what = "takes no argument";
	else if (!optopt)
		nearest = nearest_option(command, word);
	if (nearest)
		message("'%s' %s; did you mean --%s?", word, what, nearest);
	else
		message("'%s' %s; see dotnet-mapgen %s --help",
			optopt > 0 && optopt < first_code ? letter : word, what, command->name);
}

/* The words after -- are a program with its arguments; getopt_long() would mix it with operands. */
static void take_words(int *argc, char **argv, struct options *options)
{
	for (int i = 1; i < *argc; i++) {
		if (strcmp(argv[i], "--") != 0)
			continue;
		options->program = argv + i + 1;
		*argc = i;
	}
}

enum options_outcome options_parse(const struct command *command, int argc, char **argv,
				   struct options *ret)
{
	struct getopt_tables tables;
	int code;

	*ret = (struct options){ 0 };
	if (command->id == COMMAND_RECORD)
		take_words(&argc, argv, ret);
	fill_tables(command, &tables);
	opterr = 0;
	optind = 1;
	while ((code = getopt_long(argc, argv, tables.letters, tables.longs, NULL)) != -1) {
		const struct option_row *row;

		if (code == '?' || code == ':') {
			report_bad_option(command, code, optind > 0 ? argv[optind - 1] : "");
			return OPTIONS_BAD;
		}
		row = row_of_code(command, code);
		if (row->kind == OPTION_HELP) {
			options_print_help(command);
			return OPTIONS_SHOWN;
		}
		if (row->kind == OPTION_VERSION) {
			printf("dotnet-mapgen %s\n", sym_version());
			return OPTIONS_SHOWN;
		}
		if (!read_option(row, optarg, ret))
			return ret->out_of_memory ? OPTIONS_FAILED : OPTIONS_BAD;
	}
	ret->operands = argv + optind;
	ret->operand_count = (size_t)(argc - optind);
	return find_process(command, ret) ? OPTIONS_RUN : OPTIONS_BAD;
}

void options_deinit(struct options *options)
{
	free(options->platform_dirs.items);
	free(options->relmap_dirs.items);
	free(options->perfmap_dirs.items);
	free(options->debug_dirs.items);
	free(options->servers.items);
}
