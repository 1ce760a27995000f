/* SPDX-License-Identifier: MIT */
#include "mapgen/perf_map_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/libsym.h"
#include "mapgen/message.h"

static const mode_t map_mode = 0644;

/* Length of "/proc/PID/root" at the start of `path`; 0 when it does not start so. */
static size_t process_root_bytes(const char *path)
{
	static const char start[] = "/proc/", end[] = "/root/";
	size_t length = sizeof(start) - 1;

	if (strncmp(path, start, length) != 0 || !isdigit((unsigned char)path[length]))
		return 0;
	while (isdigit((unsigned char)path[length]))
		length++;
	return strncmp(path + length, end, sizeof(end) - 1) ? 0 : length + sizeof(end) - 2;
}

static size_t root_bytes(const char *path, const char *root)
{
	size_t length = root ? strlen(root) : 0;

	while (length > 1 && root[length - 1] == '/')
		length--;
	if (length && !strncmp(path, root, length) && path[length] == '/')
		return length;
	return process_root_bytes(path);
}

static int open_directory(const char *path, size_t inside_bytes, size_t directory_bytes)
{
	char *root AUTO_FREE = strndup(path, inside_bytes);
	char *directory AUTO_FREE = strndup(path + inside_bytes, directory_bytes - inside_bytes);
	int root_fd AUTO_CLOSE = -1;
	int fd;

	if (!root || !directory)
		return -ENOMEM;
	if (!inside_bytes) {
		fd = open(*directory ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	return path_open_in_root(root_fd, directory, PATH_DIRECTORY);
}

char *map_location_open(const char *path, const char *root, struct map_location *ret)
{
	size_t directory_bytes = (size_t)(path_file_name(path) - path);
	struct map_location location;

	if (!path[directory_bytes])
		return message_format("%s is a directory", path);
	location.directory_fd = open_directory(path, root_bytes(path, root), directory_bytes);
	if (location.directory_fd < 0)
		return message_format("cannot open the directory of %s: %s", path,
				      strerror(-location.directory_fd));
	location.name = strdup(path + directory_bytes);
	location.path = strdup(path);
	if (location.name && location.path) {
		*ret = location;
		return NULL;
	}
	map_location_close(&location);
	return message_format("out of memory");
}

void map_location_close(struct map_location *location)
{
	if (location->directory_fd >= 0)
		close(location->directory_fd);
	free(location->name);
	free(location->path);
	*location = (struct map_location){ .directory_fd = -1 };
}

static bool status_at(const struct map_location *location, const char *name, struct stat *ret)
{
	return !fstatat(location->directory_fd, name, ret, AT_SYMLINK_NOFOLLOW);
}

static bool is_file(const struct stat *status, uint64_t device, uint64_t inode)
{
	return S_ISREG(status->st_mode) && status->st_dev == device && status->st_ino == inode;
}

bool map_location_holds(const struct map_location *location, uint64_t device, uint64_t inode)
{
	struct stat status;

	return status_at(location, location->name, &status) && is_file(&status, device, inode);
}

const char *map_location_oddity(const struct map_location *location)
{
	struct stat status;

	if (!status_at(location, location->name, &status) || S_ISREG(status.st_mode))
		return NULL;
	if (S_ISLNK(status.st_mode))
		return "a symbolic link";
	if (S_ISFIFO(status.st_mode))
		return "a FIFO";
	return S_ISDIR(status.st_mode) ? "a directory" : "no regular file";
}

static bool is_unchanged(const struct map_location *location, const struct map_owner *owner,
			 const char *text, size_t size_bytes)
{
	struct stat status;

	if (!status_at(location, location->name, &status) ||
	    (owner->set && (status.st_uid != owner->uid || (status.st_mode & 07777) != map_mode)))
		return false;
	return path_holds(location->directory_fd, location->name, text, size_bytes);
}

/* 0 or a negative errno. */
static int write_map(const struct map_location *location, const struct map_owner *owner,
		     const char *text, size_t size_bytes)
{
	struct path_output output;
	int result = path_output_open_at(&output, location->directory_fd, location->name);

	if (result)
		return result;
	result = path_write_all(output.fd, text, size_bytes);
	/* Readers that check the owner want the target's user or root; only root can give it away.
	 */
	if (!result && owner->set && fchown(output.fd, owner->uid, owner->gid) &&
	    owner->uid != geteuid())
		result = -errno;
	if (result)
		path_output_abandon(&output);
	else
		result = path_output_commit(&output, map_mode, false);
	return result;
}

/* The same as files of the owner are written. In the file systems of a container whose user ids are
 * others here, ours may have no number: nothing can be made there that is ours for a moment. */
static int write_map_as_owner(const struct map_location *location, const struct map_owner *owner,
			      const char *text, size_t size_bytes)
{
	int result;

	setfsgid(owner->gid);
	setfsuid(owner->uid);
	result = write_map(location, owner, text, size_bytes);
	setfsuid(geteuid());
	setfsgid(getegid());
	return result;
}

char *perf_map_file_replace(const struct map_location *location, const struct map_owner *owner,
			    const char *text, size_t size_bytes, bool *written_ret)
{
	int result;

	*written_ret = false;
	if (is_unchanged(location, owner, text, size_bytes))
		return NULL;
	result = write_map(location, owner, text, size_bytes);
	if (result == -EOVERFLOW && owner->set)
		result = write_map_as_owner(location, owner, text, size_bytes);
	if (result)
		return message_format("cannot write %s: %s", location->path, strerror(-result));
	*written_ret = true;
	return NULL;
}

static char *kept_name(const struct map_location *location)
{
	return message_format("%s.runtime", location->name);
}

char *perf_map_file_keep(const struct map_location *location, uint64_t device, uint64_t inode)
{
	char *kept AUTO_FREE = kept_name(location);
	struct stat status;

	if (status_at(location, kept, &status)) {
		if (is_file(&status, device, inode))
			return NULL;
		/* Of an earlier process of this number. */
		if (unlinkat(location->directory_fd, kept, 0))
			return message_format("cannot remove the old %s.runtime: %s",
					      location->path, strerror(errno));
	}
	/* linkat() does not follow a link that may have been put there meanwhile. */
	if (linkat(location->directory_fd, location->name, location->directory_fd, kept, 0))
		return message_format("cannot keep the runtime's file as %s.runtime: %s",
				      location->path, strerror(errno));
	if (status_at(location, kept, &status) && is_file(&status, device, inode))
		return NULL;
	unlinkat(location->directory_fd, kept, 0);
	return message_format("%s was exchanged by somebody else just now", location->path);
}

static bool may_be_the_runtimes(const struct stat *status, uid_t target_uid)
{
	return S_ISREG(status->st_mode) &&
	       (status->st_uid == target_uid || status->st_uid == 0 || status->st_uid == geteuid());
}

char *perf_map_file_restore(const struct map_location *location, uid_t target_uid,
			    int64_t started_s, const struct sym_perf_map_info *writer)
{
	char *kept AUTO_FREE = kept_name(location);
	struct stat status;

	if (!status_at(location, kept, &status))
		return message_format("nothing to undo: there is no %s.runtime", location->path);
	if (!may_be_the_runtimes(&status, target_uid))
		return message_format("%s.runtime is not the runtime's: left alone",
				      location->path);
	if (status.st_mtim.tv_sec < started_s)
		return message_format("%s.runtime is older than the process: left alone",
				      location->path);
	if (writer->writer_fd >= 0 &&
	    !is_file(&status, writer->writer_device, writer->writer_inode))
		return message_format("%s.runtime is not what the runtime is writing: left alone",
				      location->path);
	if (renameat(location->directory_fd, kept, location->directory_fd, location->name))
		return message_format("cannot put %s.runtime back: %s", location->path,
				      strerror(errno));
	/* rename() leaves both names when they are of one file. */
	unlinkat(location->directory_fd, kept, 0);
	return NULL;
}
