/* SPDX-License-Identifier: MIT */
#include "mapgen/relmap/cache_limit.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FILE_BYTES = 1 << 20
};

static const char *const keys[] = {
	"00000000000000000000000000000000", "11111111111111111111111111111111",
	"2222222222222222222222222222222222222222222222222222222222222222"
};

static char path[] = "/tmp/cache_limit.XXXXXX";

/* A directory with one map that was last used at this second. */
static void put(int cache_fd, const char *name, time_t used_s)
{
	const struct timespec times[2] = { { .tv_sec = used_s }, { .tv_sec = used_s } };
	static const char bytes[FILE_BYTES] = { 1 };
	int directory_fd, fd;

	cr_assert_eq(mkdirat(cache_fd, name, 0700), 0);
	directory_fd = openat(cache_fd, name, O_RDONLY | O_DIRECTORY);
	fd = openat(directory_fd, "a.map", O_WRONLY | O_CREAT, 0600);
	cr_assert_eq(write(fd, bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
	cr_assert_eq(fsync(fd), 0, "so that it has blocks");
	close(fd);
	cr_assert_eq(futimens(directory_fd, times), 0);
	close(directory_fd);
}

static int begin(void)
{
	int cache_fd;

	cr_assert(mkdtemp(path));
	cache_fd = open(path, O_RDONLY | O_DIRECTORY);
	cr_assert_geq(cache_fd, 0);
	return cache_fd;
}

static void end(int cache_fd)
{
	char command[64];

	close(cache_fd);
	snprintf(command, sizeof(command), "rm -r %s", path);
	cr_assert_eq(system(command), 0);
}

static bool has(int cache_fd, const char *name)
{
	struct stat status;

	return !fstatat(cache_fd, name, &status, AT_SYMLINK_NOFOLLOW);
}

Test(cache_limit, removes_what_was_not_used_for_the_longest_time)
{
	int cache_fd = begin(), used_fd;

	put(cache_fd, keys[0], 1000);
	put(cache_fd, keys[1], 2000);
	put(cache_fd, keys[2], 3000);
	put(cache_fd, "others", 1);
	used_fd = openat(cache_fd, keys[0], O_RDONLY | O_DIRECTORY);
	cache_limit_touch(used_fd);
	close(used_fd);
	cache_limit_hold(cache_fd, 2 * FILE_BYTES + FILE_BYTES / 2);
	cr_expect(has(cache_fd, keys[0]), "it was used again");
	cr_expect_not(has(cache_fd, keys[1]));
	cr_expect(has(cache_fd, keys[2]));
	cr_expect(has(cache_fd, "others"), "no map");
	end(cache_fd);
}

Test(cache_limit, removes_nothing_below_the_limit)
{
	int cache_fd = begin();

	put(cache_fd, keys[0], 1000);
	put(cache_fd, keys[1], 2000);
	cache_limit_hold(cache_fd, 4 * FILE_BYTES);
	cr_expect(has(cache_fd, keys[0]));
	cr_expect(has(cache_fd, keys[1]));
	end(cache_fd);
}

Test(cache_limit, follows_no_link)
{
	char other[] = "/tmp/cache_limit_other.XXXXXX", file[64];
	int cache_fd = begin(), fd;

	cr_assert(mkdtemp(other));
	snprintf(file, sizeof(file), "%s/kept", other);
	fd = open(file, O_WRONLY | O_CREAT, 0600);
	cr_assert_geq(fd, 0);
	close(fd);
	cr_assert_eq(symlinkat(other, cache_fd, keys[0]), 0);
	put(cache_fd, keys[1], 2000);
	cache_limit_hold(cache_fd, 0);
	cr_expect_eq(access(file, F_OK), 0);
	cr_expect_not(has(cache_fd, keys[1]));
	unlink(file);
	rmdir(other);
	end(cache_fd);
}
