/* SPDX-License-Identifier: MIT */
/*
 * The command symbolize: reads stacks as other tools print them, and writes the same text with
 * names. It reads standard input or files as they grow, and writes everything before it reads on,
 * so that names appear as soon as the tool prints its stacks.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/message.h"
#include "mapgen/live/process_names.h"

DEFINE_GUARD(stack_filter, struct stack_filter *, stack_filter_destroy)
DEFINE_GUARD(process_names, struct process_names *, process_names_destroy)

struct symbolizing {
	struct process_names *names;
	struct stack_filter *filter;
	int write_error; /* errno; 0: none */
	bool said;       /* a message gave the reason of the failure */
	bool left_out;   /* a file could not be opened, after a message */
};

static bool write_out(void *context, const void *bytes, size_t size_bytes)
{
	struct symbolizing *symbolizing = context;

	/* To a terminal through the stream that removes control characters, else without a copy. */
	if (!isatty(STDOUT_FILENO))
		symbolizing->write_error = -path_write_all(STDOUT_FILENO, bytes, size_bytes);
	else if (fwrite(bytes, 1, size_bytes, stdout) != size_bytes || fflush(stdout))
		symbolizing->write_error = errno;
	return !symbolizing->write_error;
}

static bool symbolize_resolve(void *context, struct stack_owner owner,
			      const struct stack_query *queries, size_t count,
			      struct stack_name *answers)
{
	struct symbolizing *symbolizing = context;

	symbolizing->said =
		!process_names_resolve(symbolizing->names, owner, queries, count, answers);
	return !symbolizing->said;
}

static void symbolize_expect(void *context, struct stack_owner owner)
{
	struct symbolizing *symbolizing = context;

	process_names_expect(symbolizing->names, owner);
}

static void take_interrupt(int number)
{
	(void)number;
}

/*
 * Control-C at "tool | dotnet-mapgen symbolize" is meant for the tool. The tool prints its results
 * and ends, and then this program ends. A second Control-C ends this program at once.
 */
static void ignore_first_interrupt(void)
{
	struct sigaction action = { .sa_handler = take_interrupt,
				    .sa_flags = SA_RESETHAND | SA_RESTART };
	struct sigaction before;

	if (isatty(STDIN_FILENO) || sigaction(SIGINT, NULL, &before) ||
	    before.sa_handler == SIG_IGN)
		return;
	sigaction(SIGINT, &action, NULL);
}

/* Waits until there is something to read, and receives what runtimes report until then. */
static void wait_for_text(struct process_names *names, int fd)
{
	struct pollfd text = { .fd = fd, .events = POLLIN };

	while (!poll(&text, 1, process_names_rest_ms(names)))
		process_names_idle(names);
}

/* False, with a message, when the input could not be read to its end or the output could not be
 * written. */
static bool symbolize_pass(struct symbolizing *symbolizing, int fd, const char *shown)
{
	struct stat status;
	bool is_written = !fstat(fd, &status) && S_ISREG(status.st_mode);

	process_names_set_written(symbolizing->names, is_written);
	for (;;) {
		size_t room_bytes;
		char *room = stack_filter_room(symbolizing->filter, &room_bytes);
		ssize_t count;

		if (!is_written)
			wait_for_text(symbolizing->names, fd);
		count = read(fd, room, room_bytes);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0) {
			symbolizing->said = true;
			message("cannot read %s: %s", shown, strerror(errno));
			return false;
		}
		if (count == 0)
			return stack_filter_finish(symbolizing->filter);
		if (!stack_filter_push(symbolizing->filter, (size_t)count))
			return false;
	}
}

static bool is_perf_data(int fd)
{
	static const char magic[] = "PERFILE2";
	char bytes[sizeof(magic) - 1];

	return pread(fd, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes) &&
	       !memcmp(bytes, magic, sizeof(bytes));
}

static bool pass_file(struct symbolizing *symbolizing, const char *path)
{
	int fd AUTO_CLOSE = -1;

	if (!strcmp(path, "-"))
		return symbolize_pass(symbolizing, STDIN_FILENO, "standard input");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !is_perf_data(fd))
		return symbolize_pass(symbolizing, fd, path);
	symbolizing->left_out = true;
	if (fd >= 0) {
		message("%s is a perf.data: perf script -F +pid -i %s | dotnet-mapgen symbolize",
			path, path);
		return true;
	}
	message("cannot open %s: %s", path, strerror(errno));
	return true;
}

