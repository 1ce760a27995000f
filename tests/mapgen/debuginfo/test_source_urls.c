/* SPDX-License-Identifier: MIT */
/* URLs of source files by the Source Link of their PDB, and the reason where there is none. */
#include "mapgen/debuginfo/source_urls.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

#include "libsym/base/cleanup.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/pdb_builder.h"
#include "tests/support/program.h"

DEFINE_GUARD(pdb, struct sym_pdb *, sym_pdb_close)
#define AUTO_PDB GUARDED(pdb)

static const char one_link[] = "{\"documents\": {\"/src/*\": \"https://example.com/1/*\"}}";

/* A PDB in the file `name`, with this Source Link; NULL: with none. */
static struct sym_pdb *open_pdb(const char *name, const char *source_link)
{
	const struct pdb_recipe recipe = { .documents = { "/src/A.cs", "/src/B.cs" },
					   .source_link = source_link };
	char *root = scratch_create(), *path = scratch_path(root, name);
	struct sym_pdb *pdb = NULL;
	struct buf bytes;

	buf_init(&bytes, 1 << 20);
	build_pdb(&recipe, &bytes);
	scratch_write(path, bytes.data, bytes.size_bytes);
	cr_assert_null(sym_pdb_open(path, &pdb));
	buf_deinit(&bytes);
	free(path);
	scratch_remove(root);
	return pdb;
}

static struct source_urls *create(void)
{
	struct source_urls *urls = NULL;

	cr_assert_null(source_urls_create(&urls));
	return urls;
}

static void expect_reason(const char *source_link, const char *file, const char *part)
{
	struct sym_pdb *pdb AUTO_PDB = open_pdb("a.pdb", source_link);
	struct source_urls *urls GUARDED(source_urls) = create();
	const char *reason = NULL;

	cr_expect_null(source_urls_find(urls, pdb, file, &reason));
	cr_assert_not_null(reason);
	cr_expect(strstr(reason, part) != NULL, "%s", reason);
}

Test(source_urls, finds_the_url_of_a_file)
{
	struct sym_pdb *pdb AUTO_PDB = open_pdb("a.pdb", one_link);
	struct source_urls *urls GUARDED(source_urls) = create();
	const char *reason = "none";
	const char *url = source_urls_find(urls, pdb, "/src/store/A.cs", &reason);

	cr_assert_not_null(url);
	cr_expect_str_eq(url, "https://example.com/1/store/A.cs");
	cr_expect_null(reason);
}

Test(source_urls, keeps_the_links_of_two_pdbs_apart)
{
	static const char other[] = "{\"documents\": {\"/src/*\": \"https://example.com/2/*\"}}";
	struct sym_pdb *first AUTO_PDB = open_pdb("a.pdb", one_link);
	struct sym_pdb *second AUTO_PDB = open_pdb("b.pdb", other);
	struct source_urls *urls GUARDED(source_urls) = create();
	const char *reason;

	for (int i = 0; i < 2; i++) {
		cr_expect_str_eq(source_urls_find(urls, first, "/src/A.cs", &reason),
				 "https://example.com/1/A.cs");
		cr_expect_str_eq(source_urls_find(urls, second, "/src/A.cs", &reason),
				 "https://example.com/2/A.cs");
	}
}

/* Another PDB may lie at the address of one that was closed. */
Test(source_urls, knows_a_link_by_its_text)
{
	struct source_urls *urls GUARDED(source_urls) = create();

	for (int i = 0; i < 4; i++) {
		char text[80], url[40];
		const char *reason;
		struct sym_pdb *pdb AUTO_PDB = NULL;

		snprintf(text, sizeof(text),
			 "{\"documents\": {\"/src/*\": \"https://example.com/%d/*\"}}", i);
		snprintf(url, sizeof(url), "https://example.com/%d/A.cs", i);
		pdb = open_pdb("a.pdb", text);
		cr_expect_str_eq(source_urls_find(urls, pdb, "/src/A.cs", &reason), url);
	}
}

Test(source_urls, gives_the_reason_for_no_url)
{
	struct source_urls *urls GUARDED(source_urls) = create();
	const char *reason;

	cr_expect_null(source_urls_find(urls, NULL, "/src/a.c", &reason));
	cr_expect_str_eq(reason, "native code has no Source Link");
	expect_reason(NULL, "/src/A.cs", "the PDB has no Source Link");
	expect_reason(one_link, "/elsewhere/A.cs", "does not have the file");
	expect_reason("{\"documents\": ", "/src/A.cs", "Source Link");
}

Test(source_urls, keeps_the_reason_of_a_malformed_link)
{
	struct sym_pdb *pdb AUTO_PDB = open_pdb("a.pdb", "[]");
	struct source_urls *urls GUARDED(source_urls) = create();
	const char *first = NULL, *second = NULL;

	cr_expect_null(source_urls_find(urls, pdb, "/src/A.cs", &first));
	cr_expect_null(source_urls_find(urls, pdb, "/src/A.cs", &second));
	cr_assert_not_null(first);
	cr_expect(first == second, "the text was parsed twice");
}

Test(source_urls, survives_a_lack_of_memory)
{
	struct sym_pdb *pdb AUTO_PDB = open_pdb("a.pdb", one_link);
	bool again = true;

	for (size_t calls = 0; again; calls++) {
		struct source_urls *urls = NULL;
		const char *reason = NULL, *url = NULL;
		struct sym_error *error;

		alloc_fail_after(calls);
		error = source_urls_create(&urls);
		if (!error)
			url = source_urls_find(urls, pdb, "/src/A.cs", &reason);
		again = alloc_fail_stop();
		cr_expect(url || error || reason, "neither a URL nor a reason");
		sym_error_destroy(error);
		source_urls_destroy(urls);
	}
}
