/* SPDX-License-Identifier: MIT */
/*
 * How a process is opened and checked.
 *
 * process_open() opens ROOT/proc/PID as a directory first. All later reads go through that
 * descriptor, so they fail when the PID is used again.
 * When the first thread has ended, /proc/PID has neither maps nor files. Then the descriptor is
 * moved to the directory of a running thread (look_through_thread()).
 * process_check() compares the start time, which a reused PID changes, and the process_image_marks,
 * which exec() changes.
 */
#include "libsym/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "libsym/base/path.h"
#include "libsym/format/linux/proc_text.h"
#include "libsym/limits.h"

/* Ticks in /proc are 1/100 s on all kernels, whatever their HZ (USER_HZ). */
static const int64_t tick_ns = 10000000;
static const int64_t second_ns = 1000000000;

/*
 * Reads through `proc_fd`, which stays open: when the PID is used again, reading fails and does not
 * reach another process.
 */
static struct sym_error *read_file_at(int proc_fd, const char *proc_path, const char *name,
				      struct buf *buf)
{
	int fd AUTO_CLOSE = openat(proc_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char *path AUTO_FREE = NULL;
	int result;

	result = fd < 0 ? -errno : path_read_all(fd, buf);
	if (!result)
		return NULL;
	if (asprintf(&path, "%s/%s", proc_path, name) < 0) {
		path = NULL;
		return &sym_error_no_memory;
	}
	if (result == -EACCES || result == -EPERM)
		return sym_error_create_path(SYM_ERROR_PERMISSION, path, SYM_OFFSET_UNKNOWN,
					     "%s: this needs the user of the process and every "
					     "capability that it has, and that it did not make "
					     "itself undumpable, or CAP_SYS_PTRACE",
					     strerror(-result));
	if (buf->failure != BUF_OK)
		return sym_error_with_path(sym_error_from_buf(buf, "cannot read"), path);
	return sym_error_from_errno(-result, path, "cannot read");
}

struct sym_error *process_read_file(const struct process *process, const char *name,
				    struct buf *buf)
{
	return read_file_at(process->proc_fd, process->proc_path, name, buf);
}

/* Reads the target of a link of ROOT/proc/PID; NULL when it cannot be read. */
static char *read_link(const struct process *process, const char *name)
{
	struct buf target;
	ssize_t length;
	char *room;

	/* Links in /proc are cut at one page. */
	buf_init(&target, 4097);
	room = buf_reserve(&target, 4096);
	length = room ? readlinkat(process->proc_fd, name, room, 4096) : -1;
	if (length < 0) {
		buf_deinit(&target);
		return NULL;
	}
	target.size_bytes = (size_t)length;
	return buf_steal(&target, NULL);
}

static struct sym_error *no_process(int32_t pid, const char *why)
{
	return sym_error_create(SYM_ERROR_NOT_FOUND, "process %d: %s", pid, why);
}

/* The running system's /proc does not show the process. `why`: the reason. */
static struct sym_error *not_shown(int32_t pid, const char *why)
{
	if (kill(pid, 0) && errno != EPERM)
		return no_process(pid, why);
	if (access("/proc/self", F_OK))
		return no_process(pid, "it is there, but no /proc is mounted");
	return sym_error_create(SYM_ERROR_PERMISSION,
				"process %d is hidden: /proc is mounted with hidepid, or for "
				"another PID namespace; this needs CAP_SYS_PTRACE or the group "
				"that hidepid spares",
				pid);
}

static struct sym_error *open_proc_directory(struct process *process, const char *root, int32_t pid)
{
	free(process->proc_path);
	if (process->proc_fd >= 0)
		close(process->proc_fd);
	if (process->id_fd >= 0)
		close(process->id_fd);
	process->proc_fd = process->id_fd = -1;
	if (asprintf(&process->proc_path, "%s/proc/%d", root ? root : "", pid) < 0) {
		process->proc_path = NULL;
		return &sym_error_no_memory;
	}
	process->id_fd = open(process->proc_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process->id_fd >= 0)
		process->proc_fd = fcntl(process->id_fd, F_DUPFD_CLOEXEC, 0);
	if (process->proc_fd >= 0)
		return NULL;
	if (errno == ENOENT || errno == ESRCH)
		return root ? no_process(pid, "is not in this tree")
			    : not_shown(pid, "there is none");
	return sym_error_from_errno(errno, process->proc_path, "cannot open");
}

static bool read_groups(const struct buf *status, struct rights *ret)
{
	size_t count = proc_text_parse_groups(status->data, status->size_bytes, NULL, 0);

	free(ret->groups);
	ret->group_count = 0;
	ret->groups = calloc(count + 1, sizeof(*ret->groups));
	if (!ret->groups)
		return false;
	ret->group_count =
		proc_text_parse_groups(status->data, status->size_bytes, ret->groups, count);
	return true;
}

static struct sym_error *read_status(struct process *process, struct proc_status *ret)
{
	struct sym_error *error;
	struct buf text;

