/* SPDX-License-Identifier: MIT */
/*
 * By BPF: see bpf_probe.c.
 *
 * By tracefs: an event of a tracepoint (trace_event.h) for each thread and processor; threads that
 * are made later inherit it. A thread that is made while they are opened may have two; then the
 * second sample of an event has no partner.
 *
 * By thread: the attribute of a raw uprobe event has the type of the PMU "uprobe", config1 the
 * address of the path, config2 the offset
 * (Documentation/ABI/testing/sysfs-bus-event_source-devices-uprobe). Such an event is never
 * inherited. A thread that is made later gets its own when its FORK record is read, for which the
 * record wakes the reader; what it fires before that has no native stack. It needs CAP_SYS_ADMIN
 * (kernel/events/core.c, perf_uprobe_event_init()).
 */
#include "mapgen/record/event_probes.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/grow.h"
#include "libsym/error.h"
#include "mapgen/record/trace_event.h"

enum {
	MOST_ROUNDS = 32, /* searches for threads that were made since the search before */
	/* The program copies what is used only. An exception that is thrown in a catch block has
	 * the frames of the first one, some 20 KiB, below its own. */
	BPF_STACK_BYTES = 60 << 10,
};

struct probed_thread {
	UT_hash_handle hh;
	int32_t tid;
};

struct probed_process {
	int32_t pid;
	char *path; /* of the file with the code */
	uint64_t offsets[MOST_PROBES];
	uint64_t numbers[MOST_PROBES];
	size_t count;
	int link_fd;               /* of the way PROBE_BY_BPF */
	uint64_t ids[MOST_PROBES]; /* of the way PROBE_BY_TRACEFS */
	bool is_thinned[MOST_PROBES];
	struct probed_thread *threads; /* opened; of the other ways */
};

void event_probes_init(struct event_probes *probes, struct event_set *events,
		       uint32_t samples_per_second)
{
	*probes = (struct event_probes){ .events = events,
					 .bpf = BPF_PROBE_CLOSED,
					 .samples_per_second = samples_per_second,
					 .budget = { .per_second = samples_per_second } };
}

static void close_link(struct probed_process *process)
{
	if (process->link_fd >= 0)
		close(process->link_fd);
	process->link_fd = -1;
}

void event_probes_deinit(struct event_probes *probes)
{
	for (size_t i = 0; i < probes->process_count; i++) {
		close_link(&probes->processes[i]);
		free(probes->processes[i].path);
		HASH_DESTROY(probes->processes[i].threads, free);
	}
	free(probes->processes);
	bpf_probe_close(&probes->bpf);
	if (probes->way == PROBE_BY_TRACEFS)
		trace_event_remove_own();
	probes->processes = NULL;
	probes->process_count = 0;
}

void event_probes_stop(struct event_probes *probes)
{
	for (size_t i = 0; i < probes->process_count; i++)
		close_link(&probes->processes[i]);
}

struct event_probe_counts event_probes_counts(const struct event_probes *probes)
{
	const struct bpf_counters counts = bpf_probe_counts(&probes->bpf);

	return (struct event_probe_counts){ .thinned = counts.thinned + probes->budget.exceeded,
					    .thinned_in_kernel = counts.thinned,
					    .lost = counts.without_slot +
						    event_set_lost_probe_samples(probes->events) };
}

/* ---- by BPF ------------------------------------------------------------------------------------
 */

static struct bpf_sample_plan sample_plan(const struct event_probes *probes)
{
	const struct perf_event_attr *attr = &probes->events->attributes[EVENT_PROBE];

	return (struct bpf_sample_plan){ attr->sample_regs_user, BPF_STACK_BYTES };
}

/* The program copies registers and stack. */
static struct perf_event_attr output_attribute(const struct event_probes *probes)
{
	struct perf_event_attr attr = probes->events->attributes[EVENT_PROBE];

	attr.sample_type &= ~(uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
	attr.sample_regs_user = 0;
	attr.sample_stack_user = 0;
	return attr;
}

/* An event for the program's samples on each processor. */
static struct sym_error *open_outputs(struct event_probes *probes, int *fds)
{
	struct perf_event_attr attr = output_attribute(probes);
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i < probes->events->cpu_count; i++)
		error = event_set_add_probe(probes->events, &attr, -1, i, MOST_PROBES, &fds[i]);
	return error;
}

static struct sym_error *open_bpf(struct event_probes *probes)
{
	struct event_set *set = probes->events;
	int *fds AUTO_FREE = calloc(set->cpu_count, sizeof(*fds));
	struct bpf_outputs outputs = { .cpus = set->cpus, .fds = fds, .count = set->cpu_count };
	const struct bpf_sample_plan plan = sample_plan(probes);
	struct sym_error *error;

	if (!fds)
		return &sym_error_no_memory;
	for (size_t i = 0; i < set->cpu_count; i++)
		if ((uint32_t)set->cpus[i] >= outputs.most_cpu)
			outputs.most_cpu = (uint32_t)set->cpus[i] + 1;
	error = open_outputs(probes, fds);
	if (!error)
		error = bpf_probe_open(&probes->bpf, &outputs, &plan, probes->samples_per_second);
	return error;
}

