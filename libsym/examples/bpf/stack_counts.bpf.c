// SPDX-License-Identifier: MIT
/*
 * Counts stacks inside the kernel: of running threads, sampled by a clock; or of threads off the
 * CPU, with the time.
 * The kernel's structs are found by BTF when this is loaded (CO-RE). The needed members are
 * declared here, so no vmlinux.h is needed.
 */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "libsym/examples/bpf/stack_counts.h"

struct task_struct {
	int pid;
	int tgid;
} __attribute__((preserve_access_index));

/* Set before loading. */
const volatile __u32 wanted_pid; /* 0: every process */
const volatile __u64 least_ns;   /* shorter times off the CPU are not counted */

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, STACKS);
	__type(key, __u32);
	__uint(value_size, STACK_DEPTH * sizeof(__u64));
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STACKS);
	__type(key, struct stack_key);
	__type(value, __u64); /* samples, or nanoseconds */
} counts SEC(".maps");

struct absence {
	struct stack_key key;
	__u64 since_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u32); /* thread */
	__type(value, struct absence);
} absences SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LOSSES);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

static void lose(__u32 why)
{
	__u64 *count = bpf_map_lookup_elem(&lost, &why);

	if (count)
		++*count;
}

/* Gets the stacks of the running thread. */
static void fill_key(void *context, struct stack_key *key)
{
	key->pid = bpf_get_current_pid_tgid() >> 32;
	key->user_stack = bpf_get_stackid(context, &stacks, BPF_F_USER_STACK);
	key->kernel_stack = bpf_get_stackid(context, &stacks, 0);
	bpf_get_current_comm(key->comm, sizeof(key->comm));
	/* -EEXIST: another stack has the slot; -ENOMEM: no slot; -EFAULT: no stack to walk. */
	if (key->user_stack == -17 || key->user_stack == -12)
		lose(LOST_TABLE_FULL);
	else if (key->user_stack < 0)
		lose(LOST_UNWALKED);
}

static void add(const struct stack_key *key, __u64 amount)
{
	__u64 zero = 0, *count = bpf_map_lookup_elem(&counts, key);

	if (!count) {
		bpf_map_update_elem(&counts, key, &zero, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&counts, key);
	}
	if (count)
		__sync_fetch_and_add(count, amount);
	else
		lose(LOST_TABLE_FULL);
}

SEC("perf_event")
int on_cpu(void *context)
{
	struct stack_key key = {};

	if (wanted_pid && bpf_get_current_pid_tgid() >> 32 != wanted_pid)
		return 0;
	fill_key(context, &key);
	if (key.pid)
		add(&key, 1);
	return 0;
}

/* `prev` is still current when this is called, so its stacks can be walked. */
SEC("tp_btf/sched_switch")
int BPF_PROG(off_cpu, _Bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u64 now_ns = bpf_ktime_get_ns();
	__u32 thread = next->pid;
	struct absence *ended, begun = {};

	ended = bpf_map_lookup_elem(&absences, &thread);
	if (ended) {
		if (now_ns - ended->since_ns >= least_ns)
			add(&ended->key, now_ns - ended->since_ns);
		bpf_map_delete_elem(&absences, &thread);
	}
	thread = prev->pid;
	if (!thread || (wanted_pid && prev->tgid != wanted_pid))
		return 0;
	fill_key(ctx, &begun.key);
	begun.since_ns = now_ns;
	bpf_map_update_elem(&absences, &thread, &begun, BPF_ANY);
	return 0;
}

/* The helpers that walk stacks require a GPL-compatible program. */
char license_text[] SEC("license") = "Dual MIT/GPL";
