/* SPDX-License-Identifier: MIT */
/*
 * Both programs begin with r6 = registers of the thread and r7 = the counters:
 *
 *   window = bpf_ktime_get_ns() >> 28               268 ms
 *   if (window != r7->window) { r7->window = window; r7->count = 0; }
 *   if (atomic_fetch_add(&r7->count, 1) >= budget) { atomic_add(&r7->thinned, 1); return 0; }
 *
 * Two processors may begin a window at once; then it has some samples more. The program that thins
 * returns 1 here, and the kernel writes the sample of its event. The other one goes on:
 *
 *   r8 = slot of the thread
 *   if (xchg(&r8->is_busy, 1)) { atomic_add(&r7->without_slot, 1); return 0; }
 *   r8->number = bpf_get_attach_cookie(r6)
 *   r8->registers = those of r6
 *   r9 = end of the mapping that the stack pointer is in - stack pointer, at most stack_bytes
 *   if (bpf_probe_read_user(r8->stack, r9, stack pointer))
 *           r9 = bytes up to the first page that cannot be read, which are read page by page
 *   r8->stack_bytes = r9
 *   bpf_perf_event_output(r6, outputs, BPF_F_CURRENT_CPU, &r8->number, ...)
 *   r8->is_busy = 0
 *
 * The kernel's own copy of a stack has a fixed size. Where the stack is shorter it runs into the
 * end of the mapping: that page fault costs the target more than the copy, and a register of a
 * sample 50 ns. A read fails where a page is not present. The mapping of a thread's stack may go on
 * behind the stack: what follows was often never touched.
 *
 * The thread may lose its processor in the program, and another one may come: the slot is its own
 * until the sample is written, but for threads that share it by their number.
 */
#include "mapgen/record/bpf_programs.h"

#include <asm/perf_regs.h>
#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "mapgen/record/bpf_code.h"
#include "mapgen/record/event_budget.h"

enum {
	/* linux/bpf.h is older than Linux 6.6 on some machines. */
	ATTACH_UPROBE_MULTI = 48,
	REGISTERS = 64,
	KEY = -4,              /* places on the stack of the program */
	MAPPING_END = -16,     /* of the stack's mapping */
	WANTED = -24,          /* bytes of the stack */
	BPF_PAGE_BYTES = 4096, /* the smallest that a kernel has */
	MOST_PAGES = 17,
	END_IN_MAPPING = 8, /* vm_end in struct vm_area_struct: the second field since Linux 2.4 */
};

/* ---- registers --------------------------------------------------------------------------------
 */

/* Where the kernel has a register of the thread, by perf's number. */
static int32_t register_offset(unsigned int number)
{
#ifdef __x86_64__
	static const uint16_t offsets[REGISTERS] = {
		[PERF_REG_X86_AX] = offsetof(struct pt_regs, rax),
		[PERF_REG_X86_BX] = offsetof(struct pt_regs, rbx),
		[PERF_REG_X86_CX] = offsetof(struct pt_regs, rcx),
		[PERF_REG_X86_DX] = offsetof(struct pt_regs, rdx),
		[PERF_REG_X86_SI] = offsetof(struct pt_regs, rsi),
		[PERF_REG_X86_DI] = offsetof(struct pt_regs, rdi),
		[PERF_REG_X86_BP] = offsetof(struct pt_regs, rbp),
		[PERF_REG_X86_SP] = offsetof(struct pt_regs, rsp),
		[PERF_REG_X86_IP] = offsetof(struct pt_regs, rip),
		[PERF_REG_X86_R8] = offsetof(struct pt_regs, r8),
		[PERF_REG_X86_R9] = offsetof(struct pt_regs, r9),
		[PERF_REG_X86_R10] = offsetof(struct pt_regs, r10),
		[PERF_REG_X86_R11] = offsetof(struct pt_regs, r11),
		[PERF_REG_X86_R12] = offsetof(struct pt_regs, r12),
		[PERF_REG_X86_R13] = offsetof(struct pt_regs, r13),
		[PERF_REG_X86_R14] = offsetof(struct pt_regs, r14),
		[PERF_REG_X86_R15] = offsetof(struct pt_regs, r15),
	};

	return offsets[number];
#else
	return (int32_t)(number * sizeof(uint64_t)); /* struct user_pt_regs has perf's order */
#endif
}

