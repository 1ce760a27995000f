/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/foreign_file.h"
#include "tests/support/cannot_run.h"

static const uint32_t other_id = 65534;

static char top[64];
static int top_fd = -1;

/*
 *   file -> "text", 0644     theirs: of another user, 0600     closed/file: 0644, closed has 0700
 *   secret: 0600             link -> file                      shut/theirs: of another user, 0644
 *   fifo                     inner/link -> ../file
 */
static void put(const char *name, mode_t mode, uint32_t owner)
{
	int fd = openat(top_fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, "text", 4), 4);
	cr_assert_eq(fchmod(fd, mode), 0);
	cr_assert(!owner || geteuid() || !fchown(fd, owner, owner));
	close(fd);
}

static void make_tree(void)
{
	snprintf(top, sizeof(top), "/tmp/test-foreign-XXXXXX");
	cr_assert_not_null(mkdtemp(top));
	cr_assert_eq(chmod(top, 0755), 0);
	top_fd = open(top, O_PATH | O_DIRECTORY);
	cr_assert_eq(mkdirat(top_fd, "closed", 0700), 0);
	cr_assert_eq(mkdirat(top_fd, "inner", 0755), 0);
	put("file", 0644, 0);
	put("secret", 0600, 0);
	put("theirs", 0600, other_id);
	put("closed/file", 0644, 0);
	cr_assert_eq(symlinkat("file", top_fd, "link"), 0);
	cr_assert_eq(symlinkat("../file", top_fd, "inner/link"), 0);
	cr_assert_eq(mkfifoat(top_fd, "fifo", 0600), 0);
}

