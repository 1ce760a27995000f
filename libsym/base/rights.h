/* SPDX-License-Identifier: MIT */
/*
 * Lets one thread use files with the rights of another process for a short time.
 *
 * A process controls where its own paths lead: in its user namespace it can mount anything
 * anywhere. So a path that a process chose is opened with that process's file system user, group
 * and groups, and without capabilities that it lacks. The path then leads only to files that the
 * process itself could open.
 *
 * Linux credentials belong to a thread. Raw system calls change the calling thread only; setuid()
 * of the C library would change all threads.
 */
#ifndef LIBSYM_BASE_RIGHTS_H
#define LIBSYM_BASE_RIGHTS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file system rights of a process. */
struct rights {
	uint32_t uid;
	uint32_t gid;
	uint32_t *groups; /* supplementary groups; heap */
	size_t group_count;
	uint64_t capabilities; /* bit 1 << CAP_...; only the file capabilities count */
};

/* The credentials that the thread had before. */
struct rights_held {
	bool is_changed;
	bool has_new_ids;
	uint32_t uid;
	uint32_t gid;
	uint32_t *groups; /* heap */
	size_t group_count;
	uint64_t effective, permitted, inheritable;
	int dumpable;
	sigset_t signals;
};

/*
 * Gives the calling thread `rights`; NULL: keeps its own. Signals are blocked until
 * rights_restore(), because their handlers belong to the caller. Returns 0, or a negative errno and
 * changes nothing: -EPERM if the ids differ and the thread lacks CAP_SETUID or CAP_SETGID; -ENOMEM.
 */
int rights_assume(const struct rights *rights, struct rights_held *ret)
	__attribute__((warn_unused_result));
/* The thread keeps its ids and drops its file capabilities. Returns 0 or a negative errno. */
int rights_drop_file_capabilities(struct rights_held *ret) __attribute__((warn_unused_result));
/* Preserves errno. */
void rights_restore(struct rights_held *held);

#endif
