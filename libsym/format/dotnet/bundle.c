/* SPDX-License-Identifier: MIT */
#include "libsym/format/dotnet/bundle.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/ascending.h"
#include "libsym/base/reader.h"

/* SHA-256 of ".net core bundle" */
static const uint8_t mark[32] = {
	0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93,
	0x02, 0x14, 0xd7, 0xa0, 0x32, 0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae,
	0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
};

/* Known layouts: major version 1 (3.x), 2 (5) and 6 (6 to 10). */
static const uint32_t newest_major = 6;

/* Offset, size, type, and the length of an empty path. */
static const size_t smallest_row_bytes = 8 + 8 + 1 + 1;

bool bundle_find_header(const void *bytes, size_t size_bytes, uint64_t *header_offset_ret)
{
	/* An empty segment has no bytes that memmem() could be given. */
	const uint8_t *found = size_bytes ? memmem(bytes, size_bytes, mark, sizeof(mark)) : NULL;
	struct reader reader;
	uint64_t offset;

	if (!found || found - (const uint8_t *)bytes < 8)
		return false;
	reader = reader_over(found - 8, 8);
	offset = reader_u64(&reader);
	if (!offset || offset > INT64_MAX)
		return false;
	*header_offset_ret = offset;
	return true;
}

static const char *read_string(struct reader *reader, size_t *bytes_ret)
{
	uint32_t length = 0;
	unsigned int shift;

	for (shift = 0; shift < 32; shift += 7) {
		uint8_t byte = reader_u8(reader);

		length |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	if (shift >= 32)
		reader_fail(reader, "length of a string without an end");
	*bytes_ret = length;
	return (const char *)reader_bytes(reader, length);
}

static void read_row(struct reader *reader, uint32_t major_version, uint64_t file_size_bytes,
		     struct bundle_file *ret)
{
	uint64_t stored_bytes;

	ret->offset = reader_u64(reader);
	ret->size_bytes = reader_u64(reader);
	ret->compressed_size_bytes = major_version >= 6 ? reader_u64(reader) : 0;
	ret->type = (enum bundle_file_type)reader_u8(reader);
	ret->path = read_string(reader, &ret->path_bytes);
	stored_bytes = ret->compressed_size_bytes ? ret->compressed_size_bytes : ret->size_bytes;
	if (ret->offset > file_size_bytes || stored_bytes > file_size_bytes - ret->offset)
		reader_fail(reader, "a row points outside the file");
}

static struct sym_error *read_header(struct reader *reader, struct bundle *bundle,
				     uint32_t *count_ret)
{
	size_t id_bytes;

	bundle->major_version = reader_u32(reader);
	bundle->minor_version = reader_u32(reader);
	*count_ret = reader_u32(reader);
	read_string(reader, &id_bytes);
	if (reader_ok(reader) && bundle->major_version > newest_major)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"single-file bundle of version %u.%u, known up to %u",
					bundle->major_version, bundle->minor_version, newest_major);
	if (bundle->major_version >= 2)
		reader_skip(reader, 5 * 8);
	/* The count is checked against the bytes that follow before it decides how much memory is
	 * allocated. */
	if (*count_ret > reader_left(reader) / smallest_row_bytes)
		reader_fail(reader, "more files than the manifest has room for");
	return reader_ok(reader) ? NULL : sym_error_from_reader(reader, NULL, 0, "bundle header");
}

/* Bytes of the host's file that a row has; sorted by their first 64 bits. */
struct stored {
	uint64_t start, end;
};

/*
 * The bundler writes one file behind the other. Rows that overlap would let a few bytes be as many
 * images as there are rows. Returns false when out of memory.
 */
static bool check_overlaps(const struct bundle *bundle, struct reader *reader)
{
	struct stored *stored = calloc(bundle->file_count + 1, sizeof(*stored));
	size_t count = 0;

	if (!stored)
		return false;
	for (size_t i = 0; i < bundle->file_count; i++) {
		const struct bundle_file *file = &bundle->files[i];
		uint64_t size_bytes = file->compressed_size_bytes ? file->compressed_size_bytes
								  : file->size_bytes;

		if (size_bytes)
			stored[count++] =
				(struct stored){ file->offset, file->offset + size_bytes };
	}
	ascending_sort_items(stored, count, sizeof(*stored));
	for (size_t i = 1; i < count; i++)
		if (stored[i].start < stored[i - 1].end)
			reader_fail(reader, "files overlap");
	free(stored);
	return true;
}

struct sym_error *bundle_parse(const void *bytes, size_t size_bytes, uint64_t file_size_bytes,
			       struct bundle *ret)
{
	struct reader reader = reader_over(bytes, size_bytes);
	struct bundle bundle = { 0 };
	uint32_t count = 0, i;
	struct sym_error *error = read_header(&reader, &bundle, &count);

	if (error)
		return error;
	bundle.files = calloc((size_t)count + 1, sizeof(*bundle.files));
	if (!bundle.files)
		return &sym_error_no_memory;
	for (i = 0; i < count && reader_ok(&reader); i++)
		read_row(&reader, bundle.major_version, file_size_bytes, &bundle.files[i]);
	bundle.file_count = i;
	if (reader_ok(&reader) && !check_overlaps(&bundle, &reader)) {
		bundle_deinit(&bundle);
		return &sym_error_no_memory;
	}
	if (!reader_ok(&reader)) {
		error = sym_error_from_reader(&reader, NULL, 0, "bundle manifest");
		bundle_deinit(&bundle);
		return error;
	}
	*ret = bundle;
	return NULL;
}

void bundle_deinit(struct bundle *bundle)
{
	free(bundle->files);
	*bundle = (struct bundle){ 0 };
}
