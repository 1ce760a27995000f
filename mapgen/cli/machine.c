/* SPDX-License-Identifier: MIT */
#include "mapgen/cli/machine.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "mapgen/cli/json_output.h"
#include "mapgen/cli/message.h"

enum {
	ANSWER_BYTES = 256,
	WAYS = 4,
};

struct way {
	const char *name;
	char *state;      /* heap */
	const char *help; /* "" when none is needed */
};

/* ---- record ---------------------------------------------------------------------------------- */

/* 0, or why the kernel refuses. */
static int try_event(bool with_kernel)
{
	const struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					      .size = sizeof(attr),
					      .config = PERF_COUNT_SW_CPU_CLOCK,
					      .sample_period = 1000000,
					      .exclude_kernel = !with_kernel,
					      .exclude_hv = 1 };
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static struct way find_record(void)
{
	struct way way = { .name = "record", .help = "" };
	int failure = try_event(false);

	if (failure) {
		way.state = message_format("no: perf_event_open: %s", strerror(failure));
		way.help = geteuid() ? "sudo dotnet-mapgen record"
				     : "CAP_PERFMON and a seccomp profile that allows it";
	} else if (geteuid() == 0 && !try_event(true)) {
		way.state = message_format("yes (root)");
	} else if (try_event(true)) {
		way.state = message_format("own processes, without the kernel");
		way.help = "sudo, or CAP_PERFMON and CAP_SYS_PTRACE, for all";
	} else {
		way.state = message_format("own processes");
		way.help = "sudo for all";
	}
	return way;
}

/* ---- programs -------------------------------------------------------------------------------- */

static bool is_installed(const char *program)
{
	const char *path = getenv("PATH");
	char *copy AUTO_FREE = strdup(path ? path : "/usr/bin:/bin:/usr/sbin:/sbin");
	char *rest = copy, *directory;

	while (rest && (directory = strsep(&rest, ":"))) {
		char *file AUTO_FREE = message_format("%s/%s", directory, program);

		if (*directory == '/' && !access(file, X_OK))
			return true;
	}
	return false;
}

/* The first line of "PROGRAM --version"; "" when it has none. */
static void ask_version(const char *program, char room[ANSWER_BYTES])
{
	char *command AUTO_FREE = message_format("%s --version </dev/null 2>/dev/null", program);
	FILE *answer = popen(command, "re");

	if (!answer || !fgets(room, ANSWER_BYTES, answer))
		room[0] = '\0';
	if (answer)
		pclose(answer);
	room[strcspn(room, "\n")] = '\0';
}

/* A program by the number in its version ("perf version 6.1.140"), with what to do about it. */
static struct way find_program(const char *program, const char *missing, const char *advice,
			       const char *install, const char *use)
{
	struct way way = { .name = program, .help = install };
	char answer[ANSWER_BYTES];

	if (!is_installed(program)) {
		way.state = message_format("not installed%s", missing);
		return way;
	}
	ask_version(program, answer);
	way.state = message_format("%s: %s", answer + strcspn(answer, "0123456789"), advice);
	way.help = use;
	return way;
}

/* BCC compiles its programs against the kernel's headers. */
static bool has_kernel_headers(void)
{
	struct utsname system;
	char *path AUTO_FREE = NULL;

	if (uname(&system))
		return false;
	path = message_format("/lib/modules/%s/build", system.release);
	return !access(path, F_OK) || !access("/sys/kernel/kheaders.tar.xz", F_OK);
}

static struct way find_bcc(void)
{
	struct way way = { .name = "BCC", .help = "" };

	if (!is_installed("profile-bpfcc") && access("/usr/share/bcc/tools/profile", X_OK)) {
		way.state = message_format("not installed");
		way.help = "apt install bpfcc-tools";
	} else if (!has_kernel_headers()) {
		way.state = message_format("kernel headers missing");
		way.help = "apt install linux-headers-$(uname -r)";
	} else {
		way.state = message_format("yes");
		way.help = "dotnet-mapgen bcc -- profile-bpfcc ...";
	}
	return way;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void find_ways(struct way ways[WAYS])
{
	ways[0] = find_record();
	ways[1] = find_program("perf", "; record does without", "use perf-fix",
			       "apt install linux-perf",
			       "perf record -g ...; dotnet-mapgen perf-fix --in-place perf.data");
	ways[2] = find_program(
		"bpftrace", "", "set BPFTRACE_CACHE_USER_SYMBOLS=1", "apt install bpftrace",
		"BPFTRACE_CACHE_USER_SYMBOLS=1 bpftrace ... | dotnet-mapgen symbolize");
	ways[3] = find_bcc();
}

void machine_print(FILE *to)
{
	struct way ways[WAYS];

	find_ways(ways);
	fputs("This machine\n", to);
	for (int i = 0; i < WAYS; i++) {
		fprintf(to, "  %-15s  %s%s%s\n", ways[i].name, ways[i].state,
			*ways[i].help ? "    " : "", ways[i].help);
		free(ways[i].state);
	}
}

json_t *machine_json(void)
{
	json_t *array = json_array();
	struct way ways[WAYS];

	find_ways(ways);
	for (int i = 0; i < WAYS; i++) {
		json_array_append_new(array, json_pack("{s:s, s:o, s:s}", "way", ways[i].name,
						       "state", json_output_text(ways[i].state),
						       "help", ways[i].help));
		free(ways[i].state);
	}
	return array;
}
