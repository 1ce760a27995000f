/* SPDX-License-Identifier: MIT */
/*
 * One step of a recording:
 *
 *   for each record of all rings, by time
 *     sample     unwound by the process it is of, named, written with its whole chain
 *     COMM       of an exec: the process is opened again; written
 *     FORK, EXIT processes come and go; written
 *     LOST       counted; written
 *     others     written
 *   the processes are refreshed
 *   for each sample that waits for that
 *     unwound again, named, written
 *   FINISHED_ROUND
 *
 * Code that a runtime has compiled since the last refresh cannot be unwound yet: a sample with such
 * a stack waits, with the bytes of the stack, for the refresh at the end of the step.
 *
 * A record may be older than the last one of the round before; perf and our reader sort within two
 * rounds. A stack is unwound as soon as its record is read, because unwind data of jitted code are
 * in the memory of the process.
 */
#include "mapgen/record/recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hash.h"
#include "libsym/error.h"
#include "mapgen/cli/monotonic.h"
#include "mapgen/record/present_records.h"
#include "mapgen/record/process_entries.h"
#include "mapgen/record/recorded_kernel.h"
#include "mapgen/record/recorded_process.h"
#include "mapgen/record/ring_order.h"
#include "mapgen/record/short_waits.h"
#include "mapgen/record/stack_log.h"
#include "mapgen/record/thread_id.h"

enum {
	MOST_FRAMES = 1024,
	STACKS_LIMIT = 1 << 28,
	WAITING_LIMIT = 64 << 20, /* samples that wait; what is more is taken as it is */
};

/* In `waiting`, one behind the other. */
struct waiting_sample {
	int64_t pid;
	struct perf_event_header record[]; /* as the kernel made it */
};

struct recorder {
	struct event_set events;
	struct event_probes probes;
	struct perf_writer writer;
	struct perf_ring ring;
	struct name_table *names;
	struct buf stacks;
	struct process_entry *processes;
	struct recorder_counts counts;
	uint64_t probed_events, lost_in_records; /* of probes */
	struct sym_budget *budget;
	struct recorded_kernel kernel;
	struct ring_order order;
	struct short_waits *held; /* NULL: every context switch gets its stack at once */
	struct buf waiting;       /* struct waiting_sample; for the end of the step */
	bool is_second_look;
	bool is_system_wide;
	bool sees_others; /* the kernel also writes records of processes that are not wanted */
};

void recorder_destroy(struct recorder *recorder)
{
	if (!recorder)
		return;
	process_entries_destroy(recorder->processes);
	short_waits_destroy(recorder->held);
	ring_order_deinit(&recorder->order);
	event_set_deinit(&recorder->events);
	event_probes_deinit(&recorder->probes);
	perf_ring_deinit(&recorder->ring);
	name_table_destroy(recorder->names);
	buf_deinit(&recorder->stacks);
	buf_deinit(&recorder->waiting);
	recorded_kernel_deinit(&recorder->kernel);
	free(recorder);
}

static struct sym_error *take_held_switch(void *context, const struct perf_event_header *header);

DEFINE_GUARD(recorder, struct recorder *, recorder_destroy)

struct sym_error *recorder_create(const struct event_plan *plan, struct sym_budget *budget,
				  FILE *perf_data, bool keeps_stacks, struct recorder **ret)
{
	struct recorder *recorder GUARDED(recorder) = calloc(1, sizeof(*recorder));
	struct sym_error *error;

	if (!recorder)
		return &sym_error_no_memory;
	recorder->budget = budget;
	event_probes_init(&recorder->probes, &recorder->events, EVENT_BUDGET_PER_SECOND);
	buf_init(&recorder->stacks, STACKS_LIMIT);
	buf_init(&recorder->waiting, WAITING_LIMIT);
	error = event_set_init(&recorder->events, plan);
	if (!error)
		error = ring_order_init(&recorder->order, &recorder->events);
	if (!error)
		error = name_table_create(&recorder->names);
	if (error)
		return error;
	if (plan->shortest_wait_us > 1)
		error = short_waits_create(plan->shortest_wait_us * UINT64_C(1000),
					   take_held_switch, recorder, &recorder->held);
	if (error)
		return error;
	perf_writer_begin(&recorder->writer, perf_data, keeps_stacks);
	*ret = STEAL(recorder);
	return NULL;
}

struct sym_error *recorder_keep_last(struct recorder *recorder, uint64_t span_ns)
{
	struct sym_error *error = perf_ring_init(&recorder->ring, span_ns);

