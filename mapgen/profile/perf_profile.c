/* SPDX-License-Identifier: MIT */
/*
 * How records become a profile:
 *
 *   record     its call chain is looked up in a table of chains (raw_stacks.h)
 *   moment     what is left of it, put into the order of time (moment_queue.h)
 *   stack      a chain is named once, and once more where a name has changed since
 *   entry      counted (profile.h)
 *
 * The first step is done for each record, and costs a hash of the chain. Names are asked for each
 * different chain. Nothing but the queue of two rounds grows with the number of samples.
 */
#include "mapgen/profile/perf_profile.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/reader.h"
#include "libsym/error.h"
#include "mapgen/perfdata/perf_data.h"
#include "mapgen/perfdata/perf_events.h"
#include "mapgen/perfdata/perf_sample.h"
#include "mapgen/perfdata/sched_switch.h"
#include "mapgen/profile/moment_queue.h"
#include "mapgen/profile/off_cpu.h"
#include "mapgen/profile/raw_stacks.h"
#include "mapgen/record/recording_file.h"

enum {
	MOST_CHAIN = 1 << 13, /* 64 KiB of addresses: no record has more */
	NO_STACK = UINT32_MAX,
	KERNEL_PID = -1,
	UNKNOWN_PID = -1,
	MISC_SWITCH_OUT = 1 << 13,
	MISC_SWITCH_OUT_PREEMPT = 1 << 14,
	MISC_COMM_EXEC = 1 << 13,
};

static const uint64_t kernel_begin = 1ull << 63;
static const uint64_t context_first = (uint64_t)-4095;

/* One event of the input. */
struct input_event {
	uint32_t number;        /* in the profile */
	bool is_switch;         /* its samples are the stacks of switches */
	bool is_sched_switch;   /* and are the switches themselves; they are also counted */
	const char *tracepoint; /* its samples are stacks of an event of the runtime; else NULL */
	bool is_time;
	uint64_t usual_period; /* where a sample has none */
};

struct reading {
	struct profile *profile;
	const struct perf_profile_opts *opts;
	struct perf_events events;
	struct input_event *inputs;
	size_t input_count;
	uint32_t off_cpu_event, preempted_event; /* UINT32_MAX: none yet */
	struct raw_stacks raw;
	struct moment_queue queue;
	struct off_cpu off_cpu;
	uint64_t begin_ns, last_ns;
	uint32_t empty_stack; /* FRAME_NONE: not made yet */
	uint64_t chain[MOST_CHAIN];
	uint32_t frames[MOST_CHAIN];
};

/* ---- events ---------------------------------------------------------------------------------- */

static bool is_clock(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE && (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
						    attr->config == PERF_COUNT_SW_TASK_CLOCK);
}

static enum profile_event_kind kind_of(const struct recorded_event *event)
{
	if (is_clock(&event->attr) || !strncmp(event->name, "cycles", 6) ||
	    !strncmp(event->name, "cpu-cycles", 10) || strstr(event->name, "/cycles") ||
	    strstr(event->name, "/cpu-cycles"))
		return PROFILE_CPU;
	return PROFILE_COUNTED;
}

static uint64_t usual_period(const struct perf_event_attr *attr)
{
	if (!attr->freq)
		return attr->sample_period ? attr->sample_period : 1;
	return is_clock(attr) && attr->sample_freq ? 1000000000 / attr->sample_freq : 1;
}

/* Takes up events that have come since: in a pipe they come as records. */
static struct sym_error *take_events(struct reading *reading)
{
	struct sym_error *error = NULL;

