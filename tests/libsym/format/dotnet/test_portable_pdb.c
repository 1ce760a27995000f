/* SPDX-License-Identifier: MIT */
/* Lines of small portable PDBs; malformed ones give none. */
#include "libsym/format/dotnet/portable_pdb.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "libsym/error.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/pdb_builder.h"

#define POINTS(text) text, sizeof(text) - 1

/*
 * Worked out by hand by the specification. A signed number of one byte is value << 1, with the sign
 * in bit 0 (-3 is 0x7b).
 */
static const struct pdb_recipe sample = {
	.id = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 },
	.type_row_counts = { 3, 6 },
	.documents = { "/src/a.cs", "/src/b.cs" },
	.methods = {
		/* IL 0: 10:5-10:9; IL 4: hidden; IL 6: 12:3-14:2 */
		{ 1, POINTS("\x00\x00\x00\x04\x0a\x05\x04\x00\x00\x02\x02\x7f\x04\x7d") },
		{ 0, NULL, 0 },
		/* the document is in the blob; at IL 3 it changes; the line goes back by 3 */
		{ 0, POINTS("\x00\x01\x00\x00\x01\x14\x01\x03\x00\x01\x7b\x00\x00\x02\x03\x00\x01"
			    "\x7b\x00") },
		/* hidden only */
		{ 2, POINTS("\x00\x00\x00\x00") },
		/* ends inside a record */
		{ 1, POINTS("\x00\x00\x00\x04\x0a\x05\x04\x00") },
		/* a document that does not exist */
		{ 9, POINTS("\x00\x00\x00\x04\x0a\x05") },
	},
	.method_count = 6,
	.move_next = 3,
	.kickoff = 1,
	.source_link = "{\"documents\":{}}",
};

struct opened {
	struct buf bytes;
	struct portable_pdb *pdb;
};

static struct sym_error *open_recipe(const struct pdb_recipe *recipe, struct opened *ret)
{
	buf_init(&ret->bytes, 1 << 20);
	ret->pdb = NULL;
	build_pdb(recipe, &ret->bytes);
	return portable_pdb_open(ret->bytes.data, ret->bytes.size_bytes, &ret->pdb);
}

static void close_opened(struct opened *opened)
{
	portable_pdb_close(opened->pdb);
	buf_deinit(&opened->bytes);
}

static void expect_line(const struct portable_pdb *pdb, uint32_t rid, uint32_t il,
			uint32_t document, uint32_t line, uint32_t column)
{
	struct pdb_point point = { 0 };

	cr_assert(eq(int, portable_pdb_find(pdb, rid, il, &point), PDB_FOUND), "method %u IL %u",
		  rid, il);
	cr_expect(eq(u32, point.document, document));
	cr_expect(eq(u32, point.line, line), "method %u IL %u", rid, il);
	cr_expect(eq(u32, point.column, column));
}

Test(portable_pdb, finds_the_last_visible_point_at_or_before_an_offset)
{
	struct opened opened;

	cr_assert_null(open_recipe(&sample, &opened));
	expect_line(opened.pdb, 1, 0, 1, 10, 5);
	expect_line(opened.pdb, 1, 3, 1, 10, 5);
	expect_line(opened.pdb, 1, 5, 1, 10, 5); /* in a hidden part: the line before it */
	expect_line(opened.pdb, 1, 6, 1, 12, 3);
	expect_line(opened.pdb, 1, 1000, 1, 12, 3);
	close_opened(&opened);
}

Test(portable_pdb, follows_changes_of_the_document)
{
	struct opened opened;

	cr_assert_null(open_recipe(&sample, &opened));
	expect_line(opened.pdb, 3, 0, 1, 20, 1);
	expect_line(opened.pdb, 3, 3, 1, 17, 1);
	expect_line(opened.pdb, 3, 6, 2, 14, 1);
	close_opened(&opened);
}

Test(portable_pdb, has_no_line_where_there_is_none)
{
	struct opened opened;
	struct pdb_point point;

	cr_assert_null(open_recipe(&sample, &opened));
	cr_expect(eq(int, portable_pdb_find(opened.pdb, 2, 0, &point), PDB_NO_POINTS));
	cr_expect(eq(int, portable_pdb_find(opened.pdb, 4, 0, &point), PDB_NO_POINTS));
	cr_expect(eq(int, portable_pdb_find(opened.pdb, 5, 0, &point), PDB_BAD_POINTS));
	cr_expect(eq(int, portable_pdb_find(opened.pdb, 6, 0, &point), PDB_BAD_POINTS));
	cr_expect(eq(int, portable_pdb_find(opened.pdb, 0, 0, &point), PDB_NO_METHOD));
	cr_expect(eq(int, portable_pdb_find(opened.pdb, 7, 0, &point), PDB_NO_METHOD));
	close_opened(&opened);
}

