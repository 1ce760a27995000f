/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapgen/profile/frozen_names.h"

static struct frozen_names *names;
static struct frame_table *frames;

static void open_text(const char *text)
{
	cr_assert(frame_table_create(&frames) == NULL);
	cr_assert(frozen_names_open(strdup(text), strlen(text), &names) == NULL);
}

static void close_all(void)
{
	frozen_names_close(names);
	frame_table_destroy(frames);
}

static const char *name_at(int32_t pid, uint64_t time_ns, uint64_t address)
{
	uint32_t frame;

	cr_assert(frozen_names_frame(names, frames, pid, time_ns, address, &frame) == NULL);
	return frame == FRAME_NONE ? "" : frame_table_at(frames, frame)->name;
}

static void expect_name(int32_t pid, uint64_t time_ns, uint64_t address, const char *expected)
{
	cr_expect(eq(str, (char *)name_at(pid, time_ns, address), (char *)expected));
}

Test(frozen_names, finds_a_symbol_from_its_first_to_its_last_byte, .fini = close_all)
{
	open_text("P\t0\t7\t7\t1\t0\tdotnet\n"
		  "S\t0\t1000\t10\t0\t0\truntime\tOptimizedTier1\t-\t0\tN.T::M()\n");
	expect_name(7, 5, 0xfff, "");
	expect_name(7, 5, 0x1000, "N.T::M()");
	expect_name(7, 5, 0x100f, "N.T::M()");
	expect_name(7, 5, 0x1010, "");
	expect_name(8, 5, 0x1000, "");
}

Test(frozen_names, gives_the_name_of_the_time, .fini = close_all)
{
	open_text("P\t0\t7\t7\t1\t0\tdotnet\n"
		  "S\t0\t1000\t100\t0\t0\truntime\t-\t-\t0\told\n"
		  "S\t0\t1080\t10\t500\t0\truntime\t-\t-\t0\tnew\n");
	expect_name(7, 499, 0x1085, "old");
	expect_name(7, 500, 0x1085, "new");
	expect_name(7, 500, 0x1070, "old");
	cr_expect(ne(u32, frozen_names_epoch(names, 7, 499), frozen_names_epoch(names, 7, 500)));
	cr_expect(eq(u32, frozen_names_epoch(names, 7, 500), frozen_names_epoch(names, 7, 501)));
}

Test(frozen_names, begins_again_with_exec, .fini = close_all)
{
	open_text("P\t0\t7\t7\t1\t0\tsh\n"
		  "S\t0\t1000\t100\t0\t0\telf\t-\t-\t0\tof_sh\n"
		  "P\t1\t7\t7\t1\t300\tdotnet\n"
		  "S\t1\t2000\t100\t0\t0\telf\t-\t-\t0\tof_dotnet\n");
	expect_name(7, 299, 0x1000, "of_sh");
	expect_name(7, 300, 0x1000, "");
	expect_name(7, 300, 0x2000, "of_dotnet");
}

Test(frozen_names, has_the_kernel_as_process_minus_one, .fini = close_all)
{
	open_text("P\t0\t-1\t-1\t0\t0\tkernel\n"
		  "S\t0\tffffffff81000000\t100\t0\t0\tkernel\t-\t-\t0\tdo_work\n");
	expect_name(-1, 1, 0xffffffff81000010, "do_work");
}

Test(frozen_names, undoes_escapes, .fini = close_all)
{
	open_text("P\t0\t7\t7\t1\t0\tdotnet\n"
		  "S\t0\t1000\t100\t0\t0\telf\t-\t-\t0\ta\\tb\\\\c\\nd\n");
	expect_name(7, 1, 0x1000, "a\tb\\c\nd");
}

Test(frozen_names, skips_and_counts_lines_that_make_no_sense, .fini = close_all)
{
	open_text("P\t0\t7\t7\t1\t0\tdotnet\n"
		  "P\t5\t8\t8\t1\t0\tnumber\n"
		  "S\t9\t1000\t100\t0\t0\telf\t-\t-\t0\tno_process\n"
		  "S\t0\t1000\t0\t0\t0\telf\t-\t-\t0\tno_size\n"
		  "S\t0\tfffffffffffffff0\t100\t0\t0\telf\t-\t-\t0\tbeyond\n"
		  "S\t0\t1000\t100\t0\t0\telf\t-\t4\t0\tno_image\n"
		  "S\t0\t1000\n"
		  "\n"
		  "Z\n"
		  "S\t0\t1000\t100\t0\t0\telf\t-\t-\t0\tgood\n"
		  "S\t0\t2000\t100\t0\t0\telf\t-\t-\t0\tcut");
	expect_name(7, 1, 0x1000, "good");
	expect_name(7, 1, 0x2000, "");
	cr_expect(eq(sz, frozen_names_bad_lines(names), 9));
}

/* ---- inlined functions ----------------------------------------------------------------------- */

#define INLINED_HEAD                                                                               \
	"P\t0\t7\t7\t1\t0\tdotnet\n"                                                               \
	"F\t0\t/src/Store.cs\n"                                                                    \
	"S\t0\t1000\t100\t0\t0\truntime\tOptimizedTier1\t-\t0\tOuter\n"

