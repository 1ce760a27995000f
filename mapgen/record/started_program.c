/* SPDX-License-Identifier: MIT */
#include "mapgen/record/started_program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Between fork() and exec(): nothing but system calls. */
static _Noreturn void run_child(char **words, int start_fd, int errno_fd)
{
	char start;
	int failure;

	if (read(start_fd, &start, 1) != 1)
		_exit(0);
	/* An ignored signal stays ignored through exec(). */
	signal(SIGXFSZ, SIG_DFL);
	execvp(words[0], words);
	failure = errno;
	if (write(errno_fd, &failure, sizeof(failure)) < 0)
		_exit(126);
	_exit(127);
}

struct sym_error *started_program_prepare(char **words, struct started_program *ret)
{
	int start[2], failure[2];
	pid_t pid;

	if (pipe2(start, O_CLOEXEC))
		return sym_error_from_errno(errno, words[0], "cannot start");
	if (pipe2(failure, O_CLOEXEC)) {
		close(start[0]);
		close(start[1]);
		return sym_error_from_errno(errno, words[0], "cannot start");
	}
	pid = fork();
	if (!pid) {
		/* Else the pipe would not end with the parent. */
		close(start[1]);
		run_child(words, start[0], failure[1]);
	}
	close(start[0]);
	close(failure[1]);
	*ret = (struct started_program){ .pid = pid, .start_fd = start[1], .errno_fd = failure[0] };
	if (pid > 0)
		return NULL;
	ret->pid = 0;
	close(start[1]);
	close(failure[0]);
	return sym_error_from_errno(errno, words[0], "cannot start");
}

struct sym_error *started_program_begin(struct started_program *program, const char *name)
{
	int failure = 0;
	ssize_t count;

	if (write(program->start_fd, "", 1) != 1)
		return sym_error_from_errno(errno, name, "cannot start");
	do
		count = read(program->errno_fd, &failure, sizeof(failure));
	while (count < 0 && errno == EINTR);
	return count == sizeof(failure) ? sym_error_from_errno(failure, name, "cannot run") : NULL;
}

bool started_program_has_ended(struct started_program *program)
{
	if (!program->has_ended && waitpid(program->pid, &program->status, WNOHANG) == program->pid)
		program->has_ended = true;
	return program->has_ended;
}

void started_program_deinit(struct started_program *program)
{
	if (!program->pid)
		return;
	close(program->start_fd);
	close(program->errno_fd);
	program->pid = 0;
}