	if (!error)
		recorder->writer.ring = &recorder->ring;
	return error;
}

const struct recorder_counts *recorder_counts(const struct recorder *recorder)
{
	return &recorder->counts;
}

const struct name_table *recorder_names(const struct recorder *recorder)
{
	return recorder->names;
}

const struct buf *recorder_stacks(const struct recorder *recorder)
{
	return &recorder->stacks;
}

const struct sym_process_info *recorder_process_info(struct recorder *recorder, int32_t pid)
{
	const struct process_entry *entry = process_entries_find(recorder->processes, pid);

	return entry && entry->process
		       ? sym_snapshot_process(recorded_process_snapshot(entry->process))
		       : NULL;
}

bool recorder_has_no_switch_samples(const struct recorder *recorder)
{
	return recorder->events.has_no_switch_samples;
}

/* ---- processes ---------------------------------------------------------------------------------
 */

static struct sym_error *open_forked(struct recorder *recorder, struct process_entry *entry,
				     uint64_t time_ns)
{
	const struct process_entry *parent =
		entry->parent_pid ? process_entries_find(recorder->processes, entry->parent_pid)
				  : NULL;

	if (!parent || !parent->process)
		return NULL;
	return recorded_process_fork(parent->process, entry->pid, entry->was_other ? time_ns : 0,
				     &entry->process);
}

/* It is no error if the process has ended: its samples are counted. */
static struct sym_error *open_entry(struct recorder *recorder, struct process_entry *entry,
				    uint64_t time_ns)
{
	struct sym_error *error =
		recorded_process_open(entry->pid, entry->was_other ? time_ns : 0, recorder->budget,
				      recorder->names, &entry->process);

	if (error && sym_error_code(error) != SYM_ERROR_NO_MEMORY) {
		sym_error_destroy(error);
		entry->has_ended = true;
		return open_forked(recorder, entry, time_ns);
	}
	/* After an exec() the kernel has written the records of the new program. */
	return error || entry->was_other
		       ? error
		       : present_records_put(&recorder->writer, recorder->budget, entry->process);
}

/*
 * An event of a thread costs the target time whenever the thread gets a processor. Without samples
 * the events of all processors have the same records, where they are permitted.
 */
static struct sym_error *open_events(struct recorder *recorder, int32_t pid)
{
	const struct event_plan *plan = &recorder->events.plan;
	struct sym_error *error = NULL;

	if (!plan->frequency_hz && !plan->has_off_cpu) {
		error = event_set_add_system(&recorder->events);
		recorder->sees_others = !error;
		if (!error || sym_error_code(error) != SYM_ERROR_PERMISSION)
			return error;
		sym_error_destroy(error);
	}
	return event_set_add_process(&recorder->events, pid, false);
}

struct sym_error *recorder_add_process(struct recorder *recorder, int32_t pid, bool starts_on_exec)
{
	struct process_entry *entry;
	struct sym_error *error = process_entries_add(&recorder->processes, pid, &entry);

	if (error)
		return error;
	entry->is_wanted = true;
	/* The program before exec() is not wanted. */
	if (starts_on_exec)
		return event_set_add_process(&recorder->events, pid, true);
	/* Opened before the rings, which would fill in that time. */
	error = recorded_process_open(pid, 0, recorder->budget, recorder->names, &entry->process);
	if (!error && !recorder->sees_others)
		error = open_events(recorder, pid);
	if (error)
		return error;
	return present_records_put(&recorder->writer, recorder->budget, entry->process);
}

struct sym_error *recorder_add_system(struct recorder *recorder)
{
	recorder->is_system_wide = true;
	return event_set_add_system(&recorder->events);
}

struct sym_error *recorder_add_probes(struct recorder *recorder, int32_t pid, const char *path,
				      const char *const *names, const uint64_t *offsets,
				      size_t count)
{
	return event_probes_add(&recorder->probes, pid, path, names, offsets, count);
}

bool recorder_has_raw_uprobes(const struct recorder *recorder)
{
	return recorder->probes.way == PROBE_BY_THREAD;
}

void recorder_note_probed_event(struct recorder *recorder)
{
	recorder->probed_events++;
}

/* ---- samples -----------------------------------------------------------------------------------
 */

#ifdef __x86_64__
static const enum sym_unwind_machine own_machine = SYM_UNWIND_X86_64;
#else
static const enum sym_unwind_machine own_machine = SYM_UNWIND_ARM64;
#endif

