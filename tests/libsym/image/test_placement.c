/* SPDX-License-Identifier: MIT */
#include "libsym/image/placement.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/alloc_fail.h"

enum {
	R = SYM_READ,
	RX = SYM_READ | SYM_EXECUTE,
	RW = SYM_READ | SYM_WRITE,
	RS = SYM_READ | SYM_SHARED
};

struct line {
	uint64_t start, end, offset;
	uint32_t protection;
};

static struct placements place(const struct object_segment *segments, size_t segment_count,
			       uint64_t image_offset, const struct line *lines, size_t line_count)
{
	struct object_file image = { .segments = (struct object_segment *)segments,
				     .segment_count = segment_count };
	struct sym_mapping mappings[16] = { { 0 } };
	struct placements placements;
	uint32_t numbers[16];

	for (size_t i = 0; i < line_count; i++) {
		mappings[i] = (struct sym_mapping){
			.start_address = lines[i].start,
			.end_address = lines[i].end,
			.offset = lines[i].offset,
			.protection = lines[i].protection,
		};
		numbers[i] = (uint32_t)i;
	}
	cr_assert_null(
		placement_find(&image, image_offset, mappings, numbers, line_count, &placements));
	return placements;
}

/* CoreLib of .NET 8 and later: .text at raw 0x200 and rva 0x10200. */
static const struct object_segment modern[] = {
	{ 0, 0x200, 0, 0x200, false },
	{ 0x200, 0xb3f000, 0x10200, 0xb3f000, true },
	{ 0xb3f200, 0x40000, 0xb5f200, 0x40000, false },
};

/* .NET Core 3.1: .data comes first, and .text shares a page of the file with it. */
static const struct object_segment older[] = {
	{ 0, 0x200, 0, 0x200, false },
	{ 0x200, 0x23000, 0x10200, 0x23000, false },
	{ 0x23200, 0x300000, 0x43200, 0x300000, true },
};

Test(placement, finds_the_base_of_a_modern_image)
{
	static const struct line lines[] = {
		{ 0x7f0000000000, 0x7f0000001000, 0, R },
		{ 0x7f0000010000, 0x7f0000b50000, 0, RX },
		{ 0x7f0000b5f000, 0x7f0000ba0000, 0xb3f000, RW },
		{ 0x7f2000000000, 0x7f2000c00000, 0, RS },
	};
	struct placements placements = place(modern, 3, 0, lines, 4);

	cr_assert_eq(placements.count, 1);
	cr_expect_eq(placements.items[0].base, 0x7f0000000000);
	cr_expect_eq(placements.items[0].first_address, 0x7f0000000000);
	cr_expect_eq(placements.of_line[0], 0);
	cr_expect_eq(placements.of_line[1], 0);
	cr_expect_eq(placements.of_line[2], 0);
	/* The flat view is not part of the loaded image. */
	cr_expect_eq(placements.of_line[3], PLACEMENT_NONE);
	placements_deinit(&placements);
}

Test(placement, finds_the_base_when_data_precedes_code)
{
	static const struct line lines[] = {
		{ 0x7f0000000000, 0x7f0000001000, 0, R },
		{ 0x7f0000010000, 0x7f0000034000, 0, RW },
		{ 0x7f0000043000, 0x7f0000344000, 0x23000, RX },
	};
	struct placements placements = place(older, 3, 0, lines, 3);

	cr_assert_eq(placements.count, 1);
	cr_expect_eq(placements.items[0].base, 0x7f0000000000);
	cr_expect_eq(placements.items[0].line_count, 3);
	placements_deinit(&placements);
}

/* Offset of the image in its bundle and base are equal modulo the page size, and not 0. */
Test(placement, finds_a_base_inside_a_bundle_that_is_not_page_aligned)
{
	static const uint64_t offset = 0x2267380;
	static const struct line lines[] = {
		{ 0x7f0000000000, 0x7f0000002000, 0x2267000, R },
		{ 0x7f0000010000, 0x7f0000b50000, 0x2267000, RX },
	};
	struct placements placements = place(modern, 3, offset, lines, 2);

	cr_assert_eq(placements.count, 1);
	cr_expect_eq(placements.items[0].base, 0x7f0000000380);
	placements_deinit(&placements);
}

/*
 * As in a single-file application of .NET 10: two assemblies share the page 0x1335000 of the file,
 * and the second one is mapped from there.
 */
