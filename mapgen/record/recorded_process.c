/* SPDX-License-Identifier: MIT */
/*
 * An address is resolved once for each state of the process. When a refresh has changed something,
 * it is resolved again when it is next seen. If the answer differs, the table of names gets another
 * line. So code that is freed or compiled again keeps the name that it had.
 *
 * Code that is newer than the last refresh is unwound by a guess, or not at all. Such a stack is
 * provisional: its owner hands it in again after the next tick, which always refreshes then. While
 * nothing new is found and no stack is provisional, refreshes are further and further apart.
 *
 * A stack that the runtime has walked, and any stack of a runtime before .NET 10, which reports
 * what it has compiled some 0.1 s later, may come before the names of its code. An address that may
 * be of such code is kept as unnamed, and is resolved again when a refresh has found something. The
 * name counts from the time of the sample.
 */
#include "mapgen/record/recorded_process.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hash.h"
#include "libsym/error.h"
#include "mapgen/record/thread_id.h"

enum {
	MOST_FRAMES = 1024,
	SHARE_PERCENT = 25, /* of one processor, for refreshes */
	SHORTEST_PAUSE_MS = 50,
	LONGEST_PAUSE_MS = 250,
	MOST_UNNAMED = 1024,
	LONGEST_UNREPORTED_MS = 2000, /* a runtime under load reports late */
	LONGEST_UNREAD_MS = 500,      /* a refresh or two */
	LAST_LOOKS = 4,
	LAST_PAUSE_MS = 100,
};

/* An address that had no name when it was seen. */
struct unnamed_address {
	uint64_t address, time_ns, until_ms;
};

struct known_address {
	UT_hash_handle hh;
	uint64_t address; /* to look up */
	uint64_t generation;
	bool was_unnamed; /* it was waited for once */
};

struct known_thread {
	UT_hash_handle hh;
	int32_t tid;
};

/* A process and those that it has forked have the same memory map until they call exec(). */
struct shared_live {
	struct sym_live *live;
	size_t users;
};

struct recorded_process {
	int32_t pid;
	struct shared_live *shared;
	struct sym_live *live; /* the same */
	struct sym_unwinder *unwinder;
	struct sym_result *result;
	struct sym_result *lines; /* the same with lines and inlined methods, of managed code */
	struct name_table *names;
	uint32_t number; /* in the table of names */
	struct known_address *addresses;
	struct known_thread *threads;
	struct unnamed_address unnamed[MOST_UNNAMED];
	size_t unnamed_count;
	uint64_t unnamed_generation; /* in which they were resolved last */
	uint64_t generation;         /* counts refreshes that changed something */
	bool has_provisional;
	uint64_t next_look_ms, pause_ms;
	struct sym_frame frames[MOST_FRAMES];
};

void recorded_process_close(struct recorded_process *process)
{
	if (!process)
		return;
	HASH_DESTROY(process->addresses, free);
	HASH_DESTROY(process->threads, free);
	sym_result_destroy(process->result);
	sym_result_destroy(process->lines);
	sym_unwinder_destroy(process->unwinder);
	if (process->shared && !--process->shared->users) {
		sym_live_close(process->shared->live);
		free(process->shared);
	}
	free(process);
}

DEFINE_GUARD(recorded_process, struct recorded_process *, recorded_process_close)

static struct sym_error *create(int32_t pid, struct name_table *names, struct shared_live *shared,
				struct recorded_process **ret)
{
	struct recorded_process *process GUARDED(recorded_process) = calloc(1, sizeof(*process));
	struct sym_error *error;

	if (!process)
		return &sym_error_no_memory;
	process->pid = pid;
	process->names = names;
	process->shared = shared;
	process->live = shared->live;
	shared->users++;
	error = sym_unwinder_create_live(process->live, &process->unwinder);
	if (!error)
		error = sym_result_create(&process->result);
	if (!error)
		error = sym_result_create(&process->lines);
	if (!error)
		error = sym_result_set_fields(process->lines, SYM_FIELD_LINES | SYM_FIELD_INLINED);
	if (!error)
		*ret = STEAL(process);
	return error;
}

