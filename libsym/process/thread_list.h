/* SPDX-License-Identifier: MIT */
/*
 * Threads of one process with their registers and copies of their stacks: from a live process by
 * ptrace(), or from the notes and segments of a core file.
 */
#ifndef LIBSYM_PROCESS_THREAD_LIST_H
#define LIBSYM_PROCESS_THREAD_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/process/address_space.h"
#include "libsym/process/process.h"
#include "libsym/sym_threads.h"

struct sym_threads {
	struct sym_thread *items; /* by tid */
	size_t count, capacity;
	uint64_t stack_bytes; /* of all copies */
};

/* Appends a thread; NULL when out of memory. The pointer holds until the next call. */
struct sym_thread *thread_list_add(struct sym_threads *list, int32_t tid);

/*
 * Registers from the kernel's NT_PRSTATUS set (struct user_regs_struct) of this machine; for core
 * files, x86-64. False: the set is not one of a 64-bit process.
 */
bool thread_list_set_registers(struct sym_thread *thread, const uint8_t *set, size_t size_bytes);

/* Room for a copy of the stack; NULL, with the reason set, beyond LIMIT_THREAD_STACKS_BYTES. */
uint8_t *thread_list_stack_room(struct sym_threads *list, struct sym_thread *thread,
				size_t size_bytes);

/* How much lies between the stack pointer and the end of its mapping, at most `max_bytes`. */
size_t thread_list_stack_bytes(const struct address_space *space, const struct sym_thread *thread,
			       size_t max_bytes);

/* `space`: where stacks end. Errors: NO_MEMORY, PERMISSION, NOT_FOUND. */
struct sym_error *live_threads_read(const struct process *process,
				    const struct address_space *space, size_t max_stack_bytes,
				    struct sym_threads *list) __attribute__((warn_unused_result));

/* Errors: NO_MEMORY. */
struct sym_error *core_threads_read(const struct process *process,
				    const struct address_space *space, size_t max_stack_bytes,
				    struct sym_threads *list) __attribute__((warn_unused_result));

#endif
