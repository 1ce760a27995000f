/* SPDX-License-Identifier: MIT */
#include "libsym/process/address_space.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/alloc_fail.h"
#include "tests/support/proc_tree.h"

static struct address_space *parse(const char *text)
{
	struct address_space *space = NULL;

	cr_assert_null(address_space_parse(text, strlen(text), &space));
	return space;
}

/* Two images, jitted code, the heap and the stack, as in a runtime with W^X. */
static const char usual[] =
	"55d000000000-55d000001000 r--p 00000000 08:01 100       /usr/share/dotnet/dotnet\n"
	"55d000001000-55d000009000 r-xp 00001000 08:01 100       /usr/share/dotnet/dotnet\n"
	"55d010000000-55d010021000 rw-p 00000000 00:00 0         [heap]\n"
	"7f0000000000-7f0000010000 r-xs 00000000 00:01 7         /memfd:doublemapper (deleted)\n"
	"7f0000010000-7f0000020000 rw-s 00010000 00:01 7         /memfd:doublemapper (deleted)\n"
	"7f1000000000-7f1000010000 r--p 00000000 08:01 200       /app/A B.dll\n"
	"7f1000010000-7f1000020000 r-xp 00000000 08:01 200       /app/A B.dll\n"
	"7f1000020000-7f1000030000 rw-p 00000000 00:00 0 \n"
	"7f2000000000-7f2000010000 r--s 00000000 08:01 200       /app/A B.dll\n"
	"7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0         [stack]\n";

Test(address_space, keeps_every_line_in_order)
{
	struct address_space *space AUTO_ADDRESS_SPACE = parse(usual);

	cr_assert_eq(space->mapping_count, 10);
	cr_expect_eq(space->bad_lines, 0);
	cr_expect_eq(space->mappings[1].start_address, 0x55d000001000);
	cr_expect_eq(space->mappings[1].end_address, 0x55d000009000);
	cr_expect_eq(space->mappings[1].offset, 0x1000);
	cr_expect_eq(space->mappings[1].protection, SYM_READ | SYM_EXECUTE);
	cr_expect_eq(space->mappings[1].device_major, 8);
	cr_expect_eq(space->mappings[1].device_minor, 1);
	cr_expect_eq(space->mappings[1].inode, 100);
	cr_expect_eq(space->mappings[1].image_index, UINT32_MAX);
	cr_expect_str_eq(space->mappings[2].path, "[heap]");
	cr_expect_str_eq(space->mappings[3].path, "/memfd:doublemapper");
	cr_expect_eq(space->mappings[3].deleted, 1);
	cr_expect_str_eq(space->mappings[5].path, "/app/A B.dll");
	cr_expect_str_eq(space->mappings[7].path, "");
}

Test(address_space, groups_the_lines_of_a_file_by_first_mapping)
{
	struct address_space *space AUTO_ADDRESS_SPACE = parse(usual);

	cr_assert_eq(space->file_count, 3);
	cr_expect_str_eq(space->files[0].path, "/usr/share/dotnet/dotnet");
	cr_expect_eq(space->files[0].mapping_count, 2);
	cr_expect(space->files[0].executable);
	cr_expect_not(space->files[0].memory);
	cr_expect_str_eq(space->files[1].path, "/memfd:doublemapper");
	cr_expect(space->files[1].memory);
	cr_expect_str_eq(space->files[2].path, "/app/A B.dll");
	cr_assert_eq(space->files[2].mapping_count, 3);
	cr_expect_eq(space->files[2].mapping_indexes[0], 5);
	cr_expect_eq(space->files[2].mapping_indexes[1], 6);
	cr_expect_eq(space->files[2].mapping_indexes[2], 8,
		     "lines of others in between do not matter");
}

Test(address_space, finds_the_mapping_of_an_address)
{
	struct address_space *space AUTO_ADDRESS_SPACE = parse(usual);

	cr_expect_eq(address_space_find(space, 0x55d000000000), 0);
	cr_expect_eq(address_space_find(space, 0x55d000000fff), 0);
	cr_expect_eq(address_space_find(space, 0x55d000001000), 1);
	cr_expect_eq(address_space_find(space, 0x7f1000010001), 6);
	cr_expect_eq(address_space_find(space, 0x7ffc00020fff), 9);
	cr_expect_eq(address_space_find(space, 0x7ffc00021000), ADDRESS_SPACE_NONE);
	cr_expect_eq(address_space_find(space, 0x55d000009000), ADDRESS_SPACE_NONE);
	cr_expect_eq(address_space_find(space, 0), ADDRESS_SPACE_NONE);
	cr_expect_eq(address_space_find(space, UINT64_MAX), ADDRESS_SPACE_NONE);
}

