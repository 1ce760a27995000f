/* SPDX-License-Identifier: MIT */
#include "mapgen/options.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/libsym.h"
#include "mapgen/command.h"
#include "mapgen/message.h"

enum option_kind {
	OPTION_HELP,
	OPTION_VERSION,
	OPTION_FLAG,    /* bool */
	OPTION_TEXT,    /* const char * */
	OPTION_PID,     /* int32_t */
	OPTION_CHOICE,  /* int: `first_choice` + index in `choices` */
	OPTION_LIST,    /* struct text_list */
	OPTION_DIRS,    /* the same, of directories to look in */
	OPTION_SECONDS, /* double */
};

struct option_row {
	const char *name;
	char letter;
	enum option_kind kind;
	unsigned int commands;
	size_t field;         /* offset in struct options */
	const char *argument; /* as --help shows it; of a choice: its words, joined by '|' */
	int first_choice;
	const char *help;
};

#define FIELD(name) offsetof(struct options, name)

static const struct option_row option_rows[] = {
	{ "pid", 'p', OPTION_PID, COMMAND_PID_FIRST, FIELD(pid), "PID", 0,
	  "the process; the same as PID as the first operand" },
	{ "pid", 'p', OPTION_PID, COMMAND_PERF_FIX, FIELD(pid), "PID", 0,
	  "this process only, of all that PERF.DATA tells of" },
	{ "output", 'o', OPTION_TEXT, COMMAND_GENERATE, FIELD(output), "DIR", 0,
	  "write the maps into DIR instead of the cache" },
	{ "output", 'o', OPTION_TEXT, COMMAND_MERGE, FIELD(output), "FILE", 0,
	  "write the map to FILE, sorted and disjoint; - is standard output" },
	{ "output", 'o', OPTION_TEXT, COMMAND_WATCH, FIELD(output), "FILE", 0,
	  "write the map to FILE, sorted and disjoint" },
	{ "format", 0, OPTION_CHOICE, COMMAND_GENERATE, FIELD(format), "map|r2rmap",
	  SYM_MAP_RELATIVE, "as crossgen wrote maps, or as crossgen2 does" },
	{ "crossgen", 0, OPTION_TEXT, COMMAND_GENERATE, FIELD(crossgen), "PATH", 0,
	  "have this crossgen (.NET Core 3.1) make the maps" },
	{ "platform", 0, OPTION_DIRS, COMMAND_GENERATE, FIELD(platform_dirs), "DIR", 0,
	  "where the framework of the files is; may be repeated" },
	{ "output", 'o', OPTION_TEXT, COMMAND_PERF_FIX, FIELD(output), "OUT", 0,
	  "write to OUT instead of PERF.DATA.fixed; - is standard output" },
	{ "in-place", 0, OPTION_FLAG, COMMAND_PERF_FIX, FIELD(in_place), NULL, 0,
	  "put the result in place of PERF.DATA" },
	{ "mode", 0, OPTION_CHOICE, COMMAND_PERF_FIX, FIELD(mode), "elf|anon", PERF_FIX_ELF,
	  "names by build-id and stand-in, or by the perf map of the process" },
	{ "buildid-dir", 0, OPTION_TEXT, COMMAND_PERF_FIX, FIELD(buildid_dir), "DIR", 0,
	  "perf's build-id cache, instead of the one that perf is configured for" },
	{ "debug-dir", 0, OPTION_TEXT, COMMAND_STANDIN, FIELD(debug_dir), "DIR", 0,
	  "instead of /usr/lib/debug, where perf looks" },
	{ "debug-dir", 0, OPTION_DIRS, COMMAND_NATIVE, FIELD(debug_dirs), "DIR", 0,
	  "look for debug files in DIR, too, before /usr/lib/debug; may be repeated" },
	{ "native", 0, OPTION_CHOICE, COMMAND_PERF_FIX, FIELD(native), "dotnet|all|none",
	  NATIVE_DOTNET,
	  "stripped native images too: of .NET processes, of all, or leave them to perf" },
	{ "maps", 0, OPTION_DIRS, COMMAND_PERF_FIX, FIELD(map_dirs), "DIR", 0,
	  "where perf-PID.map of processes that are gone lie, not /tmp; may be repeated" },
	{ "undo", 0, OPTION_FLAG, COMMAND_PERF_FIX, FIELD(undo), NULL, 0,
	  "put back what was changed in PERF.DATA" },
	{ "mode", 0, OPTION_CHOICE, COMMAND_MERGE | COMMAND_WATCH, FIELD(mode), "append|replace",
	  MERGE_MODE_APPEND, "add to the runtime's own file, or put a new one in its place" },
	{ "names", 0, OPTION_CHOICE, (COMMAND_NAMES & ~COMMAND_RESOLVE) | COMMAND_STANDIN,
	  FIELD(names), "full|short", NAME_FORM_FULL, "whole signatures, or type and method only" },
	{ "names", 0, OPTION_CHOICE, COMMAND_RESOLVE, FIELD(names), "full|short|raw",
	  NAME_FORM_FULL, "whole signatures, type and method only, or C++ and the like mangled" },
	{ "tiers", 0, OPTION_CHOICE, COMMAND_NAMES | COMMAND_STANDIN, FIELD(tiers), "keep|strip",
	  TIER_FORM_KEEP, "with or without [PreJIT], [OptimizedTier1], ..." },
	{ "jit", 0, OPTION_CHOICE, COMMAND_NAMES, FIELD(jit), "auto|contract|rundown|perfmap|none",
	  SYM_JIT_AUTO, "how jitted code gets its names" },
	{ "enable-perfmap", 0, OPTION_FLAG, COMMAND_MERGE | COMMAND_WATCH, FIELD(enable_perfmap),
	  NULL, 0, "have the runtime (.NET 8 on) write a perf map from now on, until it ends" },
	{ "in-target", 0, OPTION_FLAG, COMMAND_MERGE | COMMAND_WATCH, FIELD(in_target), NULL, 0,
	  "update the map inside the container of the process" },
	{ "undo", 0, OPTION_FLAG, COMMAND_MERGE, FIELD(undo), NULL, 0,
	  "put the runtime's own map back after --mode=replace" },
	{ "maps", 0, OPTION_DIRS, COMMAND_MERGE | COMMAND_WATCH, FIELD(map_dirs), "DIR", 0,
	  "also use fitting relative maps of DIR; may be repeated" },
	{ "core", 0, OPTION_TEXT, COMMAND_RESOLVE, FIELD(core), "FILE", 0,
	  "name the addresses of this core file; --root is where the mapped files are" },
	{ "lines", 0, OPTION_FLAG, COMMAND_RESOLVE, FIELD(lines), NULL, 0,
	  "also source file and line: of native code, from DWARF, of jitted code, from a jitdump" },
	{ "inlines", 0, OPTION_FLAG, COMMAND_RESOLVE, FIELD(inlines), NULL, 0,
	  "also native functions that were inlined, and their lines" },
	{ "fetch", 0, OPTION_FLAG, COMMAND_RESOLVE, FIELD(fetch), NULL, 0,
	  "bring debug files that questions need, as dotnet-mapgen symbols does" },
	{ "rva", 0, OPTION_FLAG, COMMAND_RESOLVE, FIELD(rva), NULL, 0,
	  "N of IMAGE+0xN is an rva, not a file offset" },
	{ "server", 0, OPTION_LIST, COMMAND_SYMBOLS | COMMAND_RESOLVE, FIELD(servers), "URL", 0,
	  "ask this symsrv, debuginfod or symbol server; may be repeated" },
	{ "store", 0, OPTION_TEXT, COMMAND_SYMBOLS | COMMAND_RESOLVE, FIELD(store), "DIR", 0,
	  "put them below DIR/.build-id instead of /usr/lib/debug/.build-id" },
	{ "offline", 0, OPTION_FLAG, COMMAND_SYMBOLS, FIELD(offline), NULL, 0,
	  "ask nobody, only say what is missing" },
	{ "strict", 0, OPTION_FLAG, COMMAND_BCC, FIELD(strict), NULL, 0,
	  "answer as libbcc 0.26 does, where that is wrong too" },
	{ "report", 0, OPTION_FLAG, COMMAND_BCC, FIELD(report), NULL, 0,
	  "say at the end how many look-ups were named, and from what" },
	{ "for", 0, OPTION_SECONDS, COMMAND_WATCH, FIELD(for_seconds), "SECONDS", 0,
	  "end after that long; without it when the process ends" },
	{ "interval", 0, OPTION_SECONDS, COMMAND_WATCH, FIELD(interval_seconds), "SECONDS", 0,
	  "look that often; 1 without it" },
	{ "root", 0, OPTION_TEXT, COMMAND_PROCESS, FIELD(root), "DIR", 0,
	  "look at the recorded process tree below DIR, not at this machine" },
	{ "verbose", 'v', OPTION_FLAG, COMMAND_SYMBOLIZE, FIELD(verbose), NULL, 0,
	  "say at the end how many addresses got a name, and why the others did not" },
	{ "json", 0, OPTION_FLAG, COMMAND_PROCESS, FIELD(json), NULL, 0, "print JSON" },
	{ "help", 'h', OPTION_HELP, COMMAND_ALL, 0, NULL, 0, "print this text and end" },
	{ "version", 'V', OPTION_VERSION, COMMAND_ALL, 0, NULL, 0, "print the version and end" },
};

