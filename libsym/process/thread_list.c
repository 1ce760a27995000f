/* SPDX-License-Identifier: MIT */
#include "libsym/process/thread_list.h"

#include <string.h>

#include "libsym/base/grow.h"
#include "libsym/limits.h"

void sym_threads_destroy(struct sym_threads *threads)
{
	if (!threads)
		return;
	for (size_t i = 0; i < threads->count; i++)
		free((void *)threads->items[i].stack.bytes);
	free(threads->items);
	free(threads);
}

size_t sym_threads_count(const struct sym_threads *threads)
{
	return threads->count;
}

const struct sym_thread *sym_threads_at(const struct sym_threads *threads, size_t index)
{
	return index < threads->count ? &threads->items[index] : NULL;
}

struct sym_thread *thread_list_add(struct sym_threads *list, int32_t tid)
{
	struct sym_thread *thread;

	if (!grow_items((void **)&list->items, &list->capacity, list->count, sizeof(*list->items)))
		return NULL;
	thread = &list->items[list->count++];
	*thread = (struct sym_thread){ .tid = tid, .state = '?' };
	thread->registers.size = sizeof(thread->registers);
	return thread;
}

#if defined(__aarch64__)
enum {
	MACHINE = SYM_UNWIND_ARM64,
	SET_BYTES = 34 * 8,
	STACK_POINTER = 31
};

/* struct user_regs_struct: x0 to x30, sp, pc, pstate. */
static const uint8_t places[] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
				  11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
				  22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32 };
#else
enum {
	MACHINE = SYM_UNWIND_X86_64,
	SET_BYTES = 27 * 8,
	STACK_POINTER = 7
};

/* struct user_regs_struct: r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip
 * cs eflags rsp ss ...; where each register of DWARF stands in it. */
static const uint8_t places[] = { 10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16 };
#endif

bool thread_list_set_registers(struct sym_thread *thread, const uint8_t *set, size_t size_bytes)
{
	const size_t count = sizeof(places) / sizeof(places[0]);

	if (size_bytes < SET_BYTES)
		return false;
	thread->registers.machine = MACHINE;
	thread->registers.known = (UINT64_C(1) << count) - 1;
	for (size_t i = 0; i < count; i++)
		memcpy(&thread->registers.values[i], set + places[i] * 8U, 8);
	thread->stack.address = thread->registers.values[STACK_POINTER];
	return true;
}

uint8_t *thread_list_stack_room(struct sym_threads *list, struct sym_thread *thread,
				size_t size_bytes)
{
	uint8_t *room = NULL;

	if (size_bytes <= LIMIT_THREAD_STACKS_BYTES - list->stack_bytes)
		room = malloc(size_bytes + 1);
	if (!room) {
		thread->reason = "no memory for a copy of its stack";
		thread->registers.known = 0;
		return NULL;
	}
	list->stack_bytes += size_bytes;
	thread->stack.bytes = room;
	return room;
}

size_t thread_list_stack_bytes(const struct address_space *space, const struct sym_thread *thread,
			       size_t max_bytes)
{
	size_t line = address_space_find(space, thread->stack.address);
	uint64_t bytes;

	/* A thread that began after the maps were read: most have little on their stack. */
	if (line == ADDRESS_SPACE_NONE)
		return max_bytes < (64U << 10) ? max_bytes : 64U << 10;
	bytes = space->mappings[line].end_address - thread->stack.address;
	return bytes < max_bytes ? (size_t)bytes : max_bytes;
}
