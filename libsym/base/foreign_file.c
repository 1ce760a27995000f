/* SPDX-License-Identifier: MIT */
#include "libsym/base/foreign_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"

/* Missing in <linux/magic.h>. */
static const long configfs_magic = 0x62656570, mqueue_magic = 0x19800202;

/* The kernel generates these files at each read, and the content may depend on the reader. */
static bool is_kernel_file(int fd)
{
	struct statfs status;

	if (fstatfs(fd, &status))
		return true;
	switch ((long)(uint32_t)status.f_type) {
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case DEBUGFS_MAGIC:
	case TRACEFS_MAGIC:
	case SECURITYFS_MAGIC:
	case SELINUX_MAGIC:
	case SMACK_MAGIC:
	case BPF_FS_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
	case PSTOREFS_MAGIC:
	case EFIVARFS_MAGIC:
	case NSFS_MAGIC:
	case RDTGROUP_SUPER_MAGIC:
		return true;
	default:
		return (uint32_t)status.f_type == configfs_magic ||
		       (uint32_t)status.f_type == mqueue_magic;
	}
}

static int foreign_file_locate(int root_fd, const char *path, unsigned int flags)
{
	int fd;

	if (!(flags & FOREIGN_KERNEL_LINK))
		return path_open_in_root(
			root_fd, path,
			PATH_LOCATE | PATH_REGULAR |
				(flags & FOREIGN_NO_LINKS ? PATH_NO_SYMLINKS : 0) |
				(flags & FOREIGN_SAME_MOUNT ? PATH_SAME_MOUNT : 0));
	fd = openat(root_fd >= 0 ? root_fd : AT_FDCWD, path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* For a caller that could not assume the rights: does the file belong to that user, or may all read
 * it? */
static bool is_open_to(const struct rights *rights, const struct stat *status)
{
	return status->st_uid == rights->uid || status->st_mode & S_IROTH;
}

/* An O_PATH descriptor, or a negative errno. */
static int find_file(int root_fd, const char *path, unsigned int flags,
		     const struct rights *only_for, struct stat *status_ret)
{
	int located AUTO_CLOSE = foreign_file_locate(root_fd, path, flags);

	if (located < 0)
		return located;
	if (fstat(located, status_ret))
		return -errno;
	if (!S_ISREG(status_ret->st_mode))
		return -EINVAL;
	if (is_kernel_file(located))
		return -EOPNOTSUPP;
	if (only_for && !is_open_to(only_for, status_ret))
		return -EACCES;
	return steal_fd(&located);
}

static int open_file(int root_fd, const char *path, unsigned int flags,
		     const struct rights *only_for, struct stat *status_ret)
{
	int located AUTO_CLOSE = find_file(root_fd, path, flags, only_for, status_ret);

	return located < 0 ? located : path_reopen(located);
}

/* *only_for_ret: if the rights could not be assumed, the file must be readable with them. */
static int foreign_file_assume_rights(const struct rights *rights, struct rights_held *held,
				      const struct rights **only_for_ret)
{
	int result = rights_assume(rights, held);

	*only_for_ret = result == -EPERM ? rights : NULL;
	return result == -EPERM ? rights_drop_file_capabilities(held) : result;
}

int foreign_file_open(int root_fd, const char *path, unsigned int flags,
		      const struct rights *rights, struct stat *status_ret)
{
	const struct rights *only_for;
	struct rights_held held;
	struct stat status;
	int fd = foreign_file_assume_rights(rights, &held, &only_for);

	if (fd)
		return fd;
	fd = open_file(root_fd, path, flags, only_for, &status);
	rights_restore(&held);
	if (fd >= 0 && status_ret)
		*status_ret = status;
	return fd;
}

int foreign_file_examine(int root_fd, const char *path, unsigned int flags,
			 const struct rights *rights, struct stat *ret)
{
	const struct rights *only_for;
	struct rights_held held;
	struct stat status;
	int fd AUTO_CLOSE = -1;
	int result = foreign_file_assume_rights(rights, &held, &only_for);

	if (result)
		return result;
	fd = find_file(root_fd, path, flags, only_for, &status);
	rights_restore(&held);
	if (fd < 0)
		return fd;
	*ret = status;
	return 0;
}

int foreign_directory_open(int root_fd, const char *path, const struct rights *rights)
{
	const struct rights *only_for;
	struct rights_held held;
	int fd = foreign_file_assume_rights(rights, &held, &only_for);

	if (fd)
		return fd;
	fd = path_open_in_root(root_fd, path, PATH_LOCATE | PATH_DIRECTORY);
	rights_restore(&held);
	return fd;
}

const char *foreign_file_problem(int result)
{
	switch (result) {
	case -EINVAL:
		return "is not a regular file";
	case -ELOOP:
		return "is a symbolic link";
	case -EXDEV:
		return "has another file mounted over it";
	case -EOPNOTSUPP:
		return "is a file of the kernel";
	default:
		return strerror(-result);
	}
}
