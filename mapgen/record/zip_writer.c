/* SPDX-License-Identifier: MIT */
/*
 * A member is written with a header without sizes; when its bytes have been written, the header is
 * written once more with them. Each header and each row of the directory has the extra field of
 * zip64, so no size needs to be known beforehand.
 */
#include "mapgen/record/zip_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/error.h"

enum {
	VERSION_ZIP64 = 45,
	METHOD_DEFLATE = 8,
	FIRST_DATE = 1 << 5 | 1, /* 1 January 1980: archives of the same content are the same */
	EXTRA_ZIP64 = 1,
	CHUNK_BYTES = 1 << 16,
	DIRECTORY_LIMIT = 1 << 20,
};

/* One member while it is written. */
struct member {
	const char *name;
	uint64_t header_offset, packed_bytes, size_bytes;
	uint32_t crc;
};

void zip_writer_init(struct zip_writer *writer, FILE *file)
{
	*writer = (struct zip_writer){ .file = file };
	buf_init(&writer->directory, DIRECTORY_LIMIT);
}

void zip_writer_deinit(struct zip_writer *writer)
{
	buf_deinit(&writer->directory);
}

static struct sym_error *write_error(void)
{
	return sym_error_create(SYM_ERROR_IO, "cannot write the recording: %s", strerror(errno));
}

static struct sym_error *put_bytes(const struct zip_writer *writer, const void *bytes,
				   size_t size_bytes)
{
	return fwrite(bytes, 1, size_bytes, writer->file) == size_bytes ? NULL : write_error();
}

static void put_u16(struct buf *buf, uint16_t value)
{
	const uint8_t bytes[] = { (uint8_t)value, (uint8_t)(value >> 8) };

	buf_append(buf, bytes, sizeof(bytes));
}

static void put_u32(struct buf *buf, uint32_t value)
{
	put_u16(buf, (uint16_t)value);
	put_u16(buf, (uint16_t)(value >> 16));
}

static void put_u64(struct buf *buf, uint64_t value)
{
	put_u32(buf, (uint32_t)value);
	put_u32(buf, (uint32_t)(value >> 32));
}

/* Writes the fields that a header and a row of the directory share. */
static void put_common(struct buf *buf, const struct member *member, uint16_t extra_bytes)
{
	put_u16(buf, VERSION_ZIP64);
	put_u16(buf, 0);
	put_u16(buf, METHOD_DEFLATE);
	put_u16(buf, 0);
	put_u16(buf, FIRST_DATE);
	put_u32(buf, member->crc);
	put_u32(buf, UINT32_MAX);
	put_u32(buf, UINT32_MAX);
	put_u16(buf, (uint16_t)strlen(member->name));
	put_u16(buf, extra_bytes);
}

static struct sym_error *put_header(const struct zip_writer *writer, const struct member *member)
{
	struct sym_error *error;
	struct buf header;

	buf_init(&header, DIRECTORY_LIMIT);
	buf_append(&header, "PK\3\4", 4);
	put_common(&header, member, 20);
	buf_append_string(&header, member->name);
	put_u16(&header, EXTRA_ZIP64);
	put_u16(&header, 16);
	put_u64(&header, member->size_bytes);
	put_u64(&header, member->packed_bytes);
	error = header.failure ? &sym_error_no_memory
			       : put_bytes(writer, header.data, header.size_bytes);
	buf_deinit(&header);
	return error;
}

static void add_row(struct zip_writer *writer, const struct member *member)
{
	struct buf *rows = &writer->directory;

	buf_append(rows, "PK\1\2", 4);
	put_u16(rows, VERSION_ZIP64);
	put_common(rows, member, 28);
	put_u16(rows, 0); /* comment, disk, attributes */
	put_u16(rows, 0);
	put_u16(rows, 0);
	put_u32(rows, 0);
	put_u32(rows, UINT32_MAX);
	buf_append_string(rows, member->name);
	put_u16(rows, EXTRA_ZIP64);
	put_u16(rows, 24);
	put_u64(rows, member->size_bytes);
	put_u64(rows, member->packed_bytes);
	put_u64(rows, member->header_offset);
	writer->member_count++;
}

static struct sym_error *deflate_chunk(const struct zip_writer *writer, z_stream *stream, int flush,
				       struct member *member)
{
	uint8_t packed[CHUNK_BYTES];

