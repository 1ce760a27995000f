/* SPDX-License-Identifier: MIT */
#include "libsym/perf_map_place.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "libsym/base/path.h"
#include "libsym/format/proc_text.h"
#include "libsym/limits.h"

static const char usual_directory[] = "/tmp";

/* Times of files are taken from a clock that runs up to one tick of the kernel behind (10 ms with
 * HZ=100). */
static const int64_t file_clock_slack_ns = 20000000;
/* A process began at most this long after start_time_ns. */
static const int64_t start_tick_ns = 10000000;

enum {
	NAME_BYTES = 32
};

/* A search under way. */
struct search {
	const struct process *process;
	const struct perf_map_naming *naming;
	struct perf_map_place *place;
	char target_name[NAME_BYTES]; /* as the process calls it: perf-NSPID.map */
	char host_name[NAME_BYTES];   /* as this machine calls it: perf-PID.map */
	struct perf_map_writers writers;
	bool in_place[PERF_MAP_PLACE_FILES]; /* of files[i]: it lies where one looks */
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

static char *join(struct search *search, const char *first, const char *second, const char *third)
{
	char *joined;

	if (asprintf(&joined, "%s%s%s", first, second, third) >= 0)
		return joined;
	search->no_memory = true;
	return NULL;
}

/* A small file of /proc could not be read: only missing memory is worth telling. */
static void forgive(struct search *search, struct sym_error *error)
{
	search->no_memory |= error && sym_error_code(error) == SYM_ERROR_NO_MEMORY;
	sym_error_destroy(error);
}

/* ---- refusing -------------------------------------------------------------- */

static void refuse(struct search *search, const char *path, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The first reason stays: places are tried by their weight. */
static void refuse(struct search *search, const char *path, const char *format, ...)
{
	struct sym_perf_map_info *info = &search->place->info;
	va_list arguments;
	char *reason;
	int length;

	if (info->refused_path)
		return;
	va_start(arguments, format);
	length = vasprintf(&reason, format, arguments);
	va_end(arguments);
	if (length < 0) {
		search->no_memory = true;
		return;
	}
	info->refused_reason = reason;
	info->refused_path = join(search, path, "", "");
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
	return perf_map_writer_has(&search->writers.own, status);
}

/* False when it is not known when the process began, or the time is no time. */
static bool is_before(const struct process *process, int64_t seconds, int64_t ns, int64_t after_ns)
{
	int64_t time_ns;

	if (process->start_time_ns == PROCESS_TIME_UNKNOWN)
		return false;
	if (__builtin_mul_overflow(seconds, (int64_t)1000000000, &time_ns))
		return seconds < 0;
	return time_ns < process->start_time_ns + after_ns - ns;
}

/* Written before the process began. */
static bool is_older(const struct process *process, const struct stat *status)
{
	return is_before(process, status->st_mtim.tv_sec, status->st_mtim.tv_nsec,
			 -file_clock_slack_ns);
}

/*
 * Created before the process began, and last written in the very moment of that: by the process or
 * by the one before it that had its number. Only where a number is used again at once.
 */
static bool may_be_of_another(const struct process *process, int fd, const struct stat *status)
{
	struct statx born;

	return is_before(process, status->st_mtim.tv_sec, status->st_mtim.tv_nsec, start_tick_ns) &&
	       !statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &born) && born.stx_mask & STATX_BTIME &&
	       is_before(process, born.stx_btime.tv_sec, born.stx_btime.tv_nsec,
			 -file_clock_slack_ns);
}

/* May the file be believed to be this process's map? */
static bool accept(struct search *search, const char *path, const struct stat *status)
{
	const struct process *process = search->process;

	if (!S_ISREG(status->st_mode)) {
		refuse(search, path, "%s", type_text(status->st_mode));
		return false;
	}
	if ((uint64_t)status->st_size > LIMIT_PERF_MAP_BYTES) {
		refuse(search, path, "has more than %" PRIu64 " bytes", LIMIT_PERF_MAP_BYTES);
		return false;
	}
	/* What the process holds open for writing is its own, whoever owns it and whatever clocks
	 * say. */
	if (is_writers(search, status))
		return true;
	if (status->st_uid != process->uid && status->st_uid != 0 && status->st_uid != geteuid()) {
		refuse(search, path, "belongs to uid %u", status->st_uid);
		return false;
	}
	if (is_older(process, status)) {
		refuse(search, path, "is older than the process");
		return false;
	}
	return true;
}

/* ---- taking ------------------------------------------------------------------ */

/* Takes an accepted file, which changes hands, unless it is there under another name. */
static void take(struct search *search, struct perf_map_file file, bool in_place)
{
	struct perf_map_place *place = search->place;
	size_t i;

	for (i = 0; i < place->file_count; i++)
		if (path_is_same_file(&place->files[i].status, &file.status))
			break;
	if (i < place->file_count || i == PERF_MAP_PLACE_FILES) {
		perf_map_file_close(&file);
		return;
	}
	place->files[i] = file;
	search->in_place[i] = in_place;
	place->file_count++;
}

/*
 * Tries one name in an open directory. It is looked at before it is opened,
 * because opening a device or a FIFO can have effects, and again afterwards,
 * because only what is open cannot be exchanged any more.
 */
static void try_name(struct search *search, int directory_fd, const char *name,
		     const char *shown_directory, bool in_place)
{
	char *path AUTO_FREE = join(search, shown_directory, "/", name);
	struct stat status;
	int fd AUTO_CLOSE = -1;

	if (!path)
		return;
	if (fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW)) {
		if (errno != ENOENT)
			refuse(search, path, "cannot be looked at: %s", strerror(errno));
		return;
	}
	if (!accept(search, path, &status))
		return;
	fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status)) {
		refuse(search, path, "cannot be opened: %s", strerror(errno));
		return;
	}
	if (!accept(search, path, &status))
		return;
	if (!is_writers(search, &status) && may_be_of_another(search->process, fd, &status)) {
		refuse(search, path,
		       "was there before the process, and may be of the one before "
		       "it that had the same id");
		return;
	}
	take(search, (struct perf_map_file){ steal_fd(&fd), STEAL(path), status }, in_place);
}

