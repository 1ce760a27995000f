/* SPDX-License-Identifier: MIT */
/*
 * Whose thread an id is. bpftrace asks by the thread that was sampled: all threads of
 * a process have one set of names, and those of one that has ended since (a worker
 * without work) are still there.
 */
#ifndef LIBSYM_BCC_THREAD_OWNER_H
#define LIBSYM_BCC_THREAD_OWNER_H

/*
 * The process that `id`, of a thread or a process, belongs to; of one that has ended the process in
 * which it was last asked for, for a minute: then ids may be used again. `id` itself where
 * nothing is known. Thread safe.
 */
int thread_owner(int id);

#endif