	buf_init(&text, LIMIT_PROC_FILE_BYTES);
	error = process_read_file(process, "status", &text);
	if (!error && !proc_text_parse_status(text.data, text.size_bytes, ret))
		error = sym_error_create_path(SYM_ERROR_FORMAT, process->proc_path,
					      SYM_OFFSET_UNKNOWN, "status: malformed");
	if (!error && !read_groups(&text, &process->rights))
		error = &sym_error_no_memory;
	buf_deinit(&text);
	return error;
}

/* Reads the identity from status. The directory of a thread is replaced by that of its process. */
static struct sym_error *read_identity(struct process *process, const char *root)
{
	struct proc_status status;
	struct sym_error *error = read_status(process, &status);

	if (!error && status.process_id != process->pid) {
		error = open_proc_directory(process, root, status.process_id);
		if (!error)
			error = read_status(process, &status);
	}
	if (error)
		return error;
	process->pid = status.process_id;
	process->namespace_pid = status.namespace_process_id;
	process->parent_pid = status.parent_process_id;
	process->uid = status.uid;
	process->gid = status.gid;
	process->rights.uid = status.file_uid;
	process->rights.gid = status.file_gid;
	process->rights.capabilities = status.capabilities;
	process->other_pid_namespace = status.namespace_depth > 1;
	return NULL;
}

/*
 * Device and inode of the program, without a request to the server of the file (FUSE, NFS), which
 * may never answer.
 */
static void find_program(int directory_fd, struct process_image_marks *ret)
{
	struct statx status;

	if (statx(directory_fd, "exe", AT_STATX_DONT_SYNC, STATX_INO, &status))
		return;
	ret->executable_inode = status.stx_ino;
	ret->executable_device = makedev(status.stx_dev_major, status.stx_dev_minor);
}

static void read_marks(const struct process *process, int directory_fd,
		       const struct proc_stat *stat, struct process_image_marks *ret)
{
	*ret = (struct process_image_marks){ 0 };
	if (stat->stack_start) {
		ret->code_start = stat->code_start;
		ret->stack_start = stat->stack_start;
	}
	if (!process->recorded)
		find_program(directory_fd, ret);
}

/* Reads stat of a process or a thread, by its directory. `comm_ret` may be NULL. */
static struct sym_error *read_stat(const struct process *process, int directory_fd,
				   struct proc_stat *ret, struct process_image_marks *marks_ret,
				   char **comm_ret)
{
	struct sym_error *error;
	struct buf text;

	buf_init(&text, LIMIT_PROC_FILE_BYTES);
	error = read_file_at(directory_fd, process->proc_path, "stat", &text);
	if (!error && !proc_text_parse_stat(text.data, text.size_bytes, ret))
		error = sym_error_create_path(SYM_ERROR_FORMAT, process->proc_path,
					      SYM_OFFSET_UNKNOWN, "stat: malformed");
	if (!error) {
		read_marks(process, directory_fd, ret, marks_ret);
		if (comm_ret)
			*comm_ret = strndup(ret->comm, ret->comm_bytes);
		if (comm_ret && !*comm_ret)
			error = &sym_error_no_memory;
	}
	buf_deinit(&text);
	ret->comm = NULL;
	return error;
}

/* ---- a first thread that has ended ------------------------------------------------- */

static bool has_ended(const struct proc_stat *stat)
{
	return stat->state == 'Z' || stat->state == 'X';
}

/*
 * True when a thread, by its directory in /proc, is running and belongs to this process.
 * The PID is not used again while the first thread waits for the others.
 */
static bool is_live_thread(const struct process *process, int thread_fd,
			   struct process_image_marks *marks_ret)
{
	struct proc_status status = { 0 };
	struct proc_stat stat;
	struct sym_error *error = read_stat(process, thread_fd, &stat, marks_ret, NULL);
	struct buf text;

