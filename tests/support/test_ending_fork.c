/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Forks a child that waits forever, and leaves like a failing test. Returns the child's id. */
static pid_t child_of_test_that_fails(void)
{
	int pipe_ends[2];
	pid_t test, child = 0;

	cr_assert_eq(pipe(pipe_ends), 0);
	test = fork();
	if (test == 0) {
		pid_t paused = fork();

		if (paused == 0)
			for (;;)
				pause();
		_exit(write(pipe_ends[1], &paused, sizeof(paused)) != sizeof(paused));
	}
	cr_assert_eq(read(pipe_ends[0], &child, sizeof(child)), sizeof(child));
	cr_assert_eq(waitpid(test, NULL, 0), test);
	return child;
}

Test(ending_fork, ends_child_of_test_that_fails)
{
	int status = 0;
	pid_t child;

	/* This process becomes the child's parent when the other one has exited. */
	cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	child = child_of_test_that_fails();
	cr_assert_eq(waitpid(child, &status, 0), child);
	/* The child noticed that its parent had exited, or was killed with it. */
	cr_expect(WIFEXITED(status) || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
}