	for (size_t i = reading->input_count; !error && i < reading->events.count; i++) {
		const struct recorded_event *event = reading->events.items[i];
		struct input_event *inputs =
			reallocarray(reading->inputs, i + 1, sizeof(*reading->inputs));
		struct input_event *input;

		if (!inputs)
			return &sym_error_no_memory;
		reading->inputs = inputs;
		input = &inputs[i];
		*input = (struct input_event){ .number = UINT32_MAX,
					       .is_time = is_clock(&event->attr),
					       .usual_period = usual_period(&event->attr) };
		input->is_switch = reading->events.has_switches &&
				   event->attr.type == PERF_TYPE_SOFTWARE &&
				   event->attr.config == PERF_COUNT_SW_CONTEXT_SWITCHES &&
				   !event->attr.freq && event->attr.sample_period == 1;
		input->is_sched_switch = !reading->events.has_switches &&
					 sched_switch_is_event(&reading->events, event);
		if (reading->opts->match && !strncmp(event->name, RECORDING_PROBE_PREFIX,
						     sizeof(RECORDING_PROBE_PREFIX) - 1))
			input->tracepoint = event->name + sizeof(RECORDING_PROBE_PREFIX) - 1;
		else if (!input->is_switch)
			error = profile_add_event(reading->profile, event->name, kind_of(event),
						  input->is_time ? PROFILE_UNIT_NS
								 : PROFILE_UNIT_COUNT,
						  &input->number);
		reading->input_count = i + 1;
	}
	return error;
}

static struct sym_error *off_cpu_event(struct reading *reading, bool is_preempted, uint32_t *ret)
{
	uint32_t *event = is_preempted ? &reading->preempted_event : &reading->off_cpu_event;
	struct sym_error *error = NULL;

	if (*event == UINT32_MAX)
		error = profile_add_event(reading->profile, is_preempted ? "preempted" : "off-cpu",
					  is_preempted ? PROFILE_PREEMPTED : PROFILE_OFF_CPU,
					  PROFILE_UNIT_NS, event);
	*ret = *event;
	return error;
}

/* ---- names ----------------------------------------------------------------------------------- */

static struct sym_error *unknown_frame(struct reading *reading, bool is_kernel, uint32_t *ret)
{
	const struct profile_frame frame = {
		.name = is_kernel ? "[kernel]" : FRAME_NAME_UNKNOWN,
		.image = "",
		.tier = "",
		.reason = is_kernel ? "the recording has no names of the kernel"
				    : "the recording has nothing about this address",
		.kind = is_kernel ? FRAME_KIND_KERNEL : FRAME_KIND_UNKNOWN,
	};

	return frame_table_add(reading->profile->frames, &frame, ret);
}

static struct sym_error *mark_guessed(struct frame_table *frames, uint32_t *frame)
{
	struct profile_frame guessed = *frame_table_at(frames, *frame);

	guessed.is_guessed = true;
	return frame_table_add(frames, &guessed, frame);
}

/*
 * `is_return`: the call is before the address. Where nothing is before it, or no code, no call was
 * made: a stack begins there, or a signal came between.
 */
static struct sym_error *name_address(struct reading *reading, int32_t pid, uint64_t time_ns,
				      uint64_t address, bool is_return, uint32_t *ret)
{
	const struct address_names *names = reading->opts->names;
	bool is_kernel = address >= kernel_begin;
	bool is_guessed = !is_kernel && address & RAW_ADDRESS_IS_GUESSED;
	uint64_t plain = is_guessed ? address & ~RAW_ADDRESS_IS_GUESSED : address;
	struct sym_error *error;

	if (is_kernel)
		pid = KERNEL_PID;
	error = names->frame(names->context, reading->profile->frames, pid, time_ns,
			     plain - is_return, ret);
	if (!error && *ret == FRAME_NONE && is_return)
		error = names->frame(names->context, reading->profile->frames, pid, time_ns, plain,
				     ret);
	if (!error && *ret == FRAME_NONE)
		error = unknown_frame(reading, is_kernel, ret);
	if (!error && is_guessed)
		error = mark_guessed(reading->profile->frames, ret);
	return error;
}

/* Addresses innermost first to frames outermost first. */
static struct sym_error *name_chain(struct reading *reading, const struct raw_stack *raw,
				    uint64_t time_ns)
{
	struct sym_error *error = NULL;
	bool is_first = true, was_kernel = false;

	for (size_t i = 0; !error && i < raw->count; i++) {
		bool is_kernel = raw->addresses[i] >= kernel_begin;

		/* In user space the innermost is where the thread entered the kernel. */
		if (was_kernel && !is_kernel)
			is_first = true;
		error = name_address(reading, (int32_t)raw->process, time_ns, raw->addresses[i],
				     !is_first, &reading->frames[raw->count - 1 - i]);
		is_first = false;
		was_kernel = is_kernel;
	}
	return error;
}

