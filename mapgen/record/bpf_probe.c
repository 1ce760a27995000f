/* SPDX-License-Identifier: MIT */
/*
 * Before Linux 6.10 a link with a process filter saw its first thread only: 46ba0e49b642 "bpf: fix
 * multi-uprobe PID filtering logic".
 */
#include "mapgen/record/bpf_probe.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "libsym/error.h"
#include "mapgen/record/event_budget.h"

enum {
	/* linux/bpf.h is older than Linux 6.6 on some machines. */
	ATTACH_UPROBE_MULTI = 48,
	FIRST_MAJOR = 6,
	FIRST_MINOR = 10,
};

/* The part of union bpf_attr that BPF_LINK_CREATE reads, from Linux 6.6 on. */
struct link_request {
	uint32_t program_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, reference_offsets, numbers;
	uint32_t count, multi_flags, pid, padding;
};

static int bpf(int command, void *attr, size_t size_bytes)
{
	return (int)syscall(SYS_bpf, command, attr, size_bytes);
}

static int make_map(uint32_t type, uint32_t value_bytes, uint32_t entries)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = type;
	attr.key_size = 4;
	attr.value_size = value_bytes;
	attr.max_entries = entries;
	return bpf(BPF_MAP_CREATE, &attr, sizeof(attr));
}

static int set_output(int map_fd, uint32_t cpu, int event_fd)
{
	union bpf_attr attr;
	uint32_t value = (uint32_t)event_fd;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map_fd;
	attr.key = (uintptr_t)&cpu;
	attr.value = (uintptr_t)&value;
	return bpf(BPF_MAP_UPDATE_ELEM, &attr, sizeof(attr));
}

static struct sym_error *bpf_probe_error(const char *what)
{
	enum sym_error_code code = errno == EPERM || errno == EACCES ? SYM_ERROR_PERMISSION
				   : errno == EINVAL                 ? SYM_ERROR_UNSUPPORTED
								     : SYM_ERROR_IO;

	return sym_error_create(code, "%s: %s", what, strerror(errno));
}

static bool is_new_enough(void)
{
	struct utsname system;
	int major, minor;

	return !uname(&system) && sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
	       (major > FIRST_MAJOR || (major == FIRST_MAJOR && minor >= FIRST_MINOR));
}

void bpf_probe_close(struct bpf_probe *probe)
{
	const int fds[] = { probe->program_fd, probe->counters_fd, probe->outputs_fd,
			    probe->slots_fd };

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	*probe = BPF_PROBE_CLOSED;
}

static uint32_t most_in_window(uint32_t samples_per_second)
{
	uint64_t most = event_budget_most(samples_per_second);

	return most > INT32_MAX ? INT32_MAX : (uint32_t)most;
}

static struct sym_error *open_counters(struct bpf_probe *probe)
{
	probe->counters_fd = make_map(BPF_MAP_TYPE_ARRAY, sizeof(struct bpf_counters), 1);
	return probe->counters_fd < 0 ? bpf_probe_error("cannot make a BPF map") : NULL;
}

static struct sym_error *open_outputs(struct bpf_probe *probe, const struct bpf_outputs *outputs)
{
	probe->outputs_fd = make_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, outputs->most_cpu);
	if (probe->outputs_fd < 0)
		return bpf_probe_error("cannot make a BPF map");
	for (size_t i = 0; i < outputs->count; i++)
		if (set_output(probe->outputs_fd, (uint32_t)outputs->cpus[i], outputs->fds[i]))
			return bpf_probe_error("cannot fill a BPF map");
	return NULL;
}

static struct sym_error *open_all(struct bpf_probe *probe, const struct bpf_outputs *outputs,
				  const struct bpf_sample_plan *plan, uint32_t samples_per_second)
{
	struct sym_error *error = open_counters(probe);

	if (!error)
		error = open_outputs(probe, outputs);
	if (error)
		return error;
	probe->slots_fd = make_map(BPF_MAP_TYPE_ARRAY, (uint32_t)bpf_slot_bytes(plan), BPF_SLOTS);
	if (probe->slots_fd < 0)
		return bpf_probe_error("cannot make a BPF map");
	probe->program_fd =
		bpf_program_load_sampling(plan, most_in_window(samples_per_second),
					  probe->counters_fd, probe->slots_fd, probe->outputs_fd);
	return probe->program_fd < 0 ? bpf_probe_error("cannot load a BPF program") : NULL;
}

