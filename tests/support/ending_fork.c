/* SPDX-License-Identifier: MIT */
/*
 * Ends a forked child with its unit test. A failing test leaves by longjmp() or _exit(), so it
 * cannot end its children itself. A paused child would live on and hold the pipe to which results
 * are written. The unit tests are linked with --wrap=fork, so every fork() of theirs comes here;
 * Criterion's own do not.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

pid_t __real_fork(void);
pid_t __wrap_fork(void);

pid_t __wrap_fork(void)
{
	pid_t parent = getpid();
	pid_t child = __real_fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The parent may have exited already. In a new namespace its number is 0. */
		if (getppid() != parent && getppid() != 0)
			_exit(1);
	}
	return child;
}
