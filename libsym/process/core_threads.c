/* SPDX-License-Identifier: MIT */
/* Threads of a core file: registers from its notes, stacks from its segments. */
#include "libsym/process/core_process.h"
#include "libsym/process/thread_list.h"

struct sym_error *core_threads_read(const struct process *process,
				    const struct address_space *space, size_t max_stack_bytes,
				    struct sym_threads *list)
{
	const struct elf_core *elf = &process->core->elf;

	for (size_t i = 0; i < elf->thread_count; i++) {
		const struct elf_core_thread *status = &elf->threads[i];
		struct sym_thread *thread = thread_list_add(list, status->tid);
		size_t wanted_bytes;
		uint8_t *room;

		if (!thread)
			return &sym_error_no_memory;
		if (!thread_list_set_registers(thread, status->registers,
					       status->registers_bytes)) {
			thread->reason = "the core file has no registers of it";
			continue;
		}
		wanted_bytes = thread_list_stack_bytes(space, thread, max_stack_bytes);
		room = thread_list_stack_room(list, thread, wanted_bytes);
		if (room)
			thread->stack.size_bytes =
				core_read(process->core, thread->stack.address, room, wanted_bytes);
	}
	return NULL;
}