	do {
		struct sym_error *error;
		size_t count;

		stream->next_out = packed;
		stream->avail_out = sizeof(packed);
		deflate(stream, flush);
		count = sizeof(packed) - stream->avail_out;
		error = put_bytes(writer, packed, count);
		if (error)
			return error;
		member->packed_bytes += count;
	} while (!stream->avail_out);
	return NULL;
}

static struct sym_error *put_packed(const struct zip_writer *writer, z_stream *stream, FILE *source,
				    struct member *member)
{
	uint8_t chunk[CHUNK_BYTES];
	size_t count;

	do {
		struct sym_error *error;

		count = fread(chunk, 1, sizeof(chunk), source);
		if (ferror(source))
			return sym_error_create(SYM_ERROR_IO, "%s: %s", member->name,
						strerror(errno));
		member->size_bytes += count;
		member->crc = (uint32_t)crc32(member->crc, chunk, (uInt)count);
		stream->next_in = chunk;
		stream->avail_in = (uInt)count;
		error = deflate_chunk(writer, stream, count ? Z_NO_FLUSH : Z_FINISH, member);
		if (error)
			return error;
	} while (count);
	return NULL;
}

/* The header once more, now that the sizes are known. */
static struct sym_error *put_header_again(const struct zip_writer *writer,
					  const struct member *member)
{
	struct sym_error *error;

	if (fseeko(writer->file, (off_t)member->header_offset, SEEK_SET))
		return write_error();
	error = put_header(writer, member);
	if (!error && fseeko(writer->file, 0, SEEK_END))
		error = write_error();
	return error;
}

struct sym_error *zip_writer_add(struct zip_writer *writer, const char *name, FILE *source)
{
	struct member member = { .name = name };
	off_t offset = ftello(writer->file);
	struct sym_error *error;
	z_stream stream = { 0 };

	if (offset < 0)
		return write_error();
	rewind(source);
	member.header_offset = (uint64_t)offset;
	error = put_header(writer, &member);
	if (error)
		return error;
	/* Raw deflate. */
	if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY))
		return &sym_error_no_memory;
	error = put_packed(writer, &stream, source, &member);
	deflateEnd(&stream);
	if (!error)
		error = put_header_again(writer, &member);
	if (!error)
		add_row(writer, &member);
	return error;
}

struct sym_error *zip_writer_add_bytes(struct zip_writer *writer, const char *name,
				       const void *bytes, size_t size_bytes)
{
	FILE *source GUARDED(file) = fmemopen((void *)bytes, size_bytes, "r");

	return source ? zip_writer_add(writer, name, source) : &sym_error_no_memory;
}

static void put_end(const struct zip_writer *writer, uint64_t offset, uint64_t rows_bytes,
		    struct buf *end)
{
	uint64_t count = writer->member_count;

	buf_append(end, "PK\6\6", 4); /* zip64 record */
	put_u64(end, 44);
	put_u16(end, VERSION_ZIP64);
	put_u16(end, VERSION_ZIP64);
	put_u32(end, 0);
	put_u32(end, 0);
	put_u64(end, count);
	put_u64(end, count);
	put_u64(end, rows_bytes);
	put_u64(end, offset);
	buf_append(end, "PK\6\7", 4); /* its locator */
	put_u32(end, 0);
	put_u64(end, offset + rows_bytes);
	put_u32(end, 1);
	buf_append(end, "PK\5\6", 4); /* end record */
	put_u16(end, 0);
	put_u16(end, 0);
	put_u16(end, UINT16_MAX);
	put_u16(end, UINT16_MAX);
	put_u32(end, UINT32_MAX);
	put_u32(end, UINT32_MAX);
	put_u16(end, 0);
}

struct sym_error *zip_writer_finish(struct zip_writer *writer)
{
	off_t offset = ftello(writer->file);
	size_t rows_bytes = writer->directory.size_bytes;
	struct sym_error *error;

	if (offset < 0)
		return write_error();
	put_end(writer, (uint64_t)offset, rows_bytes, &writer->directory);
	if (writer->directory.failure)
		return &sym_error_no_memory;
	error = put_bytes(writer, writer->directory.data, writer->directory.size_bytes);
	if (!error && fflush(writer->file))
		error = write_error();
	return error;
}