static struct sym_error *name_stack(struct reading *reading, uint32_t number, uint64_t time_ns,
				    uint32_t *ret)
{
	struct raw_stack *raw = reading->raw.items[number];
	const struct address_names *names = reading->opts->names;
	uint32_t epoch = names->epoch(names->context, (int32_t)raw->process, time_ns);
	struct sym_error *error;

	*ret = raw->stack;
	if (raw->epoch == epoch && raw->stack != NO_STACK)
		return NULL;
	error = name_chain(reading, raw, time_ns);
	if (!error)
		error = frame_table_add_stack(reading->profile->frames, reading->frames, raw->count,
					      (enum stack_end)raw->end, ret);
	raw->epoch = epoch;
	raw->stack = *ret;
	return error;
}

static struct sym_error *find_stack(struct reading *reading, uint32_t raw, uint64_t time_ns,
				    uint32_t *ret)
{
	struct sym_error *error = NULL;

	if (raw != NO_STACK)
		return name_stack(reading, raw, time_ns, ret);
	if (reading->empty_stack == FRAME_NONE)
		error = frame_table_add_stack(reading->profile->frames, NULL, 0, STACK_END_NO_STACK,
					      &reading->empty_stack);
	*ret = reading->empty_stack;
	return error;
}

/* ---- moments, in the order of time ----------------------------------------------------------- */

static uint64_t window_begin(const struct reading *reading)
{
	return reading->begin_ns + (uint64_t)(reading->opts->from_s * 1e9);
}

static uint64_t window_end(const struct reading *reading)
{
	return reading->opts->to_s > 0 ? reading->begin_ns + (uint64_t)(reading->opts->to_s * 1e9)
				       : UINT64_MAX;
}

static struct sym_error *count_away(struct reading *reading, uint32_t thread,
				    const struct away_time *away)
{
	uint64_t begin = away->begin_ns, end = away->end_ns;
	uint32_t event, stack;
	struct sym_error *error;

	if (begin < window_begin(reading))
		begin = window_begin(reading);
	if (end > window_end(reading))
		end = window_end(reading);
	if (begin >= end)
		return NULL;
	if (away->is_early) {
		reading->profile->losses.early_waits++;
		reading->profile->losses.early_wait_ns += end - begin;
		return NULL;
	}
	reading->profile->losses.waits_without_stack += away->stack == NO_STACK;
	error = off_cpu_event(reading, away->is_preempted, &event);
	if (!error)
		error = find_stack(reading, away->stack, away->begin_ns, &stack);
	if (!error && away->stack != NO_STACK)
		error = profile_add_span(reading->profile,
					 &(struct profile_span){ begin, end, thread, stack });
	return error ? error : profile_add(reading->profile, event, thread, stack, 1, end - begin);
}

static struct sym_error *take_switch(struct reading *reading, const struct moment *moment)
{
	struct thread_table *threads = &reading->profile->threads;
	struct sym_error *error = NULL;
	struct away_time away;
	bool was_away = false;
	uint32_t thread;

	if (moment->pid != UNKNOWN_PID)
		error = thread_table_find(threads, moment->pid, moment->tid, &thread);
	else if (!thread_table_has(threads, moment->tid, &thread))
		return NULL;
	if (error)
		return error;
	if (moment->kind == MOMENT_SWITCH_OUT)
		return off_cpu_out(&reading->off_cpu, thread, moment->time_ns, moment->flag);
	error = off_cpu_in(&reading->off_cpu, thread, moment->time_ns, reading->begin_ns, &away,
			   &was_away);
	return error || !was_away ? error : count_away(reading, thread, &away);
}

