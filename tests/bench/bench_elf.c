/* SPDX-License-Identifier: MIT */
/*
 * Native images: loading a library of 45,000 symbols and looking up a million addresses, and the
 * first name of a process with 200 images, against libbcc, libdwfl and eu-addr2line on the same
 * process in alternation. Times are CPU times, the minimum of some rounds. Answers are compared one
 * by one.
 */
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <libgen.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libsym/libsym.h"
#include "tests/bench/bcc_calls.h"
#include "tests/bench/bench.h"

enum {
	PROGRAM_ROUNDS = 40,
	ROUNDS = 2,
	LOOKUPS = 1000000,
	DWFL_LOOKUPS = 200, /* libdwfl would take ten minutes for a million */
	BCC_LOOKUPS = 50000,
	TOUCHED = 1000, /* symbols; for each new one libbcc reads the whole string table */
	BATCH = 1000,
	IMAGES = 200
};

static void check(struct sym_error *error)
{
	if (!error)
		return;
	fprintf(stderr, "bench_elf: %s\n", sym_error_message(error));
	exit(1);
}

/* ---- a process with many images ---------------------------------------------------- */

/* Sanitizers and similar libraries take over the process that loads them. */
static bool is_harmless(const char *path)
{
	static const char *const words[] = { "san.so",    "san_",     "preload",  "memusage",
					     "pcprofile", "SegFault", "jemalloc", "tcmalloc",
					     "criterion", "gomp" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(path, words[i]))
			return false;
	return true;
}

static size_t mapped_images(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096], last[4096] = "";
	size_t count = 0;

	while (maps && fgets(line, sizeof(line), maps)) {
		const char *path = strchr(line, '/');

		if (path && strcmp(path, last) != 0) {
			count++;
			snprintf(last, sizeof(last), "%s", path);
		}
	}
	if (maps)
		fclose(maps);
	return count;
}

