/* SPDX-License-Identifier: MIT */
/*
 * How a perf map is found.
 *
 * find() walks the places in the order of perfmap_location.h.
 * try_name() checks a file before it is opened and again afterwards. accept() has the rules. The
 * first reason for a rejection is kept for the user.
 * The map that the process writes is also tried through its descriptor, because its name may be
 * gone.
 * The accepted files are sorted so that the one which the process writes comes last and wins.
 */
#include "libsym/perf/perfmap_location.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "libsym/base/foreign_file.h"
#include "libsym/base/path.h"
#include "libsym/format/linux/proc_text.h"
#include "libsym/limits.h"

static const char usual_directory[] = "/tmp";

/* File times come from a clock that is up to one kernel tick behind (10 ms with HZ=100). */
static const int64_t file_clock_slack_ns = 20000000;
/* A process began at most this long after start_time_ns. */
static const int64_t start_tick_ns = 10000000;

enum {
	NAME_BYTES = 32
};

/* State of a search. */
struct search {
	const struct process *process;
	const struct perf_map_naming *naming;
	struct perfmap_location *place;
	char target_name[NAME_BYTES]; /* as the process names it: perf-NSPID.map */
	char host_name[NAME_BYTES];   /* as this machine names it: perf-PID.map */
	struct perfmap_descriptors writers;
	bool in_place[PERFMAP_LOCATION_FILES]; /* files[i] is where tools look */
	bool no_memory;
};

const struct perf_map_naming perf_map_naming = { "perf-", ".map", ".runtime" };
const struct perf_map_naming perfinfo_naming = { "perfinfo-", ".map", ".runtime" };

static size_t map_name(char *room, size_t room_bytes, const struct perf_map_naming *naming,
		       int32_t pid)
{
	return (size_t)snprintf(room, room_bytes, "%s%" PRId32 "%s", naming->start, pid,
				naming->end);
}

size_t sym_perf_map_file_name(int32_t pid, char *room, size_t room_bytes)
{
	return map_name(room, room_bytes, &perf_map_naming, pid);
}

static char *perfmap_location_join_path(struct search *search, const char *first,
					const char *second, const char *third)
{
	char *joined;

	if (asprintf(&joined, "%s%s%s", first, second, third) >= 0)
		return joined;
	search->no_memory = true;
	return NULL;
}

/* A small file in /proc could not be read. Only a lack of memory is reported. */
static void perfmap_location_ignore_error(struct search *search, struct sym_error *error)
{
	search->no_memory |= sym_error_is_no_memory(error);
	sym_error_destroy(error);
}

/* ---- refusing -------------------------------------------------------------- */

static void perfmap_location_reject(struct search *search, const char *path, const char *format,
				    ...) __attribute__((format(printf, 3, 4)));

/* The first reason stays: places are tried by importance. */
static void perfmap_location_reject(struct search *search, const char *path, const char *format,
				    ...)
{
	struct sym_perf_map_info *info = &search->place->info;
	va_list arguments;
	char *reason;
	int length;

	if (info->rejected_path)
		return;
	va_start(arguments, format);
	length = vasprintf(&reason, format, arguments);
	va_end(arguments);
	if (length < 0) {
		search->no_memory = true;
		return;
	}
	info->rejected_reason = reason;
	info->rejected_path = perfmap_location_join_path(search, path, "", "");
}

static const char *type_text(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFLNK:
		return "is a symbolic link";
	case S_IFIFO:
		return "is a FIFO";
	case S_IFDIR:
		return "is a directory";
	case S_IFSOCK:
		return "is a socket";
	default:
		return "is a device";
	}
}

static bool is_writers(const struct search *search, const struct stat *status)
{
	return perfmap_descriptor_has(&search->writers.own, status);
}

/* False when the start of the process or the time is unknown. */
static bool is_before(const struct process *process, int64_t seconds, int64_t ns, int64_t after_ns)
{
	int64_t time_ns;

	if (process->start_time_ns == PROCESS_TIME_UNKNOWN)
		return false;
	if (__builtin_mul_overflow(seconds, (int64_t)1000000000, &time_ns))
		return seconds < 0;
	return time_ns < process->start_time_ns + after_ns - ns;
}

/*
 * True when the file was created before the process began and last written at that very moment: by
 * the process, or by the one before it with the same PID. Only when the PID was used again at once.
 */
static bool may_be_of_another(const struct process *process, int fd, const struct stat *status)
{
	struct statx born;

	return is_before(process, status->st_mtim.tv_sec, status->st_mtim.tv_nsec, start_tick_ns) &&
	       !statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &born) && born.stx_mask & STATX_BTIME &&
	       is_before(process, born.stx_btime.tv_sec, born.stx_btime.tv_nsec,
			 -file_clock_slack_ns);
}

