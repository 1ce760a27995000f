/* SPDX-License-Identifier: MIT */
/*
 * One process seen through ROOT/proc/PID: who it is, when it began, whose it
 * is, in which namespaces it lives, and how files are opened as it sees them.
 * Knows how to tell that a process is no longer the one it was. Refuses to know
 * what is mapped into it (address_space.h) and what the files are (image.h).
 *
 * Live and recorded. Without `root` the process is live. With `root` it is
 * recorded: everything is read below that directory, ROOT/proc/PID/... and
 * mapped files at ROOT/path. A recorded tree need not have ROOT/proc/PID/root,
 * namespaces or descriptors; its process never ends; and inode and device of
 * its files are not those that its maps have, so whether a file is the mapped
 * one cannot be judged by them (see process_open_mapped()).
 */
#ifndef LIBSYM_PROCESS_H
#define LIBSYM_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "libsym/base/buf.h"
#include "libsym/error.h"

/* When the beginning of a process is not known as a time of day. */
#define PROCESS_TIME_UNKNOWN INT64_MIN

struct core;

/* Read only for everybody but process.c. */

struct process {
	int32_t pid;               /* of the process, also when a thread was asked for */
	int32_t namespace_pid;     /* as it counts itself: innermost NStgid; pid when unknown */
	int32_t parent_pid;        /* as of process_open(); 0: none that the caller can see */
	uint32_t uid;              /* effective */
	uint32_t gid;              /* effective */
	uint64_t start_time_ticks; /* field 22 of stat */
	/*
	 * The earliest time of day at which it can have begun, in ns since 1970:
	 * ticks are rounded down. PROCESS_TIME_UNKNOWN when the tree has no clock.
	 */
	int64_t start_time_ns;
	char *comm;
	char *executable;        /* inside its own root, without " (deleted)"; "" when unknown */
	bool executable_deleted; /* the file it was started from has no name any more */
	bool recorded;           /* made with a root */
	bool other_mount_namespace;
	bool other_pid_namespace;
	/*
	 * What comes before one of its absolute paths so that the caller can open
	 * it: "" when both have the same root, "/proc/PID/root", or the recorded ROOT.
	 */
	char *root_prefix;
	/* O_PATH descriptor of its root directory; -1 when that was refused. */
	int root_fd;
	/* Of a mount namespace that is not the caller's: while it is open, the mounts stay when the
	 * process ends. -1: none, or refused. */
	int mount_namespace_fd;
	/* O_PATH descriptor of ROOT/proc/PID: stays with this process when the PID is used again.
	 */
	int id_fd;
	/* The same directory, until the first thread of a live process ends, which may end before
	 * others: then /proc/TID of one that goes on. The number stays (dup3()). */
	int proc_fd;
	char *proc_path; /* "/proc/PID" or "ROOT/proc/PID", for messages */
	struct core
		*core; /* what a core file has of it; NULL for others. It is a recorded one then */
	/* What exec() changes, as of process_open(); zero where it was not permitted to see. */
	struct process_image_marks {
		uint64_t code_start;
		uint64_t stack_start;
		uint64_t executable_inode;
		uint64_t executable_device;
	} marks;
};

/*
 * Looks at a process; `pid` may be the id of a thread. `root` NULL: this machine.
 *
 * NOT_FOUND: there is none, or it has ended (a zombie has nothing to look at).
 * A process of somebody else can be opened too; what may not be seen of it is
 * left at "unknown", and root_fd is -1.
 */
struct sym_error *process_open(int32_t pid, const char *root, struct process **ret)
	__attribute__((warn_unused_result));
void process_close(struct process *process);

/* STALE when the process has ended, its PID is another's, or it called exec(); NULL while it is the
 * same, with proc_fd through which it can be seen: what was read before may be empty because it
 * could not. */
struct sym_error *process_check(const struct process *process) __attribute__((warn_unused_result));

/*
 * Appends ROOT/proc/PID/NAME ("maps", "environ", ...) to `buf`, whose maximum
 * is the bound. PERMISSION says what would be needed.
 */
struct sym_error *process_read_file(const struct process *process, const char *name,
				    struct buf *buf) __attribute__((warn_unused_result));

/* Opens `path` as the process sees it (path_open_in_root(), path_flags of base/path.h). */
struct sym_error *process_open_path(const struct process *process, const char *path,
				    unsigned int path_flags, int *fd_ret)
	__attribute__((warn_unused_result));

/*
 * Opens for reading the very file behind a line of maps, regular files only.
 *
 * By its path, if the file there is the mapped one; else, live and if the
 * system permits it, through map_files. STALE when the path leads to another
 * file (replaced) or to none (deleted) and there is no other way to the old
 * one. "Is the mapped one" is: device and inode as in maps; where a file system
 * shows others to stat() (overlayfs, btrfs), the file that map_files leads to,
 * or that a mapping of our own is shown with the same device and inode.
 * Of a recorded process the path alone decides: the caller can check no more
 * than size and layout. Whether the bytes were changed in place since they were
 * mapped is the caller's question too; *status_ret helps to answer it.
 */
struct sym_error *process_open_mapped(const struct process *process,
				      const struct sym_mapping *mapping, int *fd_ret,
				      struct stat *status_ret) __attribute__((warn_unused_result));

/*
 * Reads memory of a live process or a core file; 0 bytes short is an error too. UNSUPPORTED
 * for another recorded one, PERMISSION for what a core file does not have.
 */
struct sym_error *process_read_memory(const struct process *process, uint64_t address, void *room,
				      size_t size_bytes) __attribute__((warn_unused_result));

DEFINE_GUARD(process, struct process *, process_close)
#define AUTO_PROCESS GUARDED(process)

#endif