/* Loads the large library and others, reports it, and waits. */
static void be_the_process(const char *large, int fd)
{
	glob_t found = { 0 };

	/* Ignores what libraries print and start. */
	if (!dlopen(large, RTLD_LAZY | RTLD_LOCAL))
		_exit(1);
	glob("/usr/lib/*-linux-gnu*/lib*.so.[0-9]*", 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc && mapped_images() < IMAGES; i++)
		if (is_harmless(found.gl_pathv[i]))
			dlopen(found.gl_pathv[i], RTLD_LAZY | RTLD_LOCAL);
	if (write(fd, "r", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static pid_t start(const char *large)
{
	int pipes[2];
	pid_t pid;
	char byte;

	if (pipe(pipes))
		exit(1);
	pid = fork();
	if (!pid)
		be_the_process(large, pipes[1]);
	close(pipes[1]);
	if (read(pipes[0], &byte, 1) != 1) {
		puts("elf: the process that is looked at did not start");
		exit(0);
	}
	close(pipes[0]);
	return pid;
}

/* ---- addresses --------------------------------------------------------------- */

/* Addresses inside symbols of the large library. */
static struct sym_image *image_at(struct sym_snapshot *snapshot, const char *path)
{
	for (size_t i = 0; i < sym_snapshot_image_count(snapshot); i++)
		if (!strcmp(sym_image_path(sym_snapshot_image_at(snapshot, i)), path))
			return sym_snapshot_image_at(snapshot, i);
	fprintf(stderr, "bench_elf: %s is not mapped\n", path);
	exit(1);
}

/* An address in the middle of a function without a name; 0 if there is none. */
static uint64_t choose_unnamed(pid_t pid, const char *large)
{
	struct sym_snapshot *snapshot;
	struct sym_symbols *symbols;
	struct sym_image *image;
	uint64_t address = 0;

	check(sym_snapshot_open(pid, NULL, &snapshot));
	image = image_at(snapshot, large);
	check(sym_image_symbols(image, SYM_IMAGE_SYMBOLS_UNNAMED, &symbols));
	for (size_t i = sym_symbols_count(symbols) / 2; !address && i < sym_symbols_count(symbols);
	     i++) {
		const struct sym_symbol *symbol = sym_symbols_at(symbols, i);

		if (symbol->kind == SYM_SYMBOL_UNNAMED && symbol->size_bytes > 1)
			address =
				sym_image_load_base(image) + symbol->start + symbol->size_bytes / 2;
	}
	sym_symbols_destroy(symbols);
	sym_snapshot_close(snapshot);
	return address;
}

static uint64_t *choose(pid_t pid, const char *large, size_t *symbols_ret)
{
	uint64_t *addresses = malloc(LOOKUPS * sizeof(*addresses));
	struct sym_snapshot *snapshot;
	struct sym_symbols *symbols;
	struct sym_image *image;
	size_t step;

	check(sym_snapshot_open(pid, NULL, &snapshot));
	image = image_at(snapshot, large);
	if (!addresses)
		exit(1);
	check(sym_image_symbols(image, SYM_IMAGE_SYMBOLS_LINKAGE_NAMES, &symbols));
	*symbols_ret = sym_symbols_count(symbols);
	step = sym_symbols_count(symbols) / TOUCHED;
	for (size_t i = 0; i < LOOKUPS;) {
		const struct sym_symbol *symbol = sym_symbols_at(symbols, noise() % TOUCHED * step);

		if (symbol->size_bytes)
			addresses[i++] = sym_image_load_base(image) + symbol->start +
					 noise() % symbol->size_bytes;
	}
	sym_symbols_destroy(symbols);
	sym_snapshot_close(snapshot);
	return addresses;
}

struct opened {
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver;
	struct sym_result *result;
};

static void open_ours(pid_t pid, struct opened *opened)
{
	check(sym_snapshot_open(pid, NULL, &opened->snapshot));
	check(sym_resolver_create(opened->snapshot, &opened->resolver));
	check(sym_result_create(&opened->result));
}

static void close_ours(struct opened *opened)
{
	sym_result_destroy(opened->result);
	sym_resolver_destroy(opened->resolver);
	sym_snapshot_close(opened->snapshot);
}

static double ours_all(pid_t pid, const uint64_t *addresses)
{
	double begin = seconds();
	struct opened opened;

	open_ours(pid, &opened);
	for (size_t i = 0; i < LOOKUPS; i += BATCH)
		check(sym_resolver_resolve(opened.resolver, addresses + i, BATCH, opened.result));
	close_ours(&opened);
	return seconds() - begin;
}

static double ours_first(pid_t pid, uint64_t address)
{
	double begin = seconds();
	struct opened opened;

	open_ours(pid, &opened);
	check(sym_resolver_resolve(opened.resolver, &address, 1, opened.result));
	if (sym_result_at(opened.result, 0)->status != SYM_RESOLVED)
		exit(1);
	begin = seconds() - begin;
	close_ours(&opened);
	return begin;
}

/* ---- peers ---------------------------------------------------------------------------- */

/* Time for the first name; *all_ret is the time for all look-ups, estimated from some. */
static double bcc_ask(const struct bcc_calls *bcc, pid_t pid, const uint64_t *addresses,
		      double *all_ret)
{
	double begin = seconds(), first, touched, taken;
	struct bcc_symbol symbol;
	void *cache = bcc->cache_new(pid, NULL);

	bcc->resolve(cache, addresses[0], &symbol);
	first = seconds();
	for (size_t i = 0; i < BCC_LOOKUPS; i++)
		bcc->resolve(cache, addresses[i], &symbol);
	touched = seconds();
	for (size_t i = 0; i < BCC_LOOKUPS; i++)
		bcc->resolve(cache, addresses[i], &symbol);
	taken = seconds() - touched;
	bcc->cache_free(cache, pid);
	least(all_ret, touched - begin + taken * (LOOKUPS - BCC_LOOKUPS) / BCC_LOOKUPS);
	return first - begin;
}

struct comparison {
	size_t equal, neither, aliases, others;
};

static void compare_one(const struct sym_answer *answer, const struct bcc_symbol *theirs,
			uint64_t address, struct comparison *ret)
{
	const char *name = answer->linkage_name ? answer->linkage_name : answer->name;
	bool same_start = theirs->name && name && theirs->offset == answer->offset_bytes;

	if (!theirs->name && !name)
		ret->neither++;
	else if (same_start && !strcmp(theirs->name, name))
		ret->equal++;
	else if (same_start)
		ret->aliases++;
	else {
		ret->others++;
		printf("elf_answer_differs at 0x%" PRIx64 " of %s: ours %s, libbcc %s\n",
		       address - (answer->image ? sym_image_load_base(answer->image) : 0),
		       answer->image_path, name ? name : "nothing",
		       theirs->name ? theirs->name : "nothing");
	}
}

static void compare_with_bcc(const struct bcc_calls *bcc, pid_t pid, const uint64_t *addresses)
{
	void *cache = bcc->cache_new(pid, NULL);
	struct comparison comparison = { 0 };
	struct opened opened;

	open_ours(pid, &opened);
	for (size_t i = 0; i < BCC_LOOKUPS / 10; i++) {
		struct bcc_symbol symbol = { 0 };

		check(sym_resolver_resolve(opened.resolver, addresses + i, 1, opened.result));
		/* A failure may still report the image that has no symbol. */
		if (bcc->resolve(cache, addresses[i], &symbol))
			symbol.name = NULL;
		compare_one(sym_result_at(opened.result, 0), &symbol, addresses[i], &comparison);
	}
	printf("elf_answers_vs_bcc: of %d addresses %zu equal, %zu another name for the same "
	       "start, %zu named by neither, %zu differ %s\n",
	       BCC_LOOKUPS / 10, comparison.equal, comparison.aliases, comparison.neither,
	       comparison.others, comparison.others ? "short" : "ok");
	close_ours(&opened);
	bcc->cache_free(cache, pid);
}

/* Time to load and for all look-ups, estimated from some. */
static double dwfl_all(pid_t pid, const uint64_t *addresses)
{
	static const Dwfl_Callbacks callbacks = { .find_elf = dwfl_linux_proc_find_elf,
						  .find_debuginfo = dwfl_standard_find_debuginfo };
	double begin = seconds(), loaded, taken;
	Dwfl *dwfl = dwfl_begin(&callbacks);
	GElf_Off offset;
	GElf_Sym symbol;

	if (!dwfl || dwfl_linux_proc_report(dwfl, pid) || dwfl_report_end(dwfl, NULL, NULL))
		return 0;
	dwfl_module_addrinfo(dwfl_addrmodule(dwfl, addresses[0]), addresses[0], &offset, &symbol,
			     NULL, NULL, NULL);
	loaded = seconds();
	for (size_t i = 0; i < DWFL_LOOKUPS; i++)
		dwfl_module_addrinfo(dwfl_addrmodule(dwfl, addresses[i]), addresses[i], &offset,
				     &symbol, NULL, NULL, NULL);
	taken = seconds() - loaded;
	dwfl_end(dwfl);
	return loaded - begin + taken * LOOKUPS / DWFL_LOOKUPS;
}

/* CPU time of a program. fork() of this large process would add to it, so it is not used. */
static double run(char *const words[])
{
	posix_spawn_file_actions_t actions;
	struct rusage usage;
	int status, failure;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	failure = posix_spawnp(&pid, words[0], &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (failure)
		return 0;
	if (wait4(pid, &status, 0, &usage) != pid || !WIFEXITED(status) ||
	    WEXITSTATUS(status) == 127)
		return 0;
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* ---- figures --------------------------------------------------------------------------- */

static void against_libraries(pid_t pid, const uint64_t *addresses)
{
	double ours = 0, first = 0, bcc_all = 0, bcc_first = 0, dwfl = 0;
	struct bcc_calls bcc = { 0 };
	bool has_bcc = bcc_calls_open(&bcc, bcc_library);

	for (int round = 0; round < ROUNDS; round++) {
		least(&ours, ours_all(pid, addresses));
		least(&first, ours_first(pid, addresses[0]));
		least(&dwfl, dwfl_all(pid, addresses));
		if (!has_bcc)
			continue;
		least(&bcc_first, bcc_ask(&bcc, pid, addresses, &bcc_all));
	}
	figure("elf_load_and_1M_vs_libdwfl", ours * 1e3, dwfl * 1e3,
	       (struct bench_goal){ .most_ratio = 1.0 / 20 }, "ms");
	if (has_bcc) {
		figure("elf_load_and_1M_vs_bcc", ours * 1e3, bcc_all * 1e3,
		       (struct bench_goal){ .most_ratio = 1.0 / 5 }, "ms");
		figure("elf_first_name_vs_bcc", first * 1e3, bcc_first * 1e3,
		       (struct bench_goal){ .most_ratio = 1.0 / 2 }, "ms");
		compare_with_bcc(&bcc, pid, addresses);
	} else {
		puts("elf_bcc: libbcc.so.0 is not installed");
	}
}

static void against_addr2line(const char *name, pid_t pid, uint64_t address, const char *program)
{
	char number[32], place[32];
	char *ours[] = { (char *)program, (char *)"resolve", number, place, NULL };
	char *theirs[] = {
		(char *)"eu-addr2line", (char *)"-S", (char *)"-p", number, place, NULL
	};
	double our_seconds = 0, their_seconds = 0;

	snprintf(number, sizeof(number), "%d", pid);
	snprintf(place, sizeof(place), "0x%" PRIx64, address);
	for (int round = 0; round < PROGRAM_ROUNDS; round++) {
		least(&our_seconds, run(ours));
		least(&their_seconds, run(theirs));
	}
	if (their_seconds > 0 && our_seconds > 0)
		figure(name, our_seconds * 1e3, their_seconds * 1e3,
		       (struct bench_goal){ .most_ratio = 1.0 / 2 }, "ms");
	else
		printf("%s: eu-addr2line is not installed\n", name);
}

int main(int argc, char **argv)
{
	glob_t found = { 0 };
	char *large, *own = strdup(argv[0]), *program;
	uint64_t *addresses, unnamed;
	size_t symbols;
	pid_t pid;

	(void)argc;
	if (glob("/usr/lib/*-linux-gnu*/libLLVM-*.so.1", 0, NULL, &found)) {
		puts("elf: there is no libLLVM");
		return 0;
	}
	large = realpath(found.gl_pathv[0], NULL);
	if (!large || asprintf(&program, "%s/../dotnet-mapgen", dirname(own)) < 0)
		return 1;
	pid = start(large);
	addresses = choose(pid, large, &symbols);
	printf("elf: %s with %zu symbols\n", large, symbols);
	fflush(stdout);
	against_libraries(pid, addresses);
	against_addr2line("elf_first_name_vs_eu_addr2line", pid, addresses[0], program);
	/* The child of fork() has the library at the same address. */
	against_addr2line("elf_first_name_of_libc_vs_eu_addr2line", pid, (uintptr_t)getenv + 4,
			  program);
	unnamed = choose_unnamed(pid, large);
	if (unnamed)
		against_addr2line("elf_first_unnamed_vs_eu_addr2line", pid, unnamed, program);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	free(addresses);
	free(program);
	free(large);
	free(own);
	globfree(&found);
	return 0;
}
