/* SPDX-License-Identifier: MIT */
#include "symsrv/resolve/symbol_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symsrv/resolve/symbol_child.h"
#include "symsrv/util/log.h"

static const struct timeval send_time = { .tv_sec = 5 };

/* Neither environment nor signal mask of the server. */
static int spawn_process(const char *program, int fd, pid_t *ret)
{
	char name[] = "symsrv", argument[] = SYMBOL_CHILD_ARGUMENT;
	char *const arguments[] = { name, argument, NULL }, *const environment[] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int failure;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	failure = posix_spawn(ret, program, &actions, &attributes, arguments, environment);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return failure;
}

bool symbol_process_start(const char *program, enum symbol_message_kind kind, uint32_t number,
			  int file_fd, struct symbol_process *ret)
{
	int ends[2];
	int failure;

	*ret = (struct symbol_process){ 0 };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		log_message(LOG_LEVEL_ERROR, "cannot start a process: %s", strerror(errno));
		return false;
	}
	failure = spawn_process(program, ends[1], &ret->pid);
	close(ends[1]);
	ret->fd = ends[0];
	if (failure) {
		ret->pid = 0;
		close(ends[0]);
		log_message(LOG_LEVEL_ERROR, "cannot start a process: %s", strerror(failure));
		return false;
	}
	/* A process that does not read must not block its server. */
	return !setsockopt(ret->fd, SOL_SOCKET, SO_SNDTIMEO, &send_time, sizeof(send_time)) &&
	       symbol_message_send(ret->fd, kind, number, NULL, 0, file_fd);
}

void symbol_process_end(struct symbol_process *process)
{
	if (!process->pid)
		return;
	close(process->fd);
	kill(process->pid, SIGKILL);
	while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
		;
	process->pid = 0;
}