/* True when the file may be used as this process's map. */
static bool perfmap_location_accept(struct search *search, const char *path,
				    const struct stat *status)
{
	const struct process *process = search->process;

	if (!S_ISREG(status->st_mode)) {
		perfmap_location_reject(search, path, "%s", type_text(status->st_mode));
		return false;
	}
	if ((uint64_t)status->st_size > LIMIT_PERF_MAP_BYTES) {
		perfmap_location_reject(search, path, "has more than %" PRIu64 " bytes",
					LIMIT_PERF_MAP_BYTES);
		return false;
	}
	/*
	 * A file that the process holds open for writing is its own, whatever its owner and its
	 * times.
	 */
	if (is_writers(search, status))
		return true;
	if (status->st_uid != process->uid && status->st_uid != 0 && status->st_uid != geteuid()) {
		perfmap_location_reject(search, path, "belongs to uid %u", status->st_uid);
		return false;
	}
	if (is_before(process, status->st_mtim.tv_sec, status->st_mtim.tv_nsec,
		      -file_clock_slack_ns)) {
		perfmap_location_reject(search, path, "is older than the process");
		return false;
	}
	return true;
}

/* ---- taking ------------------------------------------------------------------ */

/* Adds an accepted file, and takes ownership, unless it is there under another name. */
static void perfmap_location_adopt_file(struct search *search, struct perfmap_file file,
					bool in_place)
{
	struct perfmap_location *place = search->place;
	size_t i;

	for (i = 0; i < place->file_count; i++)
		if (path_is_same_file(&place->files[i].status, &file.status))
			break;
	if (i < place->file_count || i == PERFMAP_LOCATION_FILES) {
		perfmap_file_close(&file);
		return;
	}
	place->files[i] = file;
	search->in_place[i] = in_place;
	place->file_count++;
}

/*
 * Tries one name in an open directory. The file is checked before it is opened and again
 * afterwards, because only an open file cannot be replaced.
 */
static void try_name(struct search *search, int directory_fd, const char *name,
		     const char *shown_directory, bool in_place)
{
	char *path AUTO_FREE = perfmap_location_join_path(search, shown_directory, "/", name);
	struct stat status;
	int fd AUTO_CLOSE = -1;

	if (!path)
		return;
	if (fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW)) {
		if (errno != ENOENT)
			perfmap_location_reject(search, path, "cannot be looked at: %s",
						strerror(errno));
		return;
	}
	if (!perfmap_location_accept(search, path, &status))
		return;
	fd = foreign_file_open(directory_fd, name, FOREIGN_NO_LINKS | FOREIGN_SAME_MOUNT,
			       process_rights(search->process), &status);
	if (fd < 0) {
		perfmap_location_reject(search, path, "cannot be opened: %s",
					foreign_file_problem(fd));
		return;
	}
	if (!perfmap_location_accept(search, path, &status))
		return;
	if (!is_writers(search, &status) && may_be_of_another(search->process, fd, &status)) {
		perfmap_location_reject(
			search, path,
			"was there before the process, and may be of the one before "
			"it that had the same id");
		return;
	}
	perfmap_location_adopt_file(
		search, (struct perfmap_file){ steal_fd(&fd), STEAL(path), status }, in_place);
}

/*
 * Tries NAME and NAME.runtime in a directory below `root_fd`. Links on the way to the directory are
 * the administrator's.
 */
static void try_directory(struct search *search, int root_fd, const char *prefix,
			  const char *directory, const char *name)
{
	int directory_fd AUTO_CLOSE =
		foreign_directory_open(root_fd, directory, process_rights(search->process));
	char *shown AUTO_FREE = perfmap_location_join_path(search, prefix, directory, "");
	char *aside AUTO_FREE = perfmap_location_join_path(search, name, search->naming->aside, "");

	if (!shown || !aside)
		return;
	if (directory_fd < 0) {
		if (directory_fd != -ENOENT && directory_fd != -ENOTDIR)
			perfmap_location_reject(search, shown, "cannot be opened: %s",
						strerror(-directory_fd));
		return;
	}
	try_name(search, directory_fd, name, shown, true);
	try_name(search, directory_fd, aside, shown, false);
}

/* ---- the process's own descriptor ------------------------------------------- */

static void find_writers(struct search *search)
{
	struct sym_perf_map_info *info = &search->place->info;
	struct sym_error *error =
		perfmap_descriptors_find(search->process, search->naming, &search->writers);

	info->writer_fd = search->writers.own.descriptor;
	info->writer_inode = search->writers.own.status.st_ino;
	info->writer_device = search->writers.own.status.st_dev;
	if (error && sym_error_code(error) != SYM_ERROR_NOT_FOUND)
		info->writer_unknown = sym_error_code(error) == SYM_ERROR_PERMISSION ? 1 : 2;
	search->place->others_map = search->writers.other;
	perfmap_location_ignore_error(search, error);
}