	if (error || has_ended(&stat)) {
		sym_error_destroy(error);
		return false;
	}
	/* Memory exists now, so it existed when the marks were read. */
	buf_init(&text, LIMIT_PROC_FILE_BYTES);
	error = read_file_at(thread_fd, process->proc_path, "status", &text);
	if (!error)
		proc_text_parse_status(text.data, text.size_bytes, &status);
	buf_deinit(&text);
	sym_error_destroy(error);
	return status.process_id == process->pid && status.has_memory;
}

/* Searches for a running thread. */
static bool find_thread(const struct process *process, struct process_image_marks *marks_ret)
{
	int directory_fd = openat(process->id_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory GUARDED(dir) = directory_fd < 0 ? NULL : fdopendir(directory_fd);
	struct dirent *entry;
	char path[64];
	int32_t id;

	if (!directory) {
		if (directory_fd >= 0)
			close(directory_fd);
		return false;
	}
	while ((entry = readdir(directory))) {
		int thread_fd AUTO_CLOSE = -1;

		if (!proc_text_parse_id(entry->d_name, &id) || id == process->pid)
			continue;
		/* The directory of a task has no map_files. */
		snprintf(path, sizeof(path), "/proc/%d", id);
		thread_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (thread_fd >= 0 && is_live_thread(process, thread_fd, marks_ret))
			return dup3(thread_fd, process->proc_fd, O_CLOEXEC) >= 0;
	}
	return false;
}

/*
 * Moves proc_fd to a running thread. False when there is none: the process has ended.
 * After pthread_exit() in main(), /proc/PID shows neither mappings nor files; the directory of
 * another thread does.
 * The kernel cuts the list of threads where a thread ends during the listing.
 */
static bool look_through_thread(const struct process *process,
				struct process_image_marks *marks_ret)
{
	if (is_live_thread(process, process->proc_fd, marks_ret))
		return true;
	for (int tries = 0; tries < 4; tries++)
		if (find_thread(process, marks_ret))
			return true;
	return false;
}

/*
 * As read_stat(), but what exec() changes is read from a running thread.
 * Errors: NOT_FOUND for a process that has ended, reaped or not.
 */
static struct sym_error *read_own_stat(const struct process *process, struct proc_stat *ret,
				       struct process_image_marks *marks_ret, char **comm_ret)
{
	struct sym_error *error = read_stat(process, process->id_fd, ret, marks_ret, comm_ret);

	if (error || !has_ended(ret))
		return error;
	return !process->recorded && look_through_thread(process, marks_ret)
		       ? NULL
		       : no_process(process->pid, "has ended");
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now))
		return 0;
	return (int64_t)now.tv_sec * second_ns + now.tv_nsec;
}

/*
 * Time of boot.
 * For a live system it comes from the clocks. btime in /proc/stat has whole seconds, which would
 * confuse a container with the one before a restart.
 * The later clock is read last, so an interruption in between makes the result too early, never too
 * late.
 */
