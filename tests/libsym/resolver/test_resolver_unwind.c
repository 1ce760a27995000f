/* SPDX-License-Identifier: MIT */
/*
 * Stacks of this program. The oracle is backtrace() of the C library, which uses the unwinder of
 * libgcc.
 */
#include <criterion/criterion.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "libsym/libsym.h"
#include "tests/support/alloc_fail.h"

enum {
	MOST = 128,
	COPY_BYTES = 64 << 10,
	DEPTH = 5,
};

/* A stack at one moment: as libgcc walks it, and as perf records it. */
struct moment {
	void *expected[MOST];
	int expected_count;
	struct sym_unwind_registers registers;
	uint8_t copy[COPY_BYTES];
	struct sym_unwind_stack stack;
};

static void take_registers(const ucontext_t *context, struct sym_unwind_registers *ret)
{
#ifdef __x86_64__
	static const int order[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				     REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
				     REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };

	*ret = (struct sym_unwind_registers){ .size = sizeof(*ret), .machine = SYM_UNWIND_X86_64 };
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		ret->values[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
		ret->known |= 1ull << i;
	}
#else
	*ret = (struct sym_unwind_registers){ .size = sizeof(*ret), .machine = SYM_UNWIND_ARM64 };
	memcpy(ret->values, context->uc_mcontext.regs, 31 * 8);
	ret->values[31] = context->uc_mcontext.sp;
	ret->values[32] = context->uc_mcontext.pc;
	ret->known = (1ull << SYM_UNWIND_REGISTERS) - 1;
#endif
}

static uint64_t stack_end(void)
{
	pthread_attr_t attributes;
	void *start;
	size_t size_bytes;

	pthread_getattr_np(pthread_self(), &attributes);
	pthread_attr_getstack(&attributes, &start, &size_bytes);
	pthread_attr_destroy(&attributes);
	return (uint64_t)(uintptr_t)start + size_bytes;
}

static void copy_stack(struct moment *moment)
{
	uint64_t sp =
		moment->registers.values[moment->registers.machine == SYM_UNWIND_ARM64 ? 31 : 7];
	size_t size_bytes = (size_t)(stack_end() - sp);
	struct iovec from, to;

	size_bytes = size_bytes < COPY_BYTES ? size_bytes : COPY_BYTES;
	/* By the kernel: AddressSanitizer refuses to copy what lies between variables. */
	from = (struct iovec){ (void *)(uintptr_t)sp, size_bytes };
	to = (struct iovec){ moment->copy, size_bytes };
	cr_assert_eq(process_vm_readv(getpid(), &to, 1, &from, 1, 0), (ssize_t)size_bytes);
	moment->stack = (struct sym_unwind_stack){ sp, moment->copy, size_bytes };
}

static __attribute__((noinline, noclone)) int descend(struct moment *moment, int depth)
{
	volatile char room[100 * 3];
	ucontext_t context;

	room[depth] = 1;
	if (depth)
		return descend(moment, depth - 1) + room[depth];
	getcontext(&context);
	moment->expected_count = backtrace(moment->expected, MOST);
	take_registers(&context, &moment->registers);
	copy_stack(moment);
	return room[0];
}

static struct moment *at_signal;

static void take_at_signal(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	descend(at_signal, DEPTH);
}

/* The mappings of this program in the form of a recording. */
struct mappings {
	struct sym_snapshot *snapshot;
	struct sym_image *images[64];
	const char *paths[64];
	size_t count;
	size_t calls;
	bool hides_files;
};

static struct sym_image *image_of(struct mappings *mappings, const char *path)
{
	struct sym_error *error;

	for (size_t i = 0; i < mappings->count; i++)
		if (!strcmp(mappings->paths[i], path))
			return mappings->images[i];
	cr_assert_lt(mappings->count, 64);
	error = sym_image_open(path, &mappings->images[mappings->count]);
	if (error) {
		sym_error_destroy(error);
		return NULL;
	}
	mappings->paths[mappings->count] = path;
	return mappings->images[mappings->count++];
}

