/* SPDX-License-Identifier: MIT */
#include "mapgen/record/event_set.h"

#include <asm/perf_regs.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "libsym/error.h"
#include "mapgen/perfdata/perf_sample.h"

/* linux/capability.h is older than Linux 5.8 on some machines. */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

enum {
	MOST_RING_PAGES = 1 << 15, /* 128 MiB */
	FEWEST_RING_PAGES = 8,
	MOST_POLLED = 1024, /* rings; the time of a step wakes the reader of others */
	MOST_ROUNDS = 32,   /* searches for threads that were made since the search before */
	WAKEUP_SHARE = 8,   /* of a ring that is filled when its reader is woken */
	MOST_LIST_BYTES = 64 << 20,
	FORMAT_LOST = 1 << 4, /* PERF_FORMAT_LOST of Linux 6.0 */
};

/* All rings of a kind together, where memory may be locked: two of 32 and of 128 MiB, four of 16
 * and of 64. What is more than a power of two is for the page before each ring. */
static const size_t rings_bytes[EVENT_KINDS] = { 65 << 20, 257 << 20, 257 << 20, 0 };

/* ---- attributes ------------------------------------------------------------------------------ */

#ifdef __x86_64__
/* All but the segment registers, which are of no use for a stack. */
static const uint64_t all_registers =
	((1ull << PERF_REG_X86_64_MAX) - 1) & ~(1ull << PERF_REG_X86_DS | 1ull << PERF_REG_X86_ES |
						1ull << PERF_REG_X86_FS | 1ull << PERF_REG_X86_GS);
/* Those that a called function preserves, and where the thread is: all that a row needs at a place
 * where no row of this function needs others. Each register of a sample costs the target 50 ns. */
static const uint64_t preserved_registers = 1ull << PERF_REG_X86_BX | 1ull << PERF_REG_X86_BP |
					    1ull << PERF_REG_X86_SP | 1ull << PERF_REG_X86_IP |
					    1ull << PERF_REG_X86_R12 | 1ull << PERF_REG_X86_R13 |
					    1ull << PERF_REG_X86_R14 | 1ull << PERF_REG_X86_R15;
#else
static const uint64_t all_registers = (1ull << PERF_REG_ARM64_MAX) - 1;
static const uint64_t preserved_registers = (1ull << PERF_REG_ARM64_MAX) - 1;
#endif

static void fill_common(struct perf_event_attr *attr, const struct event_plan *plan,
			uint32_t stack_bytes)
{
	*attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(*attr),
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
			       PERF_SAMPLE_CALLCHAIN,
		.inherit = 1,
		.sample_id_all = 1,
		.exclude_kernel = !plan->has_kernel,
		.exclude_hv = 1,
		.exclude_callchain_kernel = !plan->has_kernel,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
	};
	if (!plan->copies_stacks)
		return;
	attr->exclude_callchain_user = 1;
	attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	attr->sample_regs_user = all_registers;
	attr->sample_stack_user = stack_bytes;
}

/* The target waits while its sample is written: fields that are known without are left out. */
static void fill_probe(struct perf_event_attr *attr, const struct event_plan *plan)
{
	fill_common(attr, plan, plan->probe_stack_bytes);
	attr->config = PERF_COUNT_SW_BPF_OUTPUT;
	attr->sample_period = 1;
	attr->inherit = 0;
	attr->exclude_kernel = 0;
	attr->sample_type |= PERF_SAMPLE_RAW; /* the number of the probe */
	if (!plan->copies_stacks)
		return;
	attr->sample_type &= ~(uint64_t)(PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN);
	attr->sample_regs_user = preserved_registers;
}

static void fill_attributes(struct event_set *set)
{
	struct perf_event_attr *cpu = &set->attributes[EVENT_CPU];
	struct perf_event_attr *on_switch = &set->attributes[EVENT_SWITCH];
	struct perf_event_attr *probe = &set->attributes[EVENT_PROBE];
	struct perf_event_attr *birth = &set->attributes[EVENT_BIRTH];

	fill_common(cpu, &set->plan, set->plan.cpu_stack_bytes);
	cpu->config = PERF_COUNT_SW_CPU_CLOCK;
	cpu->freq = set->plan.frequency_hz > 0;
	cpu->sample_freq = set->plan.frequency_hz;
	cpu->mmap = cpu->mmap2 = 1;
	cpu->comm = cpu->comm_exec = 1;
	cpu->task = 1;
	cpu->context_switch = set->plan.has_off_cpu;
	fill_common(on_switch, &set->plan, set->plan.switch_stack_bytes);
	on_switch->config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	on_switch->sample_period = 1;
	/* It fires in the kernel; frames of the kernel can still be left out. */
	on_switch->exclude_kernel = 0;
	fill_probe(probe, &set->plan);
	fill_common(birth, &set->plan, 0);
	birth->config = PERF_COUNT_SW_DUMMY;
	birth->task = 1;
	set->is_open[EVENT_CPU] = true;
	set->is_open[EVENT_SWITCH] = set->plan.has_off_cpu;
}