static struct sym_error *open_live(int32_t pid, struct sym_budget *budget, struct sym_live **ret)
{
	const struct sym_snapshot_opts snapshot = { .size = sizeof(snapshot), .budget = budget };
	const struct sym_live_opts opts = { .size = sizeof(opts),
					    .flags = SYM_LIVE_SAME_PROCESS,
					    .share_percent = SHARE_PERCENT,
					    .snapshot = &snapshot };

	return sym_live_open(pid, &opts, ret);
}

struct sym_error *recorded_process_open(int32_t pid, uint64_t from_ns, struct sym_budget *budget,
					struct name_table *names, struct recorded_process **ret)
{
	struct recorded_process *process GUARDED(recorded_process) = NULL;
	struct shared_live *shared = calloc(1, sizeof(*shared));
	const struct sym_process_info *info;
	const struct sym_jit_info *jit;
	struct sym_error *error = &sym_error_no_memory;

	if (shared)
		error = open_live(pid, budget, &shared->live);
	if (error) {
		free(shared);
		return error;
	}
	shared->users = 1;
	error = create(pid, names, shared, &process);
	if (!--shared->users) {
		sym_live_close(shared->live);
		free(shared);
	}
	if (error)
		return error;
	info = sym_snapshot_process(sym_live_snapshot(process->live));
	if (!info)
		return &sym_error_no_memory;
	error = name_table_add_process(names, info->pid, info->namespace_pid,
				       info->start_time_ticks, from_ns, info->comm,
				       &process->number);
	if (error)
		return error;
	/* Reading what the runtime has compiled takes longest: before anything waits for it. */
	sym_error_destroy(sym_live_jit(process->live, &jit));
	*ret = STEAL(process);
	return NULL;
}

struct sym_error *recorded_process_fork(const struct recorded_process *parent, int32_t pid,
					uint64_t from_ns, struct recorded_process **ret)
{
	struct recorded_process *process GUARDED(recorded_process) = NULL;
	const struct sym_process_info *info = sym_snapshot_process(sym_live_snapshot(parent->live));
	struct sym_error *error = create(pid, parent->names, parent->shared, &process);

	if (!error)
		error = name_table_add_process(parent->names, pid, pid, 0, from_ns,
					       info ? info->comm : "", &process->number);
	if (!error)
		*ret = STEAL(process);
	return error;
}

int32_t recorded_process_pid(const struct recorded_process *process)
{
	return process->pid;
}

const struct sym_snapshot *recorded_process_snapshot(const struct recorded_process *process)
{
	return sym_live_snapshot(process->live);
}

static uint64_t coarse_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Is the answer of this state known already? Notes that it is from now on. */
static struct sym_error *note_address(struct recorded_process *process, uint64_t address,
				      struct known_address **ret, bool *is_known_ret)
{
	bool is_new;
	struct known_address *known =
		hash_find_or_add(&process->addresses, &address, sizeof(address),
				 offsetof(struct known_address, address), sizeof(*known), &is_new);

	if (!known)
		return &sym_error_no_memory;
	*is_known_ret = !is_new && known->generation == process->generation;
	known->generation = process->generation;
	*ret = known;
	return NULL;
}

/* Lines of native code are left out: reading DWARF takes too long while samples arrive. */
static bool may_have_il(const struct sym_answer *answer)
{
	return answer->status == SYM_RESOLVED && answer->kind != SYM_SYMBOL_STUB &&
	       (answer->source == SYM_SOURCE_READYTORUN || answer->source == SYM_SOURCE_RUNTIME ||
		answer->source == SYM_SOURCE_RELATIVE_MAP);
}

