/* SPDX-License-Identifier: MIT */
#include "libsym/file/sparse_file.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/elf_builder.h"

enum {
	PAGE = 4096
};

static int file_of_pages(size_t pages)
{
	uint8_t bytes[16 * PAGE];

	for (size_t i = 0; i < pages * PAGE; i++)
		bytes[i] = (uint8_t)(i / PAGE + 1);
	return elf_builder_file(bytes, pages * PAGE);
}

Test(sparse_file, reads_only_requested_pages)
{
	struct sparse_file file;
	int fd = file_of_pages(8);

	cr_assert_null(sparse_file_init(&file, fd, "f", 0, SPARSE_FILE_TO_END));
	cr_expect_null(file.data);
	cr_assert_null(sparse_file_need(&file, "f", 3 * PAGE + 5, 10));
	cr_expect_eq(file.data[3 * PAGE], 4);
	cr_expect_eq(file.data[2 * PAGE], 0);
	cr_expect_eq(file.data[4 * PAGE], 0);
	cr_assert_null(sparse_file_need(&file, "f", 2 * PAGE, 3 * PAGE));
	cr_expect_eq(file.data[2 * PAGE], 3);
	cr_expect_eq(file.data[5 * PAGE - 1], 5);
	sparse_file_deinit(&file);
	close(fd);
}

Test(sparse_file, never_changes_bytes_it_has_read)
{
	struct sparse_file file;
	int fd = file_of_pages(2);

	cr_assert_null(sparse_file_init(&file, fd, "f", 0, SPARSE_FILE_TO_END));
	cr_assert_null(sparse_file_need(&file, "f", 0, 1));
	file.data[7] = 99;
	cr_assert_null(sparse_file_need(&file, "f", 0, 2 * PAGE));
	cr_expect_eq(file.data[7], 99);
	cr_expect_eq(file.data[PAGE], 2);
	sparse_file_deinit(&file);
	close(fd);
}

Test(sparse_file, presents_a_part_as_a_file)
{
	struct sparse_file file;
	int fd = file_of_pages(4);

	cr_assert_null(sparse_file_init(&file, fd, "f", PAGE - 1, 2));
	cr_expect_eq(file.size_bytes, 2);
	cr_assert_null(sparse_file_need(&file, "f", 0, 1000));
	cr_expect_eq(file.data[0], 1);
	cr_expect_eq(file.data[1], 2);
	sparse_file_deinit(&file);
	close(fd);
}

Test(sparse_file, ignores_bytes_past_the_end)
{
	struct sparse_file file;
	int fd = file_of_pages(1);

	cr_assert_null(sparse_file_init(&file, fd, "f", 0, SPARSE_FILE_TO_END));
	cr_expect_null(sparse_file_need(&file, "f", PAGE, 1));
	cr_expect_null(sparse_file_need(&file, "f", UINT64_MAX, UINT64_MAX));
	cr_expect_null(sparse_file_need(&file, "f", PAGE - 1, UINT64_MAX));
	cr_expect_eq(file.data[PAGE - 1], 1);
	sparse_file_deinit(&file);
	close(fd);
}

Test(sparse_file, rejects_a_part_outside_the_file)
{
	struct sparse_file file;
	struct sym_error *error;
	int fd = file_of_pages(1);

	error = sparse_file_init(&file, fd, "f", PAGE + 1, SPARSE_FILE_TO_END);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_FORMAT);
	sym_error_destroy(error);
	error = sparse_file_init(&file, fd, "f", 1, PAGE);
	cr_assert_not_null(error);
	sym_error_destroy(error);
	close(fd);
}

Test(sparse_file, detects_a_changed_file)
{
	struct sparse_file file;
	struct sym_error *error;
	int fd = file_of_pages(4);

	cr_assert_null(sparse_file_init(&file, fd, "f", 0, SPARSE_FILE_TO_END));
	cr_assert_null(sparse_file_need(&file, "f", 0, 1));
	cr_assert_eq(ftruncate(fd, 3 * PAGE), 0);
	error = sparse_file_need(&file, "f", 2 * PAGE, 1);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_STALE);
	sym_error_destroy(error);
	/* Bytes in memory keep their old content. */
	cr_expect_null(sparse_file_need(&file, "f", 0, 1));
	sparse_file_deinit(&file);
	close(fd);
}