static uint64_t stack_pointer(const struct sym_unwind_registers *registers)
{
	return registers->values[registers->machine == SYM_UNWIND_ARM64 ? 31 : 7];
}

/* The user's part of a call chain, innermost first. */
struct user_part {
	uint64_t frames[MOST_FRAMES];
	size_t count;
	bool waits; /* for the end of the step */
};

/* A wait that is held until it is known how long it is must be taken in its order. */
static bool may_wait(const struct recorder *recorder, const struct perf_event_attr *attr,
		     const struct perf_sample *sample)
{
	bool is_held = recorder->held && attr == &recorder->events.attributes[EVENT_SWITCH];

	return !recorder->is_second_look && !is_held &&
	       recorder->waiting.size_bytes + sample->stack_bytes < WAITING_LIMIT - UINT16_MAX;
}

static struct sym_error *unwind(struct recorder *recorder, struct recorded_process *process,
				const struct perf_event_attr *attr,
				const struct perf_sample *sample, struct user_part *part)
{
	struct sym_unwind_registers registers;
	struct sym_unwind_stack copy;
	struct recorded_stack stack;
	struct sym_error *error;

	sym_unwind_registers_of_sample(own_machine, attr->sample_regs_user, sample->registers,
				       &registers);
	copy = (struct sym_unwind_stack){ stack_pointer(&registers), sample->stack,
					  sample->stack_bytes };
	error = recorded_process_unwind(process, &registers, &copy, sample->time_ns,
					recorder->is_second_look, &stack);
	if (!error && stack.is_provisional && !may_wait(recorder, attr, sample)) {
		error = recorded_process_tick(process);
		if (!error)
			error = recorded_process_unwind(process, &registers, &copy, sample->time_ns,
							true, &stack);
	}
	if (error)
		return error;
	part->waits = stack.is_provisional;
	if (part->waits)
		return NULL;
	for (size_t i = 0; i < stack.count; i++)
		part->frames[i] = stack.frames[i].address;
	part->count = stack.count;
	stack_log_note(&recorder->stacks, &recorder->counts, sample, &stack);
	return NULL;
}

/* *ret is NULL for a process that has ended before it was opened. */
static struct sym_error *find_process(struct recorder *recorder, int32_t pid, uint64_t time_ns,
				      struct recorded_process **ret)
{
	struct process_entry *entry;
	struct sym_error *error = process_entries_add(&recorder->processes, pid, &entry);

	if (!error && !entry->process && !entry->has_ended)
		error = open_entry(recorder, entry, time_ns);
	*ret = error ? NULL : entry->process;
	return error;
}

struct sym_error *recorder_name_stack(struct recorder *recorder, int32_t pid,
				      const uint8_t *addresses, size_t count, uint64_t time_ns)
{
	struct recorded_process *process;
	uint64_t frames[MOST_FRAMES];
	struct sym_error *error = find_process(recorder, pid, time_ns, &process);

	if (error || !process)
		return error;
	if (count > MOST_FRAMES)
		count = MOST_FRAMES;
	memcpy(frames, addresses, count * sizeof(*frames));
	return recorded_process_name(process, frames, count, time_ns);
}

static struct sym_error *take_user_part(struct recorder *recorder,
					const struct perf_event_attr *attr,
					const struct perf_sample *sample, struct user_part *part)
{
	struct recorded_process *process;
	struct sym_error *error =
		find_process(recorder, (int32_t)sample->pid, sample->time_ns, &process);

	if (error)
		return error;
	if (!process) {
		recorder->counts.unknown_processes++;
		return NULL;
	}
	error = recorded_process_note_thread(process, (int32_t)sample->tid);
	if (error)
		return error;
	if (sample->registers_abi)
		return unwind(recorder, process, attr, sample, part);
	return recorded_process_name_chain(process, sample->chain, sample->chain_count,
					   sample->time_ns);
}

static struct sym_error *put_waiting(struct recorder *recorder, uint32_t pid,
				     const struct perf_event_header *header)
{
	const struct waiting_sample sample = { .pid = pid };

	return buf_append(&recorder->waiting, &sample, sizeof(sample)) &&
			       buf_append(&recorder->waiting, header, header->size)
		       ? NULL
		       : &sym_error_no_memory;
}