static void remove_tree(void)
{
	static const char *const names[] = { "file", "secret",     "theirs", "closed/file",
					     "link", "inner/link", "fifo" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlinkat(top_fd, names[i], 0);
	unlinkat(top_fd, "closed", AT_REMOVEDIR);
	unlinkat(top_fd, "inner", AT_REMOVEDIR);
	rmdir(top);
}

TestSuite(foreign_file, .init = make_tree, .fini = remove_tree, .timeout = 10);

/* Returns 0 or the error. */
static int outcome(int root_fd, const char *path, unsigned int flags, const struct rights *rights)
{
	int fd = foreign_file_open(root_fd, path, flags, rights, NULL);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

Test(foreign_file, opens_a_regular_file_and_returns_its_status)
{
	struct stat status;
	char text[8] = "";
	int fd = foreign_file_open(top_fd, "file", 0, NULL, &status);

	cr_assert_geq(fd, 0);
	cr_expect_eq(status.st_size, 4);
	cr_expect_eq(read(fd, text, sizeof(text)), 4);
	cr_expect_str_eq(text, "text");
	cr_expect(fcntl(fd, F_GETFL) & O_NONBLOCK);
	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}

Test(foreign_file, follows_links_below_the_root_unless_rejected)
{
	cr_expect_eq(outcome(top_fd, "link", 0, NULL), 0);
	cr_expect_eq(outcome(top_fd, "inner/link", 0, NULL), 0);
	cr_expect_eq(outcome(top_fd, "link", FOREIGN_NO_LINKS, NULL), -ELOOP);
	cr_expect_eq(outcome(top_fd, "inner/link", FOREIGN_NO_LINKS, NULL), -ELOOP);
}

/* Without O_NONBLOCK, opening the FIFO would block until the test's timeout. */
Test(foreign_file, rejects_anything_but_a_regular_file)
{
	cr_expect_eq(outcome(top_fd, "fifo", 0, NULL), -EINVAL);
	cr_expect_eq(outcome(top_fd, "inner", 0, NULL), -EINVAL);
	cr_expect_eq(outcome(-1, "/dev/null", 0, NULL), -EINVAL);
	cr_expect_eq(outcome(top_fd, "nothing", 0, NULL), -ENOENT);
}

Test(foreign_file, rejects_files_of_procfs_and_the_like)
{
	cr_expect_eq(outcome(-1, "/proc/self/maps", 0, NULL), -EOPNOTSUPP);
	cr_expect_eq(outcome(-1, "/proc/kallsyms", 0, NULL), -EOPNOTSUPP);
	cr_expect_eq(outcome(-1, "/sys/kernel/uevent_seqnum", 0, NULL), -EOPNOTSUPP);
}

Test(foreign_file, follows_a_kernel_link_only_to_a_regular_file)
{
	int fifo AUTO_CLOSE = openat(top_fd, "fifo", O_RDWR), file AUTO_CLOSE = -1;
	char path[64];

	cr_assert_geq(fifo, 0);
	file = openat(top_fd, "file", O_RDONLY);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	cr_expect_eq(outcome(-1, path, FOREIGN_KERNEL_LINK, NULL), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fifo);
	cr_expect_eq(outcome(-1, path, FOREIGN_KERNEL_LINK, NULL), -EINVAL);
}

/*
 * Uses a mount namespace of its own and the same file system, so the device number does not differ.
 */
Test(foreign_file, rejects_mount_points_on_request)
{
	char secret[96], file[96];

	if (unshare(CLONE_NEWNS))
		cannot_run("no mount namespace");
	snprintf(secret, sizeof(secret), "%s/secret", top);
	snprintf(file, sizeof(file), "%s/file", top);
	cr_assert_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	cr_assert_eq(mount(secret, file, NULL, MS_BIND, NULL), 0);
	/* The old descriptor belongs to the other namespace. */
	close(top_fd);
	top_fd = open(top, O_PATH | O_DIRECTORY);
	cr_expect_eq(outcome(top_fd, "file", FOREIGN_SAME_MOUNT, NULL), -EXDEV);
	cr_expect_eq(outcome(top_fd, "closed/file", FOREIGN_SAME_MOUNT, NULL), 0);
	cr_expect_eq(outcome(top_fd, "file", 0, NULL), 0);
	cr_assert_eq(umount(file), 0);
}

Test(foreign_file, opens_with_the_given_rights)
{
	const struct rights theirs = { .uid = other_id, .gid = other_id };
	int directory;

	need_root();
	cr_expect_eq(outcome(top_fd, "file", 0, &theirs), 0);
	cr_expect_eq(outcome(top_fd, "theirs", 0, &theirs), 0);
	cr_expect_eq(outcome(top_fd, "secret", 0, &theirs), -EACCES);
	cr_expect_eq(outcome(top_fd, "closed/file", 0, &theirs), -EACCES);
	cr_expect_eq(foreign_directory_open(top_fd, "closed/.", &theirs), -EACCES);
	directory = foreign_directory_open(top_fd, "inner", &theirs);
	cr_expect_geq(directory, 0);
	close(directory);
	/* The thread has its own rights again. */
	cr_expect_eq(outcome(top_fd, "secret", 0, NULL), 0);
	cr_expect_eq(outcome(top_fd, "closed/file", 0, NULL), 0);
}

Test(foreign_file, examines_without_opening)
{
	const struct rights theirs = { .uid = other_id, .gid = other_id };
	struct stat status = { 0 };

	cr_expect_eq(foreign_file_examine(top_fd, "link", 0, NULL, &status), 0);
	cr_expect_eq(status.st_size, 4);
	cr_expect_eq(foreign_file_examine(top_fd, "link", FOREIGN_NO_LINKS, NULL, &status), -ELOOP);
	cr_expect_eq(foreign_file_examine(top_fd, "fifo", 0, NULL, &status), -EINVAL);
	cr_expect_eq(foreign_file_examine(-1, "/proc/self/maps", 0, NULL, &status), -EOPNOTSUPP);
	need_root();
	/* Everyone who may search the directory may examine the file. */
	cr_expect_eq(foreign_file_examine(top_fd, "secret", 0, &theirs, &status), 0);
	cr_expect_eq(foreign_file_examine(top_fd, "closed/file", 0, &theirs, &status), -EACCES);
}

/* The caller's own file is not readable for another user's process. */
Test(foreign_file, is_strict_if_the_rights_cannot_be_assumed)
{
	const struct rights theirs = { .uid = 1234, .gid = 1234 };

	need_root();
	cr_assert_eq(setresgid(other_id, other_id, other_id), 0);
	cr_assert_eq(setresuid(other_id, other_id, other_id), 0);
	cr_expect_eq(outcome(top_fd, "theirs", 0, NULL), 0);
	cr_expect_eq(outcome(top_fd, "theirs", 0, &theirs), -EACCES);
	cr_expect_eq(outcome(top_fd, "file", 0, &theirs), 0);
	cr_assert_eq(prctl(PR_SET_DUMPABLE, 1), 0);
}
