/* SPDX-License-Identifier: MIT */
/*
 * Where a separate debug file is (GDB manual, "Separate Debug Files"), in this order:
 * 1. the path of the image below $BCC_SYMFS
 * 2. /usr/lib/debug/.build-id/XX/YYYY.debug
 * 3. the file that .gnu_debuglink names: beside the image, in .debug beside it, or below
 * /usr/lib/debug
 * The first two must have the build-id of the image, the third the checksum, unless the caller does
 * not require it.
 */
#include <elfutils/libdwelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"
#include "libsym/bcc/elf_file.h"

static const char debug_root[] = "/usr/lib/debug";

/* .gnu_debuglink uses the CRC-32 of zlib. */
static uint32_t checksum(int fd)
{
	uLong sum = crc32(0, NULL, 0);
	uint8_t bytes[65536];
	off_t offset = 0;
	ssize_t count;

	while ((count = pread(fd, bytes, sizeof(bytes), offset)) > 0) {
		sum = crc32(sum, bytes, (uInt)count);
		offset += count;
	}
	return (uint32_t)sum;
}

static bool open_of_build_id(struct elf_file *ret, const char *path, const uint8_t *build_id)
{
	uint8_t found[ELF_FILE_BUILD_ID_BYTES];

	if (!elf_file_open(ret, path))
		return false;
	if (elf_file_build_id(ret, found) && !memcmp(found, build_id, sizeof(found)))
		return true;
	elf_file_close(ret);
	return false;
}

static bool open_by_build_id(struct elf_file *ret, const uint8_t *build_id)
{
	char text[2 * ELF_FILE_BUILD_ID_BYTES + 1];
	char path[PATH_MAX];

	hex_write_bytes(text, build_id, ELF_FILE_BUILD_ID_BYTES);
	snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", debug_root, text, text + 2);
	return open_of_build_id(ret, path, build_id);
}

static bool open_in_symfs(struct elf_file *ret, const char *path, const uint8_t *build_id)
{
	AUTO_FREE char *real = realpath(path, NULL);
	const char *symfs = getenv("BCC_SYMFS");
	char below[PATH_MAX];

	if (!real || !symfs || !*symfs)
		return false;
	snprintf(below, sizeof(below), "%s%s", symfs, real);
	return open_of_build_id(ret, below, build_id);
}

static bool open_by_link(struct elf_file *ret, const char *path, const uint32_t *expected)
{
	if (!elf_file_open(ret, path))
		return false;
	if (!expected || checksum(ret->fd) == *expected)
		return true;
	elf_file_close(ret);
	return false;
}

static bool open_linked(struct elf_file *ret, const struct elf_file *file, const char *path,
			int check_crc)
{
	AUTO_FREE char *real = realpath(path, NULL);
	char candidate[PATH_MAX];
	GElf_Word expected;
	const char *name = dwelf_elf_gnu_debuglink(file->elf, &expected);
	static const char *const between[] = { "/", "/.debug/" };
	int directory_length;

	if (!name || !*name || strchr(name, '/') || !real)
		return false;
	directory_length = (int)(strrchr(real, '/') - real);
	for (int i = 0; i < 2; i++) {
		snprintf(candidate, sizeof(candidate), "%.*s%s%s", directory_length, real,
			 between[i], name);
		if (strcmp(candidate, real) != 0 &&
		    open_by_link(ret, candidate, check_crc ? &expected : NULL))
			return true;
	}
	snprintf(candidate, sizeof(candidate), "%s%.*s/%s", debug_root, directory_length, real,
		 name);
	return open_by_link(ret, candidate, check_crc ? &expected : NULL);
}

bool debug_file_open(struct elf_file *ret, const struct elf_file *file, const char *path,
		     int check_crc)
{
	uint8_t build_id[ELF_FILE_BUILD_ID_BYTES];

	if (elf_file_build_id(file, build_id) &&
	    (open_in_symfs(ret, path, build_id) || open_by_build_id(ret, build_id)))
		return true;
	return open_linked(ret, file, path, check_crc);
}