#ifdef __x86_64__
static const unsigned int stack_pointer = PERF_REG_X86_SP;
#else
static const unsigned int stack_pointer = PERF_REG_ARM64_SP;
#endif

size_t bpf_stack_offset(const struct bpf_sample_plan *plan)
{
	return sizeof(struct bpf_slot) +
	       (size_t)__builtin_popcountll(plan->registers) * sizeof(uint64_t);
}

size_t bpf_slot_bytes(const struct bpf_sample_plan *plan)
{
	return bpf_stack_offset(plan) + plan->stack_bytes + BPF_PAGE_BYTES; /* for the verifier */
}

/* ---- parts of programs ------------------------------------------------------------------------
 */

/* Jumps that land where the program ends, and where a sample without a slot is counted. */
struct ends {
	size_t none[4], none_count;
	size_t lost;
};

/* r0 = the value of an array at the index that lies at KEY. */
static void look_up(struct bpf_code *code, struct ends *ends, int map_fd)
{
	bpf_code_constant(code, BPF_REG_1, BPF_PSEUDO_MAP_FD, (uint32_t)map_fd);
	bpf_code_move(code, BPF_REG_2, BPF_REG_10);
	bpf_code_compute(code, BPF_ADD, BPF_REG_2, KEY);
	bpf_code_call(code, BPF_FUNC_map_lookup_elem);
	ends->none[ends->none_count++] = bpf_code_jump(code, BPF_JEQ, BPF_REG_0, 0);
}

static void count(struct bpf_code *code, int32_t field)
{
	bpf_code_compute(code, BPF_MOV, BPF_REG_1, 1);
	bpf_code_atomic(code, BPF_DW, BPF_ADD, BPF_REG_7, field, BPF_REG_1);
}

/* Goes on where the hit is within the budget. */
static void take_from_budget(struct bpf_code *code, struct ends *ends, int counters_fd,
			     uint32_t most_in_window)
{
	size_t same_window, within;

	bpf_code_move(code, BPF_REG_6, BPF_REG_1);
	bpf_code_compute(code, BPF_MOV, BPF_REG_0, 0);
	bpf_code_store(code, BPF_W, BPF_REG_10, KEY, BPF_REG_0);
	look_up(code, ends, counters_fd);
	bpf_code_move(code, BPF_REG_7, BPF_REG_0);
	bpf_code_call(code, BPF_FUNC_ktime_get_ns);
	bpf_code_compute(code, BPF_RSH, BPF_REG_0, EVENT_BUDGET_WINDOW_SHIFT);
	bpf_code_load(code, BPF_REG_1, BPF_REG_7, offsetof(struct bpf_counters, window));
	same_window = bpf_code_jump_by(code, BPF_JEQ, BPF_REG_0, BPF_REG_1);
	bpf_code_store(code, BPF_DW, BPF_REG_7, offsetof(struct bpf_counters, window), BPF_REG_0);
	bpf_code_compute(code, BPF_MOV, BPF_REG_1, 0);
	bpf_code_store(code, BPF_DW, BPF_REG_7, offsetof(struct bpf_counters, count), BPF_REG_1);
	bpf_code_land(code, same_window);
	bpf_code_compute(code, BPF_MOV, BPF_REG_1, 1);
	bpf_code_atomic(code, BPF_DW, BPF_ADD | BPF_FETCH, BPF_REG_7,
			offsetof(struct bpf_counters, count), BPF_REG_1);
	within = bpf_code_jump(code, BPF_JLT, BPF_REG_1, (int32_t)most_in_window);
	count(code, offsetof(struct bpf_counters, thinned));
	bpf_code_exit(code);
	bpf_code_land(code, within);
}

