/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "tests/support/alloc_fail.h"

static char top[64];
static int top_fd = -1;

static const char *below(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

static void put(const char *name, const char *content)
{
	int fd = openat(top_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	cr_assert_geq(fd, 0);
	cr_assert_eq(path_write_all(fd, content, strlen(content)), 0);
	close(fd);
}

/*
 *   a/b/file                 a/up -> ../outside        loop -> loop
 *   outside                  a/top -> /a/b             chain0 -> chain1 -> ... -> a/b/file
 *   fifo
 */
static void make_tree(void)
{
	snprintf(top, sizeof(top), "/tmp/test-path-XXXXXX");
	cr_assert_not_null(mkdtemp(top));
	top_fd = open(top, O_PATH | O_DIRECTORY);
	cr_assert_eq(path_make_directories(below("a/b"), 0755), 0);
	put("a/b/file", "inside");
	put("outside", "outside");
	cr_assert_eq(symlinkat("../outside", top_fd, "a/up"), 0);
	cr_assert_eq(symlinkat("/a/b", top_fd, "a/top"), 0);
	cr_assert_eq(symlinkat("loop", top_fd, "loop"), 0);
	for (int i = 0; i < 45; i++) {
		char name[16], target[16];

		snprintf(name, sizeof(name), "chain%d", i);
		snprintf(target, sizeof(target), i < 44 ? "chain%d" : "a/b/file", i + 1);
		cr_assert_eq(symlinkat(target, top_fd, name), 0);
	}
	cr_assert_eq(mkfifoat(top_fd, "fifo", 0644), 0);
}

static void remove_tree(void)
{
	char command[128];

	close(top_fd);
	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	cr_expect_eq(system(command), 0);
}

TestSuite(path, .init = make_tree, .fini = remove_tree);

static int entries_of(const char *path)
{
	DIR *directory = opendir(path);
	int count = 0;

	cr_assert_not_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static int open_descriptors(void)
{
	return entries_of("/proc/self/fd");
}

/* The inode that was opened, or a negative error. */
static int64_t found(int fd)
{
	struct stat status;

	if (fd < 0)
		return fd;
	cr_assert_eq(fstat(fd, &status), 0);
	close(fd);
	return (int64_t)status.st_ino;
}

static int64_t inode_of(const char *name)
{
	struct stat status;

	cr_assert_eq(fstatat(top_fd, name, &status, 0), 0);
	return (int64_t)status.st_ino;
}

static const struct {
	const char *path, *is; /* NULL: expects an error */
	int error;
	bool has_link;
} paths[] = {
	{ "a/b/file", "a/b/file" },
	{ "/a/b/file", "a/b/file" },
	{ "//a/./b//file", "a/b/file" },
	{ "a/b/../../outside", "outside" },
	{ "../../../outside", "outside" },
	{ "/../outside", "outside" },
	{ "a/up", "outside", 0, true },
	{ "a/top/file", "a/b/file", 0, true },
	{ "a/top/../up", "outside", 0, true },
	{ "chain10", "a/b/file", 0, true },
	{ "chain0", NULL, -ELOOP, true },
	{ "loop", NULL, -ELOOP, true },
	{ "a/b/none", NULL, -ENOENT },
	{ "none/../outside", NULL, -ENOENT },
	{ "a/b/file/x", NULL, -ENOTDIR },
	{ "a/b/file/", NULL, -ENOTDIR },
	{ "", NULL, -ENOENT },
};

Test(path, stays_below_the_root_on_every_path)
{
	int before = open_descriptors();

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		int64_t expected = paths[i].is ? inode_of(paths[i].is) : paths[i].error;

		cr_expect_eq(found(path_open_in_root(top_fd, paths[i].path, 0)), expected, "%s",
			     paths[i].path);
	}
	cr_expect_eq(open_descriptors(), before);
}

Test(path, rejects_every_link_on_request)
{
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		int64_t expected = paths[i].is ? inode_of(paths[i].is) : paths[i].error;

		if (paths[i].has_link)
			expected = -ELOOP;
		cr_expect_eq(found(path_open_in_root(top_fd, paths[i].path, PATH_NO_SYMLINKS)),
			     expected, "%s", paths[i].path);
	}
	cr_expect_eq(path_open_in_root(-1, below("a/up"), PATH_NO_SYMLINKS), -ELOOP);
}

Test(path, opens_only_files_of_the_requested_kind)
{
	int fd = path_open_in_root(top_fd, "a/b/file", PATH_REGULAR);

	cr_assert_geq(fd, 0);
	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	cr_expect_eq(path_open_in_root(top_fd, "a/b", PATH_REGULAR), -EINVAL);
	cr_expect_eq(path_open_in_root(-1, "/dev/null", PATH_REGULAR), -EINVAL);
	cr_expect_eq(path_open_in_root(top_fd, "a/b/file", PATH_DIRECTORY), -ENOTDIR);
	fd = path_open_in_root(top_fd, "a/b", PATH_DIRECTORY);
	cr_expect_geq(fd, 0);
	close(fd);
}

/* A writer that opens the FIFO with O_NONBLOCK fails while there is no reader. So it detects
 * whether we opened it. */
Test(path, does_not_open_a_fifo_in_place_of_a_file)
{
	cr_expect_eq(path_open_in_root(top_fd, "fifo", PATH_REGULAR), -EINVAL);
	cr_expect_eq(openat(top_fd, "fifo", O_WRONLY | O_NONBLOCK), -1);
	cr_expect_eq(errno, ENXIO);
}

Test(path, does_not_wait_for_a_fifo)
{
	int fd = path_open_in_root(top_fd, "fifo", 0);

	cr_expect_geq(fd, 0);
	close(fd);
}

Test(path, reads_exactly_the_requested_range)
{
	int fd = path_open_in_root(top_fd, "a/b/file", 0);
	char room[8] = { 0 };

	cr_expect_eq(path_read_at(fd, room, 3, 2), 0);
	cr_expect_str_eq(room, "sid");
	cr_expect_eq(path_read_at(fd, room, 7, 0), -EIO, "the file ends before");
	cr_expect_eq(path_read_at(fd, room, 1, UINT64_MAX), -EIO);
	cr_expect_eq(path_read_at(fd, room, 0, 6), 0);
	cr_expect_eq(path_read_at(-1, room, 1, 0), -EBADF);
	close(fd);
}

Test(path, reads_a_whole_file_from_its_beginning)
{
	int fd = path_open_in_root(top_fd, "a/b/file", 0);
	struct buf buf;

	buf_init(&buf, 100);
	buf_append_string(&buf, "<");
	cr_expect_eq(lseek(fd, 3, SEEK_SET), 3);
	cr_expect_eq(path_read_all(fd, &buf), 0);
	cr_expect_str_eq(buf_string(&buf), "<inside");
	buf_deinit(&buf);
	close(fd);
}

Test(path, reads_a_file_that_just_fits_and_rejects_one_byte_more)
{
	int fd = path_open_in_root(top_fd, "a/b/file", 0);
	struct buf buf;

	buf_init(&buf, 6);
	cr_expect_eq(path_read_all(fd, &buf), 0);
	cr_expect_eq(buf.size_bytes, 6);
	buf_deinit(&buf);
	buf_init(&buf, 5);
	cr_expect_eq(path_read_all(fd, &buf), -EFBIG);
	buf_deinit(&buf);
	close(fd);
}

Test(path, reads_files_of_unknown_size_and_pipes)
{
	int fd = path_open_in_root(-1, "/proc/self/maps", PATH_REGULAR);
	struct buf buf;
	int ends[2];

	buf_init(&buf, 1 << 24);
	cr_expect_eq(path_read_all(fd, &buf), 0);
	cr_assert_gt(buf.size_bytes, 4096, "more than one read() of /proc yields");
	cr_expect_eq(buf.data[buf.size_bytes - 1], '\n');
	close(fd);
	buf_clear(&buf);
	cr_assert_eq(pipe(ends), 0);
	cr_expect_eq(path_write_all(ends[1], "piped", 5), 0);
	close(ends[1]);
	cr_expect_eq(path_read_all(ends[0], &buf), 0);
	cr_expect_str_eq(buf_string(&buf), "piped");
	close(ends[0]);
	buf_deinit(&buf);
}

Test(path, makes_missing_directories)
{
	cr_expect_eq(path_make_directories(below("x/y/z"), 0700), 0);
	cr_expect_eq(path_make_directories(below("x/y/z"), 0700), 0, "they exist already");
	cr_expect_eq(path_make_directories(below("x/y/w/"), 0700), 0);
	cr_expect_eq(path_make_directories(below("a/b/file"), 0700), -ENOTDIR);
	cr_expect_eq(path_make_directories(below("a/b/file/c"), 0700), -ENOTDIR);
	cr_expect_eq(path_make_directories("", 0700), -ENOENT);
}

Test(path, names_the_last_component)
{
	cr_expect_str_eq(path_file_name("/a/b"), "b");
	cr_expect_str_eq(path_file_name("b"), "b");
	cr_expect_str_eq(path_file_name("a/"), "");
}

static void expect_content(const char *name, const char *content)
{
	int fd = path_open_in_root(top_fd, name, 0);
	struct buf buf;

	buf_init(&buf, 1000);
	cr_expect_eq(path_read_all(fd, &buf), 0);
	cr_expect_str_eq(buf_string(&buf), content);
	buf_deinit(&buf);
	close(fd);
}

Test(path, hides_an_output_until_it_is_complete)
{
	struct path_output output;
	struct stat status;
	int entries = entries_of(top);

	cr_assert_eq(path_output_open(&output, below("outside")), 0);
	cr_assert_eq(path_write_all(output.fd, "new", 3), 0);
	expect_content("outside", "outside");
	cr_expect_eq(path_output_commit(&output, 0640, true), 0);
	expect_content("outside", "new");
	cr_assert_eq(fstatat(top_fd, "outside", &status, 0), 0);
	cr_expect_eq(status.st_mode & 07777, 0640);
	cr_expect_eq(entries_of(top), entries, "no temporary is left");
}

Test(path, keeps_an_output_private_until_it_is_complete)
{
	struct path_output output;
	struct stat status;

	umask(0);
	cr_assert_eq(path_output_open(&output, below("secret")), 0);
	cr_assert_eq(fstat(output.fd, &status), 0);
	cr_expect_eq(status.st_mode & 07777, 0600);
	path_output_abandon(&output);
}

Test(path, replaces_a_link_instead_of_its_target)
{
	struct path_output output;
	struct stat status;

	cr_assert_eq(path_output_open(&output, below("a/up")), 0);
	cr_expect_eq(path_output_commit(&output, 0644, false), 0);
	cr_assert_eq(fstatat(top_fd, "a/up", &status, AT_SYMLINK_NOFOLLOW), 0);
	cr_expect(S_ISREG(status.st_mode));
	expect_content("outside", "outside");
}

Test(path, leaves_nothing_of_an_abandoned_output)
{
	struct path_output output;
	int entries = entries_of(top), descriptors = open_descriptors();

	cr_assert_eq(path_output_open_at(&output, top_fd, "new"), 0);
	cr_assert_eq(path_write_all(output.fd, "new", 3), 0);
	path_output_abandon(&output);
	cr_expect_eq(output.fd, -1);
	path_output_abandon(&output);
	cr_expect_eq(entries_of(top), entries);
	cr_expect_eq(open_descriptors(), descriptors);
}

Test(path, moves_an_output_to_another_directory)
{
	struct path_output output;
	int entries = entries_of(top), descriptors = open_descriptors();

	cr_assert_eq(path_output_open_at(&output, top_fd, "new"), 0);
	cr_assert_eq(path_write_all(output.fd, "new", 3), 0);
	cr_assert_eq(path_output_move(&output, below("a/b/moved")), 0);
	cr_expect_eq(path_output_commit(&output, 0644, true), 0);
	expect_content("a/b/moved", "new");
	cr_assert_eq(path_output_open_at(&output, top_fd, "new"), 0);
	cr_expect_eq(path_output_move(&output, below("none/moved")), -ENOENT);
	cr_expect_eq(output.fd, -1);
	cr_expect_eq(entries_of(top), entries);
	cr_expect_eq(open_descriptors(), descriptors);
}

/* As on a file system without O_TMPFILE. */
Test(path, moves_an_output_that_has_a_hidden_name)
{
	struct path_output output;
	int entries = entries_of(top);

	cr_assert_eq(path_output_open_at(&output, top_fd, "new"), 0);
	close(output.fd);
	output.temporary_name = strdup(".hidden");
	output.fd = openat(top_fd, ".hidden", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_eq(path_output_move(&output, below("a/b/hidden")), 0);
	cr_expect_eq(entries_of(top), entries);
	cr_expect_eq(path_output_commit(&output, 0644, false), 0);
	expect_content("a/b/hidden", "");
}

Test(path, removes_the_temporary_when_it_cannot_be_renamed)
{
	struct path_output output;
	int entries = entries_of(top);

	cr_assert_eq(path_output_open_at(&output, top_fd, "a"), 0);
	cr_expect_eq(path_output_commit(&output, 0644, false), -EISDIR);
	cr_expect_eq(entries_of(top), entries);
}

Test(path, finishes_an_output_or_keeps_the_old_file)
{
	struct path_output output;

	put("plan", "old");
	cr_assert_eq(path_output_open(&output, below("plan")), 0);
	close(output.fd);
	output.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	cr_expect_eq(path_output_finish(&output, "new", 3, 0600), -ENOSPC);
	cr_expect(path_has_content(top_fd, "plan", "old", 3));
	cr_assert_eq(path_output_open(&output, below("plan")), 0);
	cr_expect_eq(path_output_finish(&output, "new", 3, 0600), 0);
	cr_expect(path_has_content(top_fd, "plan", "new", 3));
}

Test(path, has_content_only_as_a_regular_file)
{
	put("same", "12345");
	put("empty", "");
	cr_assert_eq(symlinkat("same", top_fd, "link-to-same"), 0);
	cr_expect(path_has_content(top_fd, "same", "12345", 5));
	cr_expect(path_has_content(AT_FDCWD, below("same"), "12345", 5));
	cr_expect_not(path_has_content(top_fd, "same", "12346", 5));
	cr_expect_not(path_has_content(top_fd, "same", "1234", 4));
	cr_expect_not(path_has_content(top_fd, "same", "123456", 6));
	cr_expect(path_has_content(top_fd, "empty", "", 0));
	cr_expect_not(path_has_content(top_fd, "link-to-same", "12345", 5));
	cr_expect_not(path_has_content(top_fd, "fifo", "", 0));
	cr_expect_not(path_has_content(top_fd, "nothing", "", 0));
}

Test(path, writes_to_the_longest_name)
{
	struct path_output output;
	char name[NAME_MAX + 2];
	struct stat status;

	memset(name, 'n', NAME_MAX);
	name[NAME_MAX] = '\0';
	cr_assert_eq(path_output_open_at(&output, top_fd, name), 0);
	cr_expect_eq(path_output_commit(&output, 0644, false), 0);
	cr_expect_eq(fstatat(top_fd, name, &status, 0), 0);
}

Test(path, rejects_outputs_that_cannot_be_files)
{
	struct path_output output;

	cr_expect_eq(path_output_open(&output, below("")), -EINVAL);
	cr_expect_eq(path_output_open(&output, below("..")), -EINVAL);
	cr_expect_eq(path_output_open_at(&output, top_fd, "a/b"), -EINVAL);
	cr_expect_eq(path_output_open(&output, below("none/file")), -ENOENT);
	cr_expect_eq(path_output_open(&output, below("outside/file")), -ENOTDIR);
	cr_expect_eq(output.fd, -1);
}

static bool write_output(void *context)
{
	struct path_output output;

	if (path_output_open(&output, context))
		return false;
	return !path_output_commit(&output, 0644, false);
}

Test(path, leaves_nothing_behind_when_memory_runs_out)
{
	char path[PATH_MAX];
	int entries = entries_of(top), descriptors = open_descriptors();

	snprintf(path, sizeof(path), "%s", below("outside"));
	cr_expect_geq(alloc_fail_each(write_output, path), 3);
	cr_expect_eq(entries_of(top), entries);
	cr_expect_eq(open_descriptors(), descriptors);
}