static struct sym_error *add_by_bpf(struct event_probes *probes, struct probed_process *process)
{
	struct sym_error *error = NULL;

	if (probes->bpf.program_fd < 0)
		error = open_bpf(probes);
	if (!error)
		error = bpf_probe_attach(&probes->bpf, process->pid, process->path,
					 process->offsets, process->numbers, process->count,
					 &process->link_fd);
	return error;
}

/* ---- by tracefs, by thread
 * ---------------------------------------------------------------------------------
 */

static struct sym_error *read_type(uint32_t *ret)
{
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int count = file ? fscanf(file, "%u", ret) : 0;

	if (file)
		fclose(file);
	return count == 1 ? NULL
			  : sym_error_create(SYM_ERROR_UNSUPPORTED, "this kernel has no uprobes");
}

static bool has_thread(const struct probed_process *process, int32_t tid)
{
	const struct probed_thread *thread;

	HASH_FIND(hh, process->threads, &tid, sizeof(tid), thread);
	return thread;
}

static struct sym_error *note_thread(struct probed_process *process, int32_t tid)
{
	return hash_find_or_add(&process->threads, &tid, sizeof(tid),
				offsetof(struct probed_thread, tid), sizeof(struct probed_thread),
				NULL)
		       ? NULL
		       : &sym_error_no_memory;
}

static struct perf_event_attr attribute_of(const struct event_probes *probes,
					   const struct probed_process *process, size_t number)
{
	struct perf_event_attr attr = probes->events->attributes[EVENT_PROBE];

	attr.sample_type &= ~(uint64_t)PERF_SAMPLE_RAW;
	if (probes->way == PROBE_BY_TRACEFS) {
		attr.type = PERF_TYPE_TRACEPOINT;
		attr.config = process->ids[number];
		attr.inherit = 1;
	} else {
		attr.type = probes->uprobe_type;
		attr.config = 0; /* at entry, not at return */
		attr.config1 = (uintptr_t)process->path;
		attr.config2 = process->offsets[number];
		attr.inherit = 0;
	}
	return attr;
}

/* Without BPF the samples beyond the budget are left out when they are read. */
static void open_thinning(struct event_probes *probes)
{
	if (probes->bpf.program_fd < 0)
		sym_error_destroy(
			bpf_probe_open_thinning(&probes->bpf, probes->samples_per_second));
}

/*
 * All events of one event of tracefs share their programs. A raw uprobe event has its own, which
 * runs at the hits of all threads: it would count each hit once for each thread.
 */
static void thin(struct event_probes *probes, struct probed_process *process, size_t number, int fd)
{
	if (probes->bpf.program_fd >= 0 && !process->is_thinned[number])
		process->is_thinned[number] = bpf_probe_thin(&probes->bpf, fd);
}

static struct sym_error *open_thread(struct event_probes *probes, struct probed_process *process,
				     int32_t tid)
{
	struct sym_error *error = note_thread(process, tid);
	int fd;

	for (size_t i = 0; !error && i < process->count; i++) {
		struct perf_event_attr attr = attribute_of(probes, process, i);

		for (size_t cpu = 0; !error && cpu < probes->events->cpu_count; cpu++) {
			error = event_set_add_probe(probes->events, &attr, tid, cpu,
						    (uint32_t)process->numbers[i], &fd);
			if (!error)
				thin(probes, process, i, fd);
		}
	}
	if (error && sym_error_code(error) == SYM_ERROR_NOT_FOUND) {
		sym_error_destroy(error);
		error = NULL;
	}
	return error;
}

/* One round over /proc/PID/task; *found_ret: there was a thread without events. */
static struct sym_error *open_threads(struct event_probes *probes, struct probed_process *process,
				      bool *found_ret)
{
	char path[64];
	DIR *directory GUARDED(dir) = NULL;
	const struct dirent *entry;
	struct sym_error *error = NULL;

	*found_ret = false;
	snprintf(path, sizeof(path), "/proc/%d/task", process->pid);
	directory = opendir(path);
	while (!error && directory && (entry = readdir(directory))) {
		int32_t tid = (int32_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0 || has_thread(process, tid))
			continue;
		*found_ret = true;
		if (probes->way == PROBE_BY_THREAD)
			error = event_set_follow_births(probes->events, tid);
		if (!error)
			error = open_thread(probes, process, tid);
	}
	return error;
}

static struct sym_error *open_all_threads(struct event_probes *probes,
					  struct probed_process *process)
{
	struct sym_error *error = NULL;
	bool found = true;

	for (int round = 0; !error && found && round < MOST_ROUNDS; round++)
		error = open_threads(probes, process, &found);
	return error;
}

static struct sym_error *add_by_tracefs(struct event_probes *probes, struct probed_process *process)
{
	struct sym_error *error = NULL;

