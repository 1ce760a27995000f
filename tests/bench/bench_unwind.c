/* SPDX-License-Identifier: MIT */
/*
 * A sample unwound from its registers and a copy of its stack, warm, beside libdw, which gets the
 * same registers and bytes. The stack is one of this program; both must find the same frames.
 */
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "libsym/libsym.h"
#include "tests/bench/bench.h"

enum {
	DEPTH = 40,
	MOST = 256,
	ROUNDS = 5,
	OURS = 20000,
	THEIRS = 500,
	COPY_BYTES = 32 << 10,
};

#ifdef __x86_64__
static const int order[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
			     REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
			     REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };

enum {
	REGISTERS = sizeof(order) / sizeof(*order),
	RSP = 7
};

static struct sample {
	uint64_t values[REGISTERS];
	uint8_t copy[COPY_BYTES];
	struct sym_unwind_registers registers;
	struct sym_unwind_stack stack;
} sample;

static int descend(int depth);

/* Calls through it are not inlined. */
static int (*volatile descend_on)(int) = descend;

static int descend(int depth)
{
	static ucontext_t context;
	volatile char room[64];

	room[0] = (char)depth;
	if (depth)
		return descend_on(depth - 1) + room[0];
	getcontext(&context);
	sample.registers = (struct sym_unwind_registers){ .size = sizeof(sample.registers),
							  .machine = SYM_UNWIND_X86_64,
							  .known = (1 << REGISTERS) - 1 };
	for (int i = 0; i < REGISTERS; i++)
		sample.values[i] = sample.registers.values[i] =
			(uint64_t)context.uc_mcontext.gregs[order[i]];
	memcpy(sample.copy, (const void *)sample.values[RSP], sizeof(sample.copy));
	sample.stack =
		(struct sym_unwind_stack){ sample.values[RSP], sample.copy, sizeof(sample.copy) };
	return room[0];
}

/* ---- the peer -------------------------------------------------------------------------------- */

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread)
{
	(void)dwfl;
	*thread = context;
	return *thread && !sample.registers.size ? 0 : getpid();
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret, void *context)
{
	uint64_t offset = address - sample.stack.address;

	(void)dwfl;
	(void)context;
	if (offset > sizeof(sample.copy) - sizeof(*ret))
		return false;
	memcpy(ret, sample.copy + offset, sizeof(*ret));
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
	(void)context;
	return dwfl_thread_state_registers(thread, 0, REGISTERS, sample.values);
}

struct found {
	uint64_t addresses[MOST];
	size_t count;
};

static int take_frame(Dwfl_Frame *frame, void *context)
{
	struct found *found = context;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(frame, &pc, NULL) || found->count == MOST)
		return DWARF_CB_ABORT;
	found->addresses[found->count++] = pc;
	return DWARF_CB_OK;
}

static Dwfl *open_peer(void)
{
	static const Dwfl_Callbacks callbacks = { .find_elf = dwfl_linux_proc_find_elf,
						  .find_debuginfo = dwfl_standard_find_debuginfo };
	static const Dwfl_Thread_Callbacks threads = { .next_thread = next_thread,
						       .memory_read = read_memory,
						       .set_initial_registers = set_registers };
	Dwfl *dwfl = dwfl_begin(&callbacks);

	if (!dwfl || dwfl_linux_proc_report(dwfl, getpid()) || dwfl_report_end(dwfl, NULL, NULL) ||
	    !dwfl_attach_state(dwfl, NULL, getpid(), &threads, NULL)) {
		fprintf(stderr, "libdw: %s\n", dwfl_errmsg(-1));
		exit(1);
	}
	return dwfl;
}

/* ---- both ------------------------------------------------------------------------------------ */

static double unwind_theirs(Dwfl *dwfl, int times, struct found *found)
{
	double begin = seconds();

	for (int i = 0; i < times; i++) {
		found->count = 0;
		dwfl_getthread_frames(dwfl, getpid(), take_frame, found);
	}
	return (seconds() - begin) / times;
}

static double unwind_ours(struct sym_unwinder *unwinder, int times, struct found *found)
{
	struct sym_frame frames[MOST];
	double begin = seconds();

	for (int i = 0; i < times; i++) {
		enum sym_unwind_end end;
		struct sym_error *error =
			sym_unwinder_unwind(unwinder, &sample.registers, &sample.stack, frames,
					    MOST, &found->count, &end);

		if (error) {
			fprintf(stderr, "%s\n", sym_error_message(error));
			exit(1);
		}
	}
	begin = (seconds() - begin) / times;
	for (size_t i = 0; i < found->count; i++)
		found->addresses[i] = frames[i].address;
	return begin;
}

static struct sym_unwinder *open_ours(void)
{
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver;
	struct sym_unwinder *unwinder;

	if (sym_snapshot_open(getpid(), NULL, &snapshot) ||
	    sym_resolver_create(snapshot, &resolver) || sym_unwinder_create(resolver, &unwinder))
		exit(1);
	return unwinder;
}

int main(void)
{
	const struct bench_goal goal = { .most_ratio = 0.1 };
	struct found ours = { .count = 0 }, theirs = { .count = 0 };
	double own = 0, peer = 0;
	struct sym_unwinder *unwinder;
	volatile char below[COPY_BYTES]; /* so much of the stack is there to be copied */
	Dwfl *dwfl;

	below[0] = 0;
	descend(DEPTH + below[0]);
	unwinder = open_ours();
	dwfl = open_peer();
	unwind_ours(unwinder, 1, &ours);
	unwind_theirs(dwfl, 1, &theirs);
	if (ours.count <= DEPTH || ours.count != theirs.count ||
	    memcmp(ours.addresses, theirs.addresses, ours.count * sizeof(*ours.addresses)) != 0) {
		printf("unwinding: %zu frames, libdw finds %zu: they differ\n", ours.count,
		       theirs.count);
		return 1;
	}
	for (int i = 0; i < ROUNDS; i++) {
		least(&own, unwind_ours(unwinder, OURS, &ours));
		least(&peer, unwind_theirs(dwfl, THEIRS, &theirs));
	}
	printf("unwinding a sample of %zu frames:\n", ours.count);
	figure("unwind_sample_libdw", own * 1e6, peer * 1e6, goal, "us");
	return 0;
}
#else
int main(void)
{
	return 0;
}
#endif
