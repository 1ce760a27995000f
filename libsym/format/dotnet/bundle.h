/* SPDX-License-Identifier: MIT */
/*
 * Single-file bundles: a host executable with assemblies appended to it.
 * Layout: dotnet/runtime src/installer/managed/Microsoft.NET.HostModel/Bundle
 * and src/native/corehost/bundle (header versions 1, 2 and 6).
 *
 *   in the host      i64 offset of the header (0: no bundle), then a 32-byte mark
 *   header           u32 major, u32 minor, i32 number of files, string bundle id
 *     major >= 2     i64 deps.json offset, size; i64 runtimeconfig offset, size; u64 flags
 *   row per file     i64 offset, i64 size, [major >= 6: i64 compressed size, 0 = stored],
 *                    u8 type, string relative path
 *   string           length in 7-bit groups, low first, then UTF-8
 *
 * Bytes in, rows out. A manifest that contradicts the size of the file is a FORMAT error.
 */
#ifndef LIBSYM_FORMAT_DOTNET_BUNDLE_H
#define LIBSYM_FORMAT_DOTNET_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"

enum bundle_file_type {
	BUNDLE_UNKNOWN = 0,
	BUNDLE_ASSEMBLY = 1,
	BUNDLE_NATIVE_BINARY = 2,
	BUNDLE_DEPS_JSON = 3,
	BUNDLE_RUNTIME_CONFIG_JSON = 4,
	BUNDLE_SYMBOLS = 5,
};

struct bundle_file {
	uint64_t offset;                /* into the host's file */
	uint64_t size_bytes;            /* after decompression */
	uint64_t compressed_size_bytes; /* in the host's file; 0: stored uncompressed */
	enum bundle_file_type type;
	const char *path; /* into the manifest; not NUL terminated */
	size_t path_bytes;
};

struct bundle {
	uint32_t major_version;
	uint32_t minor_version;
	struct bundle_file *files; /* in the manifest's order */
	size_t file_count;
};

/* Searches `bytes` (the host's initialised data) for the mark. Returns true if the mark is there
 * and names a header; *header_offset_ret is the header's offset in the file. */
bool bundle_find_header(const void *bytes, size_t size_bytes, uint64_t *header_offset_ret);

/*
 * Reads the manifest. `bytes` are those of the file from the header's offset on. They are borrowed:
 * paths point into them. `file_size_bytes` is the size of the whole file. Errors: FORMAT,
 * UNSUPPORTED (an unknown major version), LIMIT, NO_MEMORY.
 */
struct sym_error *bundle_parse(const void *bytes, size_t size_bytes, uint64_t file_size_bytes,
			       struct bundle *ret) __attribute__((warn_unused_result));
void bundle_deinit(struct bundle *bundle);

#endif
