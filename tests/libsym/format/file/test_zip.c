/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "libsym/format/file/zip.h"
#include "tests/support/alloc_fail.h"

/* An archive that is built field by field, as in APPNOTE. */
struct archive {
	uint8_t bytes[4096];
	size_t size_bytes;
	size_t directory, row_count;
	uint8_t rows[2048];
	size_t rows_bytes;
};

static size_t put(uint8_t *bytes, size_t at, uint64_t value, size_t count)
{
	while (count--) {
		bytes[at++] = (uint8_t)value;
		value >>= 8;
	}
	return at;
}

static void add(struct archive *archive, uint64_t value, size_t count)
{
	archive->size_bytes = put(archive->bytes, archive->size_bytes, value, count);
}

static void add_row(struct archive *archive, uint64_t value, size_t count)
{
	archive->rows_bytes = put(archive->rows, archive->rows_bytes, value, count);
}

struct member {
	const char *name;
	const char *content;
	unsigned int method, flags, extra_bytes;
	bool wide; /* sizes and offset of the row in a zip64 field */
};

static void add_member(struct archive *archive, struct member member)
{
	size_t header = archive->size_bytes, content_bytes = strlen(member.content);
	size_t name_bytes = strlen(member.name);

	add(archive, 0x04034b50, 4);
	add(archive, 20, 2);
	add(archive, member.flags, 2);
	add(archive, member.method, 2);
	add(archive, 0, 8); /* time, date, sum */
	add(archive, content_bytes, 4);
	add(archive, content_bytes, 4);
	add(archive, name_bytes, 2);
	add(archive, member.extra_bytes, 2);
	memcpy(archive->bytes + archive->size_bytes, member.name, name_bytes);
	archive->size_bytes += name_bytes + member.extra_bytes;
	memcpy(archive->bytes + archive->size_bytes, member.content, content_bytes);
	archive->size_bytes += content_bytes;

	add_row(archive, 0x02014b50, 4);
	add_row(archive, 20 | 20 << 16, 4);
	add_row(archive, member.flags, 2);
	add_row(archive, member.method, 2);
	add_row(archive, 0, 8);
	add_row(archive, member.wide ? UINT32_MAX : content_bytes, 4);
	add_row(archive, member.wide ? UINT32_MAX : content_bytes, 4);
	add_row(archive, name_bytes, 2);
	add_row(archive, member.wide ? 4 + 5 + 28 : 0, 2);
	add_row(archive, 0, 2);
	add_row(archive, 0, 8);
	add_row(archive, member.wide ? UINT32_MAX : header, 4);
	memcpy(archive->rows + archive->rows_bytes, member.name, name_bytes);
	archive->rows_bytes += name_bytes;
	if (member.wide) {
		add_row(archive, 0x5455 | 5 << 16, 4); /* a time, which is skipped */
		add_row(archive, 0, 5);
		add_row(archive, 1 | 24 << 16, 4);
		add_row(archive, content_bytes, 8);
		add_row(archive, content_bytes, 8);
		add_row(archive, header, 8);
	}
	archive->row_count++;
}

static void add_rows(struct archive *archive)
{
	archive->directory = archive->size_bytes;
	memcpy(archive->bytes + archive->size_bytes, archive->rows, archive->rows_bytes);
	archive->size_bytes += archive->rows_bytes;
}

static void add_end(struct archive *archive, uint64_t count, uint64_t size_bytes, uint64_t offset,
		    const char *comment)
{
	add(archive, 0x06054b50, 4);
	add(archive, 0, 4);
	add(archive, count, 2);
	add(archive, count, 2);
	add(archive, size_bytes, 4);
	add(archive, offset, 4);
	add(archive, strlen(comment), 2);
	memcpy(archive->bytes + archive->size_bytes, comment, strlen(comment));
	archive->size_bytes += strlen(comment);
}

static void finish(struct archive *archive, const char *comment)
{
	add_rows(archive);
	add_end(archive, archive->row_count, archive->rows_bytes, archive->directory, comment);
}