static bool boot_time_ns(const struct process *process, const char *root, int64_t *ret)
{
	char *path AUTO_FREE = NULL;
	int fd AUTO_CLOSE = -1;
	struct buf text;
	int64_t seconds;
	bool known;

	if (!process->recorded) {
		*ret = clock_ns(CLOCK_REALTIME);
		*ret -= clock_ns(CLOCK_BOOTTIME);
		return true;
	}
	if (asprintf(&path, "%s/proc/stat", root) < 0) {
		path = NULL;
		return false;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return false;
	buf_init(&text, LIMIT_PROC_FILE_BYTES);
	known = !path_read_all(fd, &text) &&
		proc_text_boot_time(text.data, text.size_bytes, &seconds);
	buf_deinit(&text);
	if (known)
		*ret = seconds * second_ns;
	return known;
}

static int64_t start_time(const struct process *process, const char *root)
{
	int64_t since_boot_ns, start_ns;

	if (process->start_time_ticks > INT64_MAX ||
	    __builtin_mul_overflow((int64_t)process->start_time_ticks, tick_ns, &since_boot_ns) ||
	    !boot_time_ns(process, root, &start_ns) ||
	    __builtin_add_overflow(start_ns, since_boot_ns, &start_ns))
		return PROCESS_TIME_UNKNOWN;
	return start_ns;
}

static struct sym_error *read_executable(struct process *process)
{
	static const char mark[] = " (deleted)";
	const size_t mark_bytes = sizeof(mark) - 1;
	size_t length;

	process->executable = read_link(process, "exe");
	if (!process->executable)
		process->executable = strdup("");
	if (!process->executable)
		return &sym_error_no_memory;
	length = strlen(process->executable);
	if (length > mark_bytes && !strcmp(process->executable + length - mark_bytes, mark)) {
		process->executable[length - mark_bytes] = '\0';
		process->executable_deleted = true;
	}
	return NULL;
}

/*
 * True when the namespace `name` ("ns/mnt") is not the caller's; `unknown` when it cannot be read.
 */
static bool other_namespace(const struct process *process, const char *name, bool unknown)
{
	struct stat theirs, ours;
	char *path AUTO_FREE = NULL;

	if (asprintf(&path, "/proc/self/%s", name) < 0) {
		path = NULL;
		return unknown;
	}
	if (fstatat(process->proc_fd, name, &theirs, 0) || stat(path, &ours))
		return unknown;
	return !path_is_same_file(&theirs, &ours);
}

static struct sym_error *open_live_root(struct process *process)
{
	struct stat theirs, ours;
	bool other_root;
	int length;

	/* Capabilities in a user namespace of its own do not count here. */
	if (other_namespace(process, "ns/user", true))
		process->rights.capabilities = 0;
	process->other_mount_namespace = other_namespace(process, "ns/mnt", false);
	process->other_pid_namespace =
		other_namespace(process, "ns/pid", process->other_pid_namespace);
	process->root_fd = openat(process->proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process->other_mount_namespace)
		process->mount_namespace_fd =
			openat(process->proc_fd, "ns/mnt", O_RDONLY | O_CLOEXEC);
	/* The root may also differ within one mount namespace: chroot(). */
	other_root = process->other_mount_namespace ||
		     (process->root_fd >= 0 && !fstat(process->root_fd, &theirs) &&
		      !stat("/", &ours) && !path_is_same_file(&theirs, &ours));
	length = asprintf(&process->root_prefix, "%s%s", other_root ? process->proc_path : "",
			  other_root ? "/root" : "");
	if (length >= 0)
		return NULL;
	process->root_prefix = NULL;
	return &sym_error_no_memory;
}

static struct sym_error *open_recorded_root(struct process *process, const char *root)
{
	process->root_fd = open(*root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process->root_fd < 0)
		return sym_error_from_errno(errno, root, "cannot open");
	process->root_prefix = strdup(root);
	return process->root_prefix ? NULL : &sym_error_no_memory;
}

static struct sym_error *process_read_all(struct process *process, const char *root)
{
	struct proc_stat stat;
	struct sym_error *error = open_proc_directory(process, root, process->pid);

	if (!error)
		error = read_identity(process, root);
	if (!error)
		error = read_own_stat(process, &stat, &process->marks, &process->comm);
	if (error)
		return error;
	process->start_time_ticks = stat.start_time_ticks;
	process->start_time_ns = start_time(process, root);
	error = read_executable(process);
	if (!error)
		error = process->recorded ? open_recorded_root(process, root)
					  : open_live_root(process);
	return error;
}

/* The directory exists, but its files do not. */
static struct sym_error *missing_files(int32_t pid, const char *root)
{
	if (root)
		return no_process(pid, "is not complete in this tree");
	/* The process may have ended between the two checks. */
	return not_shown(pid, "has ended");
}

struct sym_error *process_open(int32_t pid, const char *root, struct process **ret)
{
	struct process *process AUTO_PROCESS = NULL;
	struct sym_error *error;

	if (pid <= 0)
		return sym_error_create(SYM_ERROR_ARGUMENT, "%d is not a process id", pid);
	process = calloc(1, sizeof(*process));
	if (!process)
		return &sym_error_no_memory;
	process->pid = pid;
	process->recorded = root != NULL;
	process->root_fd = -1;
	process->mount_namespace_fd = -1;
	process->id_fd = -1;
	process->proc_fd = -1;
	error = process_read_all(process, root);
	if (error && sym_error_code(error) == SYM_ERROR_NOT_FOUND && sym_error_path(error)) {
		sym_error_destroy(error);
		return missing_files(pid, root);
	}
	if (!error)
		*ret = STEAL(process);
	return error;
}

void process_close(struct process *process)
{
	if (!process)
		return;
	if (process->root_fd >= 0)
		close(process->root_fd);
	if (process->mount_namespace_fd >= 0)
		close(process->mount_namespace_fd);
	if (process->id_fd >= 0)
		close(process->id_fd);
	if (process->proc_fd >= 0)
		close(process->proc_fd);
	if (process->core)
		process->core_ops->close(process->core);
	free(process->rights.groups);
	free(process->comm);
	free(process->executable);
	free(process->root_prefix);
	free(process->proc_path);
	free(process);
}

static struct sym_error *process_stale_error(const struct process *process, const char *why)
{
	return sym_error_create(SYM_ERROR_STALE, "process %d %s", process->pid, why);
}

/* A mark of 0 was not readable, before or now, and proves nothing. */
static bool has_mark_changed(uint64_t before, uint64_t now)
{
	return before && now && before != now;
}

struct sym_error *process_check(const struct process *process)
{
	struct process_image_marks marks;
	struct proc_stat stat;
	struct sym_error *error;

	if (process->recorded)
		return NULL;
	error = read_own_stat(process, &stat, &marks, NULL);
	if (error && sym_error_code(error) == SYM_ERROR_NOT_FOUND) {
		sym_error_destroy(error);
		return process_stale_error(process, "has ended");
	}
	if (error)
		return error;
	if (stat.start_time_ticks != process->start_time_ticks)
		return process_stale_error(process, "is another one that has the same id");
	/* exec() keeps id and start time, but moves the stack and the code. */
	if (has_mark_changed(process->marks.code_start, marks.code_start) ||
	    has_mark_changed(process->marks.stack_start, marks.stack_start) ||
	    has_mark_changed(process->marks.executable_inode, marks.executable_inode) ||
	    has_mark_changed(process->marks.executable_device, marks.executable_device))
		return process_stale_error(process, "has called exec(): it runs another program");
	return NULL;
}

static int compare_ids(const void *left, const void *right)
{
	int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;

	return (a > b) - (a < b);
}

struct sym_error *sym_process_ids(const char *root, int32_t **ret, size_t *count_ret)
{
	DIR *directory GUARDED(dir) = NULL;
	char *path AUTO_FREE = NULL;
	struct dirent *entry;
	size_t size_bytes;
	struct buf ids;
	int32_t id;

	if (asprintf(&path, "%s/proc", root ? root : "") < 0) {
		path = NULL;
		return &sym_error_no_memory;
	}
	directory = opendir(path);
	if (!directory)
		return sym_error_from_errno(errno, path, "cannot open");
	/* PID_MAX_LIMIT is 2^22, for recorded trees too. */
	buf_init(&ids, ((size_t)1 << 22) * sizeof(id) + 1);
	while ((errno = 0, entry = readdir(directory)))
		if (proc_text_parse_id(entry->d_name, &id))
			buf_append(&ids, &id, sizeof(id));
	if (errno || ids.failure != BUF_OK) {
		struct sym_error *error = errno ? sym_error_from_errno(errno, path, "cannot read")
						: sym_error_from_buf(&ids, path);

		buf_deinit(&ids);
		return error;
	}
	*ret = (int32_t *)buf_steal(&ids, &size_bytes);
	if (!*ret)
		return &sym_error_no_memory;
	*count_ret = size_bytes / sizeof(id);
	qsort(*ret, *count_ret, sizeof(id), compare_ids);
	return NULL;
}