/* ---- processors -------------------------------------------------------------------------------
 */

/* "0-3,7": the list that the kernel gives. */
static size_t parse_cpus(const char *text, int *cpus, size_t capacity)
{
	size_t count = 0;

	while (*text >= '0' && *text <= '9') {
		char *end;
		long first = strtol(text, &end, 10), last = first;

		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		for (long cpu = first; cpu <= last && count < capacity; cpu++)
			cpus[count++] = (int)cpu;
		text = *end == ',' ? end + 1 : end;
	}
	return count;
}

static struct sym_error *find_cpus(struct event_set *set)
{
	static const char path[] = "/sys/devices/system/cpu/online";
	char text[4096] = "0";
	size_t capacity = (size_t)sysconf(_SC_NPROCESSORS_CONF) + 1;
	FILE *file = fopen(path, "re");

	if (file) {
		if (!fgets(text, sizeof(text), file))
			text[0] = '\0';
		fclose(file);
	}
	set->cpus = calloc(capacity, sizeof(*set->cpus));
	set->rings = calloc(capacity * EVENT_KINDS, sizeof(*set->rings));
	if (!set->cpus || !set->rings)
		return &sym_error_no_memory;
	set->cpu_count = parse_cpus(text, set->cpus, capacity);
	set->ring_count = set->cpu_count * EVENT_KINDS;
	return set->cpu_count ? NULL : sym_error_create(SYM_ERROR_FORMAT, "%s: no processor", path);
}

/* ---- room for rings ---------------------------------------------------------------------------
 */

static long read_setting(const char *path, long otherwise)
{
	FILE *file = fopen(path, "re");
	long value = otherwise;

	if (file) {
		if (fscanf(file, "%ld", &value) != 1)
			value = otherwise;
		fclose(file);
	}
	return value;
}

static long read_paranoid(void)
{
	return read_setting("/proc/sys/kernel/perf_event_paranoid", 2);
}

static bool has_capability(unsigned int number)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	return !syscall(SYS_capget, &header, data) &&
	       data[number / 32].effective & 1u << number % 32;
}

static bool may_lock_memory(void)
{
	return read_paranoid() < 0 || has_capability(CAP_IPC_LOCK);
}

bool event_set_may_see_kernel(void)
{
	return read_paranoid() < 2 || has_capability(CAP_PERFMON) || has_capability(CAP_SYS_ADMIN);
}

/* kernel/events/core.c, perf_mmap(): so much for each processor and user, then RLIMIT_MEMLOCK. */
static size_t lockable_bytes(const struct event_set *set)
{
	long per_cpu_kb = read_setting("/proc/sys/kernel/perf_event_mlock_kb", 512);
	size_t bytes = (size_t)(per_cpu_kb > 0 ? per_cpu_kb : 0) * 1024 * set->cpu_count;
	struct rlimit limit;

	if (may_lock_memory())
		return SIZE_MAX;
	if (!getrlimit(RLIMIT_MEMLOCK, &limit))
		bytes = limit.rlim_cur > SIZE_MAX - bytes ? SIZE_MAX
							  : bytes + (size_t)limit.rlim_cur;
	return bytes;
}

/* Chooses the size of each ring. One page more than the data holds the positions of kernel and
 * reader.
 */
static void choose_ring_pages(struct event_set *set)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), lockable = lockable_bytes(set);
	size_t kinds = 1u + set->plan.has_off_cpu + set->plan.has_probes;

	for (int kind = 0; kind < EVENT_KINDS; kind++) {
		size_t bytes = lockable / kinds, pages = MOST_RING_PAGES;

		if (bytes > rings_bytes[kind])
			bytes = rings_bytes[kind];
		while (pages > FEWEST_RING_PAGES &&
		       (pages + 1) * page_bytes * set->cpu_count > bytes)
			pages /= 2;
		set->ring_pages[kind] = pages;
	}
}

struct sym_error *event_set_init(struct event_set *set, const struct event_plan *plan)
{
	struct sym_error *error;