	open_thinning(probes);
	for (size_t i = 0; !error && i < process->count; i++) {
		char name[128];

		snprintf(name, sizeof(name), "%s_%d", probes->names[process->numbers[i]],
			 process->pid);
		error = trace_event_add(name, process->path, process->offsets[i], &process->ids[i]);
	}
	return error ? error : open_all_threads(probes, process);
}

static struct sym_error *add_by_thread(struct event_probes *probes, struct probed_process *process)
{
	struct sym_error *error = read_type(&probes->uprobe_type);

	return error ? error : open_all_threads(probes, process);
}

struct sym_error *event_probes_note_thread(struct event_probes *probes, int32_t pid, int32_t tid)
{
	if (probes->way != PROBE_BY_THREAD)
		return NULL;
	for (size_t i = 0; i < probes->process_count; i++) {
		struct probed_process *process = &probes->processes[i];

		if (process->pid == pid && !has_thread(process, tid))
			return open_thread(probes, process, tid);
	}
	return NULL;
}

/* ---- all ---------------------------------------------------------------------------------------
 */

static size_t number_of(struct event_probes *probes, const char *name)
{
	for (size_t i = 0; i < probes->name_count; i++)
		if (!strcmp(probes->names[i], name))
			return i;
	if (probes->name_count == MOST_PROBES)
		return MOST_PROBES;
	probes->names[probes->name_count] = name;
	return probes->name_count++;
}

static struct sym_error *add_by(struct event_probes *probes, struct probed_process *process)
{
	switch (probes->way) {
	case PROBE_BY_BPF:
		return add_by_bpf(probes, process);
	case PROBE_BY_TRACEFS:
		return add_by_tracefs(probes, process);
	default:
		return add_by_thread(probes, process);
	}
}

/* The first process decides for all. The error is that of the last way. */
static struct sym_error *choose_way(struct event_probes *probes, struct probed_process *process)
{
	struct sym_error *error = NULL;

	if (probes->way != PROBE_NOT_OPEN)
		return add_by(probes, process);
	trace_event_remove_left();
	while (probes->way < PROBE_BY_THREAD) {
		probes->way++;
		sym_error_destroy(error);
		error = add_by(probes, process);
		if (!error || sym_error_code(error) == SYM_ERROR_NO_MEMORY)
			return error;
		HASH_DESTROY(process->threads, free);
		memset(process->is_thinned, 0, sizeof(process->is_thinned));
		bpf_probe_close(&probes->bpf);
	}
	probes->way = PROBE_NOT_OPEN;
	return error;
}

struct sym_error *event_probes_add(struct event_probes *probes, int32_t pid, const char *path,
				   const char *const *names, const uint64_t *offsets, size_t count)
{
	struct probed_process *process;
	struct sym_error *error;

	if (!grow_items((void **)&probes->processes, &probes->process_capacity,
			probes->process_count, sizeof(*probes->processes)))
		return &sym_error_no_memory;
	process = &probes->processes[probes->process_count];
	*process = (struct probed_process){ .pid = pid, .link_fd = -1, .path = strdup(path) };
	if (!process->path)
		return &sym_error_no_memory;
	for (size_t i = 0; i < count && process->count < MOST_PROBES; i++) {
		size_t number =
			offsets[i] == UINT64_MAX ? MOST_PROBES : number_of(probes, names[i]);

		if (number == MOST_PROBES)
			continue;
		process->offsets[process->count] = offsets[i];
		process->numbers[process->count++] = number;
	}
	probes->process_count++;
	if (!process->count)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"this runtime has no places for probes");
	error = choose_way(probes, process);
	if (error)
		process->count = 0;
	return error;
}

bool event_probes_may_take(struct event_probes *probes, uint64_t time_ns)
{
	return probes->way == PROBE_BY_BPF || event_budget_take(&probes->budget, time_ns);
}

bool event_probes_read(const struct event_probes *probes, const struct perf_event_header *record,
		       struct perf_sample *ret)
{
	struct perf_event_attr attr = probes->events->attributes[EVENT_PROBE];
	const struct bpf_sample_plan plan = sample_plan(probes);

	if (probes->way == PROBE_BY_BPF) {
		attr = output_attribute(probes);
		return perf_sample_read(&attr, record, record->size, ret) &&
		       bpf_probe_read(&plan, ret);
	}
	attr.sample_type &= ~(uint64_t)PERF_SAMPLE_RAW;
	return perf_sample_read(&attr, record, record->size, ret);
}

uint32_t event_probes_number(const struct event_probes *probes, const struct perf_sample *sample)
{
	const struct event_member *member = event_set_find(probes->events, sample->id);
	uint32_t number;

	if (!member || member->kind != EVENT_PROBE)
		return MOST_PROBES;
	if (member->probe < MOST_PROBES)
		return member->probe;
	if (sample->raw_bytes < sizeof(number))
		return MOST_PROBES;
	memcpy(&number, sample->raw, sizeof(number));
	return number < MOST_PROBES ? number : MOST_PROBES;
}