static struct sym_error *take_sample_moment(struct reading *reading, const struct moment *moment)
{
	const struct input_event *input = &reading->inputs[moment->event];
	uint32_t thread, stack;
	struct sym_error *error =
		thread_table_find(&reading->profile->threads, moment->pid, moment->tid, &thread);

	if (error)
		return error;
	if (input->is_switch)
		return off_cpu_sample(&reading->off_cpu, thread, moment->stack);
	if (input->is_sched_switch)
		error = off_cpu_sample(&reading->off_cpu, thread, moment->stack);
	else if (input->is_time)
		error = off_cpu_note_running(&reading->off_cpu, thread);
	if (error)
		return error;
	if (!input->tracepoint &&
	    (moment->time_ns < window_begin(reading) || moment->time_ns >= window_end(reading)))
		return NULL;
	error = find_stack(reading, moment->stack, moment->time_ns, &stack);
	if (error)
		return error;
	if (input->tracepoint)
		return event_match_note_hit(reading->opts->match, moment->tid, input->tracepoint,
					    moment->time_ns, stack);
	if (input->is_time)
		error = profile_add_span(reading->profile,
					 &(struct profile_span){ moment->time_ns - moment->period,
								 moment->time_ns, thread, stack });
	return error ? error
		     : profile_add_sample(reading->profile,
					  &(struct profile_sample){ moment->time_ns, moment->period,
								    input->number, thread, stack });
}

static struct sym_error *take_life(struct reading *reading, const struct moment *moment)
{
	struct thread_table *threads = &reading->profile->threads;
	struct sym_error *error = NULL;
	uint32_t thread;

	if (moment->kind == MOMENT_FORK)
		error = thread_table_fork(threads, moment->pid, moment->tid, moment->parent_pid,
					  moment->parent_tid);
	if (!error)
		error = thread_table_find(threads, moment->pid, moment->tid, &thread);
	return error ? error
		     : off_cpu_note_life(&reading->off_cpu, thread, moment->kind == MOMENT_EXIT);
}

static struct sym_error *take_moment(void *context, const struct moment *moment)
{
	struct reading *reading = context;

	if (moment->time_ns && !reading->begin_ns)
		reading->begin_ns = moment->time_ns;
	if (moment->time_ns > reading->last_ns)
		reading->last_ns = moment->time_ns;
	switch ((enum moment_kind)moment->kind) {
	case MOMENT_SAMPLE:
		return take_sample_moment(reading, moment);
	case MOMENT_SWITCH_OUT:
	case MOMENT_SWITCH_IN:
		return take_switch(reading, moment);
	case MOMENT_COMM:
		return thread_table_name(&reading->profile->threads, moment->pid, moment->tid,
					 moment->comm, moment->flag);
	case MOMENT_FORK:
	case MOMENT_EXIT:
		return take_life(reading, moment);
	}
	return NULL;
}

/* ---- records --------------------------------------------------------------------------------- */

/* The chain without its markers, innermost first. */
static size_t copy_chain(struct reading *reading, const struct perf_sample *sample)
{
	size_t count = 0;

	for (size_t i = 0; i < sample->chain_count && count < MOST_CHAIN; i++) {
		uint64_t address;

		memcpy(&address, sample->chain + i * 8, sizeof(address));
		if (address < context_first)
			reading->chain[count++] = address < kernel_begin
							  ? address & ~RAW_ADDRESS_IS_GUESSED
							  : address;
	}
	return count;
}

static enum stack_end note_guessed(struct reading *reading, const struct perf_sample *sample,
				   size_t count)
{
	const struct stack_notes *notes = reading->opts->notes;
	const struct stack_note *note;
	size_t first_user = 0;

	if (!notes)
		return STACK_END_NOT_SAID;
	note = stack_notes_find(notes, sample->time_ns, (int32_t)sample->tid);
	if (!note)
		return STACK_END_WHOLE;
	while (first_user < count && reading->chain[first_user] >= kernel_begin)
		first_user++;
	for (size_t i = 0; i < note->guessed_count; i++) {
		size_t at = first_user + notes->guessed[note->first_guessed + i];

		if (at < count)
			reading->chain[at] |= RAW_ADDRESS_IS_GUESSED;
	}
	return (enum stack_end)note->end;
}