	*set = (struct event_set){ .plan = *plan };
	fill_attributes(set);
	error = find_cpus(set);
	if (!error)
		choose_ring_pages(set);
	return error;
}

void event_set_deinit(struct event_set *set)
{
	struct event_member *member, *next;

	for (size_t i = 0; i < set->ring_count; i++)
		event_ring_close(&set->rings[i].ring);
	HASH_ITER(hh, set->members, member, next)
	{
		HASH_DEL(set->members, member);
		close(member->fd);
		free(member);
	}
	free(set->rings);
	free(set->cpus);
	HASH_DESTROY(set->threads, free);
	*set = (struct event_set){ 0 };
}

/* ---- opening ----------------------------------------------------------------------------------
 */

static int open_event(const struct perf_event_attr *attr, int32_t tid, int cpu)
{
	return (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Makes the error of perf_event_open(), with the setting or capability that would permit it. */
static struct sym_error *explain(const struct event_set *set, int error)
{
	long paranoid = read_paranoid();

	if (error == EMFILE || error == ENFILE)
		return sym_error_create(SYM_ERROR_LIMIT,
					"%s: %u events are open, and each thread needs one for "
					"each processor (ulimit -n)",
					strerror(error), HASH_COUNT(set->members));
	if (error == ENOSYS)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"perf_event_open: this kernel has no perf events");
	if (error != EACCES && error != EPERM)
		return sym_error_create(SYM_ERROR_IO, "perf_event_open: %s", strerror(error));
	/* The kernel itself says EACCES; filters of system calls say EPERM. */
	if (error == EPERM)
		return sym_error_create(SYM_ERROR_PERMISSION,
					"perf_event_open is not permitted: in a container it needs "
					"a seccomp profile that allows it (--cap-add PERFMON, or "
					"--security-opt seccomp=FILE)");
	return sym_error_create(SYM_ERROR_PERMISSION,
				"perf_event_open is refused: it needs CAP_PERFMON (sudo, or "
				"--cap-add PERFMON for a container)%s",
				paranoid > 2
					? ", or sysctl kernel.perf_event_paranoid=2 and "
					  "processes of the caller's own"
					: "; without it only processes of the caller's own can "
					  "be recorded");
}

static struct sym_error *add_member(struct event_set *set, int fd, int32_t tid,
				    enum kernel_event kind, uint32_t probe)
{
	struct event_member *member;
	uint64_t id;

	if (ioctl(fd, PERF_EVENT_IOC_ID, &id))
		return sym_error_create(SYM_ERROR_IO, "PERF_EVENT_IOC_ID: %s", strerror(errno));
	member = hash_find_or_add(&set->members, &id, sizeof(id), offsetof(struct event_member, id),
				  sizeof(*member), NULL);
	if (!member)
		return &sym_error_no_memory;
	member->fd = fd;
	member->tid = tid;
	member->kind = kind;
	member->probe = probe;
	return NULL;
}

/* The first event of a kind on a processor has the ring, the others write to it. */
static struct sym_error *attach_ring(struct event_set *set, int fd, enum kernel_event kind,
				     size_t cpu)
{
	struct event_set_ring *ring = &set->rings[(size_t)kind * set->cpu_count + cpu];
	int error = -ENOMEM;

	if (ring->ring.page) {
		if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd))
			return sym_error_create(SYM_ERROR_IO, "PERF_EVENT_IOC_SET_OUTPUT: %s",
						strerror(errno));
		return NULL;
	}
	for (size_t pages = set->ring_pages[kind]; error && pages >= FEWEST_RING_PAGES; pages /= 2)
		error = event_ring_open(&ring->ring, fd, pages);
	ring->fd = fd;
	return error ? explain(set, -error) : NULL;
}

static uint32_t wakeup_bytes(const struct event_set *set, enum kernel_event kind)
{
	return (uint32_t)(set->ring_pages[kind] * (size_t)sysconf(_SC_PAGESIZE) / WAKEUP_SHARE);
}

static struct sym_error *add_event(struct event_set *set, enum kernel_event kind, int32_t tid,
				   size_t number, bool starts_on_exec)
{
	struct perf_event_attr attr = set->attributes[kind];
	struct sym_error *error;
	int fd;

	/* A clock sets a timer whenever the thread gets a processor. */
	if (kind == EVENT_CPU && !set->plan.frequency_hz)
		attr.config = PERF_COUNT_SW_DUMMY;
	attr.disabled = attr.enable_on_exec = starts_on_exec;
	attr.wakeup_watermark = kind == EVENT_BIRTH ? 1 : wakeup_bytes(set, kind);
	fd = open_event(&attr, tid, set->cpus[number]);
	if (fd < 0)
		return explain(set, errno);
	error = attach_ring(set, fd, kind, number);
	if (!error)
		error = add_member(set, fd, tid, kind, 0);
	if (error)
		close(fd);
	return error;
}

