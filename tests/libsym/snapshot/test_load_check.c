/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/libsym.h"
#include "tests/support/proc_tree.h"
#include "tests/support/program.h"

static const char sample[] = "fixtures/recorded/opt/sample/sample.dll";
#define MVID  "83c8bc83-8589-4c16-be19-8c6117de796b" /* of the sample */
#define OTHER "00112233-4455-6677-8899-aabbccddeeff"

/* A process that has the sample at 0x7f0000000000; `perfinfo` is what its runtime wrote. */
static struct sym_snapshot *open_with(struct proc_tree *tree, const char *path, const char *maps,
				      const char *perfinfo)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts) };
	struct sym_snapshot *snapshot = NULL;
	size_t size_bytes;
	char *bytes = scratch_read(sample, &size_bytes);

	proc_tree_create(tree);
	proc_tree_write(tree, path, bytes, size_bytes);
	proc_tree_add_process(tree, &(struct proc_tree_process){ .pid = 7, .maps = maps });
	if (perfinfo)
		proc_tree_write_text(tree, "/tmp/perfinfo-7.map", perfinfo);
	free(bytes);
	opts.root = tree->root;
	cr_assert_null(sym_snapshot_open(7, &opts, &snapshot));
	return snapshot;
}

static const char usual_maps[] =
	"7f0000000000-7f0000001000 r--p 00000000 00:29 4 /opt/sample/sample.dll\n"
	"7f0000010000-7f0000019000 r-xp 00000000 00:29 4 /opt/sample/sample.dll\n";

static void expect_check(const char *perfinfo, uint64_t mapped, uint64_t bases,
			 uint64_t contradictions, const char *text)
{
	const struct sym_load_check *check = NULL;
	struct proc_tree tree;
	struct sym_snapshot *snapshot =
		open_with(&tree, "/opt/sample/sample.dll", usual_maps, perfinfo);

	cr_assert_null(sym_snapshot_load_check(snapshot, &check));
	cr_expect_not_null(check->path);
	cr_expect_eq(check->mapped_count, mapped);
	cr_expect_eq(check->base_count, bases);
	cr_expect_eq(check->contradiction_count, contradictions);
	if (text)
		cr_expect(check->contradiction && strstr(check->contradiction, text), "%s",
			  check->contradiction ? check->contradiction : "no contradiction");
	else
		cr_expect_null(check->contradiction, "%s", check->contradiction);
	sym_snapshot_close(snapshot);
	proc_tree_destroy(&tree);
}

Test(load_check, agrees_with_an_identical_list)
{
	expect_check("ImageLoad;/opt/sample/sample.dll;{" MVID "};0x7f0000000000;\n", 1, 1, 0,
		     NULL);
}

Test(load_check, has_no_base_to_compare_in_files_of_2_1)
{
	expect_check("ImageLoad;/opt/sample/sample.dll;{" MVID "};\n", 1, 0, 0, NULL);
}

Test(load_check, reports_another_load_base)
{
	expect_check("ImageLoad;/opt/sample/sample.dll;{" MVID "};00007F0000040000;\n", 1, 1, 1,
		     "0x7f0000040000");
}

Test(load_check, reports_another_mvid)
{
	expect_check("ImageLoad;/opt/sample/sample.dll;{" OTHER "};\n", 1, 0, 1, OTHER);
}

Test(load_check, ignores_outdated_loads)
{
	expect_check("ImageLoad;/opt/sample/sample.dll;{" MVID "};0x7e0000000000;\n"
		     "ImageLoad;/opt/sample/sample.dll;{" MVID "};0x7f0000000000;\n",
		     2, 2, 0, NULL);
}

Test(load_check, ignores_unmapped_images)
{
	expect_check("ImageLoad;/opt/other.dll;{" MVID "};0x7e0000000000;\nnonsense\n", 0, 0, 0,
		     NULL);
}

Test(load_check, is_empty_without_a_file)
{
	const struct sym_load_check *check = NULL;
	struct proc_tree tree;
	struct sym_snapshot *snapshot =
		open_with(&tree, "/opt/sample/sample.dll", usual_maps, NULL);

	cr_assert_null(sym_snapshot_load_check(snapshot, &check));
	cr_expect_null(check->path);
	cr_expect_eq(check->line_count, 0);
	sym_snapshot_close(snapshot);
	proc_tree_destroy(&tree);
}