static struct sym_error *write_sample(struct recorder *recorder, enum kernel_event kind,
				      const struct perf_event_header *header,
				      const struct perf_sample *sample)
{
	const struct perf_event_attr *attr = &recorder->events.attributes[kind];
	const struct perf_event_header *record;
	struct user_part part = { .count = 0 };
	struct sym_error *error = NULL;

	/* Kernel threads have pid 0 or no user registers. */
	if (sample->pid && (sample->registers_abi || !recorder->events.plan.copies_stacks))
		error = take_user_part(recorder, attr, sample, &part);
	else
		recorder->counts.kernel_only++;
	if (!error && part.waits)
		return put_waiting(recorder, sample->pid, header);
	if (!error && recorder->events.plan.has_kernel)
		error = recorded_kernel_name(&recorder->kernel, recorder->names, sample->chain,
					     sample->chain_count, sample->time_ns);
	if (error)
		return error;
	record = perf_writer_make_sample(&recorder->writer, attr, header, sample, part.frames,
					 part.count);
	if (kind == EVENT_SWITCH && recorder->held)
		return short_waits_begin(recorder->held, sample->tid, sample->time_ns, record);
	perf_writer_put(&recorder->writer, record, record->size);
	return NULL;
}

/* The wait was long enough. */
static struct sym_error *take_held_switch(void *context, const struct perf_event_header *record)
{
	struct recorder *recorder = context;

	perf_writer_put(&recorder->writer, record, record->size);
	return NULL;
}

/* The sample is of a probe, and within the budget: it gets the id that perf.data has for it. */
static bool take_probe(struct recorder *recorder, struct perf_sample *sample)
{
	uint32_t probe = event_probes_number(&recorder->probes, sample);

	if (probe == MOST_PROBES)
		return false;
	if (!recorder->is_second_look) {
		if (!event_probes_may_take(&recorder->probes, sample->time_ns))
			return false;
		recorder->counts.probe_samples++;
	}
	sample->id = perf_writer_probe_id(probe);
	sample->period = 1;
	return true;
}

static struct sym_error *take_sample(struct recorder *recorder,
				     const struct perf_event_header *header)
{
	enum kernel_event kind = event_set_kind_of(&recorder->events, header);
	struct perf_sample sample;

	if (kind == EVENT_PROBE ? !event_probes_read(&recorder->probes, header, &sample)
				: !perf_sample_read(&recorder->events.attributes[kind], header,
						    header->size, &sample))
		return NULL;
	if (!recorder->is_second_look) {
		recorder->counts.cpu_samples += kind == EVENT_CPU;
		recorder->counts.switch_samples += kind == EVENT_SWITCH;
	}
	if (kind == EVENT_PROBE && !take_probe(recorder, &sample))
		return NULL;
	return write_sample(recorder, kind, header, &sample);
}

/* Takes the samples of one process that wait, or of all (0). */
static struct sym_error *take_waiting(struct recorder *recorder, int64_t pid)
{
	struct buf *waiting = &recorder->waiting;
	struct sym_error *error = NULL;
	size_t kept_bytes = 0;

	recorder->is_second_look = true;
	for (size_t offset = 0; !error && offset < waiting->size_bytes;) {
		struct waiting_sample *sample = (void *)(waiting->data + offset);
		size_t size_bytes = sizeof(*sample) + sample->record[0].size;

		offset += size_bytes;
		if (!pid || sample->pid == pid) {
			error = take_sample(recorder, sample->record);
		} else {
			memmove(waiting->data + kept_bytes, sample, size_bytes);
			kept_bytes += size_bytes;
		}
	}
	recorder->is_second_look = false;
	buf_truncate(waiting, kept_bytes);
	return error;
}

/* ---- other records ------------------------------------------------------------------------------
 */

/* The process is another program from now on: it is opened by its next sample. */
static struct sym_error *forget(struct recorder *recorder, struct process_entry *entry)
{
	struct sym_error *error = entry->process ? take_waiting(recorder, entry->pid) : NULL;

	recorded_process_close(entry->process);
	entry->was_other |= entry->process != NULL;
	entry->process = NULL;
	return error;
}

static struct sym_error *take_fork(struct recorder *recorder,
				   const struct perf_event_header *header)
{
	/* u32 pid, ppid, tid, ptid */
	const uint32_t *fields = (const uint32_t *)(header + 1);
	struct process_entry *parent =
				     process_entries_find(recorder->processes, (int32_t)fields[1]),
			     *entry;
	struct sym_error *error = event_set_note_thread(&recorder->events, (int32_t)fields[2]);

	if (error || fields[0] == fields[1])
		return error;
	error = process_entries_add(&recorder->processes, (int32_t)fields[0], &entry);
	if (error)
		return error;
	/* The number may have been another process's. */
	error = forget(recorder, entry);
	entry->has_ended = false;
	entry->is_wanted = parent && parent->is_wanted;
	entry->parent_pid = (int32_t)fields[1];
	return error;
}

