/* SPDX-License-Identifier: MIT */
#include "mapgen/perfmap/perfmap_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/foreign_file.h"
#include "libsym/base/path.h"
#include "libsym/libsym.h"
#include "mapgen/cli/message.h"

static const mode_t map_mode = 0644;

/* Length of "/proc/PID/root" at the start of `path`; 0 when it starts differently. */
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

bool map_location_is_in_process(const char *path)
{
	return process_root_bytes(path) > 0;
}

static int open_directory(const char *path, size_t inside_bytes, size_t directory_bytes,
			  const struct rights *rights)
{
	char *root AUTO_FREE = strndup(path, inside_bytes);
	char *directory AUTO_FREE = strndup(path + inside_bytes, directory_bytes - inside_bytes);
	int root_fd AUTO_CLOSE = -1;
	int fd;

	if (!root || !directory)
		return -ENOMEM;
	if (!inside_bytes && !rights) {
		fd = open(*directory ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	if (!inside_bytes)
		return foreign_directory_open(-1, *directory ? directory : ".", rights);
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	return foreign_directory_open(root_fd, directory, rights);
}

struct sym_error *map_location_open(const char *path, const char *root, const struct rights *rights,
				    struct map_location *ret)
{
	size_t directory_bytes = (size_t)(path_file_name(path) - path);
	struct map_location location = { .rights = rights };

	if (!path[directory_bytes])
		return sym_error_create(SYM_ERROR_IO, "%s is a directory", path);
	location.directory_fd =
		open_directory(path, root_bytes(path, root), directory_bytes, rights);
	if (location.directory_fd < 0)
		return sym_error_create(SYM_ERROR_IO, "cannot open the directory of %s: %s", path,
					strerror(-location.directory_fd));
	location.name = strdup(path + directory_bytes);
	location.path = strdup(path);
	if (location.name && location.path) {
		*ret = location;
		return NULL;
	}
	map_location_close(&location);
	return &sym_error_no_memory;
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

static bool is_written(const struct stat *status, const struct sym_perf_map_info *writer)
{
	return S_ISREG(status->st_mode) && status->st_dev == writer->writer_device &&
	       status->st_ino == writer->writer_inode;
}

bool map_location_holds(const struct map_location *location, const struct sym_perf_map_info *writer)
{
	struct stat status;

	return writer->writer_fd >= 0 && status_at(location, location->name, &status) &&
	       is_written(&status, writer);
}

bool map_location_may_hold(const struct map_location *location,
			   const struct sym_perf_map_info *writer)
{
	struct stat status;

	if (writer->writer_fd < 0)
		return false;
	return status_at(location, location->name, &status) ? is_written(&status, writer)
							    : errno != ENOENT;
}

const char *map_location_file_type(const struct map_location *location)
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
	return path_has_content(location->directory_fd, location->name, text, size_bytes);
}

/* Returns 0 or a negative errno. */
static int write_map(const struct map_location *location, const struct map_owner *owner,
		     const char *text, size_t size_bytes)
{
	struct path_output output;
	int result = path_output_open_at(&output, location->directory_fd, location->name);

	if (result)
		return result;
	result = path_write_all(output.fd, text, size_bytes);
	/* Readers that check the owner expect the user of the process or root; only root can change
	 * the owner. */
	if (!result && owner->set && !location->rights &&
	    fchown(output.fd, owner->uid, owner->gid) && owner->uid != geteuid())
		result = -errno;
	if (result)
		path_output_abandon(&output);
	else
		result = path_output_commit(&output, map_mode, false);
	return result;
}

static void guard_rights(struct rights_held *held)
{
	rights_restore(held);
}

/* NULL, or why the rights of the location cannot be had. */
static struct sym_error *assume_rights(const struct map_location *location,
				       struct rights_held *held)
{
	int result = rights_assume(location->rights, held);

	if (result == -EPERM)
		return sym_error_create(SYM_ERROR_IO,
					"cannot write %s with the rights of its process (uid %u): "
					"this needs CAP_SETUID and CAP_SETGID",
					location->path, location->rights->uid);
	return result ? sym_error_create(SYM_ERROR_IO, "cannot write %s: %s", location->path,
					 strerror(-result))
		      : NULL;
}

struct sym_error *perfmap_file_replace(const struct map_location *location,
				       const struct map_owner *owner, const char *text,
				       size_t size_bytes, bool *written_ret)
{
	struct rights_held held GUARDED(rights);
	struct sym_error *failure = assume_rights(location, &held);
	int result;

	*written_ret = !failure && !is_unchanged(location, owner, text, size_bytes);
	if (!*written_ret)
		return failure;
	result = write_map(location, owner, text, size_bytes);
	return result ? sym_error_create(SYM_ERROR_IO, "cannot write %s: %s", location->path,
					 strerror(-result))
		      : NULL;
}

static char *kept_name(const struct map_location *location)
{
	return message_format("%s.runtime", location->name);
}

struct sym_error *perfmap_file_keep(const struct map_location *location,
				    const struct sym_perf_map_info *writer)
{
	struct rights_held held GUARDED(rights);
	struct sym_error *failure = assume_rights(location, &held);
	char *kept AUTO_FREE = kept_name(location);
	struct stat status;

	if (failure)
		return failure;
	if (status_at(location, kept, &status)) {
		if (is_written(&status, writer))
			return NULL;
		/* Left by an earlier process with this id. */
		if (unlinkat(location->directory_fd, kept, 0))
			return sym_error_create(SYM_ERROR_IO,
						"cannot remove the old %s.runtime: %s",
						location->path, strerror(errno));
	}
	/* linkat() does not follow a link that was created in the meantime. */
	if (linkat(location->directory_fd, location->name, location->directory_fd, kept, 0))
		return sym_error_create(SYM_ERROR_IO,
					"cannot keep the runtime's file as %s.runtime: %s",
					location->path, strerror(errno));
	if (status_at(location, kept, &status) && is_written(&status, writer))
		return NULL;
	unlinkat(location->directory_fd, kept, 0);
	return sym_error_create(SYM_ERROR_IO, "%s was replaced by another program just now",
				location->path);
}

static bool may_be_the_runtimes(const struct stat *status, uid_t target_uid)
{
	return S_ISREG(status->st_mode) &&
	       (status->st_uid == target_uid || status->st_uid == 0 || status->st_uid == geteuid());
}

struct sym_error *perfmap_file_restore(const struct map_location *location, uid_t target_uid,
				       int64_t started_s, const struct sym_perf_map_info *writer)
{
	struct rights_held held GUARDED(rights);
	struct sym_error *failure = assume_rights(location, &held);
	char *kept AUTO_FREE = kept_name(location);
	struct stat status;

	if (failure)
		return failure;
	if (!status_at(location, kept, &status))
		return sym_error_create(SYM_ERROR_IO, "nothing to undo: there is no %s.runtime",
					location->path);
	if (!may_be_the_runtimes(&status, target_uid))
		return sym_error_create(SYM_ERROR_IO,
					"%s.runtime does not belong to the runtime: left alone",
					location->path);
	if (status.st_mtim.tv_sec < started_s)
		return sym_error_create(SYM_ERROR_IO,
					"%s.runtime is older than the process: left alone",
					location->path);
	if (writer->writer_fd >= 0 && !is_written(&status, writer))
		return sym_error_create(SYM_ERROR_IO,
					"%s.runtime is not what the runtime is writing: left alone",
					location->path);
	if (renameat(location->directory_fd, kept, location->directory_fd, location->name))
		return sym_error_create(SYM_ERROR_IO, "cannot put %s.runtime back: %s",
					location->path, strerror(errno));
	/* rename() keeps both names when they are the same file. */
	unlinkat(location->directory_fd, kept, 0);
	return NULL;
}