static void find(void *context, uint64_t address, struct sym_unwind_code *ret)
{
	struct mappings *mappings = context;

	mappings->calls++;
	ret->not_code = 1;
	for (size_t i = 0; i < sym_snapshot_mapping_count(mappings->snapshot); i++) {
		const struct sym_mapping *mapping = sym_snapshot_mapping_at(mappings->snapshot, i);

		if (address < mapping->start_address || address >= mapping->end_address ||
		    !(mapping->protection & SYM_EXECUTE))
			continue;
		ret->not_code = 0;
		if (mapping->path[0] == '/' && !mappings->hides_files)
			ret->image = image_of(mappings, mapping->path);
		ret->offset = address - mapping->start_address + mapping->offset;
	}
}

static void open_mappings(struct mappings *mappings)
{
	const struct sym_snapshot_opts opts = { .size = sizeof(opts) };

	*mappings = (struct mappings){ 0 };
	cr_assert_null(sym_snapshot_open(getpid(), &opts, &mappings->snapshot));
}

static void close_mappings(struct mappings *mappings)
{
	for (size_t i = 0; i < mappings->count; i++)
		sym_image_close(mappings->images[i]);
	sym_snapshot_close(mappings->snapshot);
}

/*
 * Both passed descend() at different instructions. From its caller on they are equal. The
 * backtrace() of AddressSanitizer has a frame of its own in front.
 */
static void expect_same(const struct moment *moment, const struct sym_frame *frames, size_t count)
{
	int own = moment->expected[1] != (void *)(uintptr_t)frames[1].address;

	cr_assert_gt(moment->expected_count, DEPTH + 3);
	cr_assert_geq(count + (size_t)own, (size_t)moment->expected_count,
		      "%zu frames, backtrace() has %d", count, moment->expected_count);
	for (int i = 1; i + own < moment->expected_count; i++)
		cr_assert_eq(frames[i].address, (uint64_t)(uintptr_t)moment->expected[i + own],
			     "frame %d: %lx, backtrace() has %p", i, (long)frames[i].address,
			     moment->expected[i + own]);
}

static enum sym_unwind_end unwind(struct sym_unwinder *unwinder, const struct moment *moment,
				  struct sym_frame *frames, size_t *count_ret)
{
	enum sym_unwind_end end;

	cr_assert_null(sym_unwinder_unwind(unwinder, &moment->registers, &moment->stack, frames,
					   MOST, count_ret, &end));
	return end;
}

Test(recorded_unwinder, finds_the_frames_that_libgcc_finds)
{
	static struct moment moment;
	struct sym_frame frames[MOST];
	struct mappings mappings;
	struct sym_unwinder *unwinder;
	size_t count, calls;

	open_mappings(&mappings);
	descend(&moment, DEPTH);
	cr_assert_null(sym_unwinder_create_recorded(find, &mappings, &unwinder));
	cr_assert_eq(unwind(unwinder, &moment, frames, &count), SYM_UNWIND_WHOLE);
	expect_same(&moment, frames, count);
	for (size_t i = 0; i < count; i++) {
		cr_assert_eq(frames[i].origin,
			     i ? (uint32_t)SYM_FRAME_CALL_INFO : (uint32_t)SYM_FRAME_REGISTERS);
		cr_assert_eq(frames[i].flags, i ? (uint32_t)SYM_FRAME_IS_RETURN : 0);
	}
	/* Called once for each address, and again after the mappings have changed. */
	calls = mappings.calls;
	unwind(unwinder, &moment, frames, &count);
	cr_assert_eq(mappings.calls, calls);
	sym_unwinder_forget(unwinder);
	unwind(unwinder, &moment, frames, &count);
	cr_assert_eq(mappings.calls, 2 * calls);
	sym_unwinder_destroy(unwinder);
	close_mappings(&mappings);
}

Test(recorded_unwinder, continues_past_a_signal_handler)
{
	static struct moment moment;
	const struct sigaction action = { .sa_sigaction = take_at_signal, .sa_flags = SA_SIGINFO };
	struct sym_frame frames[MOST];
	struct mappings mappings;
	struct sym_unwinder *unwinder;
	size_t count;

	open_mappings(&mappings);
	at_signal = &moment;
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	cr_assert_null(sym_unwinder_create_recorded(find, &mappings, &unwinder));
	cr_assert_eq(unwind(unwinder, &moment, frames, &count), SYM_UNWIND_WHOLE);
	expect_same(&moment, frames, count);
	sym_unwinder_destroy(unwinder);
	close_mappings(&mappings);
}

