/* SPDX-License-Identifier: MIT */
/*
 * Keeps the counts of a build with GCOV=1 where a process does not end by exit(): children that end
 * by _exit(), and the one that reads DWARF, which is killed. Linked into the programs with --wrap.
 */
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libsym/dwarf/dwarf_worker.h"

enum {
	LONGEST_WAIT_MS = 1000
};

void __gcov_dump(void);
void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) __attribute__((noreturn));
/* Weak, because not every program reads DWARF. */
int64_t __real_dwarf_worker_stop(struct dwarf_worker *worker) __attribute__((weak));
int64_t __wrap_dwarf_worker_stop(struct dwarf_worker *worker);

void __wrap__exit(int status)
{
	__gcov_dump();
	__real__exit(status);
}

/* The child ends by itself when its socket is closed, unless libdw keeps it busy. */
int64_t __wrap_dwarf_worker_stop(struct dwarf_worker *worker)
{
	struct pollfd end = { .fd = -1, .events = POLLIN };

	if (worker->pid) {
		shutdown(worker->fd, SHUT_RDWR);
		end.fd = (int)syscall(SYS_pidfd_open, worker->pid, 0);
		poll(&end, 1, LONGEST_WAIT_MS);
		if (end.fd >= 0)
			close(end.fd);
	}
	return __real_dwarf_worker_stop(worker);
}
