/* SPDX-License-Identifier: MIT */
#include "libsym/process/core_process.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/byte_writer.h"
#include "tests/support/program.h"

struct row {
	uint64_t start, end, page;
	const char *path;
};

static const struct row rows[] = {
	{ 0x10000, 0x11000, 0, "/lib/b.so" }, { 0x11000, 0x14000, 1, "/lib/b.so" },
	{ 0x20000, 0x21000, 0, "/lib/a.so" }, { 0x30000, 0x31000, 7, "/lib/b.so" },
	{ 0x31000, 0x32000, 0, "/lib/c.so" },
};

enum {
	ROWS = sizeof(rows) / sizeof(rows[0]),
	HEADERS_BYTES = 64 + 2 * 56
};

static void put_header(struct buf *core, size_t notes_bytes)
{
	buf_append(core,
		   "\x7f"
		   "ELF\2\1\1",
		   7);
	put_zeros(core, 9);
	put_u16(core, 4);
	put_u16(core, 62);
	put_u32(core, 1);
	put_u64(core, 0);
	put_u64(core, 64);
	put_u64(core, 0);
	put_u32(core, 0);
	put_u16(core, 64);
	put_u16(core, 56);
	put_u16(core, 2);
	put_zeros(core, 6);
	/* PT_NOTE, then a segment in the middle of the second file. */
	put_u32(core, 4);
	put_u32(core, 0);
	put_u64(core, HEADERS_BYTES);
	put_zeros(core, 16);
	put_u64(core, notes_bytes);
	put_zeros(core, 16);
	put_u32(core, 1);
	put_u32(core, 4);
	put_u64(core, 0);
	put_u64(core, 0x12000);
	put_zeros(core, 16);
	put_u64(core, 0x1000);
	put_u64(core, 0x1000);
}

static void put_files(struct buf *notes)
{
	struct buf files;

	buf_init(&files, 4096);
	put_u64(&files, ROWS);
	put_u64(&files, 4096);
	for (size_t i = 0; i < ROWS; i++) {
		put_u64(&files, rows[i].start);
		put_u64(&files, rows[i].end);
		put_u64(&files, rows[i].page);
	}
	for (size_t i = 0; i < ROWS; i++)
		buf_append(&files, rows[i].path, strlen(rows[i].path) + 1);
	put_u32(notes, 5);
	put_u32(notes, (uint32_t)files.size_bytes);
	put_u32(notes, 0x46494c45);
	buf_append(notes, "CORE\0\0\0", 8);
	buf_append(notes, files.data, files.size_bytes);
	put_padding(notes, 4);
	buf_deinit(&files);
}

static struct process *open_core(const char *path)
{
	struct process *process = NULL;
	struct buf core, notes;

	buf_init(&core, 4096);
	buf_init(&notes, 4096);
	put_files(&notes);
	put_header(&core, notes.size_bytes);
	buf_append(&core, notes.data, notes.size_bytes);
	scratch_write(path, core.data, core.size_bytes);
	buf_deinit(&notes);
	buf_deinit(&core);
	cr_assert_null(core_process_open(path, NULL, &process));
	return process;
}

Test(core_process, lists_the_mapped_files)
{
	static const struct {
		uint64_t start, end, offset;
		const char *path;
		size_t same_as; /* the first mapping of its file */
		bool is_executable;
	} expected[] = {
		{ 0x10000, 0x11000, 0, "/lib/b.so", 0, true },
		{ 0x11000, 0x12000, 0x1000, "/lib/b.so", 0, true },
		{ 0x12000, 0x13000, 0x2000, "/lib/b.so", 0, false },
		{ 0x13000, 0x14000, 0x3000, "/lib/b.so", 0, true },
		{ 0x20000, 0x21000, 0, "/lib/a.so", 4, true },
		{ 0x30000, 0x31000, 0x7000, "/lib/b.so", 0, true },
		{ 0x31000, 0x32000, 0, "/lib/c.so", 6, true },
	};
	char *scratch = scratch_create(), *path = scratch_path(scratch, "core");
	struct process *process AUTO_PROCESS = open_core(path);
	struct address_space *space AUTO_ADDRESS_SPACE = NULL;

	cr_assert_null(core_address_space(process->core, &space));
	cr_assert_eq(space->mapping_count, sizeof(expected) / sizeof(expected[0]));
	cr_expect_eq(space->file_count, 3, "lines of one path are of one file");
	for (size_t i = 0; i < space->mapping_count; i++) {
		const struct sym_mapping *mapping = &space->mappings[i];

		cr_expect_eq(mapping->start_address, expected[i].start, "mapping %zu", i);
		cr_expect_eq(mapping->end_address, expected[i].end, "mapping %zu", i);
		cr_expect_eq(mapping->offset, expected[i].offset, "mapping %zu", i);
		cr_expect_str_eq(mapping->path, expected[i].path);
		cr_expect_eq(mapping->inode, space->mappings[expected[i].same_as].inode,
			     "mapping %zu", i);
		cr_expect_neq(mapping->inode, 0);
		cr_expect_eq((mapping->protection & SYM_EXECUTE) != 0, expected[i].is_executable,
			     "mapping %zu", i);
	}
	free(path);
	scratch_remove(scratch);
}