Test(recorded_unwinder, reports_a_copy_that_is_too_small)
{
	static struct moment moment;
	struct sym_frame frames[MOST];
	struct mappings mappings;
	struct sym_unwinder *unwinder;
	size_t count, whole;

	open_mappings(&mappings);
	descend(&moment, DEPTH);
	cr_assert_null(sym_unwinder_create_recorded(find, &mappings, &unwinder));
	unwind(unwinder, &moment, frames, &whole);
	/* Up to the third caller: its frame is the last one in the copy. */
	moment.stack.size_bytes = (size_t)(frames[3].stack_address - moment.stack.address);
	cr_assert_eq(unwind(unwinder, &moment, frames, &count), SYM_UNWIND_SHORT);
	cr_assert_eq(count, 4);
	moment.stack.size_bytes = 0;
	cr_assert_eq(unwind(unwinder, &moment, frames, &count), SYM_UNWIND_SHORT);
	cr_assert_eq(count, 1);
	sym_unwinder_destroy(unwinder);
	close_mappings(&mappings);
}

Test(recorded_unwinder, marks_frames_of_code_without_a_file)
{
	static struct moment moment;
	struct sym_frame frames[MOST];
	struct mappings mappings;
	struct sym_unwinder *unwinder;
	size_t count;

	open_mappings(&mappings);
	mappings.hides_files = true;
	descend(&moment, DEPTH);
	cr_assert_null(sym_unwinder_create_recorded(find, &mappings, &unwinder));
	unwind(unwinder, &moment, frames, &count);
	for (size_t i = 1; i < count; i++) {
		cr_assert_eq(frames[i].origin, SYM_FRAME_POINTER);
		cr_assert(frames[i].flags & SYM_FRAME_IS_GUESSED);
	}
	sym_unwinder_destroy(unwinder);
	close_mappings(&mappings);
}

#ifdef __x86_64__
/* As clang writes it: behind the pop nothing says that rbp is the caller's again. */
__asm__(".text\n"
	"epilog_of_clang:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbp, -16\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register %rbp\n"
	"	nop\n"
	"epilog_of_clang_call:\n"
	"	pop %rbp\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"epilog_of_clang_return:\n"
	"	ret\n"
	"	.cfi_endproc\n");
extern const char epilog_of_clang_call[], epilog_of_clang_return[];

Test(recorded_unwinder, knows_what_an_epilog_has_popped)
{
	const uint64_t call = (uint64_t)(uintptr_t)epilog_of_clang_call;
	const uint64_t stack[] = { call, 0, 0 };
	const struct sym_unwind_stack copy = { 0x7000, stack, sizeof(stack) };
	struct sym_unwind_registers registers = { .size = sizeof(registers),
						  .known = 1 << 16 | 1 << 7 | 1 << 6 };
	struct sym_frame frames[MOST];
	struct mappings mappings;
	struct sym_unwinder *unwinder;
	enum sym_unwind_end end;
	size_t count;

	registers.values[16] = (uint64_t)(uintptr_t)epilog_of_clang_return;
	registers.values[7] = 0x7000;
	registers.values[6] = 0x7008;
	open_mappings(&mappings);
	cr_assert_null(sym_unwinder_create_recorded(find, &mappings, &unwinder));
	cr_assert_null(
		sym_unwinder_unwind(unwinder, &registers, &copy, frames, MOST, &count, &end));
	cr_expect_eq(count, 2);
	cr_expect_eq(frames[1].address, call);
	cr_expect_eq(end, SYM_UNWIND_WHOLE);
	sym_unwinder_destroy(unwinder);
	close_mappings(&mappings);
}
#endif

/* A chain of frame pointers in executable memory without a file. */
static void find_unknown(void *context, uint64_t address, struct sym_unwind_code *ret)
{
	const uint64_t *not_code_from = context;

	ret->not_code = address >= *not_code_from;
}

static void chain(uint64_t *stack, uint64_t next, uint64_t return_address)
{
	stack[0] = next;
	stack[1] = return_address;
}

