/* SPDX-License-Identifier: MIT */
/*
 * Runs a command of dotnet-mapgen on damaged copies of a file. Each run is a fork of this process,
 * so nothing is loaded again, and damage done by one copy does not reach the next.
 *
 * A copy depends only on its number, so it can be made again: FIRST is its number, COUNT is 1.
 * Meant for a build with sanitizers that write their reports to FINDINGS/report.PID. A report
 * counts as a crash, even if the command succeeds: it reads DWARF in a child process whose end it
 * survives.
 *
 * Usage: damage COPY FIRST COUNT FINDINGS SAMPLE... -- COMMAND [ARGUMENT]...
 * Prints a line for each finding and "done COUNT, crashed N, slow N, most SECONDS, results N" at
 * the end. `results` counts different exit codes and outputs: if there are few, the copies are not
 * read. The undamaged sample must not make the command fail.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include "libsym/base/path.h"

enum {
	LARGEST_BYTES = 1 << 22,
	MOST_SAMPLES = 64,
	MOST_CHANGES = 6,
	LONGEST_CPU_S = 20,
	HEAD_BYTES = 2048, /* headers and tables matter most */
	NOT_AN_EXIT_CODE = 4,
	RESULT_BITS = 1 << 16,
};

static const double slow_s = 1;

struct bytes {
	uint8_t *data;
	size_t count;
};

/* main() of dotnet-mapgen; the Makefile gives it this name. */
int mapgen_main(int argc, char **argv);

/* ---- chance ------------------------------------------------------------------------------ */

static uint64_t state;

/* splitmix64 */
static uint64_t chance(uint64_t below)
{
	uint64_t value = state += 0x9e3779b97f4a7c15;

	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
	value = (value ^ value >> 27) * 0x94d049bb133111eb;
	return below ? (value ^ value >> 31) % below : 0;
}

static size_t place(const struct bytes *copy)
{
	switch (chance(4)) {
	case 0:
		return copy->count - 1 -
		       chance(copy->count < HEAD_BYTES ? copy->count : HEAD_BYTES);
	case 1:
		return chance(copy->count < HEAD_BYTES ? copy->count : HEAD_BYTES);
	default:
		return chance(copy->count);
	}
}

static size_t length_at(const struct bytes *copy, size_t at)
{
	size_t length = 1 + chance(chance(2) ? 16 : 512);

	return length < copy->count - at ? length : copy->count - at;
}

/* Numbers that are off by one, too large, negative or circular. */
static uint64_t odd_number(const struct bytes *copy)
{
	static const uint64_t odd[] = { 0,          1,          0x7f,       0xff,
					0x7fff,     0xffff,     0x7fffffff, 0x80000000,
					0xffffffff, 1ull << 32, INT64_MAX,  UINT64_MAX };
	uint64_t number = odd[chance(sizeof(odd) / sizeof(odd[0]))];

	switch (chance(3)) {
	case 0:
		return number;
	case 1:
		return chance(copy->count + 64);
	default:
		return number + chance(9) - 4;
	}
}

static void put_number(struct bytes *copy, size_t at)
{
	static const size_t widths[] = { 1, 2, 4, 8 };
	size_t width = widths[chance(4)];
	uint64_t number = odd_number(copy);

	at -= at % width;
	if (at + width <= copy->count)
		memcpy(copy->data + at, &number, width);
}

static void put_text(struct bytes *copy, size_t at)
{
	static const char characters[] =
		" \t\n\r;:,+-()[]{}%@/\\\"'<>#*0123456789abcdefxX_\x1b\x80\xc3";

	copy->data[at] = (uint8_t)characters[chance(sizeof(characters) - 1)];
}

/* Copies a part to another place. */
static void insert(struct bytes *copy, size_t at)
{
	size_t from = chance(copy->count), length = length_at(copy, from);
	uint8_t part[512];

	if (copy->count + length > LARGEST_BYTES)
		return;
	memcpy(part, copy->data + from, length);
	memmove(copy->data + at + length, copy->data + at, copy->count - at);
	memcpy(copy->data + at, part, length);
	copy->count += length;
}