/* Adds the map that the process writes, through its descriptor, when no name leads to it. */
static void try_writer(struct search *search)
{
	struct perfmap_file file;
	struct sym_error *error =
		perfmap_descriptor_open(search->process, &search->writers.own, &file);

	if (error)
		perfmap_location_ignore_error(search, error);
	else if (perfmap_location_accept(search, file.path, &file.status))
		perfmap_location_adopt_file(search, file, false);
	else
		perfmap_file_close(&file);
}

/* ---- all places ---------------------------------------------------------------- */

/* Tries a directory from the environment of the process. */
static void try_variable(struct search *search, const struct buf *environ, const char *variable)
{
	const char *value = proc_text_find_environ(environ->data, environ->size_bytes, variable);
	char *directory AUTO_FREE =
		value ? perfmap_location_join_path(search, value, "", "") : NULL;
	size_t length;

	if (!directory || *directory != '/')
		return;
	length = strlen(directory);
	while (length > 1 && directory[length - 1] == '/')
		directory[--length] = '\0';
	try_directory(search, search->process->root_fd, search->process->root_prefix, directory,
		      search->target_name);
}

static void try_environment(struct search *search)
{
	struct sym_error *error;
	struct buf environ;

	buf_init(&environ, LIMIT_PROC_FILE_BYTES);
	error = process_read_file(search->process, "environ", &environ);
	if (!error) {
		try_variable(search, &environ, "TMPDIR");
		try_variable(search, &environ, "DOTNET_PerfMapJitDumpPath");
		try_variable(search, &environ, "COMPlus_PerfMapJitDumpPath");
	}
	/* An unreadable environment names no directory. */
	perfmap_location_ignore_error(search, error);
	buf_deinit(&environ);
}

static void try_places(struct search *search)
{
	const struct process *process = search->process;

	find_writers(search);
	if (process->root_fd >= 0) {
		try_directory(search, process->root_fd, process->root_prefix, usual_directory,
			      search->target_name);
		if (search->writers.own_directory)
			try_directory(search, process->root_fd, process->root_prefix,
				      search->writers.own_directory, search->target_name);
		try_environment(search);
	}
	try_directory(search, process->recorded ? process->root_fd : -1,
		      process->recorded ? process->root_prefix : "", usual_directory,
		      search->host_name);
	if (search->writers.own_directory)
		try_writer(search);
}

static bool reads_after(const struct search *search, const struct perfmap_file *a,
			const struct perfmap_file *b)
{
	const struct timespec *at = &a->status.st_mtim, *bt = &b->status.st_mtim;

	if (is_writers(search, &a->status) || is_writers(search, &b->status))
		return is_writers(search, &a->status);
	return at->tv_sec != bt->tv_sec ? at->tv_sec > bt->tv_sec : at->tv_nsec > bt->tv_nsec;
}

/* Insertion sort for a handful. Equal times keep the order of the search. */
static void sort_files(struct search *search)
{
	struct perfmap_file *files = search->place->files;
	size_t i, at;

	for (i = 1; i < search->place->file_count; i++) {
		struct perfmap_file file = files[i];
		bool in_place = search->in_place[i];

		for (at = i; at > 0 && reads_after(search, &files[at - 1], &file); at--) {
			files[at] = files[at - 1];
			search->in_place[at] = search->in_place[at - 1];
		}
		files[at] = file;
		search->in_place[at] = in_place;
	}
}

static const char *path_in_use(const struct search *search)
{
	const struct perfmap_location *place = search->place;
	size_t i;

	for (i = place->file_count; i-- > 0;)
		if (search->in_place[i])
			return place->files[i].path;
	return place->file_count ? place->files[place->file_count - 1].path : NULL;
}

static struct sym_error *perfmap_location_search(const struct process *process,
						 const struct perf_map_naming *naming,
						 struct perfmap_location *ret)
{
	struct perfmap_location place = { .info.writer_fd = -1 };
	struct search search = {
		.process = process,
		.naming = naming,
		.place = &place,
		.writers.own.descriptor = -1,
	};

	map_name(search.target_name, NAME_BYTES, naming, process->namespace_pid);
	map_name(search.host_name, NAME_BYTES, naming, process->pid);
	place.info.host_path = perfmap_location_join_path(
		&search, process->recorded ? process->root_prefix : "", "/tmp/", search.host_name);
	place.info.target_path = perfmap_location_join_path(&search, process->root_prefix, "/tmp/",
							    search.target_name);
	try_places(&search);
	sort_files(&search);
	place.info.path = path_in_use(&search);
	perfmap_descriptors_deinit(&search.writers);
	if (search.no_memory) {
		perfmap_location_deinit(&place);
		return &sym_error_no_memory;
	}
	*ret = place;
	return NULL;
}

