/* SPDX-License-Identifier: MIT */
/*
 * dotnet-mapgen bcc -- COMMAND: runs a BCC tool whose names then come from libsym. The library
 * libsym-bcc-preload.so does the work inside the tool. This file finds the library, passes the
 * options in the environment, and executes the tool.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/path.h"
#include "libsym/libsym.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/target.h"

#ifndef MAPGEN_LIBDIR
#define MAPGEN_LIBDIR "/usr/local/lib"
#endif
#if defined(__x86_64__)
#define MAPGEN_MULTIARCH "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define MAPGEN_MULTIARCH "aarch64-linux-gnu"
#else
#define MAPGEN_MULTIARCH "."
#endif

static const char library[] = "libsym-bcc-preload.so";

/* Looks beside this program, for a build that is not installed; then where it is installed, also
 * when the whole tree was moved. */
static bool find_library(char *room, size_t room_bytes)
{
	static const char *const places[] = { "", "../lib/", "../lib/" MAPGEN_MULTIARCH "/",
					      "../lib64/" };
	char directory[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", directory, sizeof(directory) - 1);
	char *slash;

	if (length > 0) {
		directory[length] = '\0';
		slash = strrchr(directory, '/');
		slash[1] = '\0';
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			char candidate[PATH_MAX];

			if (snprintf(candidate, sizeof(candidate), "%s%s%s", directory, places[i],
				     library) < (int)sizeof(candidate) &&
			    realpath(candidate, room))
				return true;
		}
	}
	snprintf(room, room_bytes, "%s/%s", MAPGEN_LIBDIR, library);
	return access(room, R_OK) == 0;
}

/* Before what LD_PRELOAD has already. False: out of memory. */
static bool bcc_preload(const char *path)
{
	const char *others = getenv("LD_PRELOAD");
	char *value = others && *others ? message_format("%s:%s", path, others)
					: message_format("%s", path);
	bool done = value && setenv("LD_PRELOAD", value, 1) == 0;

	free(value);
	return done;
}

/* Options of the command line win over the environment. NULL: the default. */
static bool set_form(const char *variable, const char *value)
{
	return (value ? setenv(variable, value, 1) : unsetenv(variable)) == 0;
}

/* -f and --folded, also among other short options. For a tool where -f means something else, a
 * semicolon in a name becomes a colon. */
static bool asks_for_folded(const struct options *options)
{
	for (size_t i = 1; i < options->operand_count; i++) {
		const char *word = options->operands[i];
		size_t letters = strspn(word + (*word == '-'), "abcdefghijklmnopqrstuvwxyz"
							       "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

		if (!strncmp(word, "--fo", 4) || (*word == '-' && memchr(word + 1, 'f', letters)))
			return true;
	}
	return false;
}

static bool set_environment(const struct options *options, const char *path)
{
	return bcc_preload(path) && setenv("LIBSYM_BCC_NOTICE", "1", 1) == 0 &&
	       (!options->no_limits || setenv("LIBSYM_BCC_NO_LIMITS", "1", 1) == 0) &&
	       (!options->report || setenv("LIBSYM_BCC_REPORT", "1", 1) == 0) &&
	       set_form("LIBSYM_BCC_NAMES", options->names == NAME_FORM_SHORT    ? "short"
					    : options->names == NAME_FORM_CSHARP ? "csharp"
										 : NULL) &&
	       set_form("LIBSYM_BCC_TIERS", options->tiers == TIER_FORM_STRIP ? "strip" : NULL) &&
	       set_form("LIBSYM_BCC_FOLDED", asks_for_folded(options) ? "1" : NULL) &&
	       set_form("LIBSYM_BCC_JIT", options->jit == SYM_JIT_AUTO
						  ? NULL
						  : target_jit_word((uint32_t)options->jit));
}

/* BCC's tools may be in directories that the PATH of a plain user does not have. */
static void bcc_become(char **command)
{
	static const char *const directories[] = { "/usr/sbin", "/sbin", "/usr/share/bcc/tools" };
	char path[PATH_MAX];

	signal(SIGXFSZ, SIG_DFL);
	execvp(command[0], command);
	if (errno != ENOENT || strchr(command[0], '/'))
		return;
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", directories[i], command[0]);
		execv(path, command);
		if (errno != ENOENT)
			return;
	}
}

int bcc_run(const struct options *options)
{
	char path[PATH_MAX];
	const char *name;

	if (!options->operand_count) {
		message("no command to run; for example: dotnet-mapgen bcc -- profile-bpfcc -p "
			"PID");
		return EXIT_USAGE;
	}
	name = path_file_name(options->operands[0]);
	if (!strcmp(name, "sudo") || !strcmp(name, "doas") || !strcmp(name, "su")) {
		message("%s starts its command without LD_PRELOAD; run: %s dotnet-mapgen bcc -- "
			"COMMAND...",
			name, name);
		return EXIT_USAGE;
	}
	if (!find_library(path, sizeof(path))) {
		message("%s: not found, neither beside this program nor in " MAPGEN_LIBDIR,
			library);
		return EXIT_FAILED;
	}
	if (strpbrk(path, ": ")) {
		message("%s: LD_PRELOAD cannot hold a path with a colon or a blank", path);
		return EXIT_FAILED;
	}
	if (!set_environment(options, path)) {
		message("out of memory");
		return EXIT_FAILED;
	}
	bcc_become(options->operands);
	message("%s: %s", options->operands[0], strerror(errno));
	return errno == ENOENT ? 127 : 126;
}
