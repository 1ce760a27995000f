/* SPDX-License-Identifier: MIT */
/*
 * A child in its own process group runs crossgen in a directory of its own. The parent reads its
 * output until it ends or its time is over, then kills the group. Signals that would end this
 * program wait until then, so that no crossgen and no directory are left.
 */
#include "mapgen/relmap/crossgen.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/foreign_file.h"
#include "libsym/base/path.h"
#include "libsym/libsym.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/monotonic.h"
#include "mapgen/cli/work_directory.h"
#include "mapgen/relmap/relative_map.h"

extern char **environ;

/* The slowest image of the 3.1 framework takes 0.6 s. */
static const double time_limit_s = 60;

/* The output is kept for an error message up to this size; the rest is read and dropped. */
static const size_t longest_output_bytes = 65536;

/* CoreLib's map has 8 MB. */
static const size_t longest_map_bytes = (size_t)256 << 20;

struct run {
	pid_t pid; /* leads its own process group */
	int output_fd;
	struct buf output;
	bool timed_out;
	bool interrupted; /* a signal that ends this program is pending */
	int status;       /* of waitpid() */
};

static int crossgen_spawn(struct run *run, char *const argv[])
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int ends[2], result;

	if (pipe2(ends, O_CLOEXEC))
		return errno;
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	result = posix_spawn(&run->pid, argv[0], &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (result)
		close(ends[0]);
	else
		run->output_fd = ends[0];
	return result;
}

/* True while more output may come. */
static bool take_output(struct run *run)
{
	char piece[4096];
	ssize_t count = read(run->output_fd, piece, sizeof(piece));

	if (count < 0)
		return errno == EINTR;
	if (count > 0 && run->output.size_bytes + (size_t)count <= longest_output_bytes)
		buf_append(&run->output, piece, (size_t)count);
	return count > 0;
}

/*
 * Waits until the process has ended or its time is over. The end of the pipe does not count,
 * because a grandchild may keep it open.
 */
static void wait_for_end(struct run *run)
{
	double deadline_s = monotonic_seconds() + time_limit_s;
	sigset_t ending = work_directory_signals();
	struct pollfd watched[3] = {
		{ .fd = (int)syscall(SYS_pidfd_open, run->pid, 0), .events = POLLIN },
		{ .fd = run->output_fd, .events = POLLIN },
		{ .fd = signalfd(-1, &ending, SFD_CLOEXEC), .events = POLLIN },
	};

	for (;;) {
		double left_s = deadline_s - monotonic_seconds();

		if (left_s <= 0 || (poll(watched, 3, (int)(left_s * 1000)) < 0 && errno != EINTR)) {
			run->timed_out = true;
			break;
		}
		run->interrupted = watched[2].revents != 0;
		if (run->interrupted)
			break;
		if (watched[1].revents && !take_output(run))
			watched[1].fd = -1;
		else if (!watched[1].revents && watched[0].revents)
			break;
		else if (watched[0].fd < 0 && watched[1].fd < 0)
			break;
	}
	/* Kills the whole process group; its id cannot be reused before waitpid(). */
	kill(-run->pid, SIGKILL);
	while (waitpid(run->pid, &run->status, 0) < 0 && errno == EINTR)
		;
	for (int i = 0; i < 3; i += 2)
		if (watched[i].fd >= 0)
			close(watched[i].fd);
}

/* The most useful line: "Error ..." of crossgen, or else the last line. */
static char *crossgen_last_line(struct run *run)
{
	const char *text = buf_string(&run->output);
	const char *line = text ? strstr(text, "Error") : NULL;

	if (!text || !*text)
		return message_format("it said nothing");
	if (!line)
		line = text;
	return message_format("%.*s", (int)strcspn(line, "\r\n"), line);
}

static struct sym_error *crossgen_verdict(struct run *run, const char *program)
{
	char *words AUTO_FREE = NULL;

	if (run->interrupted)
		return sym_error_create(SYM_ERROR_IO, "interrupted");
	if (run->timed_out)
		return sym_error_create(SYM_ERROR_IO, "%s did not end within %d s",
					path_file_name(program), (int)time_limit_s);
	words = crossgen_last_line(run);
	if (WIFSIGNALED(run->status))
		return sym_error_create(SYM_ERROR_IO, "%s was ended by signal %d: %s",
					path_file_name(program), WTERMSIG(run->status),
					words ? words : "");
	if (WEXITSTATUS(run->status))
		return sym_error_create(SYM_ERROR_IO, "%s failed with exit status %d: %s",
					path_file_name(program), WEXITSTATUS(run->status),
					words ? words : "");
	return NULL;
}

