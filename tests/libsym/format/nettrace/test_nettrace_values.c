/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "libsym/format/nettrace/nettrace_fields.h"
#include "tests/support/nettrace_builder.h"

static struct buf description, payload;
static struct nettrace_fields fields;

static void begin(void)
{
	buf_init(&description, 4096);
	buf_init(&payload, 4096);
	fields = (struct nettrace_fields){ 0 };
}

static void end(void)
{
	nettrace_fields_deinit(&fields);
	buf_deinit(&description);
	buf_deinit(&payload);
}

static bool read_v4(void)
{
	struct reader reader = reader_over(description.data, description.size_bytes);
	bool no_memory = false;
	bool is_read = nettrace_fields_read(NETTRACE_LAYOUT_V4, &reader, &fields, &no_memory);

	cr_assert_not(no_memory);
	return is_read;
}

static struct nettrace_walk walk(void)
{
	struct nettrace_walk made;

	nettrace_walk_begin(&made, &fields, (const uint8_t *)payload.data, payload.size_bytes, 8);
	return made;
}

static void put_field(uint32_t type, const char *name)
{
	put_u32(&description, type);
	put_utf16(&description, name);
}

Test(nettrace_values, reads_numbers_and_texts, .init = begin, .fini = end)
{
	struct nettrace_walk all;
	struct nettrace_value value;
	struct buf text;
	double price = -1.5;

	put_u32(&description, 4);
	put_field(NETTRACE_I32, "id");
	put_field(NETTRACE_STRING16, "customer");
	put_field(NETTRACE_F64, "price");
	put_field(NETTRACE_BOOL32, "express");
	cr_assert(read_v4());
	put_u32(&payload, (uint32_t)-7);
	put_utf16(&payload, "Meier");
	buf_append(&payload, &price, sizeof(price));
	put_u32(&payload, 1);
	all = walk();
	cr_assert(nettrace_walk_next(&all, &value));
	cr_expect_str_eq(value.field->name, "id");
	cr_expect_eq(value.signed_number, -7);
	cr_assert(nettrace_walk_next(&all, &value));
	buf_init(&text, 100);
	nettrace_value_append_text(&value, &text);
	cr_expect_str_eq(buf_string(&text), "Meier");
	buf_deinit(&text);
	cr_assert(nettrace_walk_next(&all, &value));
	cr_expect_float_eq(value.real, -1.5, 0);
	cr_assert(nettrace_walk_next(&all, &value));
	cr_expect_eq(value.number, 1);
	cr_expect_not(nettrace_walk_next(&all, &value));
}

/* EventCounters send a structure. */
Test(nettrace_values, goes_into_structures, .init = begin, .fini = end)
{
	struct nettrace_walk all, inner;
	struct nettrace_value value;

	put_u32(&description, 2);
	put_u32(&description, NETTRACE_OBJECT);
	put_u32(&description, 2);
	put_field(NETTRACE_STRING16, "Name");
	put_field(NETTRACE_U16, "Count");
	put_utf16(&description, "Payload");
	put_field(NETTRACE_U8, "behind");
	cr_assert(read_v4());
	put_utf16(&payload, "cpu-usage");
	put_u16(&payload, 300);
	buf_append_char(&payload, 9);
	all = walk();
	cr_assert(nettrace_walk_next(&all, &value));
	cr_expect_str_eq(value.field->name, "Payload");
	nettrace_walk_into(&all, &value, &inner);
	cr_assert(nettrace_walk_next(&all, &value));
	cr_expect_eq(value.number, 9);
	cr_assert(nettrace_walk_next(&inner, &value));
	cr_assert(nettrace_walk_next(&inner, &value));
	cr_expect_eq(value.number, 300);
	cr_expect_not(nettrace_walk_next(&inner, &value));
}

static void put_v5_array(void)
{
	struct buf field;

	buf_init(&field, 100);
	put_utf16(&field, "sizes");
	put_u32(&field, NETTRACE_ARRAY);
	put_u32(&field, NETTRACE_U32);
	put_u32(&description, 1);
	put_u32(&description, (uint32_t)field.size_bytes + 4);
	buf_append(&description, field.data, field.size_bytes);
	buf_deinit(&field);
}