static void change(struct bytes *copy)
{
	size_t at = place(copy), length = length_at(copy, at), from;

	switch (chance(10)) {
	case 0:
		copy->data[at] ^= (uint8_t)(1u << chance(8));
		break;
	case 1:
		copy->data[at] = (uint8_t)chance(256);
		break;
	case 2:
	case 3:
	case 4:
		put_number(copy, at);
		break;
	case 5:
		put_text(copy, at);
		break;
	case 6:
		from = chance(copy->count - length + 1);
		memmove(copy->data + at, copy->data + from, length);
		break;
	case 7:
		memset(copy->data + at, chance(2) ? 0 : 0xff, length);
		break;
	case 8:
		insert(copy, at);
		break;
	default:
		if (chance(4)) {
			memmove(copy->data + at, copy->data + at + length,
				copy->count - at - length);
			copy->count -= length;
		} else {
			copy->count = at;
		}
		break;
	}
}

static void damage(struct bytes *copy, const struct bytes *sample, uint64_t number)
{
	state = number * 0x2545f4914f6cdd1d + 1;
	memcpy(copy->data, sample->data, sample->count);
	copy->count = sample->count;
	for (uint64_t i = 0, changes = 1 + chance(MOST_CHANGES); i < changes && copy->count; i++)
		change(copy);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void fail(const char *what)
{
	fprintf(stderr, "damage: %s: %s\n", what, strerror(errno));
	exit(2);
}

static struct bytes read_sample(const char *path)
{
	struct bytes sample = { .data = malloc(LARGEST_BYTES) };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t count = fd < 0 || !sample.data ? -1 : read(fd, sample.data, LARGEST_BYTES);

	if (count <= 0 || count == LARGEST_BYTES)
		fail(path);
	close(fd);
	sample.count = (size_t)count;
	return sample;
}

static void write_file(const char *path, const struct bytes *bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || path_write_all(fd, bytes->data, bytes->count))
		fail(path);
	close(fd);
}

/* The files that a run writes: standard output and error. */
struct streams {
	int output, errors;
};

static void run_child(const struct streams *to, int argc, char **argv)
{
	struct rlimit cpu = { LONGEST_CPU_S, LONGEST_CPU_S };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setrlimit(RLIMIT_CPU, &cpu);
	dup2(null, STDIN_FILENO);
	dup2(to->output, STDOUT_FILENO);
	dup2(to->errors, STDERR_FILENO);
	optind = 0;
	exit(mapgen_main(argc, argv));
}

static double seconds_of(const struct rusage *usage)
{
	return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
	       (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

/* The first lines of a file. */
static void show(int fd)
{
	char text[8192];
	ssize_t count = pread(fd, text, sizeof(text) - 1, 0);
	int lines = 0;

	text[count < 0 ? 0 : count] = '\0';
	for (char *at = text; *at && lines < 14; at++) {
		lines += *at == '\n';
		putchar(*at);
	}
	putchar('\n');
}

/* Prints and removes the sanitizers' new reports. Returns how many there were. */
static size_t take_reports(const char *directory)
{
	DIR *reports = opendir(directory);
	char path[PATH_MAX];
	struct dirent *row;
	size_t found = 0;
	int fd;

	if (!reports)
		fail(directory);
	while ((row = readdir(reports))) {
		if (strncmp(row->d_name, "report.", 7))
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, row->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		show(fd);
		close(fd);
		unlink(path);
		found++;
	}
	closedir(reports);
	return found;
}

static uint64_t hash_of(int fd, uint64_t seed)
{
	struct stat status;
	uint64_t hash = seed;
	void *bytes;

	if (fstat(fd, &status))
		fail("fstat");
	if (!status.st_size)
		return hash;
	bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED)
		fail("mmap");
	hash = XXH64(bytes, (size_t)status.st_size, seed);
	munmap(bytes, (size_t)status.st_size);
	return hash;
}

struct tally {
	size_t crashed, slow, codes[NOT_AN_EXIT_CODE], results;
	double most_s;
	bool seen[RESULT_BITS];
};

static void judge(struct tally *tally, uint64_t number, int status, double cpu_s, size_t reports,
		  const struct streams *from)
{
	bool crashed = WIFSIGNALED(status) || WEXITSTATUS(status) >= NOT_AN_EXIT_CODE ||
		       WEXITSTATUS(status) == 2 || reports;
	bool *seen = &tally->seen[hash_of(from->errors, hash_of(from->output, (uint64_t)status)) %
				  RESULT_BITS];

	tally->most_s = cpu_s > tally->most_s ? cpu_s : tally->most_s;
	tally->crashed += crashed;
	tally->results += !*seen;
	*seen = true;
	if (!crashed)
		tally->codes[WEXITSTATUS(status)]++;
	tally->slow += cpu_s > slow_s;
	if (!crashed && cpu_s <= slow_s)
		return;
	printf("copy %llu: %s %d, %.2f s of CPU, %zu reports\n", (unsigned long long)number,
	       WIFSIGNALED(status) ? "signal" : "exit code",
	       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), cpu_s, reports);
	if (crashed)
		show(from->errors);
	fflush(stdout);
}