struct sym_error *bpf_probe_open(struct bpf_probe *probe, const struct bpf_outputs *outputs,
				 const struct bpf_sample_plan *plan, uint32_t samples_per_second)
{
	struct sym_error *error;

	*probe = BPF_PROBE_CLOSED;
	if (!is_new_enough())
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"BPF links for uprobes of a process need Linux %d.%d",
					FIRST_MAJOR, FIRST_MINOR);
	error = open_all(probe, outputs, plan, samples_per_second);
	if (error)
		bpf_probe_close(probe);
	return error;
}

struct sym_error *bpf_probe_open_thinning(struct bpf_probe *probe, uint32_t samples_per_second)
{
	struct sym_error *error;

	*probe = BPF_PROBE_CLOSED;
	error = open_counters(probe);
	if (error)
		return error;
	probe->program_fd =
		bpf_program_load_thinning(most_in_window(samples_per_second), probe->counters_fd);
	if (probe->program_fd >= 0)
		return NULL;
	error = bpf_probe_error("cannot load a BPF program");
	bpf_probe_close(probe);
	return error;
}

bool bpf_probe_thin(const struct bpf_probe *probe, int event_fd)
{
	return !ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, probe->program_fd);
}

struct sym_error *bpf_probe_attach(const struct bpf_probe *probe, int32_t pid, const char *path,
				   const uint64_t *offsets, const uint64_t *numbers, size_t count,
				   int *link_fd_ret)
{
	struct link_request request = { .program_fd = (uint32_t)probe->program_fd,
					.attach_type = ATTACH_UPROBE_MULTI,
					.path = (uintptr_t)path,
					.offsets = (uintptr_t)offsets,
					.numbers = (uintptr_t)numbers,
					.count = (uint32_t)count,
					.pid = (uint32_t)pid };
	int fd = bpf(BPF_LINK_CREATE, &request, sizeof(request));

	if (fd < 0)
		return bpf_probe_error("cannot place uprobes with BPF");
	*link_fd_ret = fd;
	return NULL;
}

struct bpf_counters bpf_probe_counts(const struct bpf_probe *probe)
{
	struct bpf_counters counters = { 0 };
	union bpf_attr attr;
	uint32_t key = 0;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)probe->counters_fd;
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)&counters;
	if (probe->counters_fd >= 0)
		bpf(BPF_MAP_LOOKUP_ELEM, &attr, sizeof(attr));
	return counters;
}

/* Registers by perf's number. */
bool bpf_probe_read(const struct bpf_sample_plan *plan, struct perf_sample *sample)
{
	const size_t first = offsetof(struct bpf_slot, number);
	size_t stack_at = bpf_stack_offset(plan) - first;
	size_t at = sizeof(struct bpf_slot) - first;
	uint64_t stack_bytes;

	if (sample->raw_bytes < stack_at)
		return false;
	memcpy(&stack_bytes, sample->raw + offsetof(struct bpf_slot, stack_bytes) - first,
	       sizeof(stack_bytes));
	if (stack_bytes > sample->raw_bytes - stack_at)
		return false;
	for (unsigned int i = 0; i < PERF_SAMPLE_REGISTERS; i++) {
		if (!(plan->registers & 1ull << i))
			continue;
		memcpy(&sample->registers[i], sample->raw + at, sizeof(sample->registers[i]));
		at += sizeof(sample->registers[i]);
	}
	sample->registers_abi = plan->registers ? PERF_SAMPLE_REGS_ABI_64 : 0;
	sample->stack = sample->raw + stack_at;
	sample->stack_bytes = (size_t)stack_bytes;
	return true;
}