/* The program counter, and then the stack pointer, are needed. */
static bool take_registers(const struct perf_event_attr *attr, const struct perf_sample *sample,
			   struct sym_unwind_registers *ret)
{
	/* PERF_REG_ARM64_PC; x86-64 has no such number. */
	bool is_arm = attr->sample_regs_user >> 32 & 1;

	if (!sample->registers_abi || !attr->sample_regs_user)
		return false;
	sym_unwind_registers_of_sample(is_arm ? SYM_UNWIND_ARM64 : SYM_UNWIND_X86_64,
				       attr->sample_regs_user, sample->registers, ret);
	return true;
}

static bool has_user_part(const struct reading *reading, size_t count)
{
	return count && reading->chain[count - 1] < kernel_begin;
}

/* The user's part of the chain from a copy of the stack. */
static struct sym_error *unwind_copy(struct reading *reading, const struct perf_event_attr *attr,
				     const struct perf_sample *sample, size_t *count,
				     enum stack_end *end_ret)
{
	const struct address_names *names = reading->opts->names;
	struct sym_unwind_registers registers;
	struct sym_unwind_stack copy = { .bytes = sample->stack,
					 .size_bytes = sample->stack_bytes };
	struct unwound_stack stack;
	struct sym_error *error;

	if (!names->unwind || !sample->stack || !take_registers(attr, sample, &registers))
		return NULL;
	copy.address = registers.values[registers.machine == SYM_UNWIND_ARM64 ? 31 : 7];
	error = names->unwind(names->context, (int32_t)sample->pid, sample->time_ns, &registers,
			      &copy, &stack);
	if (error && sym_error_code(error) == SYM_ERROR_ARGUMENT) {
		sym_error_destroy(error);
		return NULL;
	}
	for (size_t i = 0; !error && i < stack.count && *count < MOST_CHAIN; i++) {
		uint64_t address = stack.frames[i].address & ~RAW_ADDRESS_IS_GUESSED;

		if (address < kernel_begin)
			reading->chain[(*count)++] = stack.frames[i].flags & SYM_FRAME_IS_GUESSED
							     ? address | RAW_ADDRESS_IS_GUESSED
							     : address;
	}
	if (!error)
		*end_ret = (enum stack_end)stack.end;
	return error;
}

static struct sym_error *take_chain(struct reading *reading, const struct perf_event_attr *attr,
				    const struct perf_sample *sample, enum stack_end *end_ret,
				    size_t *count_ret)
{
	struct sym_error *error = NULL;
	size_t count = copy_chain(reading, sample);

	*end_ret = STACK_END_NOT_SAID;
	if (has_user_part(reading, count) || !sample->stack)
		*end_ret = note_guessed(reading, sample, count);
	else
		error = unwind_copy(reading, attr, sample, &count, end_ret);
	if (!count)
		reading->chain[count++] = sample->ip;
	*count_ret = count;
	return error;
}

/* One thread leaves and another one comes. Thread 0 is that of the idle processor. */
static struct sym_error *take_sched_switch(struct reading *reading,
					   const struct perf_sample *sample)
{
	struct moment moment = { .kind = MOMENT_SWITCH_OUT,
				 .time_ns = sample->time_ns,
				 .pid = (int32_t)sample->pid,
				 .tid = (int32_t)sample->tid };
	struct sched_switch found;
	struct sym_error *error = NULL;

	if (!sched_switch_read(sample, &found)) {
		reading->profile->losses.unreadable_switches++;
		return NULL;
	}
	moment.flag = found.is_preempted;
	if (moment.time_ns && moment.tid && sample->tid != SCHED_SWITCH_ENDED)
		error = moment_queue_add(&reading->queue, &moment);
	if (error || !moment.time_ns || !found.next_tid)
		return error;
	moment.kind = MOMENT_SWITCH_IN;
	moment.pid = UNKNOWN_PID;
	moment.tid = found.next_tid;
	return moment_queue_add(&reading->queue, &moment);
}