/* "DIR:DIR:..."; without --platform the directory of the image. */
static char *platform_paths(const struct map_maker *maker, const char *image_path)
{
	struct buf paths;
	char *text;

	/* The kernel reports an argument that is too long. */
	buf_init(&paths, INT32_MAX);
	for (size_t i = 0; i < maker->platform_dirs.count; i++)
		buf_printf(&paths, "%s%s", i ? ":" : "", maker->platform_dirs.items[i]);
	if (!maker->platform_dirs.count) {
		const char *name = path_file_name(image_path);

		buf_append(&paths, image_path, (size_t)(name - image_path));
		if (name == image_path)
			buf_append_string(&paths, ".");
	}
	text = buf_steal(&paths, NULL);
	buf_deinit(&paths);
	return text;
}

static struct sym_error *run_crossgen(const struct map_maker *maker, const char *image_path,
				      const char *directory)
{
	char *platform AUTO_FREE = platform_paths(maker, image_path);
	char *argv[] = { (char *)maker->crossgen,
			 (char *)"/CreatePerfMap",
			 (char *)directory,
			 (char *)"/Platform_Assemblies_Paths",
			 platform,
			 (char *)image_path,
			 NULL };
	struct run run = { .output_fd = -1 };
	struct sym_error *error;
	int result;

	if (!platform)
		return &sym_error_no_memory;
	buf_init(&run.output, longest_output_bytes + 1);
	result = crossgen_spawn(&run, argv);
	if (result) {
		error = sym_error_create(SYM_ERROR_IO, "cannot run %s: %s", maker->crossgen,
					 strerror(result));
	} else {
		wait_for_end(&run);
		close(run.output_fd);
		error = crossgen_verdict(&run, maker->crossgen);
	}
	buf_deinit(&run.output);
	return error;
}

/* crossgen chooses the name of the map, but only one file can be there. */
static int open_only_map(const char *directory)
{
	DIR *entries GUARDED(dir) = opendir(directory);
	const struct dirent *entry;

	while (entries && (entry = readdir(entries))) {
		size_t length = strlen(entry->d_name);

		if (length > 4 && !strcmp(entry->d_name + length - 4, ".map"))
			return foreign_file_open(dirfd(entries), entry->d_name, FOREIGN_NO_LINKS,
						 NULL, NULL);
	}
	return -1;
}

static struct sym_error *take_map(const char *directory, struct sym_image *image, char **text_ret,
				  size_t *size_bytes_ret)
{
	int fd AUTO_CLOSE = open_only_map(directory);
	struct sym_error *error;
	uint64_t methods;
	struct buf map;

	if (fd < 0)
		return sym_error_create(SYM_ERROR_IO,
					"crossgen ended with status 0 but wrote no map");
	buf_init(&map, longest_map_bytes);
	error = sym_image_method_count(image, &methods);
	if (!error && path_read_all(fd, &map)) {
		error = sym_error_create(SYM_ERROR_IO, "the map of crossgen cannot be read");
	} else if (!error && !map.size_bytes && methods) {
		error = sym_error_create(SYM_ERROR_IO,
					 "crossgen wrote an empty map for an image with methods");
	} else if (!error) {
		*text_ret = buf_steal(&map, size_bytes_ret);
		if (!*text_ret)
			error = &sym_error_no_memory;
	}
	buf_deinit(&map);
	return error;
}

struct sym_error *crossgen_make(const struct map_maker *maker,
				const struct relmap_cache_entry *slot, struct sym_image *image,
				char **text_ret, size_t *size_bytes_ret)
{
	const char *slot_file = path_file_name(slot->path);
	char *directory AUTO_FREE =
		message_format("%.*s.crossgen-XXXXXX", (int)(slot_file - slot->path), slot->path);
	sigset_t ending = work_directory_signals(), before;
	struct sym_error *error;

	if (!work_directory_make(directory))
		return sym_error_create(SYM_ERROR_IO, "cannot create %s: %s", directory,
					strerror(errno));
	/* Signals wait until crossgen is gone. */
	sigprocmask(SIG_BLOCK, &ending, &before);
	error = run_crossgen(maker, sym_image_path(image), directory);
	if (!error)
		error = take_map(directory, image, text_ret, size_bytes_ret);
	work_directory_remove(directory);
	/* A pending signal ends the program here. */
	sigprocmask(SIG_SETMASK, &before, NULL);
	return error;
}