static const uint32_t *stack_at(uint64_t time_ns, uint64_t address, size_t *count_ret)
{
	uint32_t number, stack;

	cr_assert(frozen_names_frame(names, frames, 7, time_ns, address, &number) == NULL);
	cr_assert(ne(u32, number, FRAME_NONE));
	cr_expect(eq(str, (char *)frame_table_at(frames, number)->name, (char *)"Outer"));
	cr_assert(frame_table_add_stack(frames, &number, 1, STACK_END_WHOLE, &stack) == NULL);
	return frame_table_stack(frames, stack, count_ret);
}

static void expect_frame(uint32_t number, const char *name, uint32_t line, bool is_inlined)
{
	const struct profile_frame *frame = frame_table_at(frames, number);

	cr_expect(eq(str, (char *)frame->name, (char *)name));
	cr_expect(eq(u32, frame->line, line));
	cr_expect(eq(str, (char *)frame->file, (char *)(line ? "/src/Store.cs" : "")));
	cr_expect(eq(int, frame->is_inlined, is_inlined));
	cr_expect(eq(int, frame->kind, FRAME_KIND_JITTED));
	cr_expect(eq(str, (char *)frame->tier, (char *)"OptimizedTier1"));
}

Test(frozen_names, gives_inlined_functions_behind_the_one_that_has_the_code, .fini = close_all)
{
	const uint32_t *stack;
	size_t count;

	open_text(INLINED_HEAD "M\t0\t1010\t0\t1\t5\t1\t31\t6000001\t-\t0\tInner\n"
			       "M\t0\t1010\t0\t0\t0\t0\t4294967295\t0\t-\t-\tMiddle\\t\n"
			       "L\t0\t1010\t0\t1\t9\t1\t4294967295\t0\t-\t0\n"
			       "L\t0\t1011\t0\t1\t8\t1\t4294967295\t0\t-\t0\n");
	stack = stack_at(0, 0x1010, &count);
	cr_assert(eq(sz, count, 3));
	expect_frame(stack[0], "Outer", 9, false);
	expect_frame(stack[1], "Middle\t", 0, true);
	expect_frame(stack[2], "Inner", 5, true);
	cr_expect(frame_table_at(frames, stack[2])->has_il_offset);
	stack = stack_at(0, 0x1011, &count);
	cr_assert(eq(sz, count, 1));
	expect_frame(stack[0], "Outer", 8, false);
	cr_expect(eq(sz, frozen_names_bad_lines(names), 0));
}

Test(frozen_names, gives_inlined_functions_of_the_time, .fini = close_all)
{
	const uint32_t *stack;
	size_t count;

	open_text(INLINED_HEAD "L\t0\t1010\t0\t1\t9\t1\t0\t0\t-\t0\n"
			       "M\t0\t1010\t500\t1\t5\t1\t0\t0\t-\t0\tNew\n"
			       "L\t0\t1010\t500\t1\t9\t1\t0\t0\t-\t0\n");
	stack_at(499, 0x1010, &count);
	cr_expect(eq(sz, count, 1));
	stack = stack_at(500, 0x1010, &count);
	cr_assert(eq(sz, count, 2));
	expect_frame(stack[1], "New", 5, true);
}

Test(frozen_names, gives_no_inlined_functions_without_the_one_that_has_the_code, .fini = close_all)
{
	const uint32_t *stack;
	size_t count;

	open_text(INLINED_HEAD "M\t0\t1010\t0\t1\t5\t1\t0\t0\t-\t0\tInner\n"
			       "M\t0\t1010\t0\t1\t5\t1\t0\t0\t-\t0\n"
			       "M\t0\t1010\t0\t1\t5\t1\t0\t0\t-\t7\tInner\n");
	stack = stack_at(0, 0x1010, &count);
	cr_assert(eq(sz, count, 1));
	expect_frame(stack[0], "Outer", 0, false);
	cr_expect(eq(sz, frozen_names_bad_lines(names), 2));
}

Test(frozen_names, gives_no_inlined_functions_where_there_are_too_many, .fini = close_all)
{
	char *text = NULL;
	size_t size, count;
	FILE *file = open_memstream(&text, &size);

	fputs(INLINED_HEAD, file);
	for (int i = 0; i < 65; i++)
		fprintf(file, "M\t0\t1010\t0\t1\t5\t1\t0\t0\t-\t0\tInner%d\n", i);
	fputs("L\t0\t1010\t0\t1\t9\t1\t0\t0\t-\t0\n", file);
	fclose(file);
	open_text(text);
	free(text);
	stack_at(0, 0x1010, &count);
	cr_expect(eq(sz, count, 1));
}

Test(frozen_names, gives_no_more_inlined_functions_than_a_stack_has_room_for, .fini = close_all)
{
	enum {
		FRAMES = (1 << 13) - 1
	};
	uint32_t *numbers = calloc(FRAMES, sizeof(*numbers)), stack;
	size_t count;

	open_text(INLINED_HEAD "M\t0\t1010\t0\t1\t5\t1\t0\t0\t-\t0\tInner\n"
			       "L\t0\t1010\t0\t1\t9\t1\t0\t0\t-\t0\n");
	for (size_t i = 0; i < FRAMES; i++)
		cr_assert(frozen_names_frame(names, frames, 7, 0, 0x1010, &numbers[i]) == NULL);
	cr_assert(frame_table_add_stack(frames, numbers, FRAMES, STACK_END_WHOLE, &stack) == NULL);
	frame_table_stack(frames, stack, &count);
	cr_expect(eq(sz, count, FRAMES + 1));
	free(numbers);
}
