/* SPDX-License-Identifier: MIT */
/*
 * Finds the process of a thread.
 * bpftrace looks up by the sampled thread. All threads of a process share one set of names, and a
 * thread that has ended (an idle worker) still needs it.
 */
#ifndef LIBSYM_BCC_THREAD_OWNER_H
#define LIBSYM_BCC_THREAD_OWNER_H

#include <stdint.h>

/*
 * The process of `id`, a thread or a process.
 * For a thread that has ended: its last known process, for a minute, after which ids may be used
 * again.
 * `id` itself when nothing is known. Thread safe.
 * `now_ns`: of a clock that never goes back.
 */
int thread_owner(int id, uint64_t now_ns);

#endif
