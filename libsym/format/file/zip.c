/* SPDX-License-Identifier: MIT */
/*
 * Reads an archive from its end: find_end() finds the end record, read_end() the directory's
 * position (with 64 bits in read_wide_end()), read_directory() the rows. Rows are sorted by the
 * offset of their header; mark_overlaps() marks members whose bytes overlap. zip_locate() reads the
 * header of one member and compares it with its row.
 */
#include "libsym/format/file/zip.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/reader.h"
#include "libsym/limits.h"

enum {
	HEADER_MARK = 0x04034b50,
	ROW_MARK = 0x02014b50,
	END_MARK = 0x06054b50,
	LOCATOR_MARK = 0x07064b50,
	RECORD_MARK = 0x06064b50,
	HEADER_BYTES = 30,
	ROW_BYTES = 46,
	END_BYTES = 22,
	LOCATOR_BYTES = 20,
	RECORD_BYTES = 56,
	MAX_COMMENT_BYTES = UINT16_MAX,
	STORED = 0,
	WIDE_FIELD = 1, /* the extra field for values that need 64 bits */
	ENCRYPTED_FLAGS = 1 << 0 | 1 << 6 | 1 << 13
};

/* Where the directory is, from the end of the file. */
struct end {
	uint64_t count;
	uint64_t size_bytes;
	uint64_t offset;
	uint64_t limit; /* the directory must end here */
};

static struct sym_error *zip_format_error(uint64_t offset, const char *what)
{
	return sym_error_create(SYM_ERROR_FORMAT, "zip archive: %s at 0x%llx", what,
				(unsigned long long)offset);
}

static struct sym_error *zip_read_error(void)
{
	return sym_error_create(SYM_ERROR_IO, "zip archive: cannot read");
}

void zip_deinit(struct zip *zip)
{
	free(zip->members);
	free(zip->directory);
	*zip = (struct zip){ 0 };
}

/* ---- the end ------------------------------------------------------------------ */

/* Finds the last record whose comment ends where the file does. A comment can contain bytes that
 * look like a record. */
static bool find_end(const uint8_t *tail, size_t tail_bytes, size_t *at_ret)
{
	for (size_t at = tail_bytes < END_BYTES ? 0 : tail_bytes - END_BYTES + 1; at-- > 0;) {
		struct reader reader = reader_over(tail + at, tail_bytes - at);

		if (reader_u32(&reader) != END_MARK)
			continue;
		reader_seek(&reader, END_BYTES - 2);
		if (END_BYTES + (size_t)reader_u16(&reader) != tail_bytes - at)
			continue;
		*at_ret = at;
		return true;
	}
	return false;
}

static struct sym_error *zip_disk_error(void)
{
	return sym_error_create(SYM_ERROR_UNSUPPORTED, "zip archive: one of several disks");
}

/* Reads the zip64 end record. Without a locator before the end record, the fields of the end record
 * are final. */
static struct sym_error *read_wide_end(const struct byte_source *source, uint64_t end_at,
				       struct end *end)
{
	uint8_t bytes[RECORD_BYTES];
	struct reader reader = reader_over(bytes, LOCATOR_BYTES);
	uint64_t at;
	uint32_t disk;

	if (end_at < LOCATOR_BYTES)
		return NULL;
	if (!byte_source_read(source, bytes, LOCATOR_BYTES, end_at - LOCATOR_BYTES))
		return zip_read_error();
	if (reader_u32(&reader) != LOCATOR_MARK)
		return NULL;
	disk = reader_u32(&reader);
	at = reader_u64(&reader);
	if (disk || reader_u32(&reader) > 1)
		return zip_disk_error();
	if (at > end_at - LOCATOR_BYTES || end_at - LOCATOR_BYTES - at < RECORD_BYTES)
		return zip_format_error(at, "the zip64 end record is not before its locator");
	if (!byte_source_read(source, bytes, RECORD_BYTES, at))
		return zip_read_error();
	reader = reader_over(bytes, RECORD_BYTES);
	if (reader_u32(&reader) != RECORD_MARK)
		return zip_format_error(at, "no zip64 end record");
	reader_seek(&reader, 16);
	if (reader_u32(&reader) || reader_u32(&reader))
		return zip_disk_error();
	reader_u64(&reader);
	end->count = reader_u64(&reader);
	end->size_bytes = reader_u64(&reader);
	end->offset = reader_u64(&reader);
	end->limit = at;
	return NULL;
}