struct sym_error *perfmap_location_find(const struct process *process, struct perfmap_location *ret)
{
	return perfmap_location_search(process, &perf_map_naming, ret);
}

struct sym_error *perfmap_location_find_perfinfo(const struct process *process,
						 struct perfmap_location *ret)
{
	return perfmap_location_search(process, &perfinfo_naming, ret);
}

bool perfmap_location_refuse(struct perfmap_location *place, const char *why)
{
	char *path AUTO_FREE = strdup(place->info.path ?: ""), *reason AUTO_FREE = strdup(why);

	if (!path || !reason)
		return false;
	free((char *)place->info.rejected_path);
	free((char *)place->info.rejected_reason);
	place->info.rejected_path = STEAL(path);
	place->info.rejected_reason = STEAL(reason);
	place->info.path = NULL;
	while (place->file_count)
		perfmap_file_close(&place->files[--place->file_count]);
	return true;
}

void perfmap_location_deinit(struct perfmap_location *place)
{
	size_t i;

	for (i = 0; i < place->file_count; i++)
		perfmap_file_close(&place->files[i]);
	free((char *)place->info.host_path);
	free((char *)place->info.target_path);
	free((char *)place->info.rejected_path);
	free((char *)place->info.rejected_reason);
	*place = (struct perfmap_location){ .info.writer_fd = -1 };
}

/* ---- what a process that is gone has left ------------------------------------------ */

/* User id of a recorded process; SYM_NO_OWNER when unknown. */
static uint32_t recorded_owner(int32_t pid, const char *root)
{
	struct process *process AUTO_PROCESS = NULL;

	if (!root)
		return SYM_NO_OWNER;
	sym_error_destroy(process_open(pid, root, &process));
	return process ? process->uid : SYM_NO_OWNER;
}

static struct sym_error *check_owner(const char *path, uint32_t found, uint32_t owner,
				     uint32_t recorded)
{
	if (found == 0 || found == geteuid() ||
	    (found != SYM_NO_OWNER && (found == owner || found == recorded)))
		return NULL;
	return sym_error_create_path(
		SYM_ERROR_PERMISSION, path, SYM_OFFSET_UNKNOWN,
		"belongs to uid %u, which is not known to be the user of the process", found);
}

static struct sym_error *open_left(const char *root, const char *name, const char *path,
				   int *fd_ret, struct stat *status_ret)
{
	int root_fd AUTO_CLOSE = -1, directory_fd AUTO_CLOSE = -1, fd;

	if (root) {
		root_fd = path_open_in_root(-1, root, PATH_DIRECTORY);
		if (root_fd < 0)
			return sym_error_from_errno(-root_fd, root, "cannot open");
	}
	directory_fd = foreign_directory_open(root_fd, usual_directory, NULL);
	if (directory_fd < 0)
		return sym_error_from_errno(-directory_fd, path, "cannot open");
	fd = foreign_file_open(directory_fd, name, FOREIGN_NO_LINKS | FOREIGN_SAME_MOUNT, NULL,
			       status_ret);
	if (fd == -EINVAL || fd == -ELOOP || fd == -EXDEV || fd == -EOPNOTSUPP)
		return sym_error_create_path(SYM_ERROR_UNSUPPORTED, path, SYM_OFFSET_UNKNOWN, "%s",
					     foreign_file_problem(fd));
	if (fd < 0)
		return sym_error_from_errno(-fd, path, "cannot open");
	*fd_ret = fd;
	return NULL;
}

struct sym_error *sym_perf_map_open_of(int32_t pid, const char *root, uint32_t owner, int *fd_ret)
{
	char name[NAME_BYTES], *path AUTO_FREE = NULL;
	struct sym_error *error;
	int fd AUTO_CLOSE = -1;
	struct stat status;

	map_name(name, sizeof(name), &perf_map_naming, pid);
	if (asprintf(&path, "%s%s/%s", root ? root : "", usual_directory, name) < 0) {
		path = NULL;
		return &sym_error_no_memory;
	}
	error = open_left(root, name, path, &fd, &status);
	if (!error)
		error = check_owner(path, status.st_uid, owner, recorded_owner(pid, root));
	if (!error)
		*fd_ret = steal_fd(&fd);
	return error;
}

struct sym_error *sym_perf_map_open(int32_t pid, const char *root, int *fd_ret)
{
	return sym_perf_map_open_of(pid, root, SYM_NO_OWNER, fd_ret);
}
