/* SPDX-License-Identifier: MIT */
/*
 * The program, with r6 = registers of the thread and r7 = the counters:
 *
 *   number = bpf_get_attach_cookie(r6)
 *   window = bpf_ktime_get_ns() >> 28               268 ms
 *   if (window != r7->window) { r7->window = window; r7->count = 0; }
 *   if (atomic_fetch_add(&r7->count, 1) >= budget) { atomic_add(&r7->thinned, 1); return 0; }
 *   if (bpf_perf_event_output(r6, outputs, BPF_F_CURRENT_CPU, &number, 8))
 *           atomic_add(&r7->lost, 1);
 *   return 0;
 *
 * Two processors may begin a window at once; then it has some samples more.
 *
 * Before Linux 6.10 a link with a process filter saw its first thread only: 46ba0e49b642 "bpf: fix
 * multi-uprobe PID filtering logic".
 */
#include "mapgen/record/bpf_probe.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/error.h"
#include "mapgen/record/event_budget.h"

enum {
	/* linux/bpf.h is older than Linux 6.6 on some machines. */
	ATTACH_UPROBE_MULTI = 48,
	FIRST_MAJOR = 6,
	FIRST_MINOR = 10,
};

struct counters {
	uint64_t window, count, thinned, lost;
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

#define MOVE(to, from)                                                                             \
	((struct bpf_insn){                                                                        \
		.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (to), .src_reg = (from) })
#define SET(to, value)                                                                             \
	((struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (to), .imm = (value) })
#define ADD(to, value)                                                                             \
	((struct bpf_insn){ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = (to), .imm = (value) })
#define SHIFT_RIGHT(to, value)                                                                     \
	((struct bpf_insn){ .code = BPF_ALU64 | BPF_RSH | BPF_K, .dst_reg = (to), .imm = (value) })
#define LOAD(to, from, at)                                                                         \
	((struct bpf_insn){ .code = BPF_LDX | BPF_MEM | BPF_DW,                                    \
			    .dst_reg = (to),                                                       \
			    .src_reg = (from),                                                     \
			    .off = (at) })
#define STORE(to, at, from)                                                                        \
	((struct bpf_insn){ .code = BPF_STX | BPF_MEM | BPF_DW,                                    \
			    .dst_reg = (to),                                                       \
			    .src_reg = (from),                                                     \
			    .off = (at) })
#define STORE_WORD(to, at, value)                                                                  \
	((struct bpf_insn){                                                                        \
		.code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = (to), .off = (at), .imm = (value) })
#define ATOMIC(operation, to, at, from)                                                            \
	((struct bpf_insn){ .code = BPF_STX | BPF_ATOMIC | BPF_DW,                                 \
			    .dst_reg = (to),                                                       \
			    .src_reg = (from),                                                     \
			    .off = (at),                                                           \
			    .imm = (operation) })
#define JUMP(condition, left, right, by)                                                           \
	((struct bpf_insn){ .code = BPF_JMP | (condition) | BPF_X,                                 \
			    .dst_reg = (left),                                                     \
			    .src_reg = (right),                                                    \
			    .off = (by) })
#define JUMP_VALUE(condition, left, value, by)                                                     \
	((struct bpf_insn){ .code = BPF_JMP | (condition) | BPF_K,                                 \
			    .dst_reg = (left),                                                     \
			    .off = (by),                                                           \
			    .imm = (value) })
#define CALL(function) ((struct bpf_insn){ .code = BPF_JMP | BPF_CALL, .imm = (function) })
#define EXIT           ((struct bpf_insn){ .code = BPF_JMP | BPF_EXIT })
/* Two instructions. */
#define LOAD_MAP(to, fd)                                                                           \
	((struct bpf_insn){ .code = BPF_LD | BPF_DW | BPF_IMM,                                     \
			    .dst_reg = (to),                                                       \
			    .src_reg = BPF_PSEUDO_MAP_FD,                                          \
			    .imm = (fd) }),                                                        \
		((struct bpf_insn){ 0 })
#define LOAD_NUMBER(to, low)                                                                       \
	((struct bpf_insn){                                                                        \
		.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = (to), .imm = (int32_t)(low) }),      \
		((struct bpf_insn){ 0 })

static int load_program(const struct bpf_probe *probe, uint32_t most_in_window)
{
	const struct bpf_insn code[] = {
		MOVE(BPF_REG_6, BPF_REG_1),
		CALL(BPF_FUNC_get_attach_cookie),
		STORE(BPF_REG_10, -8, BPF_REG_0),
		STORE_WORD(BPF_REG_10, -16, 0),
		LOAD_MAP(BPF_REG_1, probe->counters_fd),
		MOVE(BPF_REG_2, BPF_REG_10),
		ADD(BPF_REG_2, -16),
		CALL(BPF_FUNC_map_lookup_elem),
		JUMP_VALUE(BPF_JEQ, BPF_REG_0, 0, 26), /* to the end */
		MOVE(BPF_REG_7, BPF_REG_0),
		CALL(BPF_FUNC_ktime_get_ns),
		SHIFT_RIGHT(BPF_REG_0, EVENT_BUDGET_WINDOW_SHIFT),
		LOAD(BPF_REG_1, BPF_REG_7, offsetof(struct counters, window)),
		JUMP(BPF_JEQ, BPF_REG_0, BPF_REG_1, 3), /* the same window */
		STORE(BPF_REG_7, offsetof(struct counters, window), BPF_REG_0),
		SET(BPF_REG_1, 0),
		STORE(BPF_REG_7, offsetof(struct counters, count), BPF_REG_1),
		SET(BPF_REG_1, 1),
		ATOMIC(BPF_ADD | BPF_FETCH, BPF_REG_7, offsetof(struct counters, count), BPF_REG_1),
		JUMP_VALUE(BPF_JGE, BPF_REG_1, (int32_t)most_in_window, 13), /* too many */
		MOVE(BPF_REG_1, BPF_REG_6),
		LOAD_MAP(BPF_REG_2, probe->outputs_fd),
		LOAD_NUMBER(BPF_REG_3, BPF_F_CURRENT_CPU),
		MOVE(BPF_REG_4, BPF_REG_10),
		ADD(BPF_REG_4, -8),
		SET(BPF_REG_5, 8),
		CALL(BPF_FUNC_perf_event_output),
		JUMP_VALUE(BPF_JEQ, BPF_REG_0, 0, 5), /* to the end */
		SET(BPF_REG_1, 1),
		ATOMIC(BPF_ADD, BPF_REG_7, offsetof(struct counters, lost), BPF_REG_1),
		JUMP_VALUE(BPF_JA, 0, 0, 2), /* to the end */
		/* too many: */
		SET(BPF_REG_1, 1),
		ATOMIC(BPF_ADD, BPF_REG_7, offsetof(struct counters, thinned), BPF_REG_1),
		/* the end: */
		SET(BPF_REG_0, 0),
		EXIT,
	};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_KPROBE;
	attr.expected_attach_type = ATTACH_UPROBE_MULTI;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = sizeof(code) / sizeof(*code);
	attr.license = (uintptr_t) "Dual MIT/GPL";
	snprintf(attr.prog_name, sizeof(attr.prog_name), "dotnet_mapgen");
	return bpf(BPF_PROG_LOAD, &attr, sizeof(attr));
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
	const int fds[] = { probe->program_fd, probe->counters_fd, probe->outputs_fd };

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	*probe = BPF_PROBE_CLOSED;
}

static struct sym_error *open_all(struct bpf_probe *probe, const int *cpus, const int *fds,
				  size_t count, uint32_t most_cpu, uint32_t samples_per_second)
{
	uint64_t most = event_budget_most(samples_per_second);

	probe->counters_fd = make_map(BPF_MAP_TYPE_ARRAY, sizeof(struct counters), 1);
	if (probe->counters_fd < 0)
		return bpf_probe_error("cannot make a BPF map");
	probe->outputs_fd = make_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, most_cpu);
	if (probe->outputs_fd < 0)
		return bpf_probe_error("cannot make a BPF map");
	for (size_t i = 0; i < count; i++)
		if (set_output(probe->outputs_fd, (uint32_t)cpus[i], fds[i]))
			return bpf_probe_error("cannot fill a BPF map");
	probe->program_fd = load_program(probe, most > INT32_MAX ? INT32_MAX : (uint32_t)most);
	return probe->program_fd < 0 ? bpf_probe_error("cannot load a BPF program") : NULL;
}

struct sym_error *bpf_probe_open(struct bpf_probe *probe, const int *cpus, const int *fds,
				 size_t count, uint32_t most_cpu, uint32_t samples_per_second)
{
	struct sym_error *error;

	*probe = BPF_PROBE_CLOSED;
	if (!is_new_enough())
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"BPF links for uprobes of a process need Linux %d.%d",
					FIRST_MAJOR, FIRST_MINOR);
	error = open_all(probe, cpus, fds, count, most_cpu, samples_per_second);
	if (error)
		bpf_probe_close(probe);
	return error;
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

struct bpf_probe_counts bpf_probe_counts(const struct bpf_probe *probe)
{
	struct counters counters = { 0 };
	union bpf_attr attr;
	uint32_t key = 0;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)probe->counters_fd;
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)&counters;
	if (probe->counters_fd < 0 || bpf(BPF_MAP_LOOKUP_ELEM, &attr, sizeof(attr)))
		return (struct bpf_probe_counts){ 0 };
	return (struct bpf_probe_counts){ counters.thinned, counters.lost };
}
