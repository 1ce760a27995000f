/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libsym/base/rights.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/cannot_run.h"

static uint32_t groups[] = { 100, 4321 };
static const struct rights theirs = {
	.uid = 65534, .gid = 65534, .groups = groups, .group_count = 2
};

/* Uid:, Gid:, Groups: and Cap*: of the calling thread, from /proc. */
static void read_credentials(char *room, size_t room_bytes)
{
	FILE *status = fopen("/proc/thread-self/status", "re");
	char line[256];

	*room = '\0';
	while (status && fgets(line, sizeof(line), status))
		if (!strncmp(line, "Uid:", 4) || !strncmp(line, "Gid:", 4) ||
		    !strncmp(line, "Groups:", 7) || !strncmp(line, "Cap", 3))
			snprintf(room + strlen(room), room_bytes - strlen(room), "%s", line);
	cr_assert_not_null(status);
	fclose(status);
}

Test(rights, give_the_thread_the_ids_without_file_capabilities)
{
	const uint64_t file_bits = 1 << CAP_CHOWN | 1 << CAP_DAC_OVERRIDE |
				   1 << CAP_DAC_READ_SEARCH | 1 << CAP_FOWNER | 1 << CAP_FSETID;
	unsigned long long effective = 0;
	struct rights_held held;
	char text[1024], *line;

	need_root();
	cr_assert_eq(rights_assume(&theirs, &held), 0);
	read_credentials(text, sizeof(text));
	rights_restore(&held);
	cr_expect(strstr(text, "Uid:\t0\t0\t0\t65534\n"), "%s", text);
	cr_expect(strstr(text, "Gid:\t0\t0\t0\t65534\n"), "%s", text);
	cr_expect(strstr(text, "Groups:\t100 4321"), "%s", text);
	line = strstr(text, "CapEff:");
	cr_assert_eq(sscanf(line, "CapEff: %llx", &effective), 1);
	cr_expect_eq(effective & file_bits, 0);
	cr_expect(effective & 1 << CAP_SYS_PTRACE, "the links of /proc need it");
}

Test(rights, are_restored_completely)
{
	char before[1024], after[1024];
	sigset_t signals;
	struct rights_held held;

	need_root();
	cr_assert_eq(prctl(PR_SET_DUMPABLE, 1), 0);
	read_credentials(before, sizeof(before));
	cr_assert_eq(rights_assume(&theirs, &held), 0);
	errno = ENOTTY;
	rights_restore(&held);
	cr_expect_eq(errno, ENOTTY);
	read_credentials(after, sizeof(after));
	cr_expect_str_eq(after, before);
	cr_expect_eq(prctl(PR_GET_DUMPABLE), 1);
	pthread_sigmask(SIG_SETMASK, NULL, &signals);
	cr_expect_not(sigismember(&signals, SIGTERM));
}

/* The rights include the capabilities of the other process. */
Test(rights, keep_capabilities_of_the_process)
{
	struct rights root = { .capabilities = 1 << CAP_DAC_OVERRIDE };
	unsigned long long effective = 0;
	struct rights_held held;
	char text[1024];

	need_root();
	cr_assert_eq(rights_assume(&root, &held), 0);
	read_credentials(text, sizeof(text));
	rights_restore(&held);
	cr_assert_eq(sscanf(strstr(text, "CapEff:"), "CapEff: %llx", &effective), 1);
	cr_expect(effective & 1 << CAP_DAC_OVERRIDE);
	cr_expect_not(effective & 1 << CAP_CHOWN);
}

static pthread_barrier_t barrier;

static void *look_from_another_thread(void *seen)
{
	pthread_barrier_wait(&barrier); /* the first thread has assumed them */
	*(long *)seen = syscall(SYS_setfsuid, UINT32_MAX);
	pthread_barrier_wait(&barrier);
	return NULL;
}

Test(rights, do_not_change_other_threads)
{
	struct rights_held held;
	pthread_t thread;
	long seen = -1;

	need_root();
	cr_assert_eq(pthread_barrier_init(&barrier, NULL, 2), 0);
	cr_assert_eq(pthread_create(&thread, NULL, look_from_another_thread, &seen), 0);
	cr_assert_eq(rights_assume(&theirs, &held), 0);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	cr_expect_eq(syscall(SYS_setfsuid, UINT32_MAX), 65534);
	rights_restore(&held);
	pthread_join(thread, NULL);
	cr_expect_eq(seen, 0);
}

Test(rights, are_the_callers_own_if_null)
{
	char before[1024], after[1024];
	struct rights_held held;

	read_credentials(before, sizeof(before));
	cr_assert_eq(rights_assume(NULL, &held), 0);
	read_credentials(after, sizeof(after));
	cr_expect_str_eq(after, before);
	rights_restore(&held);
}

Test(rights, cannot_be_assumed_without_capabilities)
{
	const struct rights anothers = { .uid = 1234, .gid = 1234 };
	const struct rights own = { .uid = 65534, .gid = 65534 };
	struct rights_held held;

	need_root();
	cr_assert_eq(syscall(SYS_setgroups, 0, NULL), 0);
	cr_assert_eq(setresgid(65534, 65534, 65534), 0);
	cr_assert_eq(setresuid(65534, 65534, 65534), 0);
	cr_assert_eq(prctl(PR_SET_DUMPABLE, 1), 0);
	cr_expect_eq(rights_assume(&anothers, &held), -EPERM);
	cr_expect_eq(rights_assume(&own, &held), 0);
	rights_restore(&held);
}

Test(rights, report_out_of_memory)
{
	struct rights_held held;

	alloc_fail_after(0);
	cr_expect_eq(rights_assume(&theirs, &held), -ENOMEM);
	alloc_fail_stop();
}