/* `bytes` are those of the end record, which lies at `end_at`. */
static struct sym_error *read_end(const struct byte_source *source, const uint8_t *bytes,
				  uint64_t end_at, struct end *ret)
{
	struct reader reader = reader_over(bytes, END_BYTES);
	uint16_t disk, directory_disk, disk_count;

	reader_seek(&reader, 4);
	disk = reader_u16(&reader);
	directory_disk = reader_u16(&reader);
	disk_count = reader_u16(&reader);
	ret->count = reader_u16(&reader);
	ret->size_bytes = reader_u32(&reader);
	ret->offset = reader_u32(&reader);
	ret->limit = end_at;
	if (ret->count == UINT16_MAX || ret->size_bytes == UINT32_MAX ||
	    ret->offset == UINT32_MAX) {
		struct sym_error *error = read_wide_end(source, end_at, ret);

		if (error)
			return error;
	} else if (disk || directory_disk || disk_count != ret->count) {
		return zip_disk_error();
	}
	if (ret->offset > ret->limit || ret->size_bytes > ret->limit - ret->offset)
		return zip_format_error(end_at, "a directory that ends after its end record");
	if (ret->count > ret->size_bytes / ROW_BYTES)
		return zip_format_error(end_at, "more members than the directory has room for");
	return NULL;
}

/* ---- the directory ------------------------------------------------------------- */

/* A value with all bits set in the row is in the extra field, in this order. */
static void read_wide_field(struct reader *row, struct reader extra, struct zip_member *member)
{
	uint64_t *fields[] = { &member->size_bytes, &member->packed_bytes, &member->header_offset };
	bool is_missing = false;

	while (reader_left(&extra) >= 4) {
		uint16_t kind = reader_u16(&extra);
		uint16_t size_bytes = reader_u16(&extra);
		struct reader field = reader_part(&extra, extra.position, size_bytes);

		reader_skip(&extra, size_bytes);
		if (kind != WIDE_FIELD || !reader_ok(&extra))
			continue;
		for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
			if (*fields[i] == UINT32_MAX)
				*fields[i] = reader_u64(&field);
		if (!reader_ok(&field))
			reader_fail(row, "a zip64 field that is too short");
		return;
	}
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		is_missing |= *fields[i] == UINT32_MAX;
	if (is_missing)
		reader_fail(row, "a member of 4 GiB without a zip64 field");
}

static void read_row(struct reader *reader, uint64_t directory_offset, struct zip_member *ret)
{
	uint16_t flags, extra_bytes, comment_bytes;
	const uint8_t *extra;

	if (reader_u32(reader) != ROW_MARK)
		reader_fail(reader, "no row of the directory");
	reader_skip(reader, 4);
	flags = reader_u16(reader);
	ret->method = reader_u16(reader);
	reader_skip(reader, 4); /* time, date */
	ret->crc = reader_u32(reader);
	ret->packed_bytes = reader_u32(reader);
	ret->size_bytes = reader_u32(reader);
	ret->name_bytes = reader_u16(reader);
	extra_bytes = reader_u16(reader);
	comment_bytes = reader_u16(reader);
	reader_skip(reader, 8);
	ret->header_offset = reader_u32(reader);
	ret->name = (const char *)reader_bytes(reader, ret->name_bytes);
	extra = reader_bytes(reader, extra_bytes);
	reader_skip(reader, comment_bytes);
	ret->is_encrypted = flags & ENCRYPTED_FLAGS;
	if (reader_ok(reader))
		read_wide_field(reader, reader_over(extra, extra_bytes), ret);
	if (ret->header_offset > directory_offset ||
	    directory_offset - ret->header_offset < HEADER_BYTES ||
	    ret->packed_bytes > directory_offset - ret->header_offset - HEADER_BYTES)
		reader_fail(reader, "a member that does not end before the directory");
}