static size_t unwind_chain(const uint64_t *stack, size_t words, enum sym_unwind_end *end_ret,
			   struct sym_frame *frames, size_t capacity)
{
	const uint64_t values[64] = { [6] = 0x7000, [7] = 0x7000, [8] = 0x1000 };
	const struct sym_unwind_stack copy = { 0x7000, stack, words * 8 };
	struct sym_unwind_registers registers;
	struct sym_unwinder *unwinder;
	uint64_t not_code_from = 0x100000;
	size_t count;

	sym_unwind_registers_of_sample(SYM_UNWIND_X86_64, 1 << 6 | 1 << 7 | 1 << 8, values,
				       &registers);
	cr_assert_null(sym_unwinder_create_recorded(find_unknown, &not_code_from, &unwinder));
	cr_assert_null(sym_unwinder_unwind(unwinder, &registers, &copy, frames, capacity, &count,
					   end_ret));
	sym_unwinder_destroy(unwinder);
	return count;
}

Test(recorded_unwinder, ends_where_frame_pointers_end)
{
	uint64_t stack[8] = { 0 };
	struct sym_frame frames[MOST];
	enum sym_unwind_end end;

	chain(stack, 0x7010, 0x2000);
	chain(stack + 2, 0, 0x3000);
	cr_assert_eq(unwind_chain(stack, 8, &end, frames, MOST), 3);
	cr_assert_eq(frames[0].address, 0x1000);
	cr_assert_eq(frames[1].address, 0x2000);
	cr_assert_eq(frames[1].stack_address, 0x7010);
	cr_assert_eq(frames[2].address, 0x3000);
	cr_assert_eq(unwind_chain(stack, 8, &end, frames, 2), 2);
	cr_assert_eq(end, SYM_UNWIND_FULL);
}

Test(recorded_unwinder, ends_at_a_chain_that_loops)
{
	uint64_t stack[8] = { 0 };
	struct sym_frame frames[MOST];
	enum sym_unwind_end end;

	chain(stack, 0x7010, 0x2000);
	chain(stack + 2, 0x7000, 0x3000);
	cr_assert_leq(unwind_chain(stack, 8, &end, frames, MOST), 3);
	cr_assert_eq(end, SYM_UNWIND_LOOP);
}

Test(recorded_unwinder, ends_outside_code)
{
	uint64_t stack[8] = { 0 };
	struct sym_frame frames[MOST];
	enum sym_unwind_end end;

	chain(stack, 0x7010, 0x2000);
	chain(stack + 2, 0x7020, 0x200000);
	cr_assert_eq(unwind_chain(stack, 8, &end, frames, MOST), 2);
	cr_assert_eq(end, SYM_UNWIND_NOT_CODE);
}

Test(recorded_unwinder, rejects_registers_without_a_program_counter)
{
	const uint64_t values[64] = { 0 };
	const struct sym_unwind_stack copy = { 0x7000, values, 8 };
	struct sym_unwind_registers registers;
	struct sym_unwinder *unwinder;
	struct sym_frame frame;
	enum sym_unwind_end end;
	struct sym_error *error;
	uint64_t none = 0;
	size_t count;

	sym_unwind_registers_of_sample(SYM_UNWIND_X86_64, 1 << 7, values, &registers);
	cr_assert_eq(registers.known, 1 << 7);
	cr_assert_null(sym_unwinder_create_recorded(find_unknown, &none, &unwinder));
	error = sym_unwinder_unwind(unwinder, &registers, &copy, &frame, 1, &count, &end);
	cr_assert_eq(sym_error_code(error), SYM_ERROR_ARGUMENT);
	sym_error_destroy(error);
	sym_unwinder_destroy(unwinder);
}

static bool create_and_destroy(void *context)
{
	struct sym_unwinder *unwinder = NULL;
	struct sym_error *error = sym_unwinder_create_recorded(find_unknown, context, &unwinder);
	bool succeeded = !error;

	if (error)
		cr_assert_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
	sym_error_destroy(error);
	sym_unwinder_destroy(unwinder);
	return succeeded;
}

Test(recorded_unwinder, fails_cleanly_without_memory)
{
	uint64_t none = 0;

	cr_assert_gt(alloc_fail_each(create_and_destroy, &none), 3);
}
