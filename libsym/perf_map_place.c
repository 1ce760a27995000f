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
/* Behind the name of the runtime's own file when another one was put in its place. */
static const char aside_ending[] = ".runtime";
static const char deleted_mark[] = " (deleted)";

/* Times of files are taken from a clock that runs up to one tick of the kernel behind (10 ms with
 * HZ=100). */
static const int64_t file_clock_slack_ns = 20000000;
/* A process began at most this long after start_time_ns. */
static const int64_t start_tick_ns = 10000000;

enum {
	DESCRIPTOR_NAME_BYTES = 32
};

/* A search under way. */
struct search {
	const struct process *process;
	struct perf_map_place *place;
	char target_name[DESCRIPTOR_NAME_BYTES]; /* as the process calls it: perf-NSPID.map */
	char host_name[DESCRIPTOR_NAME_BYTES];   /* as this machine calls it: perf-PID.map */
	char *writer_directory;                  /* inside its root; NULL when it writes none */
	struct stat writer_status;
	bool in_place[PERF_MAP_PLACE_FILES]; /* of files[i]: it lies where one looks */
	bool no_memory;
};

/* Names of the two files, in front of the process id. */
static const char perf_map_start[] = "perf-";
static const char perfinfo_start[] = "perfinfo-";
/* And behind it. */
static const char map_end[] = ".map";

size_t sym_perf_map_file_name(int32_t pid, char *room, size_t room_bytes)
{
	return (size_t)snprintf(room, room_bytes, "%s%" PRId32 "%s", perf_map_start, pid, map_end);
}

static void map_name(char room[DESCRIPTOR_NAME_BYTES], const char *start, int32_t pid)
{
	snprintf(room, DESCRIPTOR_NAME_BYTES, "%s%" PRId32 "%s", start, pid, map_end);
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

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
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
	return search->writer_directory && same_file(status, &search->writer_status);
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

/* Takes an opened and accepted file unless it is there under another name; `fd` and `path` change
 * hands. */
static void take(struct search *search, int fd, char *path, const struct stat *status,
		 bool in_place)
{
	struct perf_map_place *place = search->place;
	size_t i;

	for (i = 0; i < place->file_count; i++)
		if (same_file(&place->files[i].status, status))
			break;
	if (i < place->file_count || i == PERF_MAP_PLACE_FILES || !path) {
		free(path);
		close(fd);
		return;
	}
	place->files[i] = (struct perf_map_file){ .fd = fd, .path = path, .status = *status };
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
	take(search, steal_fd(&fd), STEAL(path), &status, in_place);
}

/* Tries NAME and NAME.runtime in a directory below `root_fd`; links on the way to the directory are
 * the administrator's. */
static void try_directory(struct search *search, int root_fd, const char *prefix,
			  const char *directory, const char *name)
{
	int directory_fd AUTO_CLOSE = path_open_in_root(root_fd, directory, PATH_DIRECTORY);
	char *shown AUTO_FREE = join(search, prefix, directory, "");
	char *aside AUTO_FREE = join(search, name, aside_ending, "");

	if (directory_fd < 0 || !shown || !aside)
		return;
	try_name(search, directory_fd, name, shown, true);
	try_name(search, directory_fd, aside, shown, false);
}

/* ---- the process's own descriptor ------------------------------------------- */

/* What comes behind the path in a link of PID/fd, and behind the name when the file was put aside.
 */
static void strip_marks(char *link)
{
	const size_t mark_bytes = sizeof(deleted_mark) - 1;
	const size_t ending_bytes = sizeof(aside_ending) - 1;
	size_t length = strlen(link);

	if (length > mark_bytes && !strcmp(link + length - mark_bytes, deleted_mark))
		length -= mark_bytes;
	if (length > ending_bytes &&
	    !memcmp(link + length - ending_bytes, aside_ending, ending_bytes))
		length -= ending_bytes;
	link[length] = '\0';
}

static bool is_open_for_writing(struct search *search, int32_t descriptor)
{
	char name[DESCRIPTOR_NAME_BYTES];
	struct sym_error *error;
	struct buf text;
	uint64_t flags;
	bool writing;

	snprintf(name, sizeof(name), "fdinfo/%" PRId32, descriptor);
	buf_init(&text, LIMIT_PROC_FILE_BYTES);
	error = process_read_file(search->process, name, &text);
	writing = !error && proc_fdinfo_flags(text.data, text.size_bytes, &flags) &&
		  (flags & O_ACCMODE) != O_RDONLY;
	forgive(search, error);
	buf_deinit(&text);
	return writing;
}

/* The process writes its map through this descriptor. Of two, the one that still has a name; else
 * the first. */
static void take_writer(struct search *search, const char *directory, int32_t descriptor,
			const struct stat *status)
{
	struct sym_perf_map_info *info = &search->place->info;

	if (search->writer_directory &&
	    (search->writer_status.st_nlink > 0 || status->st_nlink == 0))
		return;
	free(search->writer_directory);
	search->writer_directory = join(search, directory, "", "");
	search->writer_status = *status;
	info->writer_fd = descriptor;
	info->writer_inode = status->st_ino;
	info->writer_device = status->st_dev;
}

/* Is this descriptor of the process one through which it writes a map? */
static void look_at_descriptor(struct search *search, int descriptors_fd, const char *name)
{
	struct perf_map_of_other *other = &search->place->others_map;
	char link[4097], *file_name;
	struct stat status;
	int32_t descriptor = 0, owner = 0;
	ssize_t length;
	bool own;

	if (strcmp(name, "0") && !proc_parse_id(name, &descriptor))
		return;
	length = readlinkat(descriptors_fd, name, link, sizeof(link) - 1);
	if (length <= 0 || *link != '/')
		return;
	link[length] = '\0';
	strip_marks(link);
	file_name = strrchr(link, '/') + 1;
	own = !strcmp(file_name, search->target_name);
	if (!own && (other->namespace_pid ||
		     !proc_parse_file_name(file_name, perf_map_start, map_end, &owner)))
		return;
	if (!is_open_for_writing(search, descriptor) || fstatat(descriptors_fd, name, &status, 0) ||
	    !S_ISREG(status.st_mode))
		return;
	/* What is left is the directory. */
	file_name[file_name == link + 1 ? 0 : -1] = '\0';
	if (own)
		take_writer(search, link, descriptor, &status);
	else if (owner != search->process->namespace_pid)
		*other = (struct perf_map_of_other){ owner, descriptor, status };
}

static void find_writer(struct search *search)
{
	DIR *directory GUARDED(dir) = NULL;
	struct dirent *entry;
	int fd;

	fd = openat(search->process->proc_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(directory)))
		look_at_descriptor(search, dirfd(directory), entry->d_name);
}