/* r8 = a slot that no other thread uses. */
static void take_slot(struct bpf_code *code, struct ends *ends, int slots_fd)
{
	bpf_code_call(code, BPF_FUNC_get_current_pid_tgid);
	bpf_code_compute(code, BPF_AND, BPF_REG_0, BPF_SLOTS - 1);
	bpf_code_store(code, BPF_W, BPF_REG_10, KEY, BPF_REG_0);
	look_up(code, ends, slots_fd);
	bpf_code_move(code, BPF_REG_8, BPF_REG_0);
	bpf_code_compute(code, BPF_MOV, BPF_REG_1, 1);
	bpf_code_atomic(code, BPF_W, BPF_XCHG, BPF_REG_8, offsetof(struct bpf_slot, is_busy),
			BPF_REG_1);
	ends->lost = bpf_code_jump(code, BPF_JNE, BPF_REG_1, 0);
}

static void copy_registers(struct bpf_code *code, uint64_t mask)
{
	int32_t place = sizeof(struct bpf_slot);

	for (unsigned int i = 0; i < REGISTERS; i++) {
		if (!(mask & 1ull << i))
			continue;
		bpf_code_load(code, BPF_REG_1, BPF_REG_6, register_offset(i));
		bpf_code_store(code, BPF_DW, BPF_REG_8, place, BPF_REG_1);
		place += (int32_t)sizeof(uint64_t);
	}
}

/*
 * Reads one more page, or the part of it that is wanted, behind the r9 bytes that are read. Returns
 * the jumps that are taken where there is none. The verifier has to see a limit of each size.
 */
static void read_page(struct bpf_code *code, const struct bpf_sample_plan *plan, size_t ends[3])
{
	size_t is_within;

	bpf_code_load(code, BPF_REG_3, BPF_REG_6, register_offset(stack_pointer));
	bpf_code_combine(code, BPF_ADD, BPF_REG_3, BPF_REG_9);
	bpf_code_move(code, BPF_REG_1, BPF_REG_3);
	bpf_code_compute(code, BPF_AND, BPF_REG_1, BPF_PAGE_BYTES - 1);
	bpf_code_compute(code, BPF_MOV, BPF_REG_7, BPF_PAGE_BYTES);
	bpf_code_combine(code, BPF_SUB, BPF_REG_7, BPF_REG_1);
	bpf_code_load(code, BPF_REG_1, BPF_REG_10, WANTED);
	bpf_code_combine(code, BPF_SUB, BPF_REG_1, BPF_REG_9);
	is_within = bpf_code_jump_by(code, BPF_JLE, BPF_REG_7, BPF_REG_1);
	bpf_code_move(code, BPF_REG_7, BPF_REG_1);
	bpf_code_land(code, is_within);
	ends[0] = bpf_code_jump(code, BPF_JEQ, BPF_REG_7, 0);
	ends[1] = bpf_code_jump(code, BPF_JGT, BPF_REG_7, BPF_PAGE_BYTES);
	bpf_code_move(code, BPF_REG_1, BPF_REG_8);
	bpf_code_compute(code, BPF_ADD, BPF_REG_1, (int32_t)bpf_stack_offset(plan));
	bpf_code_combine(code, BPF_ADD, BPF_REG_1, BPF_REG_9);
	bpf_code_move(code, BPF_REG_2, BPF_REG_7);
	bpf_code_call(code, BPF_FUNC_probe_read_user);
	ends[2] = bpf_code_jump(code, BPF_JNE, BPF_REG_0, 0);
	bpf_code_combine(code, BPF_ADD, BPF_REG_9, BPF_REG_7);
}

/* r9 = bytes of the stack that are read; r9 bytes are wanted. Uses r7. */
static void read_stack(struct bpf_code *code, const struct bpf_sample_plan *plan)
{
	const size_t pages = plan->stack_bytes / BPF_PAGE_BYTES + 1;
	size_t is_read, ends[MOST_PAGES][3];

	bpf_code_store(code, BPF_DW, BPF_REG_10, WANTED, BPF_REG_9);
	bpf_code_move(code, BPF_REG_1, BPF_REG_8);
	bpf_code_compute(code, BPF_ADD, BPF_REG_1, (int32_t)bpf_stack_offset(plan));
	bpf_code_move(code, BPF_REG_2, BPF_REG_9);
	bpf_code_load(code, BPF_REG_3, BPF_REG_6, register_offset(stack_pointer));
	bpf_code_call(code, BPF_FUNC_probe_read_user);
	is_read = bpf_code_jump(code, BPF_JEQ, BPF_REG_0, 0);
	bpf_code_compute(code, BPF_MOV, BPF_REG_9, 0);
	for (size_t i = 0; i < pages; i++)
		read_page(code, plan, ends[i]);
	for (size_t i = 0; i < pages; i++)
		for (size_t k = 0; k < 3; k++)
			bpf_code_land(code, ends[i][k]);
	bpf_code_land(code, is_read);
	bpf_code_store(code, BPF_DW, BPF_REG_8, offsetof(struct bpf_slot, stack_bytes), BPF_REG_9);
}

