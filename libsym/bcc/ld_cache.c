/* SPDX-License-Identifier: MIT */
#include "libsym/bcc/ld_cache.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/base/reader.h"

static const char old_magic[] = "ld.so-1.7.0", new_magic[] = "glibc-ld.so.cache1.1";

enum {
	OLD_HEADER_BYTES = 16, /* magic of 11, padding, u32 count */
	OLD_ENTRY_BYTES = 12,
	NEW_UNUSED_BYTES = 24,
	LARGEST_CACHE_BYTES = 64 << 20,
};

/* Flags of a library that this program can load: ELF with libc6, and those of the processor. */
#if defined(__x86_64__) && !defined(__ILP32__)
static const int32_t own_flags = 0x0303;
#elif defined(__aarch64__)
static const int32_t own_flags = 0x0a03;
#elif defined(__powerpc64__)
static const int32_t own_flags = 0x0503;
#elif defined(__s390x__)
static const int32_t own_flags = 0x0403;
#elif defined(__riscv)
static const int32_t own_flags = 0x1003;
#else
static const int32_t own_flags = 0x0003;
#endif

/* Moves to the newer table; false when there is none. */
static bool find_table(struct reader *reader)
{
	const uint8_t *start = reader_bytes(reader, sizeof(old_magic) - 1);

	if (!start)
		return false;
	if (!memcmp(start, old_magic, sizeof(old_magic) - 1)) {
		uint32_t count;

		reader_seek(reader, OLD_HEADER_BYTES - sizeof(count));
		count = reader_u32(reader);
		reader_seek(reader,
			    (OLD_HEADER_BYTES + (size_t)count * OLD_ENTRY_BYTES + 7) / 8 * 8);
	} else {
		reader_seek(reader, 0);
	}
	start = reader_bytes(reader, sizeof(new_magic) - 1);
	return start && !memcmp(start, new_magic, sizeof(new_magic) - 1);
}

static const char *string_at(const struct reader *table, uint32_t offset)
{
	struct reader text = *table;

	reader_seek(&text, offset);
	return reader_string(&text);
}

/* "lib"NAME".so", alone or followed by a dot, so that "c" does not match "cap". */
static bool is_library(const char *file, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(file, "lib", 3) && !strncmp(file + 3, name, length) &&
	       !strncmp(file + 3 + length, ".so", 3);
}

const char *ld_cache_search(const void *bytes, size_t size_bytes, const char *name, int32_t flags)
{
	struct reader reader = reader_over(bytes, size_bytes), table;
	uint32_t count;

	if (!find_table(&reader))
		return NULL;
	/* Offsets count from the magic. */
	table = reader_part(&reader, reader.position - (sizeof(new_magic) - 1),
			    size_bytes - reader.position + (sizeof(new_magic) - 1));
	count = reader_u32(&reader);
	reader_skip(&reader, NEW_UNUSED_BYTES);
	for (uint32_t i = 0; i < count && reader_ok(&reader); i++) {
		int32_t entry_flags = (int32_t)reader_u32(&reader);
		const char *file = string_at(&table, reader_u32(&reader));
		const char *path = string_at(&table, reader_u32(&reader));

		reader_skip(&reader, 12);
		if (reader_ok(&reader) && file && path && entry_flags == flags &&
		    is_library(file, name))
			return path;
	}
	return NULL;
}

char *ld_cache_find(const char *name)
{
	int fd AUTO_CLOSE = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
	const char *path = NULL;
	char *copy = NULL;
	struct buf bytes;

	if (fd < 0)
		return NULL;
	buf_init(&bytes, LARGEST_CACHE_BYTES);
	if (path_read_all(fd, &bytes) == 0)
		path = ld_cache_search(bytes.data, bytes.size_bytes, name, own_flags);
	if (path)
		copy = strdup(path);
	buf_deinit(&bytes);
	return copy;
}