static struct sym_error *take_sample(struct reading *reading, const struct perf_record *record)
{
	struct moment moment = { .kind = MOMENT_SAMPLE };
	const struct perf_event_attr *attr;
	struct perf_sample sample;
	struct sym_error *error;
	enum stack_end end;
	size_t event, count;

	if (!perf_events_find(&reading->events, record, &event))
		return NULL;
	attr = &reading->events.items[event]->attr;
	if (!perf_sample_read(attr, record->bytes, record->size_bytes, &sample)) {
		reading->profile->losses.bad_records++;
		return NULL;
	}
	error = take_chain(reading, attr, &sample, &end, &count);
	if (error)
		return error;
	moment.time_ns = sample.time_ns;
	moment.pid = (int32_t)sample.pid;
	moment.tid = (int32_t)sample.tid;
	moment.event = (uint16_t)event;
	moment.period = attr->sample_type & PERF_SAMPLE_PERIOD
				? sample.period
				: reading->inputs[event].usual_period;
	error = raw_stacks_add(&reading->raw, sample.pid, (uint16_t)end, reading->chain, count,
			       &moment.stack);
	if (!error)
		error = moment_queue_add(&reading->queue, &moment);
	if (!error && reading->inputs[event].is_sched_switch)
		error = take_sched_switch(reading, &sample);
	return error;
}

static struct sym_error *take_other(struct reading *reading, const struct perf_record *record)
{
	struct reader reader = reader_over(record->bytes, record->size_bytes);
	struct moment moment = { 0 };
	struct perf_sample trailer;
	const char *comm;

	perf_events_read_id(&reading->events, record, &trailer);
	moment.time_ns = trailer.time_ns;
	moment.pid = (int32_t)trailer.pid;
	moment.tid = (int32_t)trailer.tid;
	reader_skip(&reader, 8);
	switch (record->type) {
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		moment.kind = record->misc & MISC_SWITCH_OUT ? MOMENT_SWITCH_OUT : MOMENT_SWITCH_IN;
		moment.flag = record->misc & MISC_SWITCH_OUT_PREEMPT;
		if (!moment.time_ns || !moment.tid)
			return NULL; /* the idle thread */
		break;
	case PERF_RECORD_COMM:
		moment.kind = MOMENT_COMM;
		moment.flag = record->misc & MISC_COMM_EXEC;
		moment.pid = (int32_t)reader_u32(&reader);
		moment.tid = (int32_t)reader_u32(&reader);
		comm = reader_string(&reader);
		if (comm)
			memcpy(moment.comm, comm, strnlen(comm, sizeof(moment.comm) - 1));
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		moment.kind = record->type == PERF_RECORD_FORK ? MOMENT_FORK : MOMENT_EXIT;
		moment.pid = (int32_t)reader_u32(&reader);
		moment.parent_pid = (int32_t)reader_u32(&reader);
		moment.tid = (int32_t)reader_u32(&reader);
		moment.parent_tid = (int32_t)reader_u32(&reader);
		break;
	default:
		return NULL;
	}
	if (reader_ok(&reader))
		return moment_queue_add(&reading->queue, &moment);
	reading->profile->losses.bad_records++;
	return NULL;
}

static void take_loss(struct reading *reading, const struct perf_record *record)
{
	struct profile_losses *losses = &reading->profile->losses;
	struct reader reader = reader_over(record->bytes, record->size_bytes);

	reader_skip(&reader, 8);
	if (record->type == PERF_RECORD_THROTTLE) {
		losses->throttled++;
	} else if (record->type == PERF_RECORD_LOST) {
		reader_skip(&reader, 8);
		losses->lost_records += reader_u64(&reader);
	} else {
		losses->lost_samples += reader_u64(&reader);
	}
}

