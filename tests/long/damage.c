/* SPDX-License-Identifier: MIT */
/*
 * Runs a command of dotnet-mapgen on damaged copies of a file. Each fork of this process runs a
 * batch of copies, one after the other: a fork with AddressSanitizer takes longer than a run. A
 * batch ends at a copy that crashes, and the next fork continues behind it.
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
#include <ftw.h>
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
	MOST_ARGUMENTS = 512,
	BATCH_COPIES = 64,
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

/* The damaged sample, and the command that reads the copy. Number 0 is the first sample itself. */
struct job {
	const char *copy_path, *findings;
	struct bytes samples[MOST_SAMPLES], copy;
	uint64_t sample_count;
	struct streams streams;
	int argc;
	char **argv;
};

struct outcome {
	int status; /* as of wait() */
	double cpu_s;
	uint64_t hash; /* of what was written */
	size_t reports;
};

/* Shared with the child. */
struct batch {
	size_t done;
	struct outcome outcomes[BATCH_COPIES];
};

static void make_copy(struct job *job, uint64_t number)
{
	if (number) {
		damage(&job->copy, &job->samples[number % job->sample_count], number);
		return;
	}
	job->copy.count = job->samples[0].count;
	memcpy(job->copy.data, job->samples[0].data, job->copy.count);
}

static double seconds_of(const struct rusage *usage)
{
	return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
	       (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

/* This process and its children that have ended have used them. */
static double cpu_seconds(void)
{
	struct rusage own, children;

	getrusage(RUSAGE_SELF, &own);
	getrusage(RUSAGE_CHILDREN, &children);
	return seconds_of(&own) + seconds_of(&children);
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

static uint64_t hash_of_output(const struct streams *streams, int status)
{
	return hash_of(streams->errors, hash_of(streams->output, (uint64_t)status));
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

static void show_and_remove(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	show(fd);
	close(fd);
	unlink(path);
}

/* How many reports the sanitizers have written. If `taken`, they are printed and removed. */
static size_t count_reports(const char *directory, bool taken)
{
	DIR *reports = opendir(directory);
	char path[PATH_MAX];
	struct dirent *row;
	size_t found = 0;

	if (!reports)
		fail(directory);
	while ((row = readdir(reports))) {
		if (strncmp(row->d_name, "report.", 7))
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, row->d_name);
		if (taken)
			show_and_remove(path);
		found++;
	}
	closedir(reports);
	return found;
}

static bool is_crash(const struct outcome *outcome)
{
	return WIFSIGNALED(outcome->status) || WEXITSTATUS(outcome->status) >= NOT_AN_EXIT_CODE ||
	       WEXITSTATUS(outcome->status) == 2 || outcome->reports;
}

static void empty(int fd)
{
	if (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET))
		fail("ftruncate");
}

/* In the child. The command may change the order of its arguments. */
static struct outcome run_one(struct job *job)
{
	double before_s = cpu_seconds();
	struct rlimit cpu = { (rlim_t)before_s + LONGEST_CPU_S, RLIM_INFINITY };
	char *arguments[MOST_ARGUMENTS + 1] = { NULL };
	struct outcome outcome;

	empty(job->streams.output);
	empty(job->streams.errors);
	setrlimit(RLIMIT_CPU, &cpu);
	memcpy(arguments, job->argv, (size_t)job->argc * sizeof(char *));
	optind = 0;
	outcome.status = mapgen_main(job->argc, arguments) << 8;
	fflush(NULL);
	outcome.cpu_s = cpu_seconds() - before_s;
	outcome.hash = hash_of_output(&job->streams, outcome.status);
	outcome.reports = count_reports(job->findings, false);
	return outcome;
}

/* The number of a copy of a batch. A batch that begins with the sample runs only that. */
static uint64_t number_of(uint64_t first, size_t i)
{
	return first ? first + i : 0;
}

static void run_child(struct job *job, struct batch *batch, uint64_t first, size_t count)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(null, STDIN_FILENO);
	dup2(job->streams.output, STDOUT_FILENO);
	dup2(job->streams.errors, STDERR_FILENO);
	for (size_t i = 0; i < count; i++) {
		make_copy(job, number_of(first, i));
		write_file(job->copy_path, &job->copy);
		batch->outcomes[i] = run_one(job);
		batch->done = i + 1;
		if (is_crash(&batch->outcomes[i]))
			break;
	}
	exit(0);
}

struct tally {
	size_t crashed, slow, codes[NOT_AN_EXIT_CODE], results;
	double most_s;
	bool seen[RESULT_BITS];
};

static void keep(struct job *job, uint64_t number)
{
	char path[PATH_MAX];

	make_copy(job, number);
	snprintf(path, sizeof(path), "%s/%llu", job->findings, (unsigned long long)number);
	write_file(path, &job->copy);
}

static void judge(struct job *job, struct tally *tally, uint64_t number,
		  const struct outcome *outcome)
{
	bool crashed = is_crash(outcome), *seen = &tally->seen[outcome->hash % RESULT_BITS];
	int status = outcome->status;

	tally->most_s = outcome->cpu_s > tally->most_s ? outcome->cpu_s : tally->most_s;
	tally->crashed += crashed;
	tally->results += !*seen;
	*seen = true;
	if (!crashed)
		tally->codes[WEXITSTATUS(status)]++;
	tally->slow += outcome->cpu_s > slow_s;
	if (!crashed && outcome->cpu_s <= slow_s)
		return;
	printf("copy %llu: %s %d, %.2f s of CPU, %zu reports\n", (unsigned long long)number,
	       WIFSIGNALED(status) ? "signal" : "exit code",
	       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), outcome->cpu_s,
	       outcome->reports);
	if (crashed)
		show(job->streams.errors);
	fflush(stdout);
	keep(job, number);
}