/* The record that woke the reader; another one of the same thread is for the file. */
static struct sym_error *take_birth(struct recorder *recorder,
				    const struct perf_event_header *header)
{
	const uint32_t *fields = (const uint32_t *)(header + 1);

	if (header->type != PERF_RECORD_FORK)
		return NULL;
	return event_probes_note_thread(&recorder->probes, (int32_t)fields[0], (int32_t)fields[2]);
}

static struct sym_error *take_exit(struct recorder *recorder,
				   const struct perf_event_header *header)
{
	const uint32_t *fields = (const uint32_t *)(header + 1);
	struct process_entry *entry = process_entries_find(recorder->processes, (int32_t)fields[0]);

	event_set_note_exit(&recorder->events, (int32_t)fields[2]);
	if (!entry || fields[0] != fields[2])
		return NULL;
	entry->has_ended = true;
	/* Other threads may go on when the first one has ended. Each process holds descriptors.
	 * What is still to come of it is opened again, as what it was. */
	return entry->parent_pid && kill(entry->pid, 0) && errno == ESRCH ? forget(recorder, entry)
									  : NULL;
}

static struct sym_error *take_comm(struct recorder *recorder,
				   const struct perf_event_header *header)
{
	const uint32_t *fields = (const uint32_t *)(header + 1);
	struct process_entry *entry = process_entries_find(recorder->processes, (int32_t)fields[0]);
	struct sym_error *error;

	if (!entry || !(header->misc & PERF_RECORD_MISC_COMM_EXEC))
		return NULL;
	error = forget(recorder, entry);
	entry->has_ended = false;
	entry->parent_pid = 0;
	return error;
}

static void take_lost(struct recorder *recorder, const struct perf_event_header *header)
{
	/* LOST: u64 id, u64 lost; LOST_SAMPLES: u64 lost */
	const uint64_t *fields = (const uint64_t *)(header + 1);
	uint64_t lost = fields[header->type == PERF_RECORD_LOST];
	enum kernel_event kind = event_set_kind_of(&recorder->events, header);

	/* The ring of switches has nothing else. */
	if (kind == EVENT_SWITCH)
		recorder->counts.lost_switches += lost;
	else if (kind == EVENT_PROBE)
		recorder->lost_in_records += lost;
	else
		recorder->counts.lost_records += lost;
}

/* A thread goes on, or has ended. */
static struct sym_error *end_wait(struct recorder *recorder, const struct perf_event_header *header)
{
	struct perf_sample id;

	if (!recorder->held || header->misc & PERF_RECORD_MISC_SWITCH_OUT ||
	    !perf_sample_read_id(&recorder->events.attributes[EVENT_CPU], header, header->size,
				 &id))
		return NULL;
	return short_waits_end(recorder->held, id.tid, id.time_ns);
}

/* The events of probes have other ids in the file. */
static void put_record(struct recorder *recorder, const struct perf_event_header *header)
{
	if (event_set_kind_of(&recorder->events, header) == EVENT_PROBE)
		perf_writer_put_of_probe(&recorder->writer, header);
	else
		perf_writer_put(&recorder->writer, header, header->size);
}

static struct sym_error *take_record(struct recorder *recorder,
				     const struct perf_event_header *header)
{
	struct sym_error *error = NULL;

	if (recorder->sees_others && !process_entries_want(recorder->processes, header))
		return NULL;
	if (event_set_kind_of(&recorder->events, header) == EVENT_BIRTH)
		return take_birth(recorder, header);
	if (event_set_is_twice(&recorder->events, header))
		return NULL;
	switch (header->type) {
	case PERF_RECORD_SAMPLE:
		return take_sample(recorder, header);
	case PERF_RECORD_FORK:
		error = take_fork(recorder, header);
		break;
	case PERF_RECORD_EXIT:
		error = take_exit(recorder, header);
		if (!error)
			error = end_wait(recorder, header);
		break;
	case PERF_RECORD_SWITCH:
		error = end_wait(recorder, header);
		break;
	case PERF_RECORD_COMM:
		error = take_comm(recorder, header);
		break;
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		take_lost(recorder, header);
		break;
	case PERF_RECORD_THROTTLE:
		recorder->counts.throttled++;
		break;
	default:
		break;
	}
	if (!error)
		put_record(recorder, header);
	return error;
}

