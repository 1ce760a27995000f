/* SPDX-License-Identifier: MIT */
#include "tests/support/program.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"

enum {
	MOST_ARGUMENTS = 32
};

/* The running program is BUILD/tests/unit; BUILD/dotnet-mapgen is tested. */
static char *program_path(void)
{
	char own[4096];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *path;

	cr_assert(length > 0);
	own[length] = '\0';
	for (int levels = 0; levels < 2; levels++)
		*strrchr(own, '/') = '\0';
	cr_assert(asprintf(&path, "%s/dotnet-mapgen", own) > 0);
	return path;
}

static void become_program(const char *scratch, const char *const *arguments)
{
	char *argv[MOST_ARGUMENTS + 2] = { program_path() };
	char *cache = scratch_path(scratch, "cache");

	for (size_t i = 0; arguments[i]; i++)
		argv[i + 1] = strdup(arguments[i]);
	setenv("XDG_CACHE_HOME", cache, 1);
	execv(argv[0], argv);
	_exit(127);
}

static void feed(int fd, const char *input)
{
	if (input)
		path_write_all(fd, input, strlen(input));
	close(fd);
}

/* Reads both pipes at once, so that a child that fills one is not blocked by the other. */
static void collect(int out, int err, struct buf *out_text, struct buf *err_text)
{
	struct pollfd watched[2] = { { .fd = out, .events = POLLIN },
				     { .fd = err, .events = POLLIN } };
	struct buf *texts[2] = { out_text, err_text };

	while (watched[0].fd >= 0 || watched[1].fd >= 0) {
		if (poll(watched, 2, -1) < 0)
			continue;
		for (int i = 0; i < 2; i++) {
			char piece[65536];
			ssize_t count;

			if (watched[i].fd < 0 || !watched[i].revents)
				continue;
			count = read(watched[i].fd, piece, sizeof(piece));
			if (count > 0)
				buf_append(texts[i], piece, (size_t)count);
			else if (count == 0 || errno != EINTR)
				watched[i].fd = -1;
		}
	}
}

struct program_run program_run(const char *scratch, const char *input, const char *const *arguments)
{
	struct program_run run = { .exit_code = -1 };
	int in[2], out[2], err[2], status;
	struct buf out_text, err_text;
	pid_t child, feeder;

	cr_assert(!pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC) && !pipe2(err, O_CLOEXEC));
	child = fork();
	cr_assert(child >= 0);
	if (!child) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(err[1], 2);
		become_program(scratch, arguments);
	}
	close(in[0]);
	close(out[1]);
	close(err[1]);
	feeder = fork(); /* the child may answer before it has read everything */
	if (!feeder) {
		feed(in[1], input);
		_exit(0);
	}
	close(in[1]);
	buf_init(&out_text, (size_t)1 << 30);
	buf_init(&err_text, (size_t)1 << 24);
	collect(out[0], err[0], &out_text, &err_text);
	close(out[0]);
	close(err[0]);
	waitpid(child, &status, 0);
	waitpid(feeder, NULL, 0);
	if (WIFEXITED(status))
		run.exit_code = WEXITSTATUS(status);
	else
		run.signal = WTERMSIG(status);
	run.out = buf_steal(&out_text, &run.out_bytes);
	run.err = buf_steal(&err_text, NULL);
	return run;
}

void program_run_deinit(struct program_run *run)
{
	free(run->out);
	free(run->err);
}

pid_t program_start(const char *scratch, const char *const *arguments)
{
	pid_t child = fork();

	cr_assert(child >= 0);
	if (!child) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		become_program(scratch, arguments);
	}
	return child;
}

char *scratch_create(void)
{
	char *path = strdup("/tmp/mapgen-test-XXXXXX");

	cr_assert(path && mkdtemp(path));
	return path;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	(void)status;
	(void)kind;
	(void)place;
	remove(path);
	return 0;
}

void scratch_remove(char *scratch)
{
	nftw(scratch, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(scratch);
}

char *scratch_path(const char *scratch, const char *name)
{
	char *path;

	cr_assert(asprintf(&path, "%s/%s", scratch, name) > 0);
	return path;
}

void scratch_write(const char *path, const void *bytes, size_t count)
{
	int fd AUTO_CLOSE = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	cr_assert(fd >= 0, "%s", path);
	cr_assert(!path_write_all(fd, bytes, count));
}

char *scratch_read(const char *path, size_t *size_bytes_ret)
{
	int fd AUTO_CLOSE = open(path, O_RDONLY | O_CLOEXEC);
	struct buf content;
	char *text = NULL;

	buf_init(&content, (size_t)1 << 30);
	if (fd >= 0 && !path_read_all(fd, &content))
		text = buf_steal(&content, size_bytes_ret);
	buf_deinit(&content);
	return text;
}

char *scratch_only_file(const char *directory, const char *suffix)
{
	DIR *entries GUARDED(dir) = opendir(directory);
	const struct dirent *entry;
	char *path = NULL;

	cr_assert(entries, "%s", directory);
	while ((entry = readdir(entries))) {
		size_t length = strlen(entry->d_name);

		if (length < strlen(suffix) ||
		    strcmp(entry->d_name + length - strlen(suffix), suffix) != 0)
			continue;
		cr_assert(!path, "more than one *%s in %s", suffix, directory);
		path = scratch_path(directory, entry->d_name);
	}
	cr_assert(path, "no *%s in %s", suffix, directory);
	return path;
}

size_t count_lines(const char *text)
{
	size_t count = 0;

	for (; (text = strchr(text, '\n')); text++)
		count++;
	return count;
}

void forget_perf_map(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	unlink(path);
}