Test(address_space, is_empty_for_a_kernel_thread)
{
	struct address_space *space AUTO_ADDRESS_SPACE = parse("");

	cr_expect_eq(space->mapping_count, 0);
	cr_expect_eq(space->file_count, 0);
	cr_expect_eq(address_space_find(space, 0x1000), ADDRESS_SPACE_NONE);
}

Test(address_space, separates_files_with_the_same_path)
{
	/*
	 * Replaced while mapped, and mapped again: old inode, new inode; and one path on two
	 * devices.
	 */
	struct address_space *space AUTO_ADDRESS_SPACE =
		parse("1000-2000 r-xp 00000000 08:01 5 /app/x.so (deleted)\n"
		      "2000-3000 r-xp 00000000 08:01 6 /app/x.so\n"
		      "3000-4000 r-xp 00000000 08:02 6 /app/x.so\n"
		      "4000-5000 r-xp 00000000 08:01 6 /app/x.so\n");

	cr_assert_eq(space->file_count, 3);
	cr_expect(space->files[0].deleted);
	cr_expect_eq(space->files[0].inode, 5);
	cr_expect_eq(space->files[1].mapping_count, 2);
	cr_expect_eq(space->files[2].device_minor, 2);
}

Test(address_space, separates_kernel_memory_from_files_with_such_names)
{
	static const struct {
		const char *path;
		bool memory;
	} cases[] = {
		{ "/memfd:doublemapper (deleted)", true },
		{ "/memfd:doublemapper", false },
		{ "/SYSV00000000 (deleted)", true },
		{ "/dev/zero (deleted)", true },
		{ "/dev/dri/card0", true },
		{ "/dev/shm/doublemapper_12 (deleted)", true },
		{ "/dev/shm/plugin.so", false },
		{ "/anon_hugepage (deleted)", true },
		{ "/devices/x.so", false },
		{ "/usr/lib/libc.so.6", false },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[128];
		struct address_space *space AUTO_ADDRESS_SPACE = NULL;

		snprintf(text, sizeof(text), "1000-2000 r-xp 00000000 00:01 5 %s\n", cases[i].path);
		space = parse(text);
		cr_assert_eq(space->file_count, 1, "%s", cases[i].path);
		cr_expect_eq(space->files[0].memory, cases[i].memory, "%s", cases[i].path);
	}
}

