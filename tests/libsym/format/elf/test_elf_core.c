/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/format/elf/elf_core.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/program.h"

/* Made by fixtures/make-core-corpus.py, which contains the values. */
static char *read_seed(const char *name, size_t *size_bytes_ret)
{
	char path[128];
	char *bytes;

	snprintf(path, sizeof(path), "fixtures/corpus/elf_core/%s", name);
	bytes = scratch_read(path, size_bytes_ret);
	cr_assert(bytes, "the tests run in the top directory of the tree");
	return bytes;
}

static struct sym_error *read_core(const char *bytes, size_t size_bytes, struct elf_core *ret)
{
	struct byte_source source = byte_source_over_memory(bytes, size_bytes);

	return elf_core_read(&source, "core", ret);
}

static void check_memory(const struct elf_core *core)
{
	cr_assert_eq(core->segment_count, 3);
	cr_assert_eq(core->segments[1].address, 0x600000);
	cr_assert_eq(core->segments[1].memory_bytes, 0x2000);
	cr_assert_eq(core->segments[1].file_bytes, 32);
	cr_assert_eq(core->segments[1].flags, 6);
	cr_assert_eq(elf_core_find(core, 0x601fff), &core->segments[1]);
	cr_assert_null(elf_core_find(core, 0x602000));
	cr_assert_null(elf_core_find(core, 0x3fffff));
}

Test(elf_core, reads_memory_files_and_process)
{
	size_t size_bytes;
	char *bytes = read_seed("whole", &size_bytes);
	struct elf_core core;

	cr_assert_null(read_core(bytes, size_bytes, &core));
	check_memory(&core);
	cr_assert_eq(core.file_count, 2);
	cr_assert_str_eq(core.files[0].path, "/bin/app");
	cr_assert_eq(core.files[1].start_address, 0x7f0000);
	cr_assert_eq(core.files[1].offset, 0x2000);
	cr_assert_str_eq(core.files[1].path, "/memfd:doublemapper (deleted)");
	cr_assert_eq(elf_core_find_file(&core, 0x401fff), &core.files[0]);
	cr_assert_null(elf_core_find_file(&core, 0x402000));
	cr_assert_null(elf_core_find_file(&core, 0x3fffff));
	cr_assert_eq(core.pid, 7);
	cr_assert_eq(core.uid, 1000);
	cr_assert_eq(core.gid, 1001);
	cr_assert_str_eq(core.command, "dotnet");
	cr_assert_eq(core.program_headers, 0x400040);
	cr_assert_eq(core.missing_bytes, 0);
	elf_core_deinit(&core);
	free(bytes);
}

Test(elf_core, finds_the_vdso)
{
	const uint64_t told[] = { 3, 0x400040 }; /* AT_PHDR */
	const uint64_t vdso[] = { 33, 0x600000 };
	size_t size_bytes;
	char *bytes = read_seed("whole", &size_bytes);
	char *entry = memmem(bytes, size_bytes, told, sizeof(told));
	struct elf_core core;

	cr_assert_not_null(entry);
	cr_assert_null(read_core(bytes, size_bytes, &core));
	cr_expect_eq(core.vdso, 0);
	elf_core_deinit(&core);
	memcpy(entry, vdso, sizeof(vdso));
	cr_assert_null(read_core(bytes, size_bytes, &core));
	cr_expect_eq(core.vdso, 0x600000);
	elf_core_deinit(&core);
	free(bytes);
}

Test(elf_core, reads_a_large_count_from_the_first_section)
{
	size_t size_bytes;
	char *bytes = read_seed("extended", &size_bytes);
	struct elf_core core;

	cr_assert_null(read_core(bytes, size_bytes, &core));
	check_memory(&core);
	elf_core_deinit(&core);
	free(bytes);
}

Test(elf_core, counts_truncated_bytes_and_keeps_the_rest)
{
	size_t size_bytes;
	char *bytes = read_seed("cut", &size_bytes);
	struct elf_core core;

	cr_assert_null(read_core(bytes, size_bytes, &core));
	cr_assert_eq(core.missing_bytes, 40); /* 16 of the last segment, 24 of the one before */
	cr_assert_eq(core.segments[1].file_bytes, 8);
	cr_assert_eq(core.segments[2].file_bytes, 0);
	elf_core_deinit(&core);
	free(bytes);
}

Test(elf_core, drops_overlapping_segments)
{
	size_t size_bytes;
	char *bytes = read_seed("overlapping", &size_bytes);
	struct elf_core core;

	cr_assert_null(read_core(bytes, size_bytes, &core));
	check_memory(&core);
	elf_core_deinit(&core);
	free(bytes);
}

Test(elf_core, rejects_other_files)
{
	static const struct {
		size_t offset;
		uint8_t value;
		enum sym_error_code code;
	} lies[] = {
		{ 0, 'X', SYM_ERROR_FORMAT },       { 16, 3, SYM_ERROR_FORMAT },
		{ 18, 183, SYM_ERROR_UNSUPPORTED }, { 4, 1, SYM_ERROR_UNSUPPORTED },
		{ 54, 32, SYM_ERROR_FORMAT },       { 39, 0xff, SYM_ERROR_FORMAT },
		{ 57, 0x7f, SYM_ERROR_FORMAT },
	};
	size_t size_bytes;
	char *bytes = read_seed("whole", &size_bytes);

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		char kept = bytes[lies[i].offset];
		struct elf_core core;
		struct sym_error *error;

		bytes[lies[i].offset] = (char)lies[i].value;
		error = read_core(bytes, size_bytes, &core);
		cr_assert_not_null(error, "lie %zu", i);
		cr_assert_eq(sym_error_code(error), lies[i].code, "lie %zu", i);
		sym_error_destroy(error);
		bytes[lies[i].offset] = kept;
	}
	free(bytes);
}

Test(elf_core, survives_every_truncation)
{
	size_t size_bytes;
	char *bytes = read_seed("whole", &size_bytes);

	for (size_t length = 0; length < size_bytes; length++) {
		char *copy = malloc(length + 1);
		struct elf_core core;
		struct sym_error *error;

		memcpy(copy, bytes, length);
		error = read_core(copy, length, &core);
		if (error)
			sym_error_destroy(error);
		else
			elf_core_deinit(&core);
		free(copy);
	}
	free(bytes);
}

struct input {
	const char *bytes;
	size_t size_bytes;
};

static bool run(void *context)
{
	const struct input *input = context;
	struct elf_core core;
	struct sym_error *error = read_core(input->bytes, input->size_bytes, &core);

	if (!error)
		elf_core_deinit(&core);
	else
		cr_assert_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
	sym_error_destroy(error);
	return !error;
}

Test(elf_core, reports_out_of_memory)
{
	struct input input;
	char *bytes = read_seed("whole", &input.size_bytes);

	input.bytes = bytes;
	alloc_fail_each(run, &input);
	free(bytes);
}
