/* SPDX-License-Identifier: MIT */
/*
 * Threads of a live process, stopped one after the other.
 *
 *   tracer thread             thread of the process
 *   -------------             ---------------------
 *   read name and state
 *   PTRACE_SEIZE              goes on
 *   PTRACE_INTERRUPT          stops at its next return to user mode
 *   read registers, stack     is stopped
 *   PTRACE_DETACH             goes on
 *
 * All of it is done by one thread of ours that ends with the reading. The kernel detaches whatever
 * a tracer thread still traces when that thread ends. So a thread in uninterruptible sleep, which
 * stops later, is not held for longer.
 *
 * A stop for a signal that arrived at the same moment is as good as ours: the signal is handed on
 * at PTRACE_DETACH.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "libsym/base/cleanup.h"
#include "libsym/process/thread_list.h"

enum {
	MOST_LISTINGS = 8,         /* of threads that begin while others are read */
	POLL_NS = 10000,           /* between two looks whether a thread has stopped */
	FIRST_WAIT_NS = 5000000,   /* then the next thread has its turn */
	LAST_WAIT_NS = 1000000000, /* for all that have not stopped by the end */
	REGISTER_SET = 1,          /* NT_PRSTATUS */
	SET_ROOM_BYTES = 1024,
};

struct tracing {
	const struct process *process;
	const struct address_space *space;
	size_t max_stack_bytes;
	struct sym_threads *list;
	struct sym_error *error;
	int refused; /* errno of the first ptrace() that was refused; 0: none */
};

static const char has_not_stopped[] = "it does not stop: uninterruptible sleep";

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* Name and state from "TID (NAME) STATE ..."; a name may have any byte but NUL. */
static void read_name(const struct tracing *tracing, struct sym_thread *thread)
{
	char path[64], text[256], *begin, *end;
	int fd AUTO_CLOSE = -1;
	ssize_t bytes;

	snprintf(path, sizeof(path), "task/%d/stat", (int)thread->tid);
	fd = openat(tracing->process->proc_fd, path, O_RDONLY | O_CLOEXEC);
	bytes = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[bytes > 0 ? bytes : 0] = '\0';
	begin = strchr(text, '(');
	end = strrchr(text, ')');
	if (!begin || !end || end[1] != ' ')
		return;
	*end = '\0';
	snprintf(thread->name, sizeof(thread->name), "%s", begin + 1);
	thread->state = end[2];
}

static void copy_stack(const struct tracing *tracing, struct sym_thread *thread)
{
	size_t wanted_bytes =
		thread_list_stack_bytes(tracing->space, thread, tracing->max_stack_bytes);
	uint8_t *room = thread_list_stack_room(tracing->list, thread, wanted_bytes);
	struct iovec from = { (void *)(uintptr_t)thread->stack.address, wanted_bytes };
	struct iovec to = { room, wanted_bytes };
	ssize_t bytes;

	if (!room)
		return;
	bytes = process_vm_readv(thread->tid, &to, 1, &from, 1, 0);
	thread->stack.size_bytes = bytes > 0 ? (size_t)bytes : 0;
}

static void read_stopped(const struct tracing *tracing, struct sym_thread *thread)
{
	uint8_t set[SET_ROOM_BYTES];
	struct iovec room = { set, sizeof(set) };

	if (ptrace(PTRACE_GETREGSET, thread->tid, REGISTER_SET, &room)) {
		thread->reason = "its registers cannot be read";
		return;
	}
	if (thread_list_set_registers(thread, set, room.iov_len))
		copy_stack(tracing, thread);
	else
		thread->reason = "it runs 32-bit code";
}

