/* SPDX-License-Identifier: MIT */
/* Labels and options of rows by microsoft/perfview src/TraceEvent/EventPipe/NetTraceFormat.md. */
#include <criterion/criterion.h>
#include <string.h>

#include "libsym/format/nettrace/nettrace_kinds.h"
#include "libsym/format/nettrace/nettrace_labels.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/nettrace_builder.h"

static struct buf block;
static struct nettrace_labels labels;
static struct nettrace_kinds kinds;

static void begin(void)
{
	buf_init(&block, 4096);
}

static void end(void)
{
	nettrace_labels_deinit(&labels);
	nettrace_kinds_deinit(&kinds);
	buf_deinit(&block);
}

TestSuite(nettrace_labels, .init = begin, .fini = end);
TestSuite(nettrace_kinds, .init = begin, .fini = end);

static void put_byte(uint8_t byte)
{
	buf_append_char(&block, (char)byte);
}

static void put_text(const char *text)
{
	put_byte((uint8_t)strlen(text));
	buf_append_string(&block, text);
}

static void put_bytes(uint8_t first, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put_byte((uint8_t)(first + i));
}

static bool read_labels(void)
{
	return nettrace_labels_read(&labels, reader_over(block.data, block.size_bytes));
}

/* One list with every kind of label. */
static void put_every_label(void)
{
	put_byte(3);
	put_bytes(0, 16);
	put_byte(4);
	put_bytes(0, 8);
	put_byte(5);
	put_text("key");
	put_text("value");
	put_byte(6);
	put_text("count");
	put_bytes(0x85, 1);
	put_byte(1);
	put_byte(7);
	put_byte(1);
	put_byte(8);
	put_bytes(0, 8);
	put_byte(9);
	put_byte(4);
	put_byte(10);
	put_byte(2);
	put_byte(1);
	put_bytes(0x10, 16);
	put_byte(2 | 0x80);
	put_bytes(0x40, 16);
}

Test(nettrace_labels, keep_both_activities_among_all_other_labels)
{
	const struct nettrace_label_list *list;

	put_u32(&block, 5);
	put_u32(&block, 2);
	put_every_label();
	put_byte(9 | 0x80); /* the next list: a level alone */
	put_byte(4);
	cr_assert(read_labels());
	list = nettrace_labels_find(&labels, 5);
	cr_assert_not_null(list);
	cr_expect(list->has_activity && list->activity[0] == 0x10 && list->activity[15] == 0x1f);
	cr_expect(list->has_related && list->related_activity[0] == 0x40);
	list = nettrace_labels_find(&labels, 6);
	cr_assert_not_null(list);
	cr_expect_not(list->has_activity || list->has_related);
	cr_expect_null(nettrace_labels_find(&labels, 4));
	cr_expect_null(nettrace_labels_find(&labels, 7));
}

Test(nettrace_labels, begin_again_behind_a_lower_number)
{
	for (uint32_t first = 9; first != 1; first -= 4) {
		buf_clear(&block);
		put_u32(&block, first);
		put_u32(&block, 1);
		put_every_label();
		cr_assert(read_labels());
	}
	cr_expect_null(nettrace_labels_find(&labels, 9));
	cr_expect_not_null(nettrace_labels_find(&labels, 5));
}

Test(nettrace_labels, end_before_an_unknown_label)
{
	put_u32(&block, 1);
	put_u32(&block, 3);
	put_every_label();
	put_byte(11);
	put_every_label();
	cr_assert(read_labels());
	cr_expect_not_null(nettrace_labels_find(&labels, 1));
	cr_expect_null(nettrace_labels_find(&labels, 2));
}

Test(nettrace_labels, report_out_of_memory)
{
	put_u32(&block, 1);
	put_u32(&block, 1);
	put_every_label();
	alloc_fail_after(0);
	cr_expect_not(read_labels());
	alloc_fail_stop();
}

static bool read_kind(void)
{
	return nettrace_kinds_read_v6(&kinds, reader_over(block.data, block.size_bytes));
}

