/* SPDX-License-Identifier: MIT */
/*
 * Processes with an id that is chosen: what happens to those who hold on to the id of a process
 * that has ended, when the kernel gives it to another one. clone3() with set_tid (Linux 5.5) needs
 * CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN.
 */
#ifndef TESTS_SUPPORT_CHOSEN_ID_H
#define TESTS_SUPPORT_CHOSEN_ID_H

#include <stdint.h>
#include <sys/types.h>

/*
 * A process that is told from others by names alone: at the same addresses it has a file mapped
 * that has one function NAME_native, and memory of which its perf map and its jitdump say
 * NAME_mapped and NAME_dumped. It waits to be killed.
 */
enum {
	LOOK_ALIKE_NATIVE = 0x210000000000, /* above what AddressSanitizer uses */
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
 * As fork(); `id` 0: any. Skips the test where the kernel does not allow to choose. C's library
 * does not know of it: where the caller has other threads, the child must not allocate.
 */
pid_t fork_with_id(pid_t id);

/* Starts one with this id, or any (0); returns when it is whole. */
pid_t look_alike_start(pid_t id, const struct look_alike *what);

/* Ends and reaps it: from now on its id is free. Its files stay, as they do. */
void look_alike_end(pid_t id);

/* Removes the perf map of this number. */
void look_alike_forget(pid_t id);

#endif
