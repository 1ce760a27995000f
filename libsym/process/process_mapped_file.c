/* SPDX-License-Identifier: MIT */
/*
 * Opens the files of a process as the process sees them, and decides whether a file is the mapped
 * one. Second half of process.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "libsym/base/foreign_file.h"
#include "libsym/base/path.h"
#include "libsym/format/linux/maps.h"
#include "libsym/limits.h"
#include "libsym/process/process.h"

/* The path as the caller would find it, for messages. */
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
	if (result == -EINVAL || result == -EOPNOTSUPP)
		return sym_error_create_path(SYM_ERROR_UNSUPPORTED, shown, SYM_OFFSET_UNKNOWN, "%s",
					     foreign_file_problem(result));
	return sym_error_from_errno(-result, shown, "cannot open");
}

const struct rights *process_rights(const struct process *process)
{
	return process->recorded ? NULL : &process->rights;
}

/* A descriptor or a negative errno. */
static int open_path(const struct process *process, const char *path, unsigned int flags)
{
	if (process->root_fd < 0)
		return -EACCES;
	return foreign_file_open(process->root_fd, path, flags, process_rights(process), NULL);
}

struct sym_error *process_open_path(const struct process *process, const char *path,
				    unsigned int flags, int *fd_ret)
{
	int fd = open_path(process, path, flags);

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

/* Finds the line of our own maps that contains `address`. */
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
 * Compares a file with a line of maps by mapping it here and reading our own maps.
 * maps can differ from stat(): overlayfs shows the inode of the lower layer (until Linux 6.16 or
 * so), a btrfs subvolume the device of the whole file system.
 * The page is never touched, so a file that is truncated during the check does no harm.
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
 * Opens the path of a line of maps.
 * With CAP_PERFMON alone maps can be read (seen on Linux 6.18) but the root link cannot be
 * followed. Then the caller's own root is tried.
 * This is safe, because the opened file is compared with the line.
 */
static int open_mapped_path(const struct process *process, const char *path)
{
	if (process->root_fd >= 0 || process->recorded)
		return open_path(process, path, 0);
	return foreign_file_open(-1, path, 0, process_rights(process), NULL);
}

/*
 * Opens ROOT/proc/PID/map_files, which leads to the file whatever became of its name. Needs
 * CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE.
 */
static int open_map_file(const struct process *process, const struct sym_mapping *mapping)
{
	char name[64];

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, mapping->start_address,
		 mapping->end_address);
	return foreign_file_open(process->proc_fd, name, FOREIGN_KERNEL_LINK, NULL, NULL);
}

/* Opens the program through ROOT/proc/PID/exe, which needs no capability. */
static int open_program(const struct process *process, const struct sym_mapping *mapping)
{
	if (process->marks.executable_inode != mapping->inode)
		return -1;
	return foreign_file_open(process->proc_fd, "exe", FOREIGN_KERNEL_LINK, NULL, NULL);
}

/* Opens the mapped file when its path does not lead to it. */
static int open_otherwise(const struct process *process, const struct sym_mapping *mapping)
{
	int fd = open_map_file(process, mapping);

	if (fd < 0)
		fd = open_program(process, mapping);
	/*
	 * The paths in maps are as seen by this process. After chroot() or pivot_root() older paths
	 * are valid only from the caller's root.
	 */
	if (fd < 0 && *process->root_prefix)
		fd = foreign_file_open(-1, mapping->path, 0, process_rights(process), NULL);
	return fd;
}

static struct sym_error *process_replaced_error(const struct process *process,
						const struct sym_mapping *mapping, int result)
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
				return process_replaced_error(process, mapping, result);
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

/* Reads by PID. Opening /proc/PID/mem needs more than CAP_SYS_PTRACE. */
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
		return process->core_ops->read(process->core, address, room, size_bytes) ==
				       size_bytes
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
