/* SPDX-License-Identifier: MIT */
/*
 * One process while it is recorded: unwinds its stacks, and gives each frame its name while the
 * code is there. When it is looked at again is the business of sym_live.
 */
#ifndef MAPGEN_RECORD_RECORDED_PROCESS_H
#define MAPGEN_RECORD_RECORDED_PROCESS_H

#include "libsym/libsym.h"
#include "mapgen/record/name_table.h"

struct recorded_process;

struct recorded_stack {
	const struct sym_frame *frames; /* until the next call */
	size_t count;
	enum sym_unwind_end end;
	/* It ends early or has guessed frames, and may do better after the next tick. */
	bool is_provisional;
};

/*
 * Opens a process, which must be alive. `names` is borrowed. `from_ns`: when it became the program
 * that it is, if that was while it was recorded, else 0. `budget` (may be NULL) is borrowed.
 * Errors: those of sym_snapshot_open(), NO_MEMORY.
 */
struct sym_error *recorded_process_open(int32_t pid, uint64_t from_ns, struct sym_budget *budget,
					struct name_table *names, struct recorded_process **ret)
	__attribute__((warn_unused_result));
/*
 * A process that `parent` has forked and that is gone: it had the memory map of its parent, because
 * it has not called exec(). Its own id in a container is not known.
 */
struct sym_error *recorded_process_fork(const struct recorded_process *parent, int32_t pid,
					uint64_t from_ns, struct recorded_process **ret)
	__attribute__((warn_unused_result));
void recorded_process_close(struct recorded_process *process);

int32_t recorded_process_pid(const struct recorded_process *process);
const struct sym_snapshot *recorded_process_snapshot(const struct recorded_process *process);

/* A thread of the process has a sample: the table of names gets its name and its id in the
 * container, once. */
struct sym_error *recorded_process_note_thread(struct recorded_process *process, int32_t tid)
	__attribute__((warn_unused_result));

/*
 * Unwinds a stack of this process, and names all its frames unless it is provisional.
 * `is_last`: it is not provisional, whatever is found.
 */
struct sym_error *recorded_process_unwind(struct recorded_process *process,
					  const struct sym_unwind_registers *registers,
					  const struct sym_unwind_stack *stack, uint64_t time_ns,
					  bool is_last, struct recorded_stack *ret)
	__attribute__((warn_unused_result));

/* Names the addresses of a stack that the caller has unwound. */
struct sym_error *recorded_process_name(struct recorded_process *process, const uint64_t *addresses,
					size_t count, uint64_t time_ns)
	__attribute__((warn_unused_result));

/* Names the user's part of a chain that the kernel has walked: `count` u64, with PERF_CONTEXT_*. */
struct sym_error *recorded_process_name_chain(struct recorded_process *process,
					      const uint8_t *chain, size_t count, uint64_t time_ns)
	__attribute__((warn_unused_result));

/* Once a round: takes up what the process has mapped and compiled, if that is due. Names what the
 * runtime has reported since it was seen. */
struct sym_error *recorded_process_tick(struct recorded_process *process)
	__attribute__((warn_unused_result));

/* At the end: waits a short time for names that the runtime reports late. */
struct sym_error *recorded_process_finish(struct recorded_process *process)
	__attribute__((warn_unused_result));

#endif
