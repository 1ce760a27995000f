/* SPDX-License-Identifier: MIT */
#include "mapgen/crossgen.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/libsym.h"
#include "mapgen/message.h"
#include "mapgen/relative_map.h"
#include "mapgen/work_directory.h"

extern char **environ;

/* The slowest image of the 3.1 framework takes 0.6 s. */
static const int64_t time_limit_ms = 60000;

/* What it says is kept to give a reason; the rest is read and dropped. */
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

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int spawn(struct run *run, char *const argv[])
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

/* True while more may come. */
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
 * Until the process has ended or its time is over. A grandchild may keep the
 * pipe open, so the end of the pipe does not decide, the end of the process does.
 */
static void wait_for_end(struct run *run)
{
	int64_t deadline_ms = now_ms() + time_limit_ms;
	sigset_t ending = work_directory_signals();
	struct pollfd watched[3] = {
		{ .fd = (int)syscall(SYS_pidfd_open, run->pid, 0), .events = POLLIN },
		{ .fd = run->output_fd, .events = POLLIN },
		{ .fd = signalfd(-1, &ending, SFD_CLOEXEC), .events = POLLIN },
	};

	for (;;) {
		int64_t left_ms = deadline_ms - now_ms();

		if (left_ms <= 0 || (poll(watched, 3, (int)left_ms) < 0 && errno != EINTR)) {
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
	/* Also what it may have started itself; the group cannot be another's before waitpid(). */
	kill(-run->pid, SIGKILL);
	while (waitpid(run->pid, &run->status, 0) < 0 && errno == EINTR)
		;
	for (int i = 0; i < 3; i += 2)
		if (watched[i].fd >= 0)
			close(watched[i].fd);
}

/* The line that tells most: crossgen's "Error ..." or else its last one. */
static char *said(struct run *run)
{
	const char *text = buf_string(&run->output);
	const char *line = text ? strstr(text, "Error") : NULL;

	if (!text || !*text)
		return message_format("it said nothing");
	if (!line)
		line = text;
	return message_format("%.*s", (int)strcspn(line, "\r\n"), line);
}

static char *verdict(struct run *run, const char *program)
{
	char *words AUTO_FREE = NULL;

	if (run->interrupted)
		return message_format("interrupted");
	if (run->timed_out)
		return message_format("%s did not end within %d s", path_file_name(program),
				      (int)(time_limit_ms / 1000));
	words = said(run);
	if (WIFSIGNALED(run->status))
		return message_format("%s was ended by signal %d: %s", path_file_name(program),
				      WTERMSIG(run->status), words ? words : "");
	if (WEXITSTATUS(run->status))
		return message_format("%s failed with exit status %d: %s", path_file_name(program),
				      WEXITSTATUS(run->status), words ? words : "");
	return NULL;
}

/* "DIR:DIR:..."; without --platform the directory of the image. */
static char *platform_paths(const struct map_maker *maker, const char *image_path)
{
	struct buf paths;
	char *text;

	buf_init(&paths, 1 << 20);
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

static char *run_crossgen(const struct map_maker *maker, const char *image_path,
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
	char *reason;
	int result;

	if (!platform)
		return message_format("out of memory");
	buf_init(&run.output, longest_output_bytes + 1);
	result = spawn(&run, argv);
	if (result) {
		reason = message_format("cannot run %s: %s", maker->crossgen, strerror(result));
	} else {
		wait_for_end(&run);
		close(run.output_fd);
		reason = verdict(&run, maker->crossgen);
	}
	buf_deinit(&run.output);
	return reason;
}

/* The map's name is crossgen's to choose, but only one file can be there. */
static int open_only_map(const char *directory)
{
	DIR *entries GUARDED(dir) = opendir(directory);
	const struct dirent *entry;

	while (entries && (entry = readdir(entries))) {
		size_t length = strlen(entry->d_name);

		if (length > 4 && !strcmp(entry->d_name + length - 4, ".map"))
			return openat(dirfd(entries), entry->d_name,
				      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	}
	return -1;
}

static char *take_map(const char *directory, struct sym_image *image, char **text_ret,
		      size_t *size_bytes_ret)
{
	int fd AUTO_CLOSE = open_only_map(directory);
	struct sym_error *error;
	uint64_t methods;
	struct buf map;
	char *reason = NULL;

	if (fd < 0)
		return message_format("crossgen ended well but made no map");
	buf_init(&map, longest_map_bytes);
	error = sym_image_method_count(image, &methods);
	if (error) {
		reason = message_format("%s", sym_error_message(error));
		sym_error_destroy(error);
	} else if (path_read_all(fd, &map)) {
		reason = message_format("the map that crossgen made cannot be read");
	} else if (!map.size_bytes && methods) {
		reason = message_format("crossgen made an empty map of an image with methods");
	} else {
		*text_ret = buf_steal(&map, size_bytes_ret);
		if (!*text_ret)
			reason = message_format("out of memory");
	}
	buf_deinit(&map);
	return reason;
}

char *crossgen_make(const struct map_maker *maker, const struct map_slot *slot,
		    struct sym_image *image, char **text_ret, size_t *size_bytes_ret)
{
	const char *slot_file = path_file_name(slot->path);
	char *directory AUTO_FREE =
		message_format("%.*s.crossgen-XXXXXX", (int)(slot_file - slot->path), slot->path);
	sigset_t ending = work_directory_signals(), before;
	char *reason;

	if (!work_directory_make(directory))
		return message_format("cannot create %s: %s", directory, strerror(errno));
	/* They wait until crossgen is gone, too. */
	sigprocmask(SIG_BLOCK, &ending, &before);
	reason = run_crossgen(maker, sym_image_path(image), directory);
	if (!reason)
		reason = take_map(directory, image, text_ret, size_bytes_ret);
	work_directory_remove(directory);
	/* What is pending ends the program here. */
	sigprocmask(SIG_SETMASK, &before, NULL);
	return reason;
}