/* What the process writes, when no name leads to it: through its descriptor. */
static void try_writer(struct search *search)
{
	char name[DESCRIPTOR_NAME_BYTES];
	char *path AUTO_FREE = NULL;
	struct stat status;
	int fd AUTO_CLOSE = -1;

	snprintf(name, sizeof(name), "fd/%" PRId32, search->place->info.writer_fd);
	path = join(search, search->process->proc_path, "/", name);
	if (!path)
		return;
	fd = openat(search->process->proc_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	/* The number may have been given to another file meanwhile. */
	if (fd < 0 || fstat(fd, &status) || !is_writers(search, &status))
		return;
	if (accept(search, path, &status))
		take(search, steal_fd(&fd), STEAL(path), &status, false);
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

	if (!process->recorded)
		find_writer(search);
	if (process->root_fd >= 0) {
		try_directory(search, process->root_fd, process->root_prefix, usual_directory,
			      search->target_name);
		if (search->writer_directory)
			try_directory(search, process->root_fd, process->root_prefix,
				      search->writer_directory, search->target_name);
		try_environment(search);
	}
	try_directory(search, process->recorded ? process->root_fd : -1,
		      process->recorded ? process->root_prefix : "", usual_directory,
		      search->host_name);
	if (search->writer_directory)
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

static struct sym_error *find(const struct process *process, const char *name_start,
			      struct perf_map_place *ret)
{
	struct perf_map_place place = { .info.writer_fd = -1 };
	struct search search = { .process = process, .place = &place };

	map_name(search.target_name, name_start, process->namespace_pid);
	map_name(search.host_name, name_start, process->pid);
	place.info.host_path = join(&search, process->recorded ? process->root_prefix : "", "/tmp/",
				    search.host_name);
	place.info.target_path = join(&search, process->root_prefix, "/tmp/", search.target_name);
	try_places(&search);
	sort_files(&search);
	place.info.path = path_in_use(&search);
	free(search.writer_directory);
	if (search.no_memory) {
		perf_map_place_deinit(&place);
		return &sym_error_no_memory;
	}
	*ret = place;
	return NULL;
}

struct sym_error *perf_map_place_find(const struct process *process, struct perf_map_place *ret)
{
	return find(process, perf_map_start, ret);
}

struct sym_error *perf_map_place_find_perfinfo(const struct process *process,
					       struct perf_map_place *ret)
{
	return find(process, perfinfo_start, ret);
}

void perf_map_place_deinit(struct perf_map_place *place)
{
	size_t i;

	for (i = 0; i < place->file_count; i++) {
		close(place->files[i].fd);
		free(place->files[i].path);
	}
	free((char *)place->info.host_path);
	free((char *)place->info.target_path);
	free((char *)place->info.refused_path);
	free((char *)place->info.refused_reason);
	*place = (struct perf_map_place){ .info.writer_fd = -1 };
}

struct sym_error *sym_perf_map_open(int32_t pid, const char *root, int *fd_ret)
{
	int root_fd AUTO_CLOSE = -1, directory_fd AUTO_CLOSE = -1, fd = -1;
	char name[DESCRIPTOR_NAME_BYTES], *path AUTO_FREE = NULL;

	map_name(name, perf_map_start, pid);
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