static int compare_header_offsets(const void *left, const void *right)
{
	const struct zip_member *a = left, *b = right;

	if (a->header_offset != b->header_offset)
		return a->header_offset < b->header_offset ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

/* The minimum end of a member; its header may also have an extra field. */
static uint64_t least_end(const struct zip_member *member)
{
	return member->header_offset + HEADER_BYTES + member->name_bytes + member->packed_bytes;
}

static void mark_overlaps(struct zip *zip)
{
	uint64_t end = 0;
	size_t longest = 0;

	for (size_t i = 0; i < zip->count; i++) {
		struct zip_member *member = &zip->members[i];

		if (i && member->header_offset < end) {
			member->is_overlapping = true;
			zip->members[longest].is_overlapping = true;
		}
		if (least_end(member) >= end) {
			end = least_end(member);
			longest = i;
		}
	}
}

static struct sym_error *read_rows(const struct end *end, struct zip *zip)
{
	struct reader reader = reader_over(zip->directory, (size_t)end->size_bytes);

	zip->members = calloc((size_t)end->count + 1, sizeof(*zip->members));
	if (!zip->members)
		return &sym_error_no_memory;
	while (zip->count < end->count && reader_ok(&reader))
		read_row(&reader, end->offset, &zip->members[zip->count++]);
	if (!reader_ok(&reader))
		return sym_error_from_reader(&reader, NULL, end->offset, "zip archive");
	if (zip->count)
		qsort(zip->members, zip->count, sizeof(*zip->members), compare_header_offsets);
	mark_overlaps(zip);
	return NULL;
}

static struct sym_error *read_directory(const struct byte_source *source, const struct end *end,
					struct zip *ret)
{
	struct zip zip AUTO_ZIP = { .directory_offset = end->offset };
	struct sym_error *error;

	if (end->size_bytes > LIMIT_ZIP_DIRECTORY_BYTES)
		return sym_error_create(SYM_ERROR_LIMIT,
					"zip archive: a directory of more than %llu bytes "
					"(LIMIT_ZIP_DIRECTORY_BYTES)",
					(unsigned long long)LIMIT_ZIP_DIRECTORY_BYTES);
	zip.directory = malloc((size_t)end->size_bytes + 1);
	if (!zip.directory)
		return &sym_error_no_memory;
	if (!byte_source_read(source, zip.directory, (size_t)end->size_bytes, end->offset))
		return zip_read_error();
	error = read_rows(end, &zip);
	if (error)
		return error;
	*ret = zip;
	zip = (struct zip){ 0 };
	return NULL;
}

struct sym_error *zip_read(const struct byte_source *source, struct zip *ret, bool *is_zip_ret)
{
	size_t tail_bytes = END_BYTES + MAX_COMMENT_BYTES, at;
	uint8_t *tail AUTO_FREE = NULL;
	struct sym_error *error;
	struct end end = { 0 };
	uint64_t tail_at;

	*ret = (struct zip){ 0 };
	*is_zip_ret = false;
	if (tail_bytes > source->size_bytes)
		tail_bytes = (size_t)source->size_bytes;
	tail_at = source->size_bytes - tail_bytes;
	tail = malloc(tail_bytes + 1);
	if (!tail)
		return &sym_error_no_memory;
	if (!byte_source_read(source, tail, tail_bytes, tail_at))
		return zip_read_error();
	*is_zip_ret = find_end(tail, tail_bytes, &at);
	if (!*is_zip_ret)
		return NULL;
	error = read_end(source, tail + at, tail_at + at, &end);
	return error ? error : read_directory(source, &end, ret);
}

/* ---- one member ------------------------------------------------------------------ */

/* Where the next member starts; the directory after the last one. */
static uint64_t next_start(const struct zip *zip, const struct zip_member *member)
{
	size_t next = (size_t)(member - zip->members) + 1;

	return next < zip->count ? zip->members[next].header_offset : zip->directory_offset;
}

/* Compares the name in the header with that in the row. */
static struct sym_error *check_name(const struct byte_source *source,
				    const struct zip_member *member, uint16_t name_bytes,
				    bool *is_same_ret)
{
	char *name AUTO_FREE = malloc((size_t)member->name_bytes + 1);

	*is_same_ret = false;
	if (!name)
		return &sym_error_no_memory;
	if (name_bytes != member->name_bytes)
		return NULL;
	if (!byte_source_read(source, name, name_bytes, member->header_offset + HEADER_BYTES))
		return zip_read_error();
	*is_same_ret = !memcmp(name, member->name, name_bytes);
	return NULL;
}

/* Where the bytes of a member are, packed or not. */
static struct sym_error *locate(const struct byte_source *source, const struct zip *zip,
				const struct zip_member *member, uint64_t *offset_ret)
{
	uint8_t header[HEADER_BYTES];
	struct reader reader = reader_over(header, sizeof(header));
	uint16_t method, name_bytes, extra_bytes;
	struct sym_error *error;
	uint64_t offset;
	bool is_same;

	if (member->is_overlapping)
		return zip_format_error(member->header_offset, "two members with the same bytes");
	if (!byte_source_read(source, header, sizeof(header), member->header_offset))
		return zip_read_error();
	if (reader_u32(&reader) != HEADER_MARK)
		return zip_format_error(member->header_offset, "no header of a member");
	reader_seek(&reader, 8);
	method = reader_u16(&reader);
	reader_seek(&reader, HEADER_BYTES - 4);
	name_bytes = reader_u16(&reader);
	extra_bytes = reader_u16(&reader);
	error = check_name(source, member, name_bytes, &is_same);
	if (error)
		return error;
	if (!is_same || method != member->method)
		return zip_format_error(
			member->header_offset,
			"a member that its header and the directory describe differently");
	offset = member->header_offset + HEADER_BYTES + name_bytes + extra_bytes;
	if (offset > next_start(zip, member) ||
	    member->packed_bytes > next_start(zip, member) - offset)
		return zip_format_error(member->header_offset, "two members with the same bytes");
	*offset_ret = offset;
	return NULL;
}

static struct sym_error *encrypted(void)
{
	return sym_error_create(SYM_ERROR_UNSUPPORTED, "it is encrypted in the archive");
}

struct sym_error *zip_locate(const struct byte_source *source, const struct zip *zip,
			     const struct zip_member *member, uint64_t *offset_ret)
{
	if (member->is_encrypted)
		return encrypted();
	if (member->method != STORED)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"it is packed in the archive (method %u): the mapped bytes "
					"are not its content",
					member->method);
	if (member->packed_bytes != member->size_bytes)
		return zip_format_error(
			member->header_offset,
			"a member that its header and the directory describe differently");
	return locate(source, zip, member, offset_ret);
}

struct sym_error *zip_locate_packed(const struct byte_source *source, const struct zip *zip,
				    const struct zip_member *member, uint64_t *offset_ret)
{
	if (member->is_encrypted)
		return encrypted();
	return locate(source, zip, member, offset_ret);
}

struct sym_error *zip_find(const struct zip *zip, const char *name, size_t name_bytes,
			   const struct zip_member **ret)
{
	*ret = NULL;
	for (size_t i = 0; i < zip->count; i++) {
		const struct zip_member *member = &zip->members[i];

		if (member->name_bytes != name_bytes || memcmp(member->name, name, name_bytes) != 0)
			continue;
		if (*ret)
			return sym_error_create(SYM_ERROR_FORMAT,
						"zip archive: two members of this name");
		*ret = member;
	}
	return *ret ? NULL
		    : sym_error_create(SYM_ERROR_NOT_FOUND,
				       "no member of this name in the archive");
}