enum {
	OPTION_ROWS = sizeof(option_rows) / sizeof(option_rows[0])
};

static const int first_code = 256; /* above every letter */

bool options_read_pid(const char *text, int32_t *ret)
{
	char *end;
	long value;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || *end || value < 1 || value > INT32_MAX)
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

static bool read_seconds(const char *text, double *ret)
{
	char *end;
	double value;

	if (!isdigit((unsigned char)text[0]) || text[strspn(text, "0123456789.")])
		return false;
	value = strtod(text, &end);
	if (*end || !(value >= 0.05 && value <= 31536000))
		return false;
	*ret = value;
	return true;
}

/* The array keeps room for its closing NULL. */
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

/* It may come later, or be a slip of the pen. */
static void say_no_directory(const struct option_row *row, const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		message("--%s %s: %s", row->name, path, strerror(errno));
	else
		close(fd);
}

static bool take_option(const struct option_row *row, const char *text, struct options *options)
{
	void *field = (char *)options + row->field;

	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return true;
	case OPTION_TEXT:
		if (!*text) {
			message("--%s needs a %s", row->name, row->argument);
			return false;
		}
		*(const char **)field = text;
		return true;
	case OPTION_PID:
		if (options_read_pid(text, field))
			return true;
		message("'%s' is not a process id", text);
		return false;
	case OPTION_CHOICE:
		if (read_choice(row, text, field))
			return true;
		message("--%s is %s, not '%s'", row->name, row->argument, text);
		return false;
	case OPTION_DIRS:
		say_no_directory(row, text);
		return list_add(field, text);
	case OPTION_LIST:
		return list_add(field, text);
	case OPTION_SECONDS:
		if (read_seconds(text, field))
			return true;
		message("--%s is a number of seconds from 0.05 to 31536000, not '%s'", row->name,
			text);
		return false;
	default:
		return true;
	}
}

