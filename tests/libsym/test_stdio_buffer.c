/* SPDX-License-Identifier: MIT */
/* What this very process has written with stdio and not flushed. */
#include "libsym/stdio_buffer.h"

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

TestSuite(stdio_buffer, .init = start, .fini = finish);

static struct held_back find(int fd)
{
	struct held_back writer;

	cr_assert_null(stdio_buffer_find(process, space, fd, &writer));
	return writer;
}

static void expect_held(const struct held_back *writer, int fd, const char *text, long file_bytes)
{
	struct stat status;

	cr_assert(writer->read(writer->context, fd, &held, &status));
	cr_expect_eq(held.size_bytes, strlen(text));
	cr_expect(!*text || !memcmp(held.data, text, strlen(text)), "%.*s", (int)held.size_bytes,
		  held.data);
	cr_expect_eq(status.st_size, file_bytes);
}

Test(stdio_buffer, is_what_follows_the_end_of_the_file)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct held_back writer = find(fd);

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
	held_back_close(&writer);
	close(fd);
}

Test(stdio_buffer, is_of_that_file_only_and_of_none_that_is_closed)
{
	char *other = scratch_path(directory, "other");
	int other_fd = open(other, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct held_back writer = find(fd);
	struct stat status;

	cr_assert_not_null(writer.context);
	cr_expect_null(find(other_fd).context, "nobody writes it with stdio");
	fputs("text", stream);
	expect_held(&writer, fd, "text", 0);
	fclose(stream);
	stream = NULL;
	cr_expect_not(writer.read(writer.context, fd, &held, &status));
	cr_expect_eq(held.size_bytes, 0);
	cr_expect_eq(status.st_size, 4);
	held_back_close(&writer);
	close(fd);
	close(other_fd);
	free(other);
}

/* Between write() and the moment in which the stream forgets what it wrote. */
Test(stdio_buffer, is_nothing_where_the_file_has_it_already)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct held_back writer = find(fd);
	struct stat status;

	fputs("before", stream);
	fflush(stream);
	fputs("just written", stream);
	cr_assert_eq(pwrite(fd, "just written", 12, 6), 12);
	cr_expect_not(writer.read(writer.context, fd, &held, &status));
	cr_expect_eq(held.size_bytes, 0);
	cr_assert_eq(ftruncate(fd, 6), 0);
	expect_held(&writer, fd, "just written", 6);
	held_back_close(&writer);
	close(fd);
}

Test(stdio_buffer, follows_the_file_byte_by_byte)
{
	struct written_file file;
	char room[64];

	written_file_init(&file, open(path, O_RDONLY | O_CLOEXEC), (struct held_back){ 0 });
	file.writer = find(file.fd);
	fputs("0123456789", stream);
	fflush(stream);
	fputs("abcdef", stream);
	cr_assert_eq(written_file_look(&file), 0);
	cr_expect_eq(written_file_bytes(&file), 16);
	/* What was looked at holds, whatever comes. */
	fputs("ghi", stream);
	fflush(stream);
	for (size_t offset = 0; offset < 20; offset++)
		for (size_t bytes = 0; bytes < 20; bytes++) {
			size_t left = offset < 16 ? 16 - offset : 0;
			size_t expected = bytes < left ? bytes : left;

			cr_assert_eq(written_file_read(&file, room, bytes, offset),
				     (ssize_t)expected);
			cr_assert(!expected ||
				  !memcmp(room, "0123456789abcdef" + offset, expected));
		}
	cr_assert_eq(written_file_look(&file), 0);
	cr_expect_eq(written_file_bytes(&file), 19);
	cr_expect_eq(written_file_read(&file, room, 64, 14), 5);
	written_file_deinit(&file);
}