/*
 * Samples that were held are in no order of time: perf sorts the whole file then, which has no
 * rounds.
 */
static struct sym_error *take_rings(struct recorder *recorder)
{
	const struct perf_event_header *record;

	ring_order_begin(&recorder->order);
	while ((record = ring_order_next(&recorder->order))) {
		struct sym_error *error = take_record(recorder, record);

		if (error)
			return error;
		ring_order_release(&recorder->order);
	}
	return NULL;
}

/* *ended_ret: all processes that were added have ended. */
static struct sym_error *tick(struct recorder *recorder, bool *ended_ret)
{
	struct process_entry *entry, *next;
	struct sym_error *error = NULL;

	*ended_ret = !recorder->is_system_wide;
	HASH_ITER(hh, recorder->processes, entry, next)
	{
		if (!error && entry->process && !entry->has_ended)
			error = recorded_process_tick(entry->process);
		if (entry->is_wanted && !entry->has_ended)
			*ended_ret = false;
	}
	return error;
}

struct sym_error *recorder_step(struct recorder *recorder, int timeout_ms, bool *ended_ret)
{
	struct sym_error *error;

	event_set_wait(&recorder->events, timeout_ms);
	error = take_rings(recorder);
	if (!error)
		error = tick(recorder, ended_ret);
	if (!error)
		error = take_waiting(recorder, 0);
	if (!error && !recorder->held)
		perf_writer_end_round(&recorder->writer);
	return error;
}

static void count_probes(struct recorder *recorder)
{
	const struct event_probe_counts probes = event_probes_counts(&recorder->probes);
	struct recorder_counts *counts = &recorder->counts;
	uint64_t lost =
		probes.lost > recorder->lost_in_records ? probes.lost : recorder->lost_in_records;
	uint64_t known = counts->probe_samples + probes.thinned + lost;

	counts->thinned_stacks = probes.thinned;
	counts->thinned_in_kernel = probes.thinned_in_kernel;
	counts->lost_probe_samples = lost;
	counts->unprobed_events =
		recorder->probed_events > known ? recorder->probed_events - known : 0;
}

struct sym_error *recorder_pause(struct recorder *recorder, const char *command_line)
{
	count_probes(recorder);
	recorder->writer.probe_names = recorder->probes.names;
	recorder->writer.probe_count = recorder->probes.name_count;
	if (perf_writer_finish(&recorder->writer, &recorder->events, command_line))
		return NULL;
	return sym_error_create(SYM_ERROR_IO, "cannot write the recording: %s",
				strerror(recorder->writer.failure));
}

struct sym_error *recorder_go_on(struct recorder *recorder)
{
	struct perf_writer *writer = &recorder->writer;
	struct process_entry *entry, *next;
	struct sym_error *error = NULL;

	if (ftruncate(fileno(writer->file), 0) || fseeko(writer->file, 0, SEEK_SET))
		return sym_error_create(SYM_ERROR_IO, "cannot write the recording: %s",
					strerror(errno));
	perf_writer_begin(writer, writer->file, writer->keeps_stacks);
	buf_clear(&recorder->stacks);
	HASH_ITER(hh, recorder->processes, entry, next)
	if (!error && entry->process && !entry->has_ended)
		error = present_records_put_threads(&recorder->writer, entry->process);
	return error;
}

struct sym_error *recorder_finish(struct recorder *recorder, const char *command_line,
				  uint64_t from_ns)
{
	struct process_entry *entry, *next;
	struct sym_error *error;
	bool has_ended;

	event_probes_stop(&recorder->probes);
	event_set_disable(&recorder->events);
	error = take_rings(recorder);
	if (!error)
		error = tick(recorder, &has_ended);
	if (!error)
		error = take_waiting(recorder, 0);
	HASH_ITER(hh, recorder->processes, entry, next)
	if (!error && entry->process)
		error = recorded_process_finish(entry->process);
	if (!error && recorder->held)
		error = short_waits_finish(recorder->held, (uint64_t)(monotonic_seconds() * 1e9));
	if (error)
		return error;
	if (recorder->held)
		recorder->counts.short_waits = short_waits_count(recorder->held);
	recorder->writer.ring_from_ns = from_ns;
	return recorder_pause(recorder, command_line);
}
