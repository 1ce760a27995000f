/* SPDX-License-Identifier: MIT */
/*
 * Opening the files of a process as the process sees them, and telling whether
 * a file is the one that it has mapped. Second half of process.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "libsym/base/path.h"
#include "libsym/core_process.h"
#include "libsym/format/maps.h"
#include "libsym/limits.h"
#include "libsym/process.h"

/* The path for a message: where the caller would find it. */
static char *shown_path(const struct process *process, const char *path)
{
	char *shown;

	return asprintf(&shown, "%s%s", process->root_prefix, path) < 0 ? NULL : shown;
}

static struct sym_error *path_error(const struct process *process, const char *path, int result)
{
	char *shown AUTO_FREE = shown_path(process, path);

	if (!shown)
		return &sym_error_no_memory;
	if (result == -EINVAL)
		return sym_error_create_path(SYM_ERROR_UNSUPPORTED, shown, SYM_OFFSET_UNKNOWN,
					     "is no regular file");
	return sym_error_from_errno(-result, shown, "cannot open");
}

/* A descriptor or a negative errno. */
static int open_path(const struct process *process, const char *path, unsigned int path_flags)
{
	if (process->root_fd < 0)
		return -EACCES;
	return path_open_in_root(process->root_fd, path, path_flags);
}

struct sym_error *process_open_path(const struct process *process, const char *path,
				    unsigned int path_flags, int *fd_ret)
{
	int fd = open_path(process, path, path_flags);

	if (process->root_fd < 0)
		return sym_error_create_path(
			SYM_ERROR_PERMISSION, path, SYM_OFFSET_UNKNOWN,
			"the root directory of process %d may not be used: this "
			"needs CAP_SYS_PTRACE",
			process->pid);
	if (fd < 0)
		return path_error(process, path, fd);
	*fd_ret = fd;
	return NULL;
}

/* The line of our own maps that covers `address`. */
static bool find_own_mapping(uint64_t address, struct maps_line *ret)
{
	int fd AUTO_CLOSE = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	struct maps_parser parser;
	bool found = false;
	struct buf text;

	if (fd < 0)
		return false;
	buf_init(&text, LIMIT_MAPS_BYTES);
	if (!path_read_all(fd, &text)) {
		maps_parser_init(&parser, text.data, text.size_bytes);
		while (!found && maps_parser_next(&parser, ret))
			found = address >= ret->start_address && address < ret->end_address;
	}
	buf_deinit(&text);
	ret->path = NULL;
	return found;
}

/*
 * What the kernel shows in maps for a file need not be what stat() says: a
 * mapping of overlayfs is shown with the inode of the layer below (until Linux
 * 6.16 or so), one of a btrfs subvolume with the device of the whole. So the
 * file is mapped here too, and the kernel shows what it shows. The page is never
 * touched: a file that shrinks meanwhile cannot hurt.
 */
static bool is_shown_alike(int fd, const struct sym_mapping *mapping)
{
	struct maps_line own;
	bool found;
	void *page;

	page = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	if (page == MAP_FAILED)
		return false;
	found = find_own_mapping((uint64_t)(uintptr_t)page, &own);
	munmap(page, 1);
	return found && own.inode == mapping->inode && own.device_major == mapping->device_major &&
	       own.device_minor == mapping->device_minor;
}

static bool is_mapped_file(int fd, const struct stat *status, const struct sym_mapping *mapping)
{
	if (status->st_ino == mapping->inode && major(status->st_dev) == mapping->device_major &&
	    minor(status->st_dev) == mapping->device_minor)
		return true;
	return is_shown_alike(fd, mapping);
}

/*
 * By the path of a line of maps. CAP_PERFMON alone lets one read maps (seen on
 * Linux 6.18) but not follow the root link; the caller's own root is tried then. That
 * cannot lead astray: what is opened is compared with the line.
 */
static int open_mapped_path(const struct process *process, const char *path)
{
	if (process->root_fd >= 0 || process->recorded)
		return open_path(process, path, PATH_REGULAR);
	return path_open_in_root(-1, path, PATH_REGULAR);
}

/* Through ROOT/proc/PID/map_files, which leads to the file whatever became of its name. Needs
 * CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE. */