static struct sym_error *note_line(struct recorded_process *process, uint64_t address,
				   uint64_t time_ns)
{
	const struct sym_answer *answer;
	struct sym_error *error =
		sym_live_resolve_now(process->live, &address, NULL, 1, process->lines);

	if (error)
		return error;
	answer = sym_result_at(process->lines, 0);
	if (!answer->method_token && !answer->line && !answer->inlined_count)
		return NULL;
	return name_table_add_line(process->names, process->number, answer, time_ns);
}

static struct sym_error *resolve(struct recorded_process *process, uint64_t address,
				 const struct sym_answer **ret)
{
	struct sym_error *error =
		sym_live_resolve_now(process->live, &address, NULL, 1, process->result);

	if (!error)
		*ret = sym_result_at(process->result, 0);
	return error;
}

static struct sym_error *add_answer(struct recorded_process *process,
				    const struct sym_answer *answer, uint64_t time_ns)
{
	uint64_t address = answer->address;
	bool has_line = may_have_il(answer);
	struct sym_error *error =
		name_table_add_answer(process->names, process->number, answer, time_ns);

	return error || !has_line ? error : note_line(process, address, time_ns);
}

static bool is_unnamed(const struct recorded_process *process, uint64_t address)
{
	for (size_t i = 0; i < process->unnamed_count; i++)
		if (process->unnamed[i].address == address)
			return true;
	return false;
}

/* Memory shows what is compiled at once; a session reports it later. */
static uint64_t longest_unnamed_ms(const struct recorded_process *process)
{
	return sym_live_has_session(process->live) ? LONGEST_UNREPORTED_MS : LONGEST_UNREAD_MS;
}

static struct sym_error *name_one(struct recorded_process *process, uint64_t address,
				  uint64_t time_ns)
{
	const struct sym_answer *answer;
	struct known_address *known;
	struct sym_error *error;
	bool is_known;

	error = note_address(process, address, &known, &is_known);
	if (error || is_known || is_unnamed(process, address))
		return error;
	error = resolve(process, address, &answer);
	if (error)
		return error;
	if (!sym_live_may_be_new(answer) || known->was_unnamed ||
	    process->unnamed_count == MOST_UNNAMED)
		return add_answer(process, answer, time_ns);
	known->was_unnamed = true;
	process->unnamed[process->unnamed_count++] =
		(struct unnamed_address){ address, time_ns,
					  coarse_ms() + longest_unnamed_ms(process) };
	return NULL;
}

/* Resolves the unnamed addresses again. `is_last`: what has no name now never gets one. */
static struct sym_error *name_late(struct recorded_process *process, bool is_last)
{
	bool has_news = process->unnamed_generation != process->generation;
	uint64_t now_ms = coarse_ms();
	struct sym_error *error = NULL;
	size_t kept = 0;

	process->unnamed_generation = process->generation;
	for (size_t i = 0; !error && i < process->unnamed_count; i++) {
		const struct unnamed_address unnamed = process->unnamed[i];
		bool is_over = is_last || now_ms >= unnamed.until_ms;
		const struct sym_answer *answer;

		if (!has_news && !is_over) {
			process->unnamed[kept++] = unnamed;
			continue;
		}
		error = resolve(process, unnamed.address, &answer);
		if (!error && sym_live_may_be_new(answer) && !is_over)
			process->unnamed[kept++] = unnamed;
		else if (!error)
			error = add_answer(process, answer, unnamed.time_ns);
	}
	process->unnamed_count = kept;
	return error;
}

/* Reading memory more often would cost too much. */
static bool waits_for_report(const struct recorded_process *process)
{
	return process->unnamed_count && sym_live_has_session(process->live);
}

static void look_again(struct recorded_process *process, bool has_missed)
{
	if (sym_live_update(process->live, has_missed)) {
		process->generation++;
		process->pause_ms = SHORTEST_PAUSE_MS;
	} else if (process->pause_ms < LONGEST_PAUSE_MS && !waits_for_report(process)) {
		process->pause_ms += SHORTEST_PAUSE_MS;
	}
}