Test(sparse_file, detects_a_truncated_file)
{
	struct sparse_file file;
	struct sym_error *error;
	int fd = file_of_pages(4);

	cr_assert_null(sparse_file_init(&file, fd, "f", 0, SPARSE_FILE_TO_END));
	cr_assert_eq(ftruncate(fd, PAGE), 0);
	error = sparse_file_need(&file, "f", 2 * PAGE, 1);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_STALE);
	sym_error_destroy(error);
	sparse_file_deinit(&file);
	close(fd);
}

Test(sparse_file, covers_a_large_file_and_reads_a_part_of_it)
{
	const uint64_t gib = (uint64_t)1 << 30;
	struct sparse_file file;
	struct sym_error *error;
	int fd = file_of_pages(2);

	cr_assert_eq(ftruncate(fd, (off_t)(5 * gib)), 0);
	cr_assert_eq(pwrite(fd, "far", 3, (off_t)(4 * gib + 7)), 3);
	cr_assert_null(sparse_file_init(&file, fd, "f", 0, SPARSE_FILE_TO_END));
	cr_assert_null(sparse_file_need(&file, "f", 4 * gib, 10));
	cr_expect_eq(memcmp(file.data + 4 * gib + 7, "far", 3), 0);
	cr_assert_null(sparse_file_need(&file, "f", gib, gib), "there is nothing to be read");
	file.held_bytes += gib - 4 * PAGE;
	error = sparse_file_need(&file, "f", 0, 16 * PAGE);
	file.held_bytes -= gib - 4 * PAGE;
	cr_assert(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_LIMIT);
	cr_expect(strstr(sym_error_message(error), "LIMIT_IMAGE_BYTES"), "%s",
		  sym_error_message(error));
	sym_error_destroy(error);
	/* A rejected read uses nothing of the budget. */
	cr_assert_null(sparse_file_need(&file, "f", PAGE, 10));
	cr_expect_eq(file.data[PAGE], 2);
	sparse_file_deinit(&file);
	close(fd);
}

Test(sparse_file, charges_what_it_holds)
{
	struct budget budget;
	struct sparse_file file;
	struct sym_error *error;
	int fd = file_of_pages(8);

	budget_init(&budget);
	budget.others.most_bytes = 4 * PAGE;
	cr_assert_null(sparse_file_init(&file, fd, "f", 0, SPARSE_FILE_TO_END));
	file.account = &budget.others;
	cr_assert_null(sparse_file_need(&file, "f", 0, 4 * PAGE));
	cr_assert_null(sparse_file_need(&file, "f", 0, 4 * PAGE), "it is there already");
	cr_expect_eq(budget.others.held_bytes, 4 * PAGE);
	error = sparse_file_need(&file, "f", 4 * PAGE, 1);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_LIMIT);
	cr_expect_str_eq(sym_error_path(error), "f");
	sym_error_destroy(error);
	sparse_file_deinit(&file);
	cr_expect_eq(budget.others.held_bytes, 0);
	budget_deinit(&budget);
	close(fd);
}

Test(sparse_file, reads_nothing_of_a_hole)
{
	static const uint64_t size_bytes = (uint64_t)64 << 20, middle = (uint64_t)32 << 20;
	struct sparse_file file;
	int fd = file_of_pages(1);

	cr_assert_eq(ftruncate(fd, (off_t)size_bytes), 0);
	cr_assert_eq(pwrite(fd, "x", 1, (off_t)middle), 1);
	cr_assert_null(sparse_file_init(&file, fd, "f", 0, SPARSE_FILE_TO_END));
	cr_assert_null(sparse_file_need(&file, "f", 0, size_bytes));
	cr_expect_lt(file.held_bytes, (uint64_t)8 << 20, "%zu bytes", (size_t)file.held_bytes);
	cr_expect_eq(file.data[0], 1);
	cr_expect_eq(file.data[middle], 'x');
	cr_expect_eq(file.data[middle - 1], 0);
	cr_expect_eq(file.data[size_bytes - 1], 0);
	sparse_file_deinit(&file);
	close(fd);
}