/* Returns the instruction that names end_of_mapping(). */
static size_t copy_stack(struct bpf_code *code, const struct bpf_sample_plan *plan)
{
	size_t callback, fits;

	bpf_code_compute(code, BPF_MOV, BPF_REG_0, 0);
	bpf_code_store(code, BPF_DW, BPF_REG_10, MAPPING_END, BPF_REG_0);
	bpf_code_call(code, BPF_FUNC_get_current_task_btf);
	bpf_code_move(code, BPF_REG_1, BPF_REG_0);
	bpf_code_load(code, BPF_REG_2, BPF_REG_6, register_offset(stack_pointer));
	callback = bpf_code_constant(code, BPF_REG_3, BPF_PSEUDO_FUNC, 0);
	bpf_code_move(code, BPF_REG_4, BPF_REG_10);
	bpf_code_compute(code, BPF_ADD, BPF_REG_4, MAPPING_END);
	bpf_code_compute(code, BPF_MOV, BPF_REG_5, 0);
	bpf_code_call(code, BPF_FUNC_find_vma);
	/* Without an end the difference wraps. */
	bpf_code_load(code, BPF_REG_9, BPF_REG_10, MAPPING_END);
	bpf_code_load(code, BPF_REG_1, BPF_REG_6, register_offset(stack_pointer));
	bpf_code_combine(code, BPF_SUB, BPF_REG_9, BPF_REG_1);
	fits = bpf_code_jump(code, BPF_JLE, BPF_REG_9, (int32_t)plan->stack_bytes);
	bpf_code_compute(code, BPF_MOV, BPF_REG_9, (int32_t)plan->stack_bytes);
	bpf_code_land(code, fits);
	read_stack(code, plan);
	return callback;
}

/* Writes the sample and frees the slot. Where the ring is full, a LOST record will say so. */
static void put_sample(struct bpf_code *code, const struct bpf_sample_plan *plan, int outputs_fd)
{
	const size_t first = offsetof(struct bpf_slot, number);

	bpf_code_move(code, BPF_REG_1, BPF_REG_6);
	bpf_code_constant(code, BPF_REG_2, BPF_PSEUDO_MAP_FD, (uint32_t)outputs_fd);
	bpf_code_constant(code, BPF_REG_3, 0, (uint32_t)BPF_F_CURRENT_CPU);
	bpf_code_move(code, BPF_REG_4, BPF_REG_8);
	bpf_code_compute(code, BPF_ADD, BPF_REG_4, (int32_t)first);
	bpf_code_move(code, BPF_REG_5, BPF_REG_9);
	bpf_code_compute(code, BPF_ADD, BPF_REG_5, (int32_t)(bpf_stack_offset(plan) - first));
	bpf_code_call(code, BPF_FUNC_perf_event_output);
	bpf_code_compute(code, BPF_MOV, BPF_REG_1, 0);
	bpf_code_atomic(code, BPF_W, BPF_XCHG, BPF_REG_8, offsetof(struct bpf_slot, is_busy),
			BPF_REG_1);
	bpf_code_exit(code);
}

/* The callback of bpf_find_vma(task, mapping, place): *place = mapping->vm_end. */
static void end_of_mapping(struct bpf_code *code)
{
	bpf_code_load(code, BPF_REG_0, BPF_REG_2, END_IN_MAPPING);
	bpf_code_store(code, BPF_DW, BPF_REG_3, 0, BPF_REG_0);
	bpf_code_exit(code);
}

