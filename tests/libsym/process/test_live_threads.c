/* SPDX-License-Identifier: MIT */
/* Threads of a child process that are stopped, read and resumed. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsym/libsym.h"

#define KEEP __attribute__((noinline, noclone))

enum {
	WAITERS = 3,
	SIGNALS = 2000,
	CAPTURES = 40,
};

static int ready[2], go_on[2];
static pid_t child;
static struct sym_snapshot *snapshot;
static struct sym_threads *threads;
static atomic_int received;
static char waiter_name[] = "a (b) c";

KEEP static void wait_for_order(void)
{
	char byte;

	while (read(go_on[0], &byte, 1) < 0)
		;
}

KEEP static void *waiter(void *name)
{
	prctl(PR_SET_NAME, name);
	if (write(ready[1], "r", 1) != 1)
		_exit(1);
	wait_for_order();
	return NULL;
}

static void count_signal(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info, (void)context;
	atomic_fetch_add(&received, 1);
}

/* Exits with 0 once it has received every signal. */
static void run_child(void)
{
	const struct sigaction action = { .sa_sigaction = count_signal, .sa_flags = SA_SIGINFO };
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGRTMIN, &action, NULL);
	for (int i = 0; i < WAITERS; i++)
		pthread_create(&thread, NULL, waiter, waiter_name);
	wait_for_order();
	alarm(20); /* kills it if a signal is lost */
	while (atomic_load(&received) != SIGNALS)
		sched_yield();
	_exit(0);
}

static void start(void)
{
	char byte;

	cr_assert(!pipe(ready) && !pipe(go_on));
	child = fork();
	if (!child)
		run_child();
	for (int i = 0; i < WAITERS; i++)
		cr_assert_eq(read(ready[0], &byte, 1), 1);
	cr_assert_null(sym_snapshot_open(child, NULL, &snapshot));
}

static void stop(void)
{
	sym_threads_destroy(threads);
	threads = NULL;
	sym_snapshot_close(snapshot);
	snapshot = NULL;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

TestSuite(live_threads, .init = start, .fini = stop);

static void capture(void)
{
	sym_threads_destroy(threads);
	threads = NULL;
	cr_assert_null(sym_threads_capture(snapshot, 0, &threads));
}

static bool all_wait(void)
{
	for (size_t i = 0; i < sym_threads_count(threads); i++)
		if (sym_threads_at(threads, i)->reason || sym_threads_at(threads, i)->state != 'S')
			return false;
	return true;
}

/* Until each thread waits. On a busy machine one may still start, or wait for the disk. */
static void capture_waiting(void)
{
	capture();
	for (int i = 0; i < 1000 && !all_wait(); i++)
		capture();
}

/* Number of frames in the function at `function`, which has at most 256 bytes. */
static size_t frames_in(const struct sym_thread *thread, const void *function,
			enum sym_unwind_end *end_ret)
{
	struct sym_frame frames[64];
	struct sym_resolver *resolver;
	struct sym_unwinder *unwinder;
	size_t count, found = 0;

	cr_assert_null(sym_resolver_create(snapshot, &resolver));
	cr_assert_null(sym_unwinder_create(resolver, &unwinder));
	cr_assert_null(sym_unwinder_unwind(unwinder, &thread->registers, &thread->stack, frames, 64,
					   &count, end_ret));
	for (size_t i = 0; i < count; i++)
		found += frames[i].address - (uint64_t)(uintptr_t)function < 256;
	sym_unwinder_destroy(unwinder);
	sym_resolver_destroy(resolver);
	return found;
}

Test(live_threads, have_whole_stacks)
{
	size_t waiters = 0;

	capture_waiting();
	cr_expect_eq(sym_threads_count(threads), WAITERS + 1);
	for (size_t i = 0; i < sym_threads_count(threads); i++) {
		const struct sym_thread *thread = sym_threads_at(threads, i);
		enum sym_unwind_end end;

		cr_assert_null(thread->reason, "%s", thread->reason);
		cr_expect(frames_in(thread, (void *)wait_for_order, &end) > 0);
		cr_expect_eq(end, SYM_UNWIND_WHOLE);
		cr_expect_eq(thread->state, 'S');
		waiters += !strcmp(thread->name, waiter_name);
	}
	cr_expect_eq(waiters, WAITERS);
	cr_expect_null(sym_threads_at(threads, WAITERS + 1));
}

Test(live_threads, get_every_signal_that_arrives_during_the_stop)
{
	const union sigval value = { 0 };
	int status, sent = 0;

	for (int i = 0; i < CAPTURES; i++) {
		for (int j = 0; j < SIGNALS / CAPTURES; j++, sent++)
			cr_assert(!sigqueue(child, SIGRTMIN, value));
		capture();
	}
	cr_assert_eq(sent, SIGNALS);
	cr_assert_eq(write(go_on[1], "gggg", 1 + WAITERS), 1 + WAITERS);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(WIFEXITED(status) && !WEXITSTATUS(status));
}

Test(live_threads, stay_stopped_when_they_were)
{
	int status;

	kill(child, SIGSTOP);
	cr_assert_eq(waitpid(child, &status, WUNTRACED), child);
	capture();
	for (size_t i = 0; i < sym_threads_count(threads); i++)
		cr_expect_null(sym_threads_at(threads, i)->reason);
	/* A thread that was let go stops again a moment later. */
	for (int i = 0; i < 10000 && sym_threads_at(threads, 0)->state != 'T'; i++)
		capture();
	cr_expect_eq(sym_threads_at(threads, 0)->state, 'T');
}

Test(live_threads, are_cut_to_the_requested_size)
{
	enum sym_unwind_end end;

	cr_assert_null(sym_threads_capture(snapshot, 8, &threads));
	cr_expect_eq(sym_threads_at(threads, 0)->stack.size_bytes, 8);
	frames_in(sym_threads_at(threads, 0), (void *)wait_for_order, &end);
	cr_expect_eq(end, SYM_UNWIND_SHORT);
}

Test(live_threads, fail_for_a_process_that_has_ended)
{
	struct sym_error *error;

	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	error = sym_threads_capture(snapshot, 0, &threads);
	cr_assert(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_NOT_FOUND);
	sym_error_destroy(error);
}