/* Tries NAME and NAME.runtime in a directory below `root_fd`; links on the way to the directory are
 * the administrator's. */
static void try_directory(struct search *search, int root_fd, const char *prefix,
			  const char *directory, const char *name)
{
	int directory_fd AUTO_CLOSE = path_open_in_root(root_fd, directory, PATH_DIRECTORY);
	char *shown AUTO_FREE = join(search, prefix, directory, "");
	char *aside AUTO_FREE = join(search, name, search->naming->aside, "");

	if (!shown || !aside)
		return;
	if (directory_fd < 0) {
		if (directory_fd != -ENOENT && directory_fd != -ENOTDIR)
			refuse(search, shown, "cannot be opened: %s", strerror(-directory_fd));
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
		perf_map_writers_find(search->process, search->naming, &search->writers);

	info->writer_fd = search->writers.own.descriptor;
	info->writer_inode = search->writers.own.status.st_ino;
	info->writer_device = search->writers.own.status.st_dev;
	info->writer_unknown = error && sym_error_code(error) == SYM_ERROR_PERMISSION;
	search->place->others_map = search->writers.other;
	forgive(search, error);
}

/* What the process writes, when no name leads to it: through its descriptor. */
static void try_writer(struct search *search)
{
	struct perf_map_file file;
	struct sym_error *error =
		perf_map_writer_open(search->process, &search->writers.own, &file);

	if (error)
		forgive(search, error);
	else if (accept(search, file.path, &file.status))
		take(search, file, false);
	else
		perf_map_file_close(&file);
}

/* ---- all places ---------------------------------------------------------------- */

/* A directory that the process was told in its environment. */
static void try_variable(struct search *search, const struct buf *environ, const char *variable)
{
	const char *value = proc_environ_find(environ->data, environ->size_bytes, variable);
	char *directory AUTO_FREE = value ? join(search, value, "", "") : NULL;
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
	/* An environment that cannot be read names no directory. */
	forgive(search, error);
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

static bool reads_after(const struct search *search, const struct perf_map_file *a,
			const struct perf_map_file *b)
{
	const struct timespec *at = &a->status.st_mtim, *bt = &b->status.st_mtim;

	if (is_writers(search, &a->status) || is_writers(search, &b->status))
		return is_writers(search, &a->status);
	return at->tv_sec != bt->tv_sec ? at->tv_sec > bt->tv_sec : at->tv_nsec > bt->tv_nsec;
}

/* By insertion: there are a handful. Equal times keep the order of the search. */
static void sort_files(struct search *search)
{
	struct perf_map_file *files = search->place->files;
	size_t i, at;

	for (i = 1; i < search->place->file_count; i++) {
		struct perf_map_file file = files[i];
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
	const struct perf_map_place *place = search->place;
	size_t i;

	for (i = place->file_count; i-- > 0;)
		if (search->in_place[i])
			return place->files[i].path;
	return place->file_count ? place->files[place->file_count - 1].path : NULL;
}

static struct sym_error *find(const struct process *process, const struct perf_map_naming *naming,
			      struct perf_map_place *ret)
{
	struct perf_map_place place = { .info.writer_fd = -1 };
	struct search search = {
		.process = process,
		.naming = naming,
		.place = &place,
		.writers.own.descriptor = -1,
	};

	map_name(search.target_name, NAME_BYTES, naming, process->namespace_pid);
	map_name(search.host_name, NAME_BYTES, naming, process->pid);
	place.info.host_path = join(&search, process->recorded ? process->root_prefix : "", "/tmp/",
				    search.host_name);
	place.info.target_path = join(&search, process->root_prefix, "/tmp/", search.target_name);
	try_places(&search);
	sort_files(&search);
	place.info.path = path_in_use(&search);
	perf_map_writers_deinit(&search.writers);
	if (search.no_memory) {
		perf_map_place_deinit(&place);
		return &sym_error_no_memory;
	}
	*ret = place;
	return NULL;
}

struct sym_error *perf_map_place_find(const struct process *process, struct perf_map_place *ret)
{
	return find(process, &perf_map_naming, ret);
}

struct sym_error *perf_map_place_find_perfinfo(const struct process *process,
					       struct perf_map_place *ret)
{
	return find(process, &perfinfo_naming, ret);
}

bool perf_map_place_refuse(struct perf_map_place *place, const char *why)
{
	char *path AUTO_FREE = strdup(place->info.path ?: ""), *reason AUTO_FREE = strdup(why);

	if (!path || !reason)
		return false;
	free((char *)place->info.refused_path);
	free((char *)place->info.refused_reason);
	place->info.refused_path = STEAL(path);
	place->info.refused_reason = STEAL(reason);
	place->info.path = NULL;
	while (place->file_count)
		perf_map_file_close(&place->files[--place->file_count]);
	return true;
}

void perf_map_place_deinit(struct perf_map_place *place)
{
	size_t i;

	for (i = 0; i < place->file_count; i++)
		perf_map_file_close(&place->files[i]);
	free((char *)place->info.host_path);
	free((char *)place->info.target_path);
	free((char *)place->info.refused_path);
	free((char *)place->info.refused_reason);
	*place = (struct perf_map_place){ .info.writer_fd = -1 };
}

struct sym_error *sym_perf_map_open(int32_t pid, const char *root, int *fd_ret)
{
	int root_fd AUTO_CLOSE = -1, directory_fd AUTO_CLOSE = -1, fd = -1;
	char name[NAME_BYTES], *path AUTO_FREE = NULL;

	map_name(name, sizeof(name), &perf_map_naming, pid);
	if (asprintf(&path, "%s%s/%s", root ? root : "", usual_directory, name) < 0)
		return &sym_error_no_memory;
	if (root) {
		root_fd = path_open_in_root(-1, root, PATH_DIRECTORY);
		if (root_fd < 0)
			return sym_error_from_errno(-root_fd, root, "cannot open");
	}
	directory_fd = path_open_in_root(root_fd, usual_directory, PATH_DIRECTORY);
	if (directory_fd < 0)
		return sym_error_from_errno(-directory_fd, path, "cannot open");
	fd = path_open_in_root(directory_fd, name, PATH_REGULAR | PATH_NO_SYMLINKS);
	if (fd == -EINVAL || fd == -ELOOP)
		return sym_error_create_path(SYM_ERROR_UNSUPPORTED, path, SYM_OFFSET_UNKNOWN,
					     "is no regular file");
	if (fd < 0)
		return sym_error_from_errno(-fd, path, "cannot open");
	*fd_ret = fd;
	return NULL;
}