/* Adds the copy within whose run the child has ended, if there is one. */
static void end_batch(struct job *job, struct batch *batch, size_t count, int status, double cpu_s)
{
	if (batch->done == count || (batch->done && is_crash(&batch->outcomes[batch->done - 1])))
		return;
	for (size_t i = 0; i < batch->done; i++)
		cpu_s -= batch->outcomes[i].cpu_s;
	batch->outcomes[batch->done++] = (struct outcome){
		.status = status,
		.cpu_s = cpu_s,
		.hash = hash_of_output(&job->streams, status),
	};
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	(void)status;
	(void)kind;
	(void)place;
	return remove(path);
}

/* A run lists the whole cache, and nearly every copy adds to it. */
static void empty_cache(void)
{
	if (nftw(getenv("XDG_CACHE_HOME"), remove_one, 16, FTW_DEPTH | FTW_PHYS) && errno != ENOENT)
		fail("cache");
}

/* Returns how many copies have been run: fewer than `count` after a crash. */
static size_t run(struct job *job, struct tally *tally, uint64_t first, size_t count)
{
	static struct batch *batch;
	struct rusage usage;
	int status;
	pid_t child;

	if (!batch)
		batch = mmap(NULL, sizeof(*batch), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (batch == MAP_FAILED)
		fail("mmap");
	batch->done = 0;
	child = fork();
	if (child < 0)
		fail("fork");
	if (!child)
		run_child(job, batch, first, count);
	if (wait4(child, &status, 0, &usage) != child)
		fail("wait4");
	end_batch(job, batch, count, status, seconds_of(&usage));
	batch->outcomes[batch->done - 1].reports = count_reports(job->findings, true);
	for (size_t i = 0; i < batch->done; i++)
		judge(job, tally, number_of(first, i), &batch->outcomes[i]);
	if (first)
		empty_cache();
	return batch->done;
}

/*
 * Runs the undamaged file by itself and twice in one process, for comparison with the copies. The
 * run before these fills caches.
 */
static bool run_sample(struct job *job, struct tally *tally)
{
	run(job, tally, 0, 1);
	*tally = (struct tally){ 0 };
	for (size_t i = 1; i <= 2; i++)
		run(job, tally, 0, i);
	if (tally->results == 1 && tally->codes[0] + tally->codes[3] == 3)
		return true;
	printf("the sample itself: %zu results, exit code 0 %zu times, 3 %zu times\n",
	       tally->results, tally->codes[0], tally->codes[3]);
	return false;
}

static struct job job_of(int argc, char **argv)
{
	struct job job = { .copy_path = argv[1],
			   .findings = argv[4],
			   .copy.data = malloc(LARGEST_BYTES),
			   .streams.output = memfd_create("output", MFD_CLOEXEC),
			   .streams.errors = memfd_create("errors", MFD_CLOEXEC) };
	char cache[PATH_MAX];
	int at = 5;

	snprintf(cache, sizeof(cache), "%s/cache", job.findings);
	setenv("XDG_CACHE_HOME", cache, 1);
	for (; at < argc && strcmp(argv[at], "--") && job.sample_count < MOST_SAMPLES; at++)
		job.samples[job.sample_count++] = read_sample(argv[at]);
	argv[at] = argv[0];
	job.argc = argc - at;
	job.argv = argv + at;
	if (!job.copy.data || job.argc > MOST_ARGUMENTS)
		fail("arguments");
	return job;
}

int main(int argc, char **argv)
{
	static struct tally tally;
	uint64_t first, end;
	struct job job;

	if (argc < 8)
		return 2;
	first = strtoull(argv[2], NULL, 0);
	end = first + strtoull(argv[3], NULL, 0);
	job = job_of(argc, argv);
	if (!run_sample(&job, &tally))
		return 1;
	for (uint64_t number = first; number < end;)
		number += run(&job, &tally, number,
			      end - number < BATCH_COPIES ? end - number : BATCH_COPIES);
	printf("done %llu, crashed %zu, slow %zu, most %.2f s, results %zu; "
	       "exit code 0: %zu, 1: %zu, 3: %zu\n",
	       (unsigned long long)(end - first), tally.crashed, tally.slow, tally.most_s,
	       tally.results, tally.codes[0], tally.codes[1], tally.codes[3]);
	return tally.crashed || tally.slow ? 1 : 0;
}