static int open_map_file(const struct process *process, const struct sym_mapping *mapping)
{
	struct stat status;
	char name[64];

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, mapping->start_address,
		 mapping->end_address);
	/* Looked at before it is opened: opening a device can have effects. */
	if (fstatat(process->proc_fd, name, &status, 0) || !S_ISREG(status.st_mode))
		return -1;
	return openat(process->proc_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* The program, through ROOT/proc/PID/exe, for which no capability is needed. */
static int open_program(const struct process *process, const struct sym_mapping *mapping)
{
	if (process->marks.executable_inode != mapping->inode)
		return -1;
	return openat(process->proc_fd, "exe", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* Where the path does not lead to the file that is mapped. */
static int open_otherwise(const struct process *process, const struct sym_mapping *mapping)
{
	int fd = open_map_file(process, mapping);

	if (fd < 0)
		fd = open_program(process, mapping);
	/* maps has paths as this process sees them: those of one that has called chroot() or
	 * pivot_root() lead to what it had mapped before from here only. */
	if (fd < 0 && *process->root_prefix)
		fd = path_open_in_root(-1, mapping->path, PATH_REGULAR);
	return fd;
}

static struct sym_error *replaced(const struct process *process, const struct sym_mapping *mapping,
				  int result)
{
	char *shown AUTO_FREE = shown_path(process, mapping->path);

	if (!shown)
		return &sym_error_no_memory;
	return sym_error_create_path(SYM_ERROR_STALE, shown, SYM_OFFSET_UNKNOWN,
				     result == -ENOENT || result == -ENOTDIR
					     ? "the file was deleted after it was mapped"
					     : "the file was replaced after it was mapped");
}

struct sym_error *process_open_mapped(const struct process *process,
				      const struct sym_mapping *mapping, int *fd_ret,
				      struct stat *status_ret)
{
	int fd AUTO_CLOSE = open_mapped_path(process, mapping->path);
	int result = fd;
	struct stat status;

	if (fd >= 0 && fstat(fd, &status))
		return path_error(process, mapping->path, -errno);
	if (process->recorded && fd < 0)
		return path_error(process, mapping->path, result);
	if (!process->recorded && (fd < 0 || !is_mapped_file(fd, &status, mapping))) {
		int other_fd AUTO_CLOSE = open_otherwise(process, mapping);

		if (other_fd < 0 || fstat(other_fd, &status) || !S_ISREG(status.st_mode) ||
		    !is_mapped_file(other_fd, &status, mapping)) {
			if (result >= 0 || result == -ENOENT || result == -ENOTDIR)
				return replaced(process, mapping, result);
			return path_error(process, mapping->path, result);
		}
		if (fd >= 0)
			close(fd);
		fd = steal_fd(&other_fd);
	}
	*status_ret = status;
	*fd_ret = steal_fd(&fd);
	return NULL;
}

/* By its number: /proc/PID/mem also has to be opened, for which CAP_SYS_PTRACE alone does not do.
 */
static bool read_by_number(const struct process *process, uint64_t address, uint8_t *room,
			   size_t size_bytes)
{
	while (size_bytes) {
		struct iovec to = { room, size_bytes };
		struct iovec from = { (void *)(uintptr_t)address, size_bytes };
		ssize_t got = process_vm_readv(process->pid, &to, 1, &from, 1, 0);

		if (got <= 0)
			return false;
		address += (size_t)got;
		room += got;
		size_bytes -= (size_t)got;
	}
	return true;
}

struct sym_error *process_read_memory(const struct process *process, uint64_t address, void *room,
				      size_t size_bytes)
{
	char *path AUTO_FREE = NULL;
	int fd AUTO_CLOSE = -1;
	int result;

	if (process->core)
		return core_read(process->core, address, room, size_bytes) == size_bytes
			       ? NULL
			       : sym_error_create(SYM_ERROR_PERMISSION,
						  "the core file does not have it");
	if (process->recorded)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"a recorded process has no memory to read");
	fd = openat(process->proc_fd, "mem", O_RDONLY | O_CLOEXEC);
	result = fd < 0 ? -errno : path_read_at(fd, room, size_bytes, address);
	if (!result || (result == -EACCES && read_by_number(process, address, room, size_bytes)))
		return NULL;
	if (asprintf(&path, "%s/mem", process->proc_path) < 0) {
		path = NULL;
		return &sym_error_no_memory;
	}
	return sym_error_from_errno(-result, path, "cannot read");
}