Test(portable_pdb, names_documents_state_machines_and_source_link)
{
	struct opened opened;
	struct metadata_blob link;
	struct buf name;

	cr_assert_null(open_recipe(&sample, &opened));
	buf_init(&name, 1000);
	cr_assert(portable_pdb_write_document(opened.pdb, 2, &name));
	cr_expect_str_eq(buf_string(&name), "/src/b.cs");
	cr_expect_not(portable_pdb_write_document(opened.pdb, 3, &name));
	cr_expect_not(portable_pdb_write_document(opened.pdb, 0, &name));
	buf_deinit(&name);
	cr_expect(eq(u32, portable_pdb_kickoff(opened.pdb, 3), 1));
	cr_expect(eq(u32, portable_pdb_kickoff(opened.pdb, 2), 0));
	link = portable_pdb_source_link(opened.pdb);
	cr_expect(eq(sz, link.size_bytes, 16));
	cr_expect(eq(int, memcmp(portable_pdb_id(opened.pdb), sample.id, 20), 0));
	cr_expect(eq(int,
		     memcmp(opened.bytes.data + portable_pdb_id_offset(opened.pdb), sample.id, 20),
		     0));
	close_opened(&opened);
}

/* 70,000 methods in the module: references to them have four bytes. */
Test(portable_pdb, takes_widths_of_references_from_the_counts_of_the_module)
{
	struct pdb_recipe recipe = sample;
	struct opened opened;

	recipe.type_row_counts[1] = 70000;
	cr_assert_null(open_recipe(&recipe, &opened));
	cr_expect(eq(u32, portable_pdb_kickoff(opened.pdb, 3), 1));
	cr_expect(eq(sz, portable_pdb_source_link(opened.pdb).size_bytes, 16));
	expect_line(opened.pdb, 1, 6, 1, 12, 3);
	close_opened(&opened);
}

Test(portable_pdb, refuses_tables_that_are_larger_than_their_stream)
{
	struct pdb_recipe recipe = sample;
	struct opened opened;
	struct sym_error *error;

	recipe.more_rows = 1000;
	error = open_recipe(&recipe, &opened);
	cr_assert_not_null(error);
	cr_expect(eq(int, sym_error_code(error), SYM_ERROR_FORMAT));
	sym_error_destroy(error);
	recipe.more_rows = 1 << 24;
	close_opened(&opened);
	error = open_recipe(&recipe, &opened);
	cr_assert_not_null(error);
	sym_error_destroy(error);
	close_opened(&opened);
}

/* Rows of Document that are not counted would be taken for methods. */
Test(portable_pdb, refuses_tables_that_are_smaller_than_their_stream)
{
	struct pdb_recipe recipe = sample;

	for (recipe.left_out = 1; recipe.left_out <= 2; recipe.left_out++) {
		struct opened opened;
		struct sym_error *error = open_recipe(&recipe, &opened);

		cr_assert_not_null(error);
		cr_expect(eq(int, sym_error_code(error), SYM_ERROR_FORMAT));
		sym_error_destroy(error);
		close_opened(&opened);
	}
}

Test(portable_pdb, refuses_windows_pdbs_and_other_files)
{
	static const char *const others[] = { "Microsoft C/C++ MSF 7.00\r\n",
					      "Microsoft MSFZ Container", "BSJB", "", "hello" };
	static const enum sym_error_code codes[] = { SYM_ERROR_UNSUPPORTED, SYM_ERROR_UNSUPPORTED,
						     SYM_ERROR_FORMAT, SYM_ERROR_FORMAT,
						     SYM_ERROR_FORMAT };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct portable_pdb *pdb;
		struct sym_error *error = portable_pdb_open(others[i], strlen(others[i]), &pdb);

		cr_assert_not_null(error, "%s", others[i]);
		cr_expect(eq(int, sym_error_code(error), codes[i]), "%s", others[i]);
		sym_error_destroy(error);
	}
}

/* No cut may be read beyond its end, and none may give another line. */
Test(portable_pdb, survives_every_cut)
{
	struct opened opened;

	cr_assert_null(open_recipe(&sample, &opened));
	for (size_t size = 0; size < opened.bytes.size_bytes; size++) {
		char *cut = malloc(size + 1);
		struct portable_pdb *pdb = NULL;
		struct pdb_point point;
		struct sym_error *error;

		memcpy(cut, opened.bytes.data, size);
		error = portable_pdb_open(cut, size, &pdb);
		if (!error && portable_pdb_find(pdb, 1, 6, &point) == PDB_FOUND)
			cr_expect(eq(u32, point.line, 12));
		sym_error_destroy(error);
		portable_pdb_close(pdb);
		free(cut);
	}
	close_opened(&opened);
}

Test(portable_pdb, reports_lack_of_memory)
{
	struct opened opened;
	struct portable_pdb *pdb;
	struct sym_error *error;

	cr_assert_null(open_recipe(&sample, &opened));
	alloc_fail_after(0);
	error = portable_pdb_open(opened.bytes.data, opened.bytes.size_bytes, &pdb);
	cr_expect(alloc_fail_stop());
	cr_expect(sym_error_is_no_memory(error));
	close_opened(&opened);
}