Test(placement, leaves_the_lines_of_the_next_image_in_a_bundle)
{
	static const struct object_segment small[] = {
		{ 0, 0x200, 0, 0x200, false },
		{ 0x200, 0xe00, 0x2000, 0xe00, true },
	};
	static const struct object_segment large[] = {
		{ 0, 0x200, 0, 0x200, false },
		{ 0x200, 0x539c00, 0x10200, 0x539c00, true },
	};
	static const struct line lines[] = {
		{ 0x55da3be60000, 0x55da3be62000, 0x1335000, R },
		{ 0x55da3be70000, 0x55da3c3ab000, 0x1335000, RX },
	};
	struct placements placements = place(small, 2, 0x13345c0, lines, 2);

	cr_expect_eq(placements.count, 0);
	cr_expect_eq(placements.of_line[1], PLACEMENT_NONE);
	placements_deinit(&placements);
	placements = place(large, 2, 0x13355c0, lines, 2);
	cr_assert_eq(placements.count, 1);
	cr_expect_eq(placements.items[0].base, 0x55da3be605c0);
	cr_expect_eq(placements.of_line[0], 0);
	cr_expect_eq(placements.of_line[1], 0);
	placements_deinit(&placements);
}

Test(placement, keeps_two_placements_of_one_file_apart)
{
	static const struct line lines[] = {
		{ 0x7f0000000000, 0x7f0000001000, 0, R },
		{ 0x7f0000010000, 0x7f0000b50000, 0, RX },
		{ 0x7f1000000000, 0x7f1000001000, 0, R },
		{ 0x7f1000010000, 0x7f1000b50000, 0, RX },
	};
	struct placements placements = place(modern, 3, 0, lines, 4);

	cr_assert_eq(placements.count, 2);
	cr_expect_eq(placements.items[0].base, 0x7f0000000000);
	cr_expect_eq(placements.items[1].base, 0x7f1000000000);
	cr_expect_eq(placements.of_line[1], 0);
	cr_expect_eq(placements.of_line[2], 1);
	cr_expect_eq(placements.of_line[3], 1);
	placements_deinit(&placements);
}

Test(placement, follows_lines_that_were_split_by_a_change_of_protection)
{
	static const struct line lines[] = {
		{ 0x7f0000010000, 0x7f0000020000, 0, RX },
		{ 0x7f0000020000, 0x7f0000021000, 0x10000, RW },
		{ 0x7f0000021000, 0x7f0000b50000, 0x11000, RX },
	};
	struct placements placements = place(modern, 3, 0, lines, 3);

	cr_assert_eq(placements.count, 1);
	cr_expect_eq(placements.items[0].base, 0x7f0000000000);
	cr_expect_eq(placements.items[0].line_count, 3);
	placements_deinit(&placements);
}

/* libc: four segments, the base is the bias of vaddrs. */
Test(placement, finds_the_bias_of_an_elf_file)
{
	static const struct object_segment segments[] = {
		{ 0, 0x26000, 0, 0x26000, false },
		{ 0x26000, 0x155000, 0x26000, 0x155000, true },
		{ 0x17b000, 0x53000, 0x17b000, 0x53000, false },
		{ 0x1ce8f0, 0x6000, 0x1cf8f0, 0x13000, false },
	};
	static const struct line lines[] = {
		{ 0x7f0000000000, 0x7f0000026000, 0, R },
		{ 0x7f0000026000, 0x7f000017b000, 0x26000, RX },
		{ 0x7f000017b000, 0x7f00001ce000, 0x17b000, R },
		{ 0x7f00001cf000, 0x7f00001d3000, 0x1ce000, R },
		{ 0x7f00001d3000, 0x7f00001d5000, 0x1d2000, RW },
	};
	struct placements placements = place(segments, 4, 0, lines, 5);

	cr_assert_eq(placements.count, 1);
	cr_expect_eq(placements.items[0].base, 0x7f0000000000);
	cr_expect_eq(placements.items[0].line_count, 5);
	placements_deinit(&placements);
}

Test(placement, places_nothing_by_a_view_without_code)
{
	static const struct line lines[] = {
		{ 0x7f2000000000, 0x7f2000c00000, 0, RS },
	};
	struct placements placements = place(modern, 3, 0, lines, 1);

	cr_expect_eq(placements.count, 0);
	cr_expect_eq(placements.unexplained_code_lines, 0);
	cr_expect_eq(placements.of_line[0], PLACEMENT_NONE);
	placements_deinit(&placements);
}