static void finish_wide(struct archive *archive)
{
	size_t record;

	add_rows(archive);
	record = archive->size_bytes;
	add(archive, 0x06064b50, 4);
	add(archive, 44, 8);
	add(archive, 45 | 45 << 16, 4);
	add(archive, 0, 8);
	add(archive, archive->row_count, 8);
	add(archive, archive->row_count, 8);
	add(archive, archive->rows_bytes, 8);
	add(archive, archive->directory, 8);
	add(archive, 0x07064b50, 4);
	add(archive, 0, 4);
	add(archive, record, 8);
	add(archive, 1, 4);
	add_end(archive, UINT16_MAX, UINT32_MAX, UINT32_MAX, "");
}

static struct byte_source source_of(const struct archive *archive)
{
	return byte_source_over_memory(archive->bytes, archive->size_bytes);
}

static struct zip read_good(const struct archive *archive)
{
	struct byte_source source = source_of(archive);
	struct zip zip;
	bool is_zip;

	cr_assert_null(zip_read(&source, &zip, &is_zip));
	cr_assert(is_zip);
	return zip;
}

static void expect_error(const struct archive *archive, enum sym_error_code code, const char *words)
{
	struct byte_source source = source_of(archive);
	struct sym_error *error;
	struct zip zip;
	bool is_zip;

	error = zip_read(&source, &zip, &is_zip);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), code);
	cr_expect(strstr(sym_error_message(error), words), "%s", sym_error_message(error));
	sym_error_destroy(error);
}

/* `words` is "" if the member can be located. */
static void expect_located(const struct archive *archive, const char *name, const char *content,
			   const char *words)
{
	struct byte_source source = source_of(archive);
	struct zip zip = read_good(archive);
	const struct zip_member *member;
	struct sym_error *error;
	uint64_t offset;

	cr_assert_null(zip_find(&zip, name, strlen(name), &member));
	error = zip_locate(&source, &zip, member, &offset);
	if (*words) {
		cr_assert_not_null(error);
		cr_expect(strstr(sym_error_message(error), words), "%s", sym_error_message(error));
		sym_error_destroy(error);
	} else {
		cr_assert_null(error, "%s", sym_error_message(error));
		cr_expect_eq(member->size_bytes, strlen(content));
		cr_expect(!memcmp(archive->bytes + offset, content, strlen(content)));
	}
	zip_deinit(&zip);
}

static struct archive two_members(void)
{
	struct archive archive = { 0 };

	add_member(&archive,
		   (struct member){ .name = "a/one", .content = "first", .extra_bytes = 9 });
	add_member(&archive, (struct member){ .name = "two", .content = "the second one" });
	return archive;
}

Test(zip, finds_the_bytes_of_members)
{
	struct archive archive = two_members();

	finish(&archive, "");
	expect_located(&archive, "a/one", "first", "");
	expect_located(&archive, "two", "the second one", "");
}

Test(zip, skips_a_comment)
{
	struct archive archive = two_members();

	finish(&archive, "a comment with PK\5\6 in it, and more bytes than an end record has");
	expect_located(&archive, "two", "the second one", "");
}

Test(zip, reads_an_empty_archive)
{
	struct archive archive = { 0 };
	const struct zip_member *member;
	struct sym_error *error;
	struct zip zip;

	finish(&archive, "");
	zip = read_good(&archive);
	cr_expect_eq(zip.count, 0);
	error = zip_find(&zip, "x", 1, &member);
	cr_assert_eq(sym_error_code(error), SYM_ERROR_NOT_FOUND);
	sym_error_destroy(error);
	zip_deinit(&zip);
}

Test(zip, reads_fields_of_64_bits)
{
	struct archive archive = { 0 };

	add_member(&archive, (struct member){ .name = "wide", .content = "bytes", .wide = true });
	add_member(&archive, (struct member){ .name = "narrow", .content = "others" });
	finish_wide(&archive);
	expect_located(&archive, "wide", "bytes", "");
	expect_located(&archive, "narrow", "others", "");
}

