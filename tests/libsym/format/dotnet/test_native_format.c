/* SPDX-License-Identifier: MIT */
/* Integers with the bit patterns of nativeformatreader.h; containers of hand-made bytes. */
#include "libsym/format/dotnet/native_format.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static uint32_t decode_unsigned(const char *bytes, size_t size_bytes, bool *ok)
{
	struct reader reader = reader_over(bytes, size_bytes);
	uint32_t value = native_format_unsigned(&reader);

	*ok = reader_ok(&reader) && reader.position == size_bytes;
	return value;
}

static int32_t decode_signed(const char *bytes, size_t size_bytes, bool *ok)
{
	struct reader reader = reader_over(bytes, size_bytes);
	int32_t value = native_format_signed(&reader);

	*ok = reader_ok(&reader) && reader.position == size_bytes;
	return value;
}

Test(native_format, reads_unsigned_integers_of_every_length)
{
	static const struct {
		const char *bytes;
		size_t size_bytes;
		uint32_t value;
	} cases[] = {
		{ "\x18", 1, 12 },
		{ "\xa1\x0f", 2, 1000 },
		{ "\xfe", 1, 127 },
		{ "\xfd\xff", 2, 0x3fff },
		{ "\xfb\xff\xff", 3, 0x1fffff },
		{ "\xf7\xff\xff\xff", 4, 0x0fffffff },
		{ "\x0f\xff\xff\xff\xff", 5, UINT32_MAX },
		{ "\x0f\x78\x56\x34\x12", 5, 0x12345678 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool ok;

		cr_expect(eq(u32, decode_unsigned(cases[i].bytes, cases[i].size_bytes, &ok),
			     cases[i].value));
		cr_expect(ok);
	}
}

Test(native_format, reads_signed_integers_of_every_length)
{
	static const struct {
		const char *bytes;
		size_t size_bytes;
		int32_t value;
	} cases[] = {
		{ "\xfe", 1, -1 },
		{ "\x80", 1, -64 },
		{ "\x7e", 1, 63 },
		{ "\x01\x80", 2, -8192 },
		{ "\xfd\x7f", 2, 8191 },
		{ "\x03\x00\x80", 3, -1048576 },
		{ "\xfb\xff\x7f", 3, 1048575 },
		{ "\x07\x00\x00\x80", 4, -134217728 },
		{ "\x0f\x00\x00\x00\x80", 5, INT32_MIN },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool ok;

		cr_expect(eq(i32, decode_signed(cases[i].bytes, cases[i].size_bytes, &ok),
			     cases[i].value));
		cr_expect(ok);
	}
}

Test(native_format, rejects_truncated_and_overlong_integers)
{
	bool ok;

	decode_unsigned("", 0, &ok);
	cr_expect(not(ok));
	decode_unsigned("\xa1", 1, &ok);
	cr_expect(not(ok));
	decode_unsigned("\x0f\x01\x02\x03", 4, &ok);
	cr_expect(not(ok));
	decode_unsigned("\x1f\1\2\3\4\5\6\7\x08", 9, &ok);
	cr_expect(not(ok));
	decode_signed("\x1f\1\2\3\4\5\6\7\x08", 9, &ok);
	cr_expect(not(ok));
}

struct seen {
	size_t count;
	uint32_t index[32];
	uint8_t byte[32];
	size_t stop_after; /* 0: never */
};

static bool remember(void *context, uint32_t index, struct reader element)
{
	struct seen *seen = context;

	seen->index[seen->count] = index;
	seen->byte[seen->count] = reader_u8(&element);
	seen->count++;
	return seen->count != seen->stop_after;
}

/*
 * Three elements, two of them in block 0 (index 2: byte 'a'; 3: 'b') and one lone leaf (17: 'c').
 * Header n = 18, one-byte index. Nodes: 0x02 = left child only, 0x06 ... = right child.
 */
static const char three_elements[] =
	"\x90"     /* 18 << 2 | 0 */
	"\x02\x0a" /* blocks start at 2 and 10 after the header */
	"\x02"     /* bit 8 clear: left */
	"\x02"     /* bit 4 clear: left */
	"\x14"     /* bit 2 set: right child 2 bytes from here: 2 << 2 | 2 */
	"\x00"     /* filler */
	"\x1e"     /* bit 1: left follows, right 3 bytes from here: 3 << 2 | 3 */
	"a"
	"\x00"
	"b"
	"\x08" /* lone leaf 1: index 17 */
	"c";

Test(native_format, walks_sparse_arrays_in_order)
{
	struct reader reader = reader_over(three_elements, sizeof(three_elements) - 1);
	struct seen seen = { 0 };

	cr_assert(native_format_array(&reader, 0, 18, remember, &seen));
	cr_assert(eq(sz, seen.count, 3));
	cr_expect(eq(u32, seen.index[0], 2));
	cr_expect(eq(u8, seen.byte[0], 'a'));
	cr_expect(eq(u32, seen.index[1], 3));
	cr_expect(eq(u8, seen.byte[1], 'b'));
	cr_expect(eq(u32, seen.index[2], 17));
	cr_expect(eq(u8, seen.byte[2], 'c'));
}

Test(native_format, stops_when_a_visit_returns_false)
{
	struct reader reader = reader_over(three_elements, sizeof(three_elements) - 1);
	struct seen seen = { .stop_after = 2 };

	cr_expect(not(native_format_array(&reader, 0, 18, remember, &seen)));
	cr_expect(eq(sz, seen.count, 2));
}

Test(native_format, rejects_arrays_larger_than_their_table)
{
	struct reader reader = reader_over(three_elements, sizeof(three_elements) - 1);
	struct seen seen = { 0 };

	cr_expect(not(native_format_array(&reader, 0, 17, remember, &seen)));
	cr_expect(eq(sz, seen.count, 0));
}

Test(native_format, skips_empty_blocks)
{
	/* n = 1; the only node of the block is a leaf that contradicts its index. */
	struct reader reader = reader_over("\x08\x01\xf1\x03z", 5);
	struct seen seen = { 0 };

	cr_expect(native_format_array(&reader, 0, 18, remember, &seen));
	cr_expect(eq(sz, seen.count, 0));
}

Test(native_format, rejects_every_truncation_of_an_array)
{
	for (size_t size = 0; size < sizeof(three_elements) - 2; size++) {
		struct reader reader = reader_over(three_elements, size);
		struct seen seen = { 0 };

		cr_expect(not(native_format_array(&reader, 0, 18, remember, &seen)));
	}
}

/* Two buckets, one-byte index; payloads 'x' (bucket 0) and 'y', 'z' (bucket 1). */
static const char table[] = "\x04"         /* 1 << 2 | 0 */
			    "\x03\x05\x09" /* bucket starts and the end */
			    "\x11\x0c"     /* hash; the payload is 6 bytes after this distance */
			    "\x22\x0a"     /* 5 */
			    "\x33\x08"     /* 4 */
			    "\x00"
			    "x"
			    "y"
			    "z";

Test(native_format, walks_hash_tables)
{
	struct reader reader = reader_over(table, sizeof(table) - 1);
	struct seen seen = { 0 };

	cr_assert(native_format_hashtable(&reader, 0, remember, &seen));
	cr_assert(eq(sz, seen.count, 3));
	cr_expect(eq(u8, seen.byte[0], 'x'));
	cr_expect(eq(u8, seen.byte[1], 'y'));
	cr_expect(eq(u8, seen.byte[2], 'z'));
}

Test(native_format, rejects_buckets_that_go_backwards)
{
	char bytes[sizeof(table)];
	struct seen seen = { 0 };
	struct reader reader;

	memcpy(bytes, table, sizeof(bytes));
	bytes[2] = 2;
	reader = reader_over(bytes, sizeof(bytes) - 1);
	cr_expect(not(native_format_hashtable(&reader, 0, remember, &seen)));
}

Test(native_format, rejects_payloads_before_the_table)
{
	char bytes[sizeof(table)];
	struct seen seen = { 0 };
	struct reader reader;

	memcpy(bytes, table, sizeof(bytes));
	bytes[5] = (char)0x80; /* -64 */
	reader = reader_over(bytes, sizeof(bytes) - 1);
	cr_expect(not(native_format_hashtable(&reader, 0, remember, &seen)));
	cr_expect(eq(sz, seen.count, 0));
}

Test(native_format, rejects_more_buckets_than_bytes)
{
	/* 2^31 buckets of width 2. */
	struct reader reader = reader_over("\x7e\0\0\0\0", 5);
	struct seen seen = { 0 };

	cr_expect(not(native_format_hashtable(&reader, 0, remember, &seen)));
}