/* Two executable sections within one page of the file, and no other line to decide. */
Test(placement, does_not_guess_between_two_equally_good_bases)
{
	static const struct object_segment segments[] = {
		{ 0x200, 0x400, 0x1200, 0x400, true },
		{ 0x600, 0x400, 0x5600, 0x400, true },
	};
	static const struct line lines[] = {
		{ 0x7f0000001000, 0x7f0000002000, 0, RX },
	};
	struct placements placements = place(segments, 2, 0, lines, 1);

	cr_expect_eq(placements.count, 0);
	cr_expect_eq(placements.unexplained_code_lines, 1);
	placements_deinit(&placements);
}

/*
 * Two executable sections within one page of the file, both mapped: only one base explains both
 * lines.
 */
Test(placement, lets_the_other_lines_decide)
{
	static const struct object_segment segments[] = {
		{ 0x200, 0x400, 0x1200, 0x400, true },
		{ 0x600, 0x400, 0x5600, 0x400, true },
	};
	static const struct line lines[] = {
		{ 0x7f0000001000, 0x7f0000002000, 0, RX },
		{ 0x7f0000005000, 0x7f0000006000, 0, RX },
	};
	struct placements placements = place(segments, 2, 0, lines, 2);

	cr_assert_eq(placements.count, 1);
	cr_expect_eq(placements.items[0].base, 0x7f0000000000);
	placements_deinit(&placements);
}

Test(placement, counts_code_that_the_headers_do_not_explain)
{
	static const struct line lines[] = {
		{ 0x7f0000010000, 0x7f0000b50000, 0xc00000, RX },
	};
	struct placements placements = place(modern, 3, 0, lines, 1);

	cr_expect_eq(placements.count, 0);
	cr_expect_eq(placements.unexplained_code_lines, 1);
	placements_deinit(&placements);
}

/* Neither bytes before the page of the segment nor bytes after it. */
Test(placement, ignores_lines_outside_the_pages_of_a_segment)
{
	static const struct object_segment segments[] = {
		{ 0x5000, 0x1000, 0x15000, 0x1000, true },
	};
	static const struct line lines[] = {
		{ 0x7f0000000000, 0x7f0000001000, 0x4000, RX },
		{ 0x7f0000100000, 0x7f0000101000, 0x6000, RX },
	};
	struct placements placements = place(segments, 1, 0, lines, 2);

	cr_expect_eq(placements.count, 0);
	cr_expect_eq(placements.unexplained_code_lines, 2);
	placements_deinit(&placements);
}

/* Code of a neighbour fits as well. Without headers at the base it is not a part. */
Test(placement, finds_a_part_of_a_bundle_only_at_its_headers)
{
	static const struct line elsewhere[] = {
		{ 0x7f0000800000, 0x7f0000802000, 0x2267000, R },
		{ 0x7f0000010000, 0x7f0000b50000, 0x2267000, RX },
	};
	struct placements placements = place(modern, 3, 0x2267380, elsewhere, 2);

	cr_expect_eq(placements.count, 0);
	cr_expect_eq(placements.unexplained_code_lines, 1);
	placements_deinit(&placements);
}

Test(placement, survives_segments_at_the_ends_of_the_numbers)
{
	static const struct object_segment segments[] = {
		{ UINT64_MAX - 0x10, UINT64_MAX, UINT64_MAX, UINT64_MAX, true },
		{ 0, UINT64_MAX, UINT64_MAX - 5, UINT64_MAX, true },
	};
	static const struct line lines[] = {
		{ 0x7f0000010000, 0x7f0000b50000, 0, RX },
		{ 0x7f0000b50000, 0x7f0000b60000, UINT64_MAX - 0xfff, RX },
	};
	struct placements placements = place(segments, 2, 0, lines, 2);

	cr_expect_leq(placements.count, 2);
	placements_deinit(&placements);
}

Test(placement, survives_every_failing_allocation)
{
	static const struct sym_mapping mapping = { .start_address = 0x7f0000010000,
						    .end_address = 0x7f0000b50000,
						    .protection = RX };
	const struct object_file image = { .segments = (struct object_segment *)modern,
					   .segment_count = 3 };
	const uint32_t line = 0;
	struct sym_error *error;
	size_t failures = 0;
	bool failed;

	do {
		struct placements placements;

		alloc_fail_after(failures);
		error = placement_find(&image, 0, &mapping, &line, 1, &placements);
		failed = alloc_fail_stop();
		cr_assert_eq(error, failed ? &sym_error_no_memory : NULL);
		failures += failed;
		if (!error)
			placements_deinit(&placements);
	} while (failed);
	cr_assert_eq(failures, 2);
}
