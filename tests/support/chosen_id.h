/* SPDX-License-Identifier: MIT */
/*
 * Processes with a chosen id, for tests of code that keeps the id of an ended process while the
 * kernel gives it to another one. clone3() with set_tid (Linux 5.5) needs CAP_CHECKPOINT_RESTORE or
 * CAP_SYS_ADMIN.
 */
#ifndef TESTS_SUPPORT_CHOSEN_ID_H
#define TESTS_SUPPORT_CHOSEN_ID_H

#include <stdint.h>
#include <sys/types.h>

/*
 * A process that differs from others only by names: at the same addresses it maps a file with one
 * function NAME_native, and memory for which its perf map and its jitdump contain NAME_mapped and
 * NAME_dumped. It waits to be killed.
 */
enum {
	LOOK_ALIKE_NATIVE = 0x210000000000, /* above the addresses that AddressSanitizer uses */
	LOOK_ALIKE_MAPPED = 0x220000000000,
	LOOK_ALIKE_DUMPED = 0x230000000000,
	LOOK_ALIKE_SIZE_BYTES = 0x80, /* of each of the three */
};

enum look_alike_flags {
	LOOK_ALIKE_MAP = 1 << 0,  /* writes a perf map, and closes it */
	LOOK_ALIKE_DUMP = 1 << 1, /* maps a jitdump */
};

struct look_alike {
	const char *directory; /* for its files */
	const char *name;
	unsigned int flags;
};

/*
 * Like fork() with a chosen id; `id` 0: any. Skips the test if the kernel does not allow it. The C
 * library does not notice this fork, so the child must not allocate if the caller has other
 * threads.
 */
pid_t fork_with_id(pid_t id);

/* Starts a process with this id, or any (0); returns when it is ready. */
pid_t look_alike_start(pid_t id, const struct look_alike *what);

/* Kills and reaps it, which frees its id. Its files stay. */
void look_alike_end(pid_t id);

/* Removes the perf map of this id. */
void look_alike_forget(pid_t id);

#endif