struct sym_error *event_set_add_probe(struct event_set *set, const struct perf_event_attr *attr,
				      int32_t tid, size_t number, uint32_t probe, int *fd_ret)
{
	struct perf_event_attr own = *attr;
	struct sym_error *error;
	int fd;

	own.wakeup_watermark = wakeup_bytes(set, EVENT_PROBE);
	own.read_format = FORMAT_LOST;
	fd = open_event(&own, tid, set->cpus[number]);
	if (fd < 0 && errno == EINVAL) {
		own.read_format = 0;
		fd = open_event(&own, tid, set->cpus[number]);
	}
	if (fd < 0 && errno == ESRCH)
		return sym_error_create(SYM_ERROR_NOT_FOUND, "thread %d has ended", tid);
	if (fd < 0)
		return explain(set, errno);
	error = attach_ring(set, fd, EVENT_PROBE, number);
	if (!error)
		error = add_member(set, fd, tid, EVENT_PROBE, probe);
	if (error) {
		close(fd);
		return error;
	}
	set->is_open[EVENT_PROBE] = true;
	*fd_ret = fd;
	return NULL;
}

/* A thread may have ended since it was found. */
static bool is_gone(const struct sym_error *error)
{
	return sym_error_code(error) == SYM_ERROR_IO && errno == ESRCH;
}

static struct sym_error *add_thread(struct event_set *set, int32_t tid, bool starts_on_exec)
{
	for (int kind = 0; kind <= EVENT_SWITCH; kind++) {
		for (size_t i = 0; set->is_open[kind] && i < set->cpu_count; i++) {
			struct sym_error *error =
				add_event(set, (enum kernel_event)kind, tid, i, starts_on_exec);

			if (error && kind == EVENT_SWITCH &&
			    sym_error_code(error) == SYM_ERROR_PERMISSION) {
				/* Times are still known by the SWITCH records. */
				sym_error_destroy(error);
				set->is_open[EVENT_SWITCH] = false;
				set->has_no_switch_samples = true;
				return NULL;
			}
			if (error && is_gone(error)) {
				sym_error_destroy(error);
				return NULL;
			}
			if (error)
				return error;
		}
	}
	return NULL;
}

struct sym_error *event_set_follow_births(struct event_set *set, int32_t tid)
{
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i < set->cpu_count; i++)
		error = add_event(set, EVENT_BIRTH, tid, i, false);
	if (!error || !is_gone(error))
		return error;
	sym_error_destroy(error);
	return NULL;
}

/* ---- threads ----------------------------------------------------------------------------------
 */

/* NULL: it has no events. */
static struct event_thread *find_thread(const struct event_set *set, int32_t tid)
{
	struct event_thread *thread;

	HASH_FIND(hh, set->threads, &tid, sizeof(tid), thread);
	return thread;
}

struct sym_error *event_set_note_thread(struct event_set *set, int32_t tid)
{
	return hash_find_or_add(&set->threads, &tid, sizeof(tid),
				offsetof(struct event_thread, tid), sizeof(struct event_thread),
				NULL)
		       ? NULL
		       : &sym_error_no_memory;
}

/* FORK records that have come so far; everything else waits for its reader. */
static struct sym_error *note_forks(struct event_set *set)
{
	for (size_t i = 0; i < set->ring_count; i++) {
		struct event_ring ahead = set->rings[i].ring;
		const struct perf_event_header *header;

		if (ahead.page)
			event_ring_begin(&ahead);
		while (ahead.page && (header = event_ring_next(&ahead))) {
			/* u32 pid, ppid, tid, ptid */
			const uint32_t *fields = (const uint32_t *)(header + 1);
			struct sym_error *error = NULL;

			if (header->type == PERF_RECORD_FORK)
				error = event_set_note_thread(set, (int32_t)fields[2]);
			if (error)
				return error;
		}
	}
	return NULL;
}

/* Numbers of the threads of a process, in `list` as int32_t. */
static struct sym_error *list_threads(int32_t pid, struct buf *list)
{
	char path[64];
	DIR *directory;
	const struct dirent *entry;
	bool kept = true;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	directory = opendir(path);
	if (!directory)
		return sym_error_create(SYM_ERROR_NOT_FOUND, "process %d: %s", pid,
					strerror(errno));
	while (kept && (entry = readdir(directory))) {
		int32_t tid = (int32_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0)
			kept = buf_append(list, &tid, sizeof(tid));
	}
	closedir(directory);
	return kept ? NULL : &sym_error_no_memory;
}