/* True: the thread is no longer ours to wait for. */
static bool finish_stopped(const struct tracing *tracing, struct sym_thread *thread,
			   uint64_t stopped_after_ns)
{
	int status, signal = 0;
	pid_t found = waitpid(thread->tid, &status, __WALL | WNOHANG);

	if (!found)
		return false;
	thread->reason = NULL;
	if (found < 0 || !WIFSTOPPED(status)) {
		thread->reason = "it has ended";
		return true;
	}
	read_stopped(tracing, thread);
	if (status >> 16 != PTRACE_EVENT_STOP)
		signal = WSTOPSIG(status);
	ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(uintptr_t)signal);
	thread->held_ns = now_ns() - stopped_after_ns;
	return true;
}

static void wait_for_stop(const struct tracing *tracing, struct sym_thread *thread,
			  uint64_t until_ns)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };
	uint64_t before_ns = now_ns();

	thread->reason = has_not_stopped;
	while (!finish_stopped(tracing, thread, before_ns) && now_ns() < until_ns) {
		before_ns = now_ns();
		nanosleep(&pause, NULL);
	}
}

static void read_thread(struct tracing *tracing, struct sym_thread *thread)
{
	read_name(tracing, thread);
	if (ptrace(PTRACE_SEIZE, thread->tid, NULL, NULL)) {
		if (errno == EPERM && thread->state != 'Z' && !tracing->refused)
			tracing->refused = errno;
		thread->reason = errno == EPERM && thread->state != 'Z' ? "ptrace() was refused"
									: "it has ended";
		return;
	}
	ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
	wait_for_stop(tracing, thread, now_ns() + FIRST_WAIT_NS);
}

static bool is_listed(const struct sym_threads *list, int32_t tid)
{
	for (size_t i = list->count; i-- > 0;)
		if (list->items[i].tid == tid)
			return true;
	return false;
}

/* Reads the threads that are not listed yet; how many there were. */
static size_t read_new_threads(struct tracing *tracing)
{
	int fd = openat(tracing->process->proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory GUARDED(dir) = fd < 0 ? NULL : fdopendir(fd);
	size_t known = tracing->list->count;
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		int32_t tid = (int32_t)strtol(entry->d_name, NULL, 10);
		struct sym_thread *thread;

		if (tid <= 0 || (known && is_listed(tracing->list, tid)))
			continue;
		thread = thread_list_add(tracing->list, tid);
		if (!thread) {
			tracing->error = &sym_error_no_memory;
			return 0;
		}
		read_thread(tracing, thread);
	}
	return tracing->list->count - known;
}

static void *trace_threads(void *context)
{
	struct tracing *tracing = context;
	const struct sched_param lowest = { .sched_priority = 1 };
	uint64_t until_ns;

	/* On a busy machine a tracer that waits for its turn holds a thread for milliseconds. This
	 * needs CAP_SYS_NICE; without it all goes on, later. */
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &lowest);
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	for (int i = 0; i < MOST_LISTINGS && read_new_threads(tracing); i++)
		;
	until_ns = now_ns() + LAST_WAIT_NS;
	for (size_t i = 0; i < tracing->list->count; i++)
		if (tracing->list->items[i].reason == has_not_stopped)
			wait_for_stop(tracing, &tracing->list->items[i], until_ns);
	return NULL;
}

struct sym_error *live_threads_read(const struct process *process,
				    const struct address_space *space, size_t max_stack_bytes,
				    struct sym_threads *list)
{
	struct tracing tracing = { process, space, max_stack_bytes, list, NULL, 0 };
	pthread_t tracer;

	if (pthread_create(&tracer, NULL, trace_threads, &tracing))
		return &sym_error_no_memory;
	pthread_join(tracer, NULL);
	if (tracing.error)
		return tracing.error;
	if (tracing.refused)
		return sym_error_create(SYM_ERROR_PERMISSION,
					"ptrace() of process %d was refused: this needs its user "
					"or CAP_SYS_PTRACE, and no other tracer",
					(int)process->pid);
	if (!list->count)
		return sym_error_create(SYM_ERROR_NOT_FOUND, "process %d has ended",
					(int)process->pid);
	return NULL;
}
