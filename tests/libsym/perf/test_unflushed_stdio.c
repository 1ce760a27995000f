/* SPDX-License-Identifier: MIT */
/* Reading bytes that this process has written with stdio and not flushed. */
#include "libsym/perf/unflushed_stdio.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/limits.h"
#include "tests/support/program.h"

static struct process *process;
static struct address_space *space;
static char *directory, *path;
static FILE *stream;
static struct buf held;

static void start(void)
{
	cr_assert_null(process_open(getpid(), NULL, &process));
	cr_assert_null(address_space_read(process, &space));
	directory = scratch_create();
	path = scratch_path(directory, "file");
	stream = fopen(path, "w");
	cr_assert_not_null(stream);
	setvbuf(stream, NULL, _IOFBF, 1 << 16);
	buf_init(&held, LIMIT_STDIO_BYTES);
}

static void finish(void)
{
	if (stream)
		fclose(stream);
	buf_deinit(&held);
	address_space_destroy(space);
	process_close(process);
	free(path);
	scratch_remove(directory);
}

TestSuite(unflushed_stdio, .init = start, .fini = finish);

static struct unflushed find(int fd)
{
	struct unflushed writer;

	cr_assert_null(unflushed_stdio_find(process, space, fd, &writer));
	return writer;
}

static void expect_held(const struct unflushed *writer, int fd, const char *text, long file_bytes)
{
	struct stat status;

	cr_assert(writer->read(writer->context, fd, &held, &status));
	cr_expect_eq(held.size_bytes, strlen(text));
	cr_expect(!*text || !memcmp(held.data, text, strlen(text)), "%.*s", (int)held.size_bytes,
		  held.data);
	cr_expect_eq(status.st_size, file_bytes);
}

Test(unflushed_stdio, is_what_follows_the_end_of_the_file)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct unflushed writer = find(fd);

	cr_assert_not_null(writer.context);
	expect_held(&writer, fd, "", 0);
	fputs("first ", stream);
	expect_held(&writer, fd, "first ", 0);
	expect_held(&writer, fd, "first ", 0);
	fputs("second", stream);
	expect_held(&writer, fd, "first second", 0);
	fflush(stream);
	expect_held(&writer, fd, "", 12);
	fputs("third", stream);
	expect_held(&writer, fd, "third", 12);
	unflushed_close(&writer);
	close(fd);
}

Test(unflushed_stdio, belongs_to_that_open_file_only)
{
	char *other = scratch_path(directory, "other");
	int other_fd = open(other, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct unflushed writer = find(fd);
	struct stat status;

	cr_assert_not_null(writer.context);
	cr_expect_null(find(other_fd).context, "no stdio stream writes it");
	fputs("text", stream);
	expect_held(&writer, fd, "text", 0);
	fclose(stream);
	stream = NULL;
	cr_expect_not(writer.read(writer.context, fd, &held, &status));
	cr_expect_eq(held.size_bytes, 0);
	cr_expect_eq(status.st_size, 4);
	unflushed_close(&writer);
	close(fd);
	close(other_fd);
	free(other);
}

/* Between write() and the moment when the stream drops what it wrote. */
Test(unflushed_stdio, is_empty_when_the_file_has_it_already)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct unflushed writer = find(fd);
	struct stat status;

	fputs("before", stream);
	fflush(stream);
	fputs("just written", stream);
	cr_assert_eq(pwrite(fd, "just written", 12, 6), 12);
	cr_expect_not(writer.read(writer.context, fd, &held, &status));
	cr_expect_eq(held.size_bytes, 0);
	cr_assert_eq(ftruncate(fd, 6), 0);
	expect_held(&writer, fd, "just written", 6);
	unflushed_close(&writer);
	close(fd);
}

Test(unflushed_stdio, follows_the_file_byte_by_byte)
{
	struct growing_file file;
	char room[64];

	growing_file_init(&file, open(path, O_RDONLY | O_CLOEXEC), (struct unflushed){ 0 });
	file.writer = find(file.fd);
	fputs("0123456789", stream);
	fflush(stream);
	fputs("abcdef", stream);
	cr_assert_eq(growing_file_look(&file), 0);
	cr_expect_eq(growing_file_bytes(&file), 16);
	/* The bytes of the last look stay, whatever is written later. */
	fputs("ghi", stream);
	fflush(stream);
	for (size_t offset = 0; offset < 20; offset++)
		for (size_t bytes = 0; bytes < 20; bytes++) {
			size_t left = offset < 16 ? 16 - offset : 0;
			size_t expected = bytes < left ? bytes : left;

			cr_assert_eq(growing_file_read(&file, room, bytes, offset),
				     (ssize_t)expected);
			cr_assert(!expected ||
				  !memcmp(room, "0123456789abcdef" + offset, expected));
		}
	cr_assert_eq(growing_file_look(&file), 0);
	cr_expect_eq(growing_file_bytes(&file), 19);
	cr_expect_eq(growing_file_read(&file, room, 64, 14), 5);
	growing_file_deinit(&file);
}
