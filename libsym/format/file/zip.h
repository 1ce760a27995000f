/* SPDX-License-Identifier: MIT */
/*
 * Where the members of a zip archive (apk, jar) are: a process can map code directly from a stored
 * member. Layout: PKWARE APPNOTE 6.3.9, sections 4.3 and 4.4; numbers are little-endian.
 *
 *   member           "PK\3\4" header, name, extra field, then the bytes, at header_offset
 *   directory        "PK\1\2" one row a member: method, sizes, header_offset, name, extra field
 *   zip64 record     "PK\6\6" count, size and offset of the directory, where they need 64 bits
 *   zip64 locator    "PK\6\7" offset of that record; just before the end record
 *   end record       "PK\5\6" the same with 16 and 32 bits; a comment up to the end of the file
 *
 * A row and its header repeat the same values, and a row may refer to any offset. A member whose
 * header contradicts its row, or whose bytes overlap another member, is rejected; the archive is
 * not. Nothing is unpacked.
 */
#ifndef LIBSYM_FORMAT_FILE_ZIP_H
#define LIBSYM_FORMAT_FILE_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/format/file/byte_source.h"

struct zip_member {
	const char *name; /* points into the directory; not NUL terminated */
	uint16_t name_bytes;
	uint16_t method; /* 0: stored; 8: deflated */
	uint32_t crc;    /* CRC-32 of the unpacked bytes */
	bool is_encrypted;
	bool is_overlapping;   /* overlaps another member, by the rows */
	uint64_t packed_bytes; /* in the archive */
	uint64_t size_bytes;   /* unpacked */
	uint64_t header_offset;
};

struct zip {
	struct zip_member *members; /* ascending by header_offset */
	size_t count;
	uint64_t directory_offset; /* where the members end */
	uint8_t *directory;        /* private */
};

/* Reads the directory. If there is no end record at the end, *ret is empty and *is_zip_ret false.
 * Errors: FORMAT, UNSUPPORTED (several disks), LIMIT, IO, NO_MEMORY. */
struct sym_error *zip_read(const struct byte_source *source, struct zip *ret, bool *is_zip_ret)
	__attribute__((warn_unused_result));
void zip_deinit(struct zip *zip);

/* Offset of the first byte of a stored member, which has size_bytes. Errors: UNSUPPORTED (packed,
 * encrypted), FORMAT (the header or the bytes belong to another member), IO. */
struct sym_error *zip_locate(const struct byte_source *source, const struct zip *zip,
			     const struct zip_member *member, uint64_t *offset_ret)
	__attribute__((warn_unused_result));

/* Like zip_locate() for a member of any method: offset of its packed_bytes. */
struct sym_error *zip_locate_packed(const struct byte_source *source, const struct zip *zip,
				    const struct zip_member *member, uint64_t *offset_ret)
	__attribute__((warn_unused_result));

/* Finds a member by name. Errors: NOT_FOUND; FORMAT if several members have the name. */
struct sym_error *zip_find(const struct zip *zip, const char *name, size_t name_bytes,
			   const struct zip_member **ret) __attribute__((warn_unused_result));

static inline void guard_zip(struct zip *zip)
{
	zip_deinit(zip);
}
#define AUTO_ZIP GUARDED(zip)

#endif