/* APPNOTE 4.5.3: the size, then the packed size, then the offset. */
Test(zip, distinguishes_sizes_in_64_bit_fields)
{
	const uint64_t size_bytes = 0x123456789a;
	struct archive archive = { 0 };
	struct zip zip;

	add_member(
		&archive,
		(struct member){ .name = "packed", .content = "bytes", .method = 8, .wide = true });
	put(archive.rows, archive.rows_bytes - 24, size_bytes, 8);
	finish_wide(&archive);
	zip = read_good(&archive);
	cr_expect_eq(zip.members[0].size_bytes, size_bytes);
	cr_expect_eq(zip.members[0].packed_bytes, 5);
	zip_deinit(&zip);
}

Test(zip, rejects_a_misplaced_zip64_record)
{
	struct archive archive = two_members();

	finish_wide(&archive);
	put(archive.bytes, archive.size_bytes - 22 - 20 + 8, UINT64_MAX - 8, 8);
	expect_error(&archive, SYM_ERROR_FORMAT, "not before its locator");
	put(archive.bytes, archive.size_bytes - 22 - 20 + 8, 0, 8);
	expect_error(&archive, SYM_ERROR_FORMAT, "no zip64 end record");
}

Test(zip, rejects_large_members_without_a_zip64_field)
{
	struct archive archive = two_members();

	finish(&archive, "");
	put(archive.bytes, archive.directory + 24, UINT32_MAX, 4);
	expect_error(&archive, SYM_ERROR_FORMAT, "without a zip64 field");
}

Test(zip, is_not_an_archive_without_an_end_record)
{
	struct archive archive = two_members();
	struct byte_source source;
	struct zip zip;
	bool is_zip;

	finish(&archive, "");
	archive.size_bytes--;
	source = source_of(&archive);
	cr_assert_null(zip_read(&source, &zip, &is_zip));
	cr_expect_not(is_zip);
	source = byte_source_over_memory("", 0);
	cr_assert_null(zip_read(&source, &zip, &is_zip));
	cr_expect_not(is_zip);
}

Test(zip, rejects_a_contradictory_directory)
{
	struct archive archive = two_members();
	size_t end;

	finish(&archive, "");
	end = archive.size_bytes - 22;
	put(archive.bytes, end + 16, archive.size_bytes, 4);
	expect_error(&archive, SYM_ERROR_FORMAT, "after its end record");
	put(archive.bytes, end + 16, 0, 4);
	expect_error(&archive, SYM_ERROR_FORMAT, "no row of the directory");
	put(archive.bytes, end + 16, archive.directory, 4);
	put(archive.bytes, end + 8, 30 | 30 << 16, 4);
	expect_error(&archive, SYM_ERROR_FORMAT, "more members");
	put(archive.bytes, end + 8, 2 | 2 << 16, 4);
	put(archive.bytes, archive.directory + 42, archive.directory, 4);
	expect_error(&archive, SYM_ERROR_FORMAT, "before the directory");
}

Test(zip, rejects_several_disks)
{
	struct archive archive = two_members();

	finish(&archive, "");
	put(archive.bytes, archive.size_bytes - 22 + 4, 1, 2);
	expect_error(&archive, SYM_ERROR_UNSUPPORTED, "disks");
}

/* A file of 1 GiB of which only the end record is read. */
static bool read_end_only(const struct byte_source *source, void *room, size_t count,
			  uint64_t offset)
{
	const struct archive *end = source->data;

	memset(room, 0, count);
	if (offset + count == source->size_bytes)
		memcpy((uint8_t *)room + count - end->size_bytes, end->bytes, end->size_bytes);
	return true;
}

Test(zip, rejects_a_directory_that_is_too_large)
{
	struct archive end = { 0 };
	struct byte_source source = { .read = read_end_only,
				      .data = &end,
				      .size_bytes = (uint64_t)1 << 30 };
	struct sym_error *error;
	struct zip zip;
	bool is_zip;

	add_end(&end, 1, (64 << 20) + 1, 0, "");
	error = zip_read(&source, &zip, &is_zip);
	cr_assert_eq(sym_error_code(error), SYM_ERROR_LIMIT);
	sym_error_destroy(error);
}