/* What getopt_long() wants to know of the rows of one command. */
struct getopt_tables {
	struct option longs[OPTION_ROWS + 1];
	char letters[2 * OPTION_ROWS + 3];
};

static void fill_tables(const struct command *command, struct getopt_tables *tables)
{
	size_t count = 0, letters = 0;

	if (command->id == COMMAND_BCC)
		tables->letters[letters++] = '+'; /* what follows COMMAND is COMMAND's */
	tables->letters[letters++] = ':'; /* tells a missing argument from an unknown option */
	for (int i = 0; i < OPTION_ROWS; i++) {
		const struct option_row *row = &option_rows[i];

		if (!(row->commands & command->id))
			continue;
		tables->longs[count++] = (struct option){
			.name = row->name,
			.has_arg = row->argument ? required_argument : no_argument,
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

static void print_option_help(const struct option_row *row)
{
	enum {
		HELP_COLUMN = 28
	};
	char start[80];
	int length = snprintf(start, sizeof(start), "  %c%c%c --%s%s%s", row->letter ? '-' : ' ',
			      row->letter ? row->letter : ' ', row->letter ? ',' : ' ', row->name,
			      row->argument ? "=" : "", row->argument ? row->argument : "");

	if (length < HELP_COLUMN)
		printf("%-*s%s\n", HELP_COLUMN, start, row->help);
	else
		printf("%s\n%*s%s\n", start, HELP_COLUMN, "", row->help);
}

void options_print_help(const struct command *command)
{
	printf("Usage: dotnet-mapgen %s [OPTION]... %s\n%s.\n\n", command->name, command->operands,
	       command->summary);
	for (int i = 0; i < OPTION_ROWS; i++)
		if (option_rows[i].commands & command->id)
			print_option_help(&option_rows[i]);
}

/* A lone number is a PID; where files are possible too, several operands are files, and those of a
 * core file are addresses. */
static void take_pid_operand(const struct command *command, struct options *options)
{
	if (options->pid || options->core || !options->operand_count ||
	    !(command->id & COMMAND_PID_FIRST) ||
	    (command->id == COMMAND_GENERATE && options->operand_count > 1))
		return;
	if (!options_read_pid(options->operands[0], &options->pid))
		return;
	options->operands++;
	options->operand_count--;
}

bool options_have_one_pid(const struct options *options, const char *command_name)
{
	if (options->pid && !options->operand_count)
		return true;
	if (options->pid)
		message("%s takes one PID and nothing else; see dotnet-mapgen %s --help",
			command_name, command_name);
	else if (options->operand_count)
		message("'%s' is not a process id; see dotnet-mapgen %s --help",
			options->operands[0], command_name);
	else
		message("%s needs a PID; see dotnet-mapgen %s --help", command_name, command_name);
	return false;
}

/* `word`: the last one that was read; of letters in a row it has several. */
static void say_bad_option(const struct command *command, int code, const char *word)
{
	const char *what = "is not an option here";
	const char letter[] = { '-', (char)optopt, '\0' };

	if (code == ':')
		what = "needs an argument";
	else if (optopt >= first_code)
		what = "takes no argument";
	message("'%s' %s; see dotnet-mapgen %s --help",
		optopt > 0 && optopt < first_code ? letter : word, what, command->name);
}

enum options_outcome options_parse(const struct command *command, int argc, char **argv,
				   struct options *ret)
{
	struct getopt_tables tables;
	int code;

	*ret = (struct options){ 0 };
	fill_tables(command, &tables);
	opterr = 0;
	optind = 1;
	while ((code = getopt_long(argc, argv, tables.letters, tables.longs, NULL)) != -1) {
		const struct option_row *row;

		if (code == '?' || code == ':') {
			say_bad_option(command, code, optind > 0 ? argv[optind - 1] : "");
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
		if (!take_option(row, optarg, ret))
			return OPTIONS_BAD;
	}
	ret->operands = argv + optind;
	ret->operand_count = (size_t)(argc - optind);
	take_pid_operand(command, ret);
	return OPTIONS_RUN;
}

void options_deinit(struct options *options)
{
	free(options->platform_dirs.items);
	free(options->map_dirs.items);
	free(options->debug_dirs.items);
	free(options->servers.items);
}