static void empty(int fd)
{
	if (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET))
		fail("ftruncate");
}

static void run(struct tally *tally, uint64_t number, const char *findings, int argc, char **argv)
{
	static struct streams streams;
	struct rusage usage;
	int status;
	pid_t child;

	if (!streams.output) {
		streams.output = memfd_create("output", MFD_CLOEXEC);
		streams.errors = memfd_create("errors", MFD_CLOEXEC);
	}
	empty(streams.output);
	empty(streams.errors);
	child = fork();
	if (child < 0)
		fail("fork");
	if (!child)
		run_child(&streams, argc, argv);
	if (wait4(child, &status, 0, &usage) != child)
		fail("wait4");
	judge(tally, number, status, seconds_of(&usage), take_reports(findings), &streams);
}

static void keep(const char *directory, uint64_t number, const struct bytes *copy)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%llu", directory, (unsigned long long)number);
	write_file(path, copy);
}

/*
 * Runs the undamaged file twice, for comparison with the copies. The run before these fills caches.
 */
static bool run_sample(struct tally *tally, const char *findings, int argc, char **argv)
{
	run(tally, 0, findings, argc, argv);
	*tally = (struct tally){ 0 };
	for (int i = 0; i < 2; i++)
		run(tally, 0, findings, argc, argv);
	if (tally->results == 1 && tally->codes[0] + tally->codes[3] == 2)
		return true;
	printf("the sample itself: %zu results, exit code 0 %zu times, 3 %zu times\n",
	       tally->results, tally->codes[0], tally->codes[3]);
	return false;
}

int main(int argc, char **argv)
{
	struct bytes samples[MOST_SAMPLES], copy = { .data = malloc(LARGEST_BYTES) };
	static struct tally tally;
	int sample_count = 0, at = 5;
	uint64_t first, count;

	if (argc < 8)
		return 2;
	first = strtoull(argv[2], NULL, 0);
	count = strtoull(argv[3], NULL, 0);
	for (; at < argc && strcmp(argv[at], "--") && sample_count < MOST_SAMPLES; at++)
		samples[sample_count++] = read_sample(argv[at]);
	argv[at] = argv[0];
	write_file(argv[1], &samples[0]);
	if (!run_sample(&tally, argv[4], argc - at, argv + at))
		return 1;
	for (uint64_t number = first; number < first + count; number++) {
		size_t found = tally.crashed + tally.slow;

		damage(&copy, &samples[number % (uint64_t)sample_count], number);
		write_file(argv[1], &copy);
		run(&tally, number, argv[4], argc - at, argv + at);
		if (tally.crashed + tally.slow > found)
			keep(argv[4], number, &copy);
	}
	printf("done %llu, crashed %zu, slow %zu, most %.2f s, results %zu; "
	       "exit code 0: %zu, 1: %zu, 3: %zu\n",
	       (unsigned long long)count, tally.crashed, tally.slow, tally.most_s, tally.results,
	       tally.codes[0], tally.codes[1], tally.codes[3]);
	return tally.crashed || tally.slow ? 1 : 0;
}