static struct sym_error *take_record(void *context, const struct perf_record *record)
{
	struct reading *reading = context;
	struct sym_error *error;

	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		return take_sample(reading, record);
	case PERF_RECORD_FINISHED_ROUND:
		return moment_queue_end_round(&reading->queue);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
	case PERF_RECORD_THROTTLE:
		take_loss(reading, record);
		return NULL;
	case PERF_RECORD_HEADER_ATTR:
	case PERF_RECORD_EVENT_UPDATE:
	case PERF_RECORD_HEADER_FEATURE:
		error = perf_events_take(&reading->events, record);
		return error ? error : take_events(reading);
	default:
		return take_other(reading, record);
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

#define WANTED(type) (1ull << (type))

static struct sym_error *read_records(struct reading *reading, int fd, const char *path)
{
	const struct perf_data_job job = {
		.input_fd = fd,
		.output_fd = -1,
		.path = path,
		.wanted_types = WANTED(PERF_RECORD_SAMPLE) | WANTED(PERF_RECORD_COMM) |
				WANTED(PERF_RECORD_FORK) | WANTED(PERF_RECORD_EXIT) |
				WANTED(PERF_RECORD_SWITCH) | WANTED(PERF_RECORD_SWITCH_CPU_WIDE) |
				WANTED(PERF_RECORD_LOST) | WANTED(PERF_RECORD_LOST_SAMPLES) |
				WANTED(PERF_RECORD_THROTTLE),
		.wants_user_types = true,
		.take = take_record,
		.context = reading,
	};
	struct perf_data_result result;
	struct sym_error *error = perf_data_copy(&job, &result);

	if (error)
		return error;
	reading->profile->losses.cut = result.cut;
	return moment_queue_finish(&reading->queue);
}

static bool has_sched_switch(const struct reading *reading)
{
	for (size_t i = 0; i < reading->input_count; i++)
		if (reading->inputs[i].is_sched_switch)
			return true;
	return false;
}

/*
 * Threads that are away when the recording ends. With sched:sched_switch the return of a thread is
 * the sample of another one, which need not be recorded: then they may be back.
 */
static struct sym_error *count_unfinished(struct reading *reading)
{
	struct profile_losses *losses = &reading->profile->losses;
	struct sym_error *error = NULL;
	struct away_time away;

	losses->by_sched_switch = has_sched_switch(reading);
	losses->waits_without_end += reading->off_cpu.lost_returns;
	for (uint32_t i = 0; !error && i < reading->profile->threads.thread_count; i++) {
		if (!off_cpu_end(&reading->off_cpu, i, reading->last_ns, &away))
			continue;
		if (losses->by_sched_switch)
			losses->waits_without_end++;
		else
			error = count_away(reading, i, &away);
	}
	return error;
}

static struct sym_error *read_all(struct reading *reading, int fd, const char *path)
{
	const struct perf_profile_opts *opts = reading->opts;
	struct sym_error *error = perf_events_read(&reading->events, fd);

	reading->begin_ns = opts->begin_ns;
	if (!error)
		error = take_events(reading);
	if (!error)
		error = read_records(reading, fd, path);
	if (opts->end_ns > reading->last_ns)
		reading->last_ns = opts->end_ns;
	if (!error)
		error = count_unfinished(reading);
	reading->profile->begin_ns = window_begin(reading);
	reading->profile->end_ns =
		window_end(reading) < reading->last_ns ? window_end(reading) : reading->last_ns;
	return error;
}

struct sym_error *perf_profile_read(struct profile *profile, int fd, const char *path,
				    const struct perf_profile_opts *opts)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	struct sym_error *error;

	if (!reading)
		return &sym_error_no_memory;
	reading->profile = profile;
	reading->opts = opts;
	reading->off_cpu_event = reading->preempted_event = UINT32_MAX;
	reading->empty_stack = FRAME_NONE;
	reading->queue.take = take_moment;
	reading->queue.context = reading;
	reading->queue.keeps_all = opts->in_parts;
	error = read_all(reading, fd, path);
	perf_events_deinit(&reading->events);
	raw_stacks_deinit(&reading->raw);
	moment_queue_deinit(&reading->queue);
	off_cpu_deinit(&reading->off_cpu);
	free(reading->inputs);
	free(reading);
	return error;
}