static void put_kind_head(void)
{
	put_byte(7);
	put_text("Contoso");
	put_byte(9);
	put_text("Placed");
	put_u16(&block, 0);
}

/* Number 7 with every option. */
static void put_kind_with_options(void)
{
	size_t at;

	put_kind_head();
	at = block.size_bytes;
	put_u16(&block, 0);
	put_byte(6);
	put_text("key");
	put_text("value");
	put_byte(7);
	put_bytes(0, 16);
	put_byte(4);
	put_text("template");
	put_byte(5);
	put_text("description");
	put_byte(1);
	put_byte(11);
	put_byte(3);
	put_u64(&block, 0x8000000000000001);
	put_byte(8);
	put_byte(5);
	put_byte(9);
	put_byte(3);
	block.data[at] = (char)(block.size_bytes - at - 2);
}

Test(nettrace_kinds, take_what_they_need_from_the_options)
{
	const struct nettrace_kind *kind;

	put_kind_with_options();
	cr_assert(read_kind());
	kind = nettrace_kinds_find(&kinds, 7);
	cr_assert_not_null(kind);
	cr_expect_str_eq(kind->provider, "Contoso");
	cr_expect_str_eq(kind->name, "Placed");
	cr_expect_eq(kind->event_id, 9);
	cr_expect_eq(kind->opcode, 11);
	cr_expect_eq(kind->keywords, 0x8000000000000001);
	cr_expect_eq(kind->level, 5);
	cr_expect_eq(kind->version, 3);
}

Test(nettrace_kinds, ignore_options_behind_an_unknown_one)
{
	const struct nettrace_kind *kind;

	put_kind_head();
	put_u16(&block, 5);
	put_byte(8);
	put_byte(5);
	put_byte(99);
	put_byte(9);
	put_byte(3);
	cr_assert(read_kind());
	kind = nettrace_kinds_find(&kinds, 7);
	cr_assert_not_null(kind);
	cr_expect_eq(kind->level, 5);
	cr_expect_eq(kind->version, 0);
}

static void put_tag(uint8_t tag, const char *content, size_t size_bytes)
{
	put_u32(&block, (uint32_t)size_bytes);
	put_byte(tag);
	buf_append(&block, content, size_bytes);
}

/* Version 5 describes arrays in a tag behind the fields of version 4. */
Test(nettrace_kinds, of_version_5_have_an_opcode_and_fields_in_tags)
{
	/* one field: size of 18 bytes with itself, name, array of u32 */
	static const char fields[] = "\1\0\0\0\x12\0\0\0n\0s\0\0\0\x13\0\0\0\x0a\0\0\0";
	const struct nettrace_kind *kind;

	put_u32(&block, 3);
	put_utf16(&block, "Contoso");
	put_u32(&block, 9);
	put_utf16(&block, "Placed");
	put_u64(&block, 2);
	put_u32(&block, 1);
	put_u32(&block, 4);
	put_u32(&block, 0);
	put_tag(1, "\x0c", 1);
	put_tag(77, "later", 5);
	put_tag(2, fields, sizeof(fields) - 1);
	cr_assert(nettrace_kinds_read_v4(&kinds, reader_over(block.data, block.size_bytes)));
	kind = nettrace_kinds_find(&kinds, 3);
	cr_assert_not_null(kind);
	cr_expect_eq(kind->opcode, 12);
	cr_expect_eq(kind->level, 4);
	cr_assert_eq(kind->fields.count, 1);
	cr_expect_str_eq(kind->fields.items[0].name, "ns");
	cr_expect_eq(kind->fields.items[0].type, NETTRACE_ARRAY);
}

Test(nettrace_kinds, survive_every_failed_allocation)
{
	bool is_read = false;
	int failed = 0;

	put_kind_with_options();
	for (; !is_read && failed < 100; failed++) {
		alloc_fail_after((size_t)failed);
		is_read = read_kind();
		alloc_fail_stop();
		cr_expect_eq(nettrace_kinds_find(&kinds, 7) != NULL, is_read);
	}
	cr_expect(is_read);
	cr_expect_gt(failed, 3);
}