Test(zip, does_not_locate_packed_or_encrypted_members)
{
	struct archive archive = { 0 };

	add_member(&archive, (struct member){ .name = "packed", .content = "x", .method = 8 });
	add_member(&archive, (struct member){ .name = "secret", .content = "x", .flags = 1 });
	finish(&archive, "");
	expect_located(&archive, "packed", "", "it is packed in the archive (method 8)");
	expect_located(&archive, "secret", "", "it is encrypted");
}

Test(zip, rejects_members_that_share_bytes)
{
	struct archive archive = two_members();

	finish(&archive, "");
	/* The first member claims to extend into the second. */
	put(archive.bytes, archive.directory + 20, 60, 4);
	put(archive.bytes, archive.directory + 24, 60, 4);
	expect_located(&archive, "a/one", "", "the same bytes");
	expect_located(&archive, "two", "", "the same bytes");
}

Test(zip, rejects_an_extra_field_that_reaches_the_next_member)
{
	struct archive archive = two_members();

	finish(&archive, "");
	put(archive.bytes, 28, 10, 2);
	expect_located(&archive, "a/one", "", "the same bytes");
	expect_located(&archive, "two", "the second one", "");
}

Test(zip, rejects_a_header_of_another_member)
{
	struct archive archive = two_members();

	finish(&archive, "");
	archive.bytes[30] = 'b';
	expect_located(&archive, "a/one", "", "describe differently");
	put(archive.bytes, 0, 0, 4);
	expect_located(&archive, "a/one", "", "no header");
	expect_located(&archive, "two", "the second one", "");
}

Test(zip, rejects_duplicate_names)
{
	struct archive archive = two_members();
	const struct zip_member *member;
	struct sym_error *error;
	struct zip zip;

	add_member(&archive, (struct member){ .name = "two", .content = "another" });
	finish(&archive, "");
	zip = read_good(&archive);
	error = zip_find(&zip, "two", 3, &member);
	cr_assert_eq(sym_error_code(error), SYM_ERROR_FORMAT);
	sym_error_destroy(error);
	zip_deinit(&zip);
}

static bool read_all(void *context)
{
	struct byte_source source = source_of(context);
	struct sym_error *error;
	struct zip zip;
	uint64_t offset;
	bool is_zip;

	error = zip_read(&source, &zip, &is_zip);
	if (!error) {
		error = zip_locate(&source, &zip, &zip.members[0], &offset);
		zip_deinit(&zip);
	}
	cr_assert(!error || sym_error_code(error) == SYM_ERROR_NO_MEMORY);
	sym_error_destroy(error);
	return !error;
}

Test(zip, reports_out_of_memory)
{
	struct archive archive = two_members();

	finish(&archive, "");
	cr_expect_gt(alloc_fail_each(read_all, &archive), 3);
}

Test(zip, survives_every_truncation_and_changed_byte)
{
	struct archive good = two_members();

	finish(&good, "");
	for (size_t i = 0; i < good.size_bytes * 2; i++) {
		struct archive bad = good;
		struct byte_source source;
		struct sym_error *error;
		struct zip zip;
		uint64_t offset;
		bool is_zip;

		if (i < good.size_bytes)
			bad.bytes[i] ^= 0xff;
		else
			bad.size_bytes = i - good.size_bytes;
		source = source_of(&bad);
		error = zip_read(&source, &zip, &is_zip);
		for (size_t j = 0; !error && j < zip.count; j++) {
			struct sym_error *why = zip_locate(&source, &zip, &zip.members[j], &offset);

			cr_expect(why || offset + zip.members[j].size_bytes <= bad.size_bytes);
			sym_error_destroy(why);
		}
		if (!error)
			zip_deinit(&zip);
		sym_error_destroy(error);
	}
}
