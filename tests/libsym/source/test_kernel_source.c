/* SPDX-License-Identifier: MIT */
#include "libsym/source/kernel_source.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "libsym/limits.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/elf_builder.h"

static const char text[] = "ffffffff81000000 T startup_64\n"
			   "ffffffff81000100 t a_local\n"
			   "ffffffffc0000000 t module_init\t[sample]\n"
			   "ffffffffc0000040 t module_work\t[sample]\n"
			   "ffffffffc1000010 t bpf_prog_1_x\t[bpf]\n";

static int file_of(const void *bytes, size_t size_bytes)
{
	int fd = elf_builder_file(bytes, size_bytes);

	cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static bool open_whole(void *context)
{
	const int *fd = context;
	struct kernel_source *source AUTO_KERNEL_SOURCE = NULL;
	struct source_match match;
	struct sym_error *error;
	const char *module;

	cr_assert_eq(lseek(*fd, 0, SEEK_SET), 0);
	error = kernel_source_open(*fd, "kallsyms", KERNEL_ALL, &source);
	if (error) {
		cr_expect_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
		return false;
	}
	cr_expect_eq(kernel_source_count(source), 5);
	cr_assert(kernel_source_find(source, 0xffffffffc0000041, &match, &module));
	cr_expect_str_eq(match.name, "module_work");
	cr_expect_str_eq(module, "[sample]");
	return true;
}

Test(kernel_source, survives_every_failing_allocation)
{
	int fd = file_of(text, strlen(text));

	cr_expect_gt(alloc_fail_each(open_whole, &fd), 5);
	close(fd);
}

Test(kernel_source, reports_that_it_cannot_read)
{
	struct kernel_source *source AUTO_KERNEL_SOURCE = NULL;
	int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct sym_error *error = kernel_source_open(fd, "kallsyms", KERNEL_ALL, &source);

	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_IO);
	cr_expect_null(source);
	sym_error_destroy(error);
	close(fd);
}

/* Lines longer than any name: skipped, however long, and what follows has its names. */
Test(kernel_source, reads_on_after_a_line_that_is_too_long)
{
	struct kernel_source *source AUTO_KERNEL_SOURCE = NULL;
	size_t long_bytes = 3 * LIMIT_NAME_BYTES, all_bytes = long_bytes + 1 + strlen(text);
	char *all = malloc(all_bytes);
	struct source_match match;
	const char *module;
	int fd;

	memset(all, 'x', long_bytes);
	all[long_bytes] = '\n';
	memcpy(all + long_bytes + 1, text, strlen(text));
	fd = file_of(all, all_bytes);
	free(all);
	cr_assert_null(kernel_source_open(fd, "kallsyms", KERNEL_ALL, &source));
	cr_assert(kernel_source_find(source, 0xffffffffc1000011, &match, &module));
	cr_expect_str_eq(match.name, "bpf_prog_1_x");
	cr_expect_eq(kernel_source_count(source), 5);
	close(fd);
}

/* Beyond the number of modules that an index can tell apart. */
Test(kernel_source, refuses_too_many_modules)
{
	struct kernel_source *source AUTO_KERNEL_SOURCE = NULL;
	struct sym_error *error;
	struct buf all;
	int fd;

	buf_init(&all, 1 << 26);
	for (unsigned int i = 0; i < 5000; i++)
		buf_printf(&all, "ffffffffc%07x t f\t[m%u]\n", i << 4, i);
	fd = file_of(all.data, all.size_bytes);
	buf_deinit(&all);
	error = kernel_source_open(fd, "kallsyms", KERNEL_ALL, &source);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_LIMIT);
	sym_error_destroy(error);
	close(fd);
}
