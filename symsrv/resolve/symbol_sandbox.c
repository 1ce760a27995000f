/* SPDX-License-Identifier: MIT */
/*
 * How a process gives up its rights.
 *
 *   setrlimit   memory, CPU time, no file grows, no process starts, no core dump
 *   Landlock    of all files, it may read one
 *   seccomp     of all system calls, those of the lists below; the others fail with ENOSYS
 *
 * The filter is a list of comparisons (linux/filter.h): for each permitted system call one that
 * leads to "allow". Calls with a dangerous argument have comparisons of their own before the list:
 * openat() only for reading, mmap() and mprotect() without PROT_EXEC, prlimit64() for itself only.
 */
#include "symsrv/resolve/symbol_sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"

#if defined(__x86_64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the system calls of this architecture are not listed"
#endif

/* ---- limits --------------------------------------------------------------------- */

static bool limit_to(int resource, rlim_t soft, rlim_t hard)
{
	const struct rlimit limit = { soft, hard };

	return !setrlimit(resource, &limit);
}

bool symbol_sandbox_allow_request(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return limit_to(RLIMIT_CPU, (rlim_t)used.tv_sec + SYMBOL_SANDBOX_CPU_S, RLIM_INFINITY);
}

static bool set_limits(void)
{
	bool is_good = limit_to(RLIMIT_FSIZE, 0, 0) && limit_to(RLIMIT_CORE, 0, 0) &&
		       limit_to(RLIMIT_NPROC, 0, 0) && symbol_sandbox_allow_request();

	/* AddressSanitizer reserves terabytes. */
#ifndef __SANITIZE_ADDRESS__
	is_good = is_good &&
		  limit_to(RLIMIT_AS, SYMBOL_SANDBOX_MEMORY_BYTES, SYMBOL_SANDBOX_MEMORY_BYTES);
#endif
	return is_good;
}

/* ---- files ---------------------------------------------------------------------- */

/* The rights of Landlock's first version; a kernel without it restricts nothing. */
static bool restrict_files(int readable_fd)
{
	const struct landlock_ruleset_attr all = {
		.handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1,
	};
	const struct landlock_path_beneath_attr one = {
		.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE,
		.parent_fd = readable_fd,
	};
	int rules AUTO_CLOSE = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof(all), 0);

	if (rules < 0)
		return errno == ENOSYS || errno == EOPNOTSUPP;
	/* A file without a directory, as in memory, is not restricted. */
	if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &one, 0) &&
	    errno != EBADFD)
		return false;
	return !syscall(SYS_landlock_restrict_self, rules, 0);
}

/* ---- system calls --------------------------------------------------------------- */

#define LOAD(field)                                                                                \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define LOAD_ARGUMENT(index)                                                                       \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS,                                                         \
		 (uint32_t)(offsetof(struct seccomp_data, args) + (index) * sizeof(uint64_t)))
#define RETURN(action)        BPF_STMT(BPF_RET | BPF_K, (action))
#define SKIP_UNLESS(value, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (n))
#define SKIP_IF_ANY(bits, n)  BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), (n), 0)
#define REFUSED               (SECCOMP_RET_ERRNO | ENOSYS)
#define ALLOW(name)           SKIP_UNLESS(SYS_##name, 1), RETURN(SECCOMP_RET_ALLOW)
/* Allows a call when an argument has none of these bits. */
#define ALLOW_WITHOUT(name, index, bits)                                                           \
	SKIP_UNLESS(SYS_##name, 4), LOAD_ARGUMENT(index), SKIP_IF_ANY((bits), 1),                  \
		RETURN(SECCOMP_RET_ALLOW), RETURN(REFUSED)

static const struct sock_filter permitted[] = {
	LOAD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCHITECTURE, 1, 0),
	RETURN(SECCOMP_RET_KILL_PROCESS),
	LOAD(nr),
	ALLOW_WITHOUT(openat, 2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND),
	ALLOW_WITHOUT(mmap, 2, PROT_EXEC),
	ALLOW_WITHOUT(mprotect, 2, PROT_EXEC),
	ALLOW_WITHOUT(prlimit64, 0, UINT32_MAX),
#ifdef SYS_open
	ALLOW_WITHOUT(open, 1, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND),
	ALLOW(stat),
	ALLOW(lstat),
	ALLOW(access),
	ALLOW(readlink),
	ALLOW(poll),
#endif
	ALLOW(read),
	ALLOW(pread64),
	ALLOW(lseek),
	ALLOW(close),
	ALLOW(fcntl),
	ALLOW(dup),
	ALLOW(fstat),
	ALLOW(newfstatat),
	ALLOW(statx),
	ALLOW(fstatfs),
	ALLOW(faccessat),
	ALLOW(readlinkat),
	ALLOW(getdents64),
	ALLOW(munmap),
	ALLOW(mremap),
	ALLOW(madvise),
	ALLOW(brk),
	ALLOW(futex),
	ALLOW(ppoll),
	ALLOW(recvfrom),
	ALLOW(recvmsg),
	ALLOW(sendto),
	ALLOW(sendmsg),
	ALLOW(clock_gettime),
	ALLOW(getrandom),
	ALLOW(getrusage),
	ALLOW(getpid),
	ALLOW(gettid),
	ALLOW(getuid),
	ALLOW(geteuid),
	ALLOW(sysinfo),
	ALLOW(sched_getaffinity),
	ALLOW(sched_yield),
	ALLOW(rt_sigreturn),
	ALLOW(rt_sigaction),
	ALLOW(rt_sigprocmask),
	ALLOW(restart_syscall),
#ifdef __SANITIZE_ADDRESS__
	ALLOW(sigaltstack), /* at its end */
	ALLOW(write),       /* of its reports */
#endif
	ALLOW(exit),
	ALLOW(exit_group),
	RETURN(REFUSED),
};

static bool restrict_calls(void)
{
	const struct sock_fprog program = {
		.len = sizeof(permitted) / sizeof(*permitted),
		.filter = (struct sock_filter *)permitted,
	};

	return !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

bool symbol_sandbox_enter(int readable_fd)
{
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && set_limits() &&
	       restrict_files(readable_fd) && restrict_calls();
}
