/* SPDX-License-Identifier: MIT */
/*
 * Walks all elements of the two native-format containers, and looks up one of an array. Hashes are
 * not searched.
 *
 * Integer: the low bits of the first byte select how many bytes follow:
 *   ...0 1 byte, ..01 2, .011 3, 0111 4, 01111 the next four bytes.
 * Array: header (n << 2 | width of the index entries), index of blocks of 16
 *   elements, each block a trie over the four low bits of the element's index.
 * Hash table: u8 (log2 of buckets) << 2 | width; index of buckets + 1 offsets;
 *   bucket entry: u8 low byte of the hash, signed distance to the element.
 */
#include "libsym/format/dotnet/native_format.h"

uint32_t native_format_unsigned(struct reader *reader)
{
	uint32_t first = reader_u8(reader);

	if (!(first & 1))
		return first >> 1;
	if (!(first & 2))
		return first >> 2 | (uint32_t)reader_u8(reader) << 6;
	if (!(first & 4))
		return first >> 3 | (uint32_t)reader_u16(reader) << 5;
	if (!(first & 8)) {
		uint32_t low = reader_u16(reader);

		return first >> 4 | low << 4 | (uint32_t)reader_u8(reader) << 20;
	}
	if (!(first & 16))
		return reader_u32(reader);
	reader_fail(reader, "malformed native integer");
	return 0;
}

int32_t native_format_signed(struct reader *reader)
{
	uint32_t first = reader_u8(reader);

	if (!(first & 1))
		return (int8_t)first >> 1;
	if (!(first & 2))
		return (int32_t)(first >> 2) | (int32_t)(int8_t)reader_u8(reader) * 64;
	if (!(first & 4))
		return (int32_t)(first >> 3) | (int32_t)(int16_t)reader_u16(reader) * 32;
	if (!(first & 8)) {
		int32_t low = reader_u16(reader);

		return (int32_t)(first >> 4) | low * 16 |
		       (int32_t)(int8_t)reader_u8(reader) * (1 << 20);
	}
	if (!(first & 16))
		return (int32_t)reader_u32(reader);
	reader_fail(reader, "malformed native integer");
	return 0;
}

/* Entry `number` of an index that starts at `position`. An entry has `1 << width` bytes. */
static uint32_t read_index_entry(struct reader *reader, size_t position, uint64_t number,
				 unsigned int width)
{
	uint64_t where = position + (number << width);

	if (where > reader->size_bytes) {
		reader_fail(reader, "native index beyond the end of data");
		return 0;
	}
	reader_seek(reader, (size_t)where);
	switch (width) {
	case 0:
		return reader_u8(reader);
	case 1:
		return reader_u16(reader);
	default:
		return reader_u32(reader);
	}
}

struct array {
	struct reader reader;
	uint32_t count;
	unsigned int width;
	size_t base;
};

static bool open_array(const struct reader *reader, size_t position, struct array *ret)
{
	uint32_t header;

	*ret = (struct array){ .reader = *reader };
	reader_seek(&ret->reader, position);
	header = native_format_unsigned(&ret->reader);
	ret->base = ret->reader.position;
	ret->width = header & 3;
	ret->count = header >> 2;
	return reader_ok(&ret->reader) && ret->width <= 2;
}

/* Descends in a block to the element with these four low bits, and moves `node` to it. Returns
 * false if the block does not have it; the reader has failed if the block is malformed. */
static bool descend_trie(struct reader *node, uint32_t index)
{
	for (uint32_t bit = 8; bit; bit >>= 1) {
		size_t position = node->position;
		uint32_t value = native_format_unsigned(node);

		if (!reader_ok(node))
			return false;
		/* A leaf that contradicts its index stands for an empty block. */
		if (!(value & 3))
			return value >> 2 == (index & 15);
		if (!(value & (index & bit ? 2 : 1)))
			return false;
		if (index & bit)
			reader_seek(node, position + (value >> 2));
	}
	return reader_ok(node);
}

static bool find_element(struct array *array, uint32_t index, struct reader *ret)
{
	uint32_t block = read_index_entry(&array->reader, array->base, index / 16, array->width);

	*ret = array->reader;
	reader_seek(ret, array->base + block);
	return descend_trie(ret, index);
}

bool native_format_array(const struct reader *reader, size_t position, uint32_t max_index,
			 native_format_visit *visit, void *context)
{
	struct reader element;
	struct array array;

	if (!open_array(reader, position, &array) || array.count > max_index)
		return false;
	for (uint32_t index = 0; index < array.count; index++)
		if (find_element(&array, index, &element) ? !visit(context, index, element)
							  : !reader_ok(&element))
			return false;
	return true;
}

bool native_format_array_find(const struct reader *reader, size_t position, uint32_t index,
			      struct reader *ret)
{
	struct array array;

	return open_array(reader, position, &array) && index < array.count &&
	       find_element(&array, index, ret);
}

bool native_format_hashtable(const struct reader *reader, size_t position,
			     native_format_visit *visit, void *context)
{
	struct reader cursor = *reader;
	uint32_t header, start, end, index = 0;
	uint64_t bucket_count;
	size_t base;

	reader_seek(&cursor, position);
	header = reader_u8(&cursor);
	base = cursor.position;
	if (!reader_ok(&cursor) || (header & 3) > 2 || header >> 2 > 31)
		return false;
	bucket_count = (uint64_t)1 << (header >> 2);
	start = read_index_entry(&cursor, base, 0, header & 3);
	for (uint64_t bucket = 0; bucket < bucket_count; bucket++, start = end) {
		end = read_index_entry(&cursor, base, bucket + 1, header & 3);
		/* Buckets must ascend. Otherwise their total size could be far larger than the
		 * data. */
		if (!reader_ok(&cursor) || end < start)
			return false;
		reader_seek(&cursor, base + start);
		while (reader_ok(&cursor) && cursor.position < base + end) {
			struct reader element = cursor;
			int64_t target;

			reader_skip(&cursor, 1);
			target = (int64_t)cursor.position;
			target += native_format_signed(&cursor);
			if (!reader_ok(&cursor) || target < 0)
				return false;
			reader_seek(&element, (size_t)target);
			if (!reader_ok(&element) || !visit(context, index++, element))
				return false;
		}
		if (!reader_ok(&cursor))
			return false;
	}
	return true;
}