Test(address_space, treats_a_memfd_loaded_as_a_program_as_a_file)
{
	static const struct {
		const char *text;
		bool memory;
	} cases[] = {
		{ "1000-2000 r--p 00000000 00:01 5 /memfd:runner (deleted)\n"
		  "2000-3000 r-xp 00001000 00:01 5 /memfd:runner (deleted)\n"
		  "3000-4000 rw-p 00002000 00:01 5 /memfd:runner (deleted)\n",
		  false },
		{ "1000-2000 r-xp 00000000 00:01 5 /memfd:runner (deleted)\n", false },
		/* An assembly: .NET also maps the whole file to read it. */
		{ "1000-5000 r--s 00000000 00:01 5 /memfd:a.dll (deleted)\n"
		  "7000-8000 r--p 00000000 00:01 5 /memfd:a.dll (deleted)\n"
		  "8000-9000 r-xp 00000000 00:01 5 /memfd:a.dll (deleted)\n"
		  "a000-b000 rw-p 00001000 00:01 5 /memfd:a.dll (deleted)\n",
		  false },
		{ "1000-2000 r-xs 00000000 00:01 5 /memfd:heap (deleted)\n"
		  "2000-3000 rw-s 00000000 00:01 5 /memfd:heap (deleted)\n",
		  true },
		{ "1000-2000 rwxp 00000000 00:01 5 /memfd:heap (deleted)\n", true },
		{ "1000-2000 r-xp 00003000 00:01 5 /memfd:heap (deleted)\n", true },
		{ "1000-2000 rw-p 00000000 00:01 5 /memfd:data (deleted)\n", true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct address_space *space AUTO_ADDRESS_SPACE = parse(cases[i].text);

		cr_assert_eq(space->file_count, 1, "%s", cases[i].text);
		cr_expect_eq(space->files[0].memory, cases[i].memory, "%s", cases[i].text);
	}
}

Test(address_space, undoes_the_escape_of_a_newline)
{
	struct address_space *space AUTO_ADDRESS_SPACE =
		parse("1000-2000 r-xp 00000000 08:01 5 /app/a\\012b.so\n");

	cr_assert_eq(space->file_count, 1);
	cr_expect_str_eq(space->files[0].path, "/app/a\nb.so");
	cr_expect_eq(space->mappings[0].path, space->files[0].path);
}

Test(address_space, accepts_a_mapping_up_to_the_end_of_memory)
{
	struct address_space *space AUTO_ADDRESS_SPACE =
		parse("ffffffffff600000-ffffffffffffffff --xp 00000000 00:00 0 [vsyscall]\n");

	cr_assert_eq(space->mapping_count, 1);
	cr_expect_eq(address_space_find(space, 0xfffffffffffffffe), 0);
	cr_expect_eq(address_space_find(space, UINT64_MAX), ADDRESS_SPACE_NONE);
}

Test(address_space, drops_lines_out_of_order)
{
	struct address_space *space AUTO_ADDRESS_SPACE =
		parse("3000-5000 r-xp 00000000 08:01 5 /a\n"
		      "4000-6000 r-xp 00000000 08:01 6 /overlaps\n"
		      "1000-2000 r-xp 00000000 08:01 7 /before\n"
		      "7000-7000 r-xp 00000000 08:01 8 /empty\n"
		      "9000-8000 r-xp 00000000 08:01 9 /backwards\n"
		      "garbage\n"
		      "5000-6000 r-xp 00000000 08:01 5 /a\n");

	cr_assert_eq(space->mapping_count, 2);
	cr_expect_eq(space->bad_lines, 5);
	cr_assert_eq(space->file_count, 1);
	cr_expect_eq(space->files[0].mapping_count, 2);
	cr_expect_eq(address_space_find(space, 0x5500), 1);
}

Test(address_space, groups_as_many_lines_as_the_kernel_allows)
{
	enum {
		LINES = 65530
	};
	struct address_space *space AUTO_ADDRESS_SPACE = NULL;
	struct buf text;
	unsigned int i;

	buf_init(&text, (size_t)64 << 20);
	for (i = 0; i < LINES; i++)
		buf_printf(&text, "%x000-%x000 %s %08x000 00:01 7 %s\n", i + 1, i + 2,
			   i % 2 ? "r-xs" : "rw-s", i,
			   i % 8 ? "/memfd:doublemapper (deleted)" : "");
	cr_assert_null(address_space_parse(text.data, text.size_bytes, &space));
	buf_deinit(&text);
	cr_expect_eq(space->mapping_count, LINES);
	cr_assert_eq(space->file_count, 1);
	cr_expect_eq(space->files[0].mapping_count, LINES - (LINES + 7) / 8);
	for (i = 1; i < space->files[0].mapping_count; i++)
		cr_assert_lt(space->files[0].mapping_indexes[i - 1],
			     space->files[0].mapping_indexes[i]);
}

Test(address_space, is_read_from_a_recorded_tree)
{
	struct address_space *space AUTO_ADDRESS_SPACE = NULL;
	struct process *process AUTO_PROCESS = NULL;
	struct proc_tree tree;

	proc_tree_create(&tree);
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 77, .maps = usual });
	cr_assert_null(process_open(77, tree.root, &process));
	cr_assert_null(address_space_read(process, &space));
	cr_expect_eq(space->mapping_count, 10);
	proc_tree_destroy(&tree);
}

Test(address_space, contains_the_code_of_this_process)
{
	struct address_space *space AUTO_ADDRESS_SPACE = NULL;
	struct process *process AUTO_PROCESS = NULL;
	size_t index;

	cr_assert_null(process_open(getpid(), NULL, &process));
	cr_assert_null(address_space_read(process, &space));
	index = address_space_find(space, (uint64_t)(uintptr_t)address_space_read);
	cr_assert_neq(index, ADDRESS_SPACE_NONE);
	cr_expect(space->mappings[index].protection & SYM_EXECUTE);
	cr_expect_eq(space->mappings[index].path[0], '/');
}

Test(address_space, fails_without_a_maps_file)
{
	struct address_space *space = NULL;
	struct process *process AUTO_PROCESS = NULL;
	struct sym_error *error;
	struct proc_tree tree;

	proc_tree_create(&tree);
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 77 });
	proc_tree_remove(&tree, "/proc/77/maps");
	cr_assert_null(process_open(77, tree.root, &process));
	error = address_space_read(process, &space);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_NOT_FOUND);
	cr_expect_null(space);
	sym_error_destroy(error);
	proc_tree_destroy(&tree);
}

static bool parse_usual(void *context)
{
	struct address_space *space AUTO_ADDRESS_SPACE = NULL;
	struct sym_error *error = address_space_parse(usual, strlen(usual), &space);
	bool succeeded = !error;

	(void)context;
	if (error)
		cr_expect_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
	cr_expect_eq(space != NULL, succeeded);
	sym_error_destroy(error);
	return succeeded;
}

Test(address_space, survives_every_failing_allocation)
{
	cr_expect_gt(alloc_fail_each(parse_usual, NULL), 5);
}
