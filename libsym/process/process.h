/* SPDX-License-Identifier: MIT */
/*
 * One process, seen through ROOT/proc/PID: identity, start time, owner, namespaces, and how to open
 * files as it sees them.
 * It detects when the PID belongs to another process.
 * It does not know the mappings (address_space.h) or the formats of files (object_file.h).
 *
 * Without `root` the process is live.
 * With `root` it is recorded: everything is read below that directory, ROOT/proc/PID/... and mapped
 * files at ROOT/path.
 * A recorded tree may lack ROOT/proc/PID/root, namespaces and descriptors.
 * Its process never ends.
 * Its files have other inodes and devices than its maps, so those do not identify the mapped file
 * (see process_open_mapped()).
 */
#ifndef LIBSYM_PROCESS_PROCESS_H
#define LIBSYM_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "libsym/base/budget.h"
#include "libsym/base/buf.h"
#include "libsym/base/rights.h"
#include "libsym/error.h"

/* The start of a process is not known as a time of day. */
#define PROCESS_TIME_UNKNOWN INT64_MIN

struct core;

/* Functions of core_process.h, for a process in a core file. */
struct process_core_ops {
	void (*close)(struct core *core);
	/* core_read() */
	size_t (*read)(const struct core *core, uint64_t address, void *room, size_t size_bytes);
};

/* Only process.c writes to it. */

struct process {
	int32_t pid;           /* of the process, also when the id of a thread was given */
	int32_t namespace_pid; /* as the process itself counts: innermost NStgid; pid when unknown
				*/
	int32_t parent_pid;    /* when it was opened; 0: the caller cannot see it */
	uint32_t uid;          /* effective */
	uint32_t gid;          /* effective */
	/* Its rights on files. Paths that it chose are opened with them. */
	struct rights rights;
	uint64_t start_time_ticks; /* field 22 of stat */
	/*
	 * The earliest possible start, in ns since 1970: ticks are rounded down.
	 * PROCESS_TIME_UNKNOWN when the tree has no clock.
	 */
	int64_t start_time_ns;
	char *comm;
	char *executable;        /* path in its own root, without " (deleted)"; "" when unknown */
	bool executable_deleted; /* its executable has no name any more */
	bool recorded;           /* opened with a root */
	bool other_mount_namespace;
	bool other_pid_namespace;
	/*
	 * Prefix that makes its absolute paths valid for the caller: "" when both have the same
	 * root, else "/proc/PID/root" or the recorded ROOT.
	 */
	char *root_prefix;
	/* O_PATH descriptor of its root directory; -1 without permission. */
	int root_fd;
	/*
	 * Its mount namespace, if that is not the caller's. While it is open, the mounts stay when
	 * the process ends. -1: none, or no permission.
	 */
	int mount_namespace_fd;
	/*
	 * O_PATH descriptor of ROOT/proc/PID. It stays with this process when the PID is used
	 * again.
	 */
	int id_fd;
	/*
	 * The same directory, until the first thread ends before the others. Then /proc/TID of a
	 * running thread. The descriptor number does not change (dup3()).
	 */
	int proc_fd;
	char *proc_path;       /* "/proc/PID" or "ROOT/proc/PID", for messages */
	struct budget *budget; /* charged for the process and its files; NULL: no limit */
	struct core *core; /* its part of a core file; NULL for others. A process with a core is a
			      recorded one */
	const struct process_core_ops *core_ops; /* not NULL when core is not */
	/* Facts that exec() changes, as they were when the process was opened; 0 without
	 * permission to read them. */
	struct process_image_marks {
		uint64_t code_start;
		uint64_t stack_start;
		uint64_t executable_inode;
		uint64_t executable_device;
	} marks;
};

/*
 * Opens a process. `pid` may be the id of a thread. `root` NULL: this machine.
 * A process of another user can be opened too. Without permission fields are unknown and root_fd is
 * -1.
 * Errors: NOT_FOUND when there is none, or it has ended (also a zombie).
 */
struct sym_error *process_open(int32_t pid, const char *root, struct process **ret)
	__attribute__((warn_unused_result));
void process_close(struct process *process);

/*
 * STALE when the process has ended, its PID belongs to another process, or it called exec().
 * When its first thread has ended, proc_fd is moved to another thread. What was read before can
 * then be empty.
 */
struct sym_error *process_check(const struct process *process) __attribute__((warn_unused_result));

/*
 * Appends ROOT/proc/PID/NAME ("maps", "environ", ...) to `buf`, up to its maximum.
 * The message of PERMISSION names the missing right.
 */
struct sym_error *process_read_file(const struct process *process, const char *name,
				    struct buf *buf) __attribute__((warn_unused_result));

/*
 * The rights with which its paths are opened; NULL for a recorded process, whose tree is the
 * caller's.
 */
const struct rights *process_rights(const struct process *process);

/* Opens a regular file as the process sees it, with its rights. Flags: base/foreign_file.h. */
struct sym_error *process_open_path(const struct process *process, const char *path,
				    unsigned int flags, int *fd_ret)
	__attribute__((warn_unused_result));

/*
 * Opens the very file behind a line of maps, for reading. Regular files only.
 *
 * First by its path, with the rights of the process, if that is the mapped file.
 * Else through map_files, if the process is live and the system permits it.
 * The mapped file has the device and inode of the line.
 * overlayfs and btrfs return others from stat(). There the file must be the one that map_files
 * leads to, or the kernel must show the same numbers for a mapping of our own.
 * For a recorded process only the path counts. The caller can check size and layout.
 * The caller also checks, by *status_ret, whether the file was changed in place since it was
 * mapped.
 * Errors: STALE when the path leads to another file or to none, and no other way is left.
 */
struct sym_error *process_open_mapped(const struct process *process,
				      const struct sym_mapping *mapping, int *fd_ret,
				      struct stat *status_ret) __attribute__((warn_unused_result));

/*
 * Reads memory of a live process or a core file. Fewer bytes than requested are an error.
 * Errors: UNSUPPORTED for another recorded process; PERMISSION for memory that the core file lacks.
 */
struct sym_error *process_read_memory(const struct process *process, uint64_t address, void *room,
				      size_t size_bytes) __attribute__((warn_unused_result));

/* The account for its own data: memory, sockets, copies of its memory. */
static inline struct budget_account *process_account(const struct process *process)
{
	return budget_account_of(process->budget, process->uid);
}

DEFINE_GUARD(process, struct process *, process_close)
#define AUTO_PROCESS GUARDED(process)

#endif