/* ---- loading ----------------------------------------------------------------------------------
 */

/* Type information (BTF): the kernel requires of a callback that it is a static function. */
static int load_types(void)
{
	static const struct {
		struct btf_header header;
		struct btf_type types[3];
		char names[32];
	} blob = {
		.header = { .magic = 0xeb9f,
			    .version = 1,
			    .hdr_len = sizeof(struct btf_header),
			    .type_len = sizeof(blob.types),
			    .str_off = sizeof(blob.types),
			    .str_len = sizeof(blob.names) },
		.types = { { .info = BTF_KIND_FUNC_PROTO << 24 },
			   { .name_off = 1, .info = BTF_KIND_FUNC << 24, .type = 1 },
			   { .name_off = 8, .info = BTF_KIND_FUNC << 24, .type = 1 } },
		.names = "\0sample\0end_of_mapping",
	};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.btf = (uintptr_t)&blob;
	attr.btf_size = sizeof(blob);
	return (int)syscall(SYS_bpf, BPF_BTF_LOAD, &attr, sizeof(attr));
}

static int load(union bpf_attr *attr, const struct bpf_code *code)
{
	attr->prog_type = BPF_PROG_TYPE_KPROBE;
	attr->insns = (uintptr_t)code->instructions;
	attr->insn_cnt = (uint32_t)code->count;
	attr->license = (uintptr_t) "Dual MIT/GPL";
	snprintf(attr->prog_name, sizeof(attr->prog_name), "dotnet_mapgen");
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, attr, sizeof(*attr));
}

static void land(struct bpf_code *code, const struct ends *ends)
{
	for (size_t i = 0; i < ends->none_count; i++)
		bpf_code_land(code, ends->none[i]);
}

int bpf_program_load_sampling(const struct bpf_sample_plan *plan, uint32_t most_in_window,
			      int counters_fd, int slots_fd, int outputs_fd)
{
	struct bpf_func_info functions[] = { { 0, 2 }, { 0, 3 } };
	struct bpf_code code = { .count = 0 };
	struct ends ends = { .none_count = 0 };
	int types_fd AUTO_CLOSE = load_types();
	size_t callback;
	union bpf_attr attr;

	if (types_fd < 0)
		return -1;
	take_from_budget(&code, &ends, counters_fd, most_in_window);
	take_slot(&code, &ends, slots_fd);
	bpf_code_move(&code, BPF_REG_1, BPF_REG_6);
	bpf_code_call(&code, BPF_FUNC_get_attach_cookie);
	bpf_code_store(&code, BPF_W, BPF_REG_8, offsetof(struct bpf_slot, number), BPF_REG_0);
	copy_registers(&code, plan->registers);
	callback = copy_stack(&code, plan);
	put_sample(&code, plan, outputs_fd);
	bpf_code_land(&code, ends.lost);
	count(&code, offsetof(struct bpf_counters, without_slot));
	land(&code, &ends);
	bpf_code_exit(&code);
	functions[1].insn_off = (uint32_t)code.count;
	code.instructions[callback].imm = (int32_t)(code.count - callback - 1);
	end_of_mapping(&code);
	memset(&attr, 0, sizeof(attr));
	attr.expected_attach_type = ATTACH_UPROBE_MULTI;
	attr.prog_btf_fd = (uint32_t)types_fd;
	attr.func_info = (uintptr_t)functions;
	attr.func_info_cnt = sizeof(functions) / sizeof(*functions);
	attr.func_info_rec_size = sizeof(*functions);
	return load(&attr, &code);
}

int bpf_program_load_thinning(uint32_t most_in_window, int counters_fd)
{
	struct bpf_code code = { .count = 0 };
	struct ends ends = { .none_count = 0 };
	union bpf_attr attr;

	take_from_budget(&code, &ends, counters_fd, most_in_window);
	land(&code, &ends);
	bpf_code_compute(&code, BPF_MOV, BPF_REG_0, 1);
	bpf_code_add(&code, (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT });
	memset(&attr, 0, sizeof(attr));
	return load(&attr, &code);
}
