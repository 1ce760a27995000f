/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "libsym/base/hex.h"
#include "libsym/format/dotnet/bundle.h"

/* A manifest that is built byte by byte. */
struct manifest {
	uint8_t bytes[512];
	size_t size_bytes;
};

static void put(struct manifest *manifest, uint64_t value, size_t count)
{
	while (count--) {
		manifest->bytes[manifest->size_bytes++] = (uint8_t)value;
		value >>= 8;
	}
}

static void put_string(struct manifest *manifest, const char *string)
{
	put(manifest, strlen(string), 1);
	memcpy(manifest->bytes + manifest->size_bytes, string, strlen(string));
	manifest->size_bytes += strlen(string);
}

static void put_header(struct manifest *manifest, uint32_t major, uint32_t files)
{
	*manifest = (struct manifest){ 0 };
	put(manifest, major, 4);
	put(manifest, 0, 4);
	put(manifest, files, 4);
	put_string(manifest, "id");
	if (major >= 2)
		put(manifest, 0, 40);
}

static void put_row(struct manifest *manifest, uint32_t major, uint64_t offset, uint64_t size_bytes,
		    uint64_t compressed_size_bytes, const char *path)
{
	put(manifest, offset, 8);
	put(manifest, size_bytes, 8);
	if (major >= 6)
		put(manifest, compressed_size_bytes, 8);
	put(manifest, BUNDLE_ASSEMBLY, 1);
	put_string(manifest, path);
}

static struct sym_error *parse(const struct manifest *manifest, struct bundle *ret)
{
	return bundle_parse(manifest->bytes, manifest->size_bytes, 10000, ret);
}

static void expect_error(const struct manifest *manifest, enum sym_error_code code,
			 const char *words)
{
	struct bundle bundle;
	struct sym_error *error = parse(manifest, &bundle);

	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), code);
	cr_expect(strstr(sym_error_message(error), words), "%s", sym_error_message(error));
	sym_error_destroy(error);
}

Test(bundle, reads_rows_of_every_header_version)
{
	static const uint32_t majors[] = { 1, 2, 6 };
	size_t i;

	for (i = 0; i < 3; i++) {
		struct manifest manifest;
		struct bundle bundle;

		put_header(&manifest, majors[i], 2);
		put_row(&manifest, majors[i], 4096, 100, 0, "a/System.Linq.dll");
		put_row(&manifest, majors[i], 5000, 300, 200, "b.dll");
		cr_assert_null(parse(&manifest, &bundle));
		cr_expect_eq(bundle.major_version, majors[i]);
		cr_assert_eq(bundle.file_count, 2);
		cr_expect_eq(bundle.files[0].offset, 4096);
		cr_expect_eq(bundle.files[0].size_bytes, 100);
		cr_expect_eq(bundle.files[0].compressed_size_bytes, 0);
		cr_expect_eq(bundle.files[0].type, BUNDLE_ASSEMBLY);
		cr_expect_eq(bundle.files[0].path_bytes, strlen("a/System.Linq.dll"));
		cr_expect(!memcmp(bundle.files[0].path, "a/System.Linq.dll", 17));
		cr_expect_eq(bundle.files[1].compressed_size_bytes, majors[i] >= 6 ? 200 : 0);
		bundle_deinit(&bundle);
	}
}

static const char mark_hex[] = "8b1202b96a612038727b930214d7a03213f5b9e6efae3318ee3b2dce24b36aae";

Test(bundle, finds_the_header_in_front_of_the_mark)
{
	uint8_t host[128] = { 0 };
	uint64_t offset = 0;

	cr_assert(hex_read_bytes(mark_hex, host + 48, 32));
	cr_expect_not(bundle_find_header(host, sizeof(host), &offset),
		      "a plain apphost has the mark and offset 0");
	host[41] = 0x12;
	cr_expect(bundle_find_header(host, sizeof(host), &offset));
	cr_expect_eq(offset, 0x1200);
	cr_expect_not(bundle_find_header(NULL, 0, &offset), "an empty segment");
	cr_expect_not(bundle_find_header(host, 79, &offset), "the mark is cut");
	cr_expect_not(bundle_find_header(host + 44, 36, &offset), "the offset is cut");
	host[47] = 0x80;
	cr_expect_not(bundle_find_header(host, sizeof(host), &offset), "negative");
}

Test(bundle, rejects_every_truncated_manifest)
{
	struct manifest manifest;
	size_t whole_bytes;

	put_header(&manifest, 6, 1);
	put_row(&manifest, 6, 4096, 100, 0, "a.dll");
	whole_bytes = manifest.size_bytes;
	while (--manifest.size_bytes)
		expect_error(&manifest, SYM_ERROR_FORMAT, "bundle");
	cr_expect_gt(whole_bytes, 80);
}

Test(bundle, rejects_rows_that_point_outside_the_file)
{
	struct manifest manifest;

	put_header(&manifest, 6, 1);
	put_row(&manifest, 6, 9999, 2, 0, "a.dll");
	expect_error(&manifest, SYM_ERROR_FORMAT, "outside");
	put_header(&manifest, 6, 1);
	put_row(&manifest, 6, 1, UINT64_MAX, 0, "a.dll");
	expect_error(&manifest, SYM_ERROR_FORMAT, "outside");
	put_header(&manifest, 6, 1);
	put_row(&manifest, 6, 9000, 5, 1001, "a.dll");
	expect_error(&manifest, SYM_ERROR_FORMAT, "outside");
}

Test(bundle, rejects_files_that_overlap)
{
	struct manifest manifest;
	struct bundle bundle;

	put_header(&manifest, 6, 3);
	put_row(&manifest, 6, 5000, 100, 0, "a.dll");
	put_row(&manifest, 6, 4096, 2000, 904, "b.dll");
	put_row(&manifest, 6, 5050, 0, 0, "empty");
	cr_assert_null(parse(&manifest, &bundle), "they touch each other");
	cr_expect_eq(bundle.file_count, 3);
	bundle_deinit(&bundle);
	put_header(&manifest, 6, 2);
	put_row(&manifest, 6, 5000, 100, 0, "a.dll");
	put_row(&manifest, 6, 4096, 905, 0, "b.dll");
	expect_error(&manifest, SYM_ERROR_FORMAT, "overlap");
}

Test(bundle, rejects_more_files_than_fit)
{
	struct manifest manifest;

	put_header(&manifest, 6, 0x7fffffff);
	put_row(&manifest, 6, 1, 1, 0, "a.dll");
	expect_error(&manifest, SYM_ERROR_FORMAT, "more files");
}

Test(bundle, rejects_an_unknown_version_and_names_it)
{
	struct manifest manifest;

	put_header(&manifest, 7, 0);
	expect_error(&manifest, SYM_ERROR_UNSUPPORTED, "version 7.0");
}

Test(bundle, rejects_an_endless_string_length)
{
	struct manifest manifest = { 0 };

	put(&manifest, 6, 4);
	put(&manifest, 0, 4);
	put(&manifest, 0, 4);
	put(&manifest, UINT64_MAX, 8);
	expect_error(&manifest, SYM_ERROR_FORMAT, "string");
}