Test(nettrace_values, goes_through_arrays, .init = begin, .fini = end)
{
	struct nettrace_walk all, inner;
	struct nettrace_value value;
	struct reader reader;
	bool no_memory = false;

	put_v5_array();
	reader = reader_over(description.data, description.size_bytes);
	cr_assert(nettrace_fields_read(NETTRACE_LAYOUT_V5, &reader, &fields, &no_memory));
	put_u16(&payload, 2);
	put_u32(&payload, 70000);
	put_u32(&payload, 5);
	all = walk();
	cr_assert(nettrace_walk_next(&all, &value));
	cr_expect_eq(value.count, 2);
	nettrace_walk_into(&all, &value, &inner);
	cr_assert(nettrace_walk_element(&inner, &value));
	cr_expect_eq(value.number, 70000);
	cr_assert(nettrace_walk_element(&inner, &value));
	cr_expect_not(nettrace_walk_element(&inner, &value));
}

Test(nettrace_values, ends_where_the_payload_ends, .init = begin, .fini = end)
{
	struct nettrace_walk all;
	struct nettrace_value value;

	put_u32(&description, 2);
	put_field(NETTRACE_U32, "first");
	put_field(NETTRACE_U64, "second");
	cr_assert(read_v4());
	put_u32(&payload, 1);
	put_u32(&payload, 2);
	all = walk();
	cr_expect(nettrace_walk_next(&all, &value));
	cr_expect_not(nettrace_walk_next(&all, &value));
}

Test(nettrace_values, refuses_an_array_that_is_longer_than_the_payload, .init = begin, .fini = end)
{
	struct nettrace_walk all;
	struct nettrace_value value;
	struct reader reader;
	bool no_memory = false;

	put_v5_array();
	reader = reader_over(description.data, description.size_bytes);
	cr_assert(nettrace_fields_read(NETTRACE_LAYOUT_V5, &reader, &fields, &no_memory));
	put_u16(&payload, 0xffff);
	put_u32(&payload, 1);
	all = walk();
	cr_expect_not(nettrace_walk_next(&all, &value));
}

Test(nettrace_values, refuses_descriptions_that_are_too_deep_or_too_many, .init = begin,
     .fini = end)
{
	for (int i = 0; i < 100; i++) {
		put_u32(&description, 1);
		put_u32(&description, NETTRACE_OBJECT);
	}
	cr_expect_not(read_v4());
	nettrace_fields_deinit(&fields);
	buf_clear(&description);
	put_u32(&description, 0x7fffffff);
	cr_expect_not(read_v4());
}

/* A field of the runtime's own events, which the stream does not describe. */
static struct nettrace_field *add_field(struct nettrace_fields *to, uint8_t type)
{
	struct nettrace_field *field = nettrace_fields_add(to);

	cr_assert_not_null(field);
	field->type = type;
	return field;
}

Test(nettrace_values, reads_single_precision_and_texts_of_bytes, .init = begin, .fini = end)
{
	struct nettrace_walk all;
	struct nettrace_value value;
	struct buf text;
	float half = 0.5F;

	add_field(&fields, NETTRACE_F32);
	add_field(&fields, NETTRACE_STRING8);
	buf_append(&payload, &half, sizeof(half));
	buf_append(&payload, "gc", 3);
	all = walk();
	cr_assert(nettrace_walk_next(&all, &value));
	cr_expect_float_eq(value.real, 0.5, 0);
	cr_assert(nettrace_walk_next(&all, &value));
	buf_init(&text, 100);
	nettrace_value_append_text(&value, &text);
	cr_expect_str_eq(buf_string(&text), "gc");
	buf_deinit(&text);
}

/* `type`, then a byte; behind both the five characters of an array. */
static void put_array_elsewhere(uint8_t type, uint16_t place, uint16_t size_bytes)
{
	add_field(&add_field(&fields, type)->inner, NETTRACE_CHAR8);
	add_field(&fields, NETTRACE_U8);
	put_u16(&payload, place);
	put_u16(&payload, size_bytes);
	buf_append(&payload,
		   "\x09"
		   "hello",
		   6);
}

static void expect_hello(void)
{
	struct nettrace_walk all = walk();
	struct nettrace_value value;
	struct buf text;

	cr_assert(nettrace_walk_next(&all, &value));
	cr_expect_eq(value.count, 5);
	buf_init(&text, 100);
	nettrace_value_append_text(&value, &text);
	cr_expect_str_eq(buf_string(&text), "hello");
	buf_deinit(&text);
	cr_assert(nettrace_walk_next(&all, &value));
	cr_expect_eq(value.number, 9);
}