/* Messages about what is missing go to standard error, because the output is the text. */
static bool tell_missing(const struct symbolizing *symbolizing)
{
	struct process_names_counts counts = process_names_counts(symbolizing->names);
	struct stack_missing missing = stack_filter_missing(symbolizing->filter);

	if (counts.ownerless)
		message("%" PRIu64
			" addresses stand where the text does not name their process: give its PID",
			counts.ownerless);
	if (counts.threads)
		message("%" PRIu64 " addresses belong to threads that have ended or may not be "
			"looked at (perf script -F +pid prints their process)",
			counts.threads);
	if (counts.gone > counts.threads)
		message("%" PRIu64 " addresses belong to processes that have ended or may not be "
			"looked at (perf-fix on the perf.data has their mappings)",
			counts.gone - counts.threads);
	if (counts.unreadable)
		message("%" PRIu64 " addresses lie in files that could not be read",
			counts.unreadable);
	if (counts.early)
		message("%" PRIu64 " frames have a time before their process began (as perf script "
			"--reltime and --deltatime print): where a JIT has replaced "
			"code, they have the name of the new code",
			counts.early);
	if (counts.lineless)
		message("%" PRIu64 " managed frames have no source line (the first: %s)",
			counts.lineless, process_names_line_reason(symbolizing->names) ?: "?");
	if (!counts.asked && !missing.addresses && !missing.files &&
	    !stack_filter_frames(symbolizing->filter))
		message("no stack with an address arrived: the text was not changed (bpftrace up "
			"to 0.23 loses stacks when a process has a large perf map: start it with "
			"BPFTRACE_CACHE_USER_SYMBOLS=1)");
	if (missing.addresses)
		message("%" PRIu64
			" frames are [unknown] without an address and stay so: let the tool print "
			"addresses, or let it read the map of dotnet-mapgen merge",
			missing.addresses);
	if (missing.files)
		message("%" PRIu64
			" frames are [unknown] with a short number, which may be an offset into a "
			"file that the text does not name (perf script -F +dso prints it)",
			missing.files);
	return counts.ownerless || counts.gone || counts.unreadable || counts.early ||
	       missing.addresses || missing.files || process_names_failed(symbolizing->names);
}

static void print_counts_json(const struct process_names_counts *counts,
			      struct stack_missing missing)
{
	fprintf(stderr,
		"{\"addresses\": %" PRIu64 ", \"named\": %" PRIu64 ", \"bounded\": %" PRIu64
		", \"no_symbols\": %" PRIu64 ", \"unmapped\": %" PRIu64
		", \"of_other_processes\": %" PRIu64 ", \"of_processes_gone\": %" PRIu64
		", \"of_no_process\": %" PRIu64 ", \"of_no_time\": %" PRIu64
		", \"with_lines\": %" PRIu64 ", \"without_lines\": %" PRIu64
		", \"frames_without_address\": %" PRIu64 ", \"offsets_without_file\": %" PRIu64
		"}\n",
		counts->asked, counts->named, counts->bounded, counts->nameless, counts->unmapped,
		counts->foreign, counts->gone, counts->ownerless, counts->early, counts->lined,
		counts->lineless, missing.addresses, missing.files);
}

static void tell_counts(const struct symbolizing *symbolizing, bool json)
{
	struct process_names_counts counts = process_names_counts(symbolizing->names);

	if (json) {
		print_counts_json(&counts, stack_filter_missing(symbolizing->filter));
		return;
	}
	message("%" PRIu64 " of %" PRIu64 " addresses without a name got one; %" PRIu64
		" got the bounds of a function without a symbol; %" PRIu64
		" have no symbol, %" PRIu64 " lie in no mapping, %" PRIu64 " in other processes",
		counts.named, counts.asked, counts.bounded, counts.nameless, counts.unmapped,
		counts.foreign);
}

static bool pass_all(struct symbolizing *symbolizing, const struct options *options)
{
	bool done = true;

	if (!options->operand_count)
		done = symbolize_pass(symbolizing, STDIN_FILENO, "standard input");
	for (size_t i = 0; done && i < options->operand_count; i++)
		done = pass_file(symbolizing, options->operands[i]);
	if (symbolizing->write_error)
		message("cannot write to standard output: %s", strerror(symbolizing->write_error));
	else if (!done && !symbolizing->said)
		message("out of memory");
	return done;
}

int symbolize_run(const struct options *options)
{
	struct process_names *names GUARDED(process_names) = NULL;
	struct stack_filter *filter GUARDED(stack_filter) = NULL;
	struct symbolizing symbolizing = { 0 };
	struct stack_filter_client client = {
		.resolve = symbolize_resolve,
		.expect = symbolize_expect,
		.write = write_out,
		.context = &symbolizing,
		.names = options->names,
		.lines = options->lines,
		.strip_tiers = options->tiers == TIER_FORM_STRIP,
		.has_default = options->pid != 0,
	};

	ignore_first_interrupt();
	symbolizing.names = names = process_names_create(options);
	symbolizing.filter = filter = stack_filter_create(&client);
	if (!names || !filter) {
		message("out of memory");
		return EXIT_FAILED;
	}
	if (!pass_all(&symbolizing, options))
		return EXIT_FAILED;
	if (options->verbose || options->json)
		tell_counts(&symbolizing, options->json);
	if (symbolizing.left_out && options->operand_count == 1)
		return EXIT_FAILED;
	return tell_missing(&symbolizing) || symbolizing.left_out ? EXIT_PARTLY : EXIT_DONE;
}