struct sym_error *recorded_process_tick(struct recorded_process *process)
{
	uint64_t now_ms = coarse_ms();

	if (now_ms < process->next_look_ms && !process->has_provisional)
		return NULL;
	look_again(process, process->has_provisional);
	process->has_provisional = false;
	process->next_look_ms = now_ms + process->pause_ms;
	return name_late(process, false);
}

struct sym_error *recorded_process_finish(struct recorded_process *process)
{
	const struct timespec pause = { .tv_nsec = LAST_PAUSE_MS * 1000000 };
	struct sym_error *error = NULL;

	for (int i = 1; !error && waits_for_report(process) && i < LAST_LOOKS; i++) {
		look_again(process, true);
		error = name_late(process, false);
		if (process->unnamed_count)
			nanosleep(&pause, NULL);
	}
	if (error || !process->unnamed_count)
		return error;
	look_again(process, true);
	return name_late(process, true);
}

struct sym_error *recorded_process_name(struct recorded_process *process, const uint64_t *addresses,
					size_t count, uint64_t time_ns)
{
	for (size_t i = 0; i < count; i++) {
		/* All but the innermost are return addresses. */
		struct sym_error *error = name_one(process, addresses[i] - (i > 0), time_ns);

		if (error)
			return error;
	}
	return NULL;
}

struct sym_error *recorded_process_name_chain(struct recorded_process *process,
					      const uint8_t *chain, size_t count, uint64_t time_ns)
{
	uint64_t addresses[MOST_FRAMES];
	size_t user_count = 0;
	bool is_user = false;

	for (size_t i = 0; i < count && user_count < MOST_FRAMES; i++) {
		uint64_t address;

		memcpy(&address, chain + i * sizeof(address), sizeof(address));
		if (address >= (uint64_t)PERF_CONTEXT_MAX)
			is_user = address == (uint64_t)PERF_CONTEXT_USER;
		else if (is_user)
			addresses[user_count++] = address;
	}
	return recorded_process_name(process, addresses, user_count, time_ns);
}

struct sym_error *recorded_process_note_thread(struct recorded_process *process, int32_t tid)
{
	struct thread_id id;
	bool is_new;

	if (!hash_find_or_add(&process->threads, &tid, sizeof(tid),
			      offsetof(struct known_thread, tid), sizeof(struct known_thread),
			      &is_new))
		return &sym_error_no_memory;
	if (!is_new || !thread_id_read(process->pid, tid, &id))
		return NULL;
	return name_table_add_thread(process->names, process->number, tid, id.container_tid,
				     id.comm);
}

static bool is_suspicious(const struct recorded_stack *stack)
{
	if (stack->end != SYM_UNWIND_WHOLE && stack->end != SYM_UNWIND_SHORT)
		return true;
	for (size_t i = 0; i < stack->count; i++)
		if (stack->frames[i].flags & SYM_FRAME_IS_GUESSED)
			return true;
	return false;
}

struct sym_error *recorded_process_unwind(struct recorded_process *process,
					  const struct sym_unwind_registers *registers,
					  const struct sym_unwind_stack *stack, uint64_t time_ns,
					  bool is_last, struct recorded_stack *ret)
{
	struct sym_error *error;

	*ret = (struct recorded_stack){ .frames = process->frames };
	error = sym_unwinder_unwind(process->unwinder, registers, stack, process->frames,
				    MOST_FRAMES, &ret->count, &ret->end);
	if (error)
		return error;
	ret->is_provisional = !is_last && is_suspicious(ret);
	process->has_provisional |= ret->is_provisional;
	for (size_t i = 0; !error && !ret->is_provisional && i < ret->count; i++)
		error = name_one(process,
				 ret->frames[i].address -
					 !!(ret->frames[i].flags & SYM_FRAME_IS_RETURN),
				 time_ns);
	return error;
}