Test(nettrace_values, finds_an_array_by_its_distance, .init = begin, .fini = end)
{
	put_array_elsewhere(NETTRACE_RELATIVE, 1, 5);
	expect_hello();
}

Test(nettrace_values, finds_an_array_by_its_offset, .init = begin, .fini = end)
{
	put_array_elsewhere(NETTRACE_ABSOLUTE, 5, 5);
	expect_hello();
}

/* The fields behind it are still read. */
Test(nettrace_values, leaves_an_array_empty_that_lies_outside, .init = begin, .fini = end)
{
	static const uint16_t places[][2] = { { 5, 6 }, { 11, 0 }, { 0xffff, 0xffff } };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct nettrace_walk all;
		struct nettrace_value value;

		nettrace_fields_deinit(&fields);
		buf_clear(&payload);
		put_array_elsewhere(NETTRACE_ABSOLUTE, places[i][0], places[i][1]);
		all = walk();
		cr_assert(nettrace_walk_next(&all, &value));
		cr_expect_eq(value.count, 0);
		cr_assert(nettrace_walk_next(&all, &value));
		cr_expect_eq(value.number, 9);
	}
}

Test(nettrace_values, reads_as_many_elements_as_the_type_has, .init = begin, .fini = end)
{
	struct nettrace_field *array = add_field(&fields, NETTRACE_FIXED_ARRAY);
	struct nettrace_walk all, inner;
	struct nettrace_value value;

	array->count = 3;
	add_field(&array->inner, NETTRACE_STRING16);
	add_field(&fields, NETTRACE_U8);
	put_utf16(&payload, "a");
	put_utf16(&payload, "");
	put_utf16(&payload, "bc");
	buf_append_char(&payload, 9);
	all = walk();
	cr_assert(nettrace_walk_next(&all, &value));
	cr_expect_eq(value.count, 3);
	nettrace_walk_into(&all, &value, &inner);
	cr_assert(nettrace_walk_element(&inner, &value));
	cr_expect_eq(value.size_bytes, 2);
	cr_assert(nettrace_walk_element(&inner, &value));
	cr_expect_eq(value.size_bytes, 0);
	cr_assert(nettrace_walk_next(&all, &value));
	cr_expect_eq(value.number, 9);
}

/* Without an end at the first one, a count of 65,535 takes as many turns. */
Test(nettrace_values, ends_an_array_of_elements_without_bytes, .init = begin, .fini = end)
{
	struct nettrace_field *array = add_field(&fields, NETTRACE_ARRAY);
	struct nettrace_walk all;
	struct nettrace_value value;

	add_field(&array->inner, NETTRACE_OBJECT);
	put_u16(&payload, 0xffff);
	buf_append_char(&payload, 0);
	all = walk();
	cr_assert(nettrace_walk_next(&all, &value));
	cr_expect_eq(value.size_bytes, 0);
}

Test(nettrace_values, refuses_structures_that_are_too_deep_or_cut, .init = begin, .fini = end)
{
	struct nettrace_fields *inner = &fields;
	struct nettrace_walk all;
	struct nettrace_value value;

	for (int i = 0; i < 8; i++)
		inner = &add_field(inner, NETTRACE_OBJECT)->inner;
	add_field(inner, NETTRACE_U8);
	buf_append_char(&payload, 7);
	all = walk();
	cr_expect(nettrace_walk_next(&all, &value));
	inner->items[0].type = NETTRACE_OBJECT;
	add_field(&inner->items[0].inner, NETTRACE_U8);
	all = walk();
	cr_expect_not(nettrace_walk_next(&all, &value), "one deeper");
	fields.items[0].inner.items[0].type = NETTRACE_U64;
	all = walk();
	cr_expect_not(nettrace_walk_next(&all, &value), "cut");
}

Test(nettrace_values, refuses_a_type_that_it_does_not_know, .init = begin, .fini = end)
{
	struct nettrace_walk all;
	struct nettrace_value value;

	add_field(&fields, 99);
	put_u32(&payload, 1);
	all = walk();
	cr_expect_not(nettrace_walk_next(&all, &value));
}