/*
 * Adds events to the threads that have none. *found_ret: there was such a thread.
 * A thread that inherits events has a FORK record. The records are read after the threads are
 * listed, so each listed thread that has inherited is known.
 */
static struct sym_error *add_threads(struct event_set *set, int32_t pid, bool starts_on_exec,
				     bool *found_ret)
{
	struct buf list;
	const int32_t *tids;
	struct sym_error *error;

	buf_init(&list, MOST_LIST_BYTES);
	error = list_threads(pid, &list);
	if (!error)
		error = note_forks(set);
	tids = (const int32_t *)list.data;
	*found_ret = false;
	for (size_t i = 0; !error && i < list.size_bytes / sizeof(*tids); i++) {
		if (find_thread(set, tids[i]))
			continue;
		*found_ret = true;
		error = event_set_note_thread(set, tids[i]);
		if (!error)
			find_thread(set, tids[i])->is_opened = true;
		if (!error)
			error = add_thread(set, tids[i], starts_on_exec);
	}
	buf_deinit(&list);
	return error;
}

struct sym_error *event_set_add_process(struct event_set *set, int32_t pid, bool starts_on_exec)
{
	struct sym_error *error = NULL;
	bool found = true;

	for (int round = 0; !error && found && round < MOST_ROUNDS; round++)
		error = add_threads(set, pid, starts_on_exec, &found);
	return error;
}

void event_set_note_exit(struct event_set *set, int32_t tid)
{
	struct event_thread *thread = find_thread(set, tid);

	if (thread)
		thread->is_opened = false;
}

bool event_set_is_twice(const struct event_set *set, const struct perf_event_header *record)
{
	struct perf_sample trailer = { 0 };
	const struct event_member *member;
	const struct event_thread *thread;
	uint32_t tid;
	uint64_t id;

	if ((record->type != PERF_RECORD_SAMPLE && record->type != PERF_RECORD_SWITCH) ||
	    !perf_sample_read_identifier(record, record->size, &id))
		return false;
	member = event_set_find(set, id);
	if (!member || member->tid < 0 || member->kind == EVENT_PROBE)
		return false;
	if (record->type == PERF_RECORD_SAMPLE)
		/* u64 id, u64 ip, u32 pid, u32 tid: fill_common() has chosen them */
		tid = ((const uint32_t *)(record + 1))[5];
	else if (perf_sample_read_id(&set->attributes[EVENT_CPU], record, record->size, &trailer))
		tid = trailer.tid;
	else
		return false;
	if ((int32_t)tid == member->tid)
		return false;
	thread = find_thread(set, (int32_t)tid);
	return thread && thread->is_opened;
}

struct sym_error *event_set_add_system(struct event_set *set)
{
	return add_thread(set, -1, false);
}

const struct event_member *event_set_find(const struct event_set *set, uint64_t id)
{
	const struct event_member *member;

	HASH_FIND(hh, set->members, &id, sizeof(id), member);
	return member;
}

enum kernel_event event_set_kind_of(const struct event_set *set,
				    const struct perf_event_header *record)
{
	const struct event_member *member;
	uint64_t id = 0;

	perf_sample_read_identifier(record, record->size, &id);
	member = event_set_find(set, id);
	return member ? member->kind : EVENT_CPU;
}

uint64_t event_set_lost_probe_samples(const struct event_set *set)
{
	uint64_t sum = 0, values[2]; /* count, lost */

	for (const struct event_member *member = set->members; member; member = member->hh.next)
		if (member->kind == EVENT_PROBE &&
		    read(member->fd, values, sizeof(values)) == sizeof(values))
			sum += values[1];
	return sum;
}

void event_set_disable(const struct event_set *set)
{
	for (const struct event_member *member = set->members; member; member = member->hh.next)
		ioctl(member->fd, PERF_EVENT_IOC_DISABLE, 0);
}

void event_set_wait(const struct event_set *set, int timeout_ms)
{
	struct pollfd polled[MOST_POLLED];
	nfds_t count = 0;

	for (size_t i = 0; i < set->ring_count && count < MOST_POLLED; i++)
		if (set->rings[i].ring.page)
			polled[count++] =
				(struct pollfd){ .fd = set->rings[i].fd, .events = POLLIN };
	poll(polled, count, timeout_ms);
}
