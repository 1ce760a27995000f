/* SPDX-License-Identifier: MIT */
/*
 * Supplies remote_memory with the bytes of a running process.
 * process_vm_readv() comes first: it needs only CAP_SYS_PTRACE or equal ids, while /proc/PID/mem
 * also needs the right to open the file.
 * Errors name the missing right. The process is neither attached to nor stopped.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/process/remote_memory.h"

struct process {
	int32_t pid;
	int mem_fd; /* -1 while process_vm_readv() works */
};

/* Reads one piece after another; used only where process_vm_readv() is forbidden. */
static ssize_t read_mem_file(int fd, const struct iovec *rooms, const struct iovec *pieces,
			     size_t count)
{
	size_t total = 0;

	for (size_t i = 0; i < count; i++) {
		size_t done = 0;

		while (done < pieces[i].iov_len) {
			uint64_t address = (uint64_t)(uintptr_t)pieces[i].iov_base + done;
			ssize_t bytes = pread(fd, (uint8_t *)rooms[i].iov_base + done,
					      pieces[i].iov_len - done, (off_t)address);

			if (bytes < 0 && errno == EINTR)
				continue;
			if (bytes <= 0) {
				total += done;
				return total ? (ssize_t)total : -EFAULT;
			}
			done += (size_t)bytes;
		}
		total += done;
	}
	return (ssize_t)total;
}

/*
 * EIO from /proc/PID/mem is an unreadable page; 0 is the end of a process that has exited.
 * Both read as "nothing there". The caller notices the end when it checks the identity.
 */
static ssize_t process_read(void *context, const struct iovec *rooms, const struct iovec *pieces,
			    size_t count)
{
	struct process *process = context;
	ssize_t bytes;
	char path[64];
	int errno_value;

	if (process->mem_fd >= 0)
		return read_mem_file(process->mem_fd, rooms, pieces, count);
	bytes = process_vm_readv(process->pid, rooms, count, pieces, count, 0);
	if (bytes >= 0)
		return bytes;
	errno_value = errno;
	if (errno_value != EPERM && errno_value != ENOSYS)
		return -errno_value;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)process->pid);
	process->mem_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (process->mem_fd < 0)
		return -errno_value;
	return read_mem_file(process->mem_fd, rooms, pieces, count);
}

/* The value of kernel.yama.ptrace_scope; '0' without Yama. */
static char ptrace_scope(void)
{
	AUTO_CLOSE int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	char scope = '0';

	if (fd >= 0 && read(fd, &scope, 1) != 1)
		scope = '0';
	return scope;
}

static struct sym_error *process_error(void *context, int errno_value)
{
	struct process *process = context;
	int pid = (int)process->pid;

	if (errno_value == ESRCH)
		return sym_error_create(SYM_ERROR_NOT_FOUND, "process %d has ended", pid);
	if (errno_value != EPERM && errno_value != EACCES && errno_value != ENOSYS)
		return sym_error_create(SYM_ERROR_IO, "cannot read the memory of process %d: %s",
					pid, strerror(errno_value));
	switch (ptrace_scope()) {
	case '1':
	case '2':
		return sym_error_create(
			SYM_ERROR_PERMISSION,
			"the memory of process %d may not be read: kernel.yama.ptrace_scope "
			"asks for CAP_SYS_PTRACE",
			pid);
	case '3':
		return sym_error_create(
			SYM_ERROR_PERMISSION,
			"the memory of process %d may not be read: kernel.yama.ptrace_scope "
			"is 3, which forbids it to everyone",
			pid);
	default:
		return sym_error_create(
			SYM_ERROR_PERMISSION,
			"the memory of process %d may not be read: this needs the same user and "
			"group and no fewer capabilities than the process has, or CAP_SYS_PTRACE",
			pid);
	}
}

static void process_close(void *context)
{
	struct process *process = context;

	if (process->mem_fd >= 0)
		close(process->mem_fd);
	free(process);
}

struct sym_error *remote_memory_open_process(int32_t pid, struct remote_memory **ret)
{
	static const struct remote_memory_ops ops = {
		.read = process_read,
		.error = process_error,
		.close = process_close,
	};
	struct process *process = malloc(sizeof(*process));
	struct sym_error *error;

	if (!process)
		return &sym_error_no_memory;
	*process = (struct process){ .pid = pid, .mem_fd = -1 };
	error = remote_memory_create(&ops, process, ret);
	if (error)
		free(process);
	return error;
}
