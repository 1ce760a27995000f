/* SPDX-License-Identifier: MIT */
#include "mapgen/cli/work_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int ending[] = { SIGINT, SIGTERM, SIGHUP };

enum {
	ENDING_COUNT = sizeof(ending) / sizeof(*ending),
	DEPTH = 1 /* the directory holds only files */
};

static const char *volatile unfinished;

sigset_t work_directory_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ENDING_COUNT; i++)
		sigaddset(&set, ending[i]);
	return set;
}

/* Uses system calls only: opendir() allocates, which a signal handler must not do. */
static void remove_tree(int parent_fd, const char *name, unsigned int depth)
{
	char room[4096] __attribute__((aligned(__alignof__(struct dirent64))));
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t count = 0;

	while (fd >= 0 && (count = getdents64(fd, room, sizeof(room))) > 0)
		for (ssize_t at = 0; at < count;) {
			const struct dirent64 *entry = (const void *)(room + at);

			at += entry->d_reclen;
			if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
			    unlinkat(fd, entry->d_name, 0) && errno == EISDIR && depth)
				remove_tree(fd, entry->d_name, depth - 1);
		}
	if (fd >= 0)
		close(fd);
	unlinkat(parent_fd, name, AT_REMOVEDIR);
}

static void work_directory_end(int number)
{
	if (unfinished)
		remove_tree(AT_FDCWD, unfinished, DEPTH);
	/* The signal has its default action again. */
	raise(number);
}

/* A signal that is ignored, as below nohup(1), stays ignored. */
static void take_signals(void)
{
	struct sigaction action = { .sa_handler = work_directory_end,
				    .sa_mask = work_directory_signals(),
				    .sa_flags = SA_RESETHAND };
	struct sigaction before;

	for (size_t i = 0; i < ENDING_COUNT; i++)
		if (!sigaction(ending[i], NULL, &before) && before.sa_handler == SIG_DFL)
			sigaction(ending[i], &action, NULL);
}

bool work_directory_make(char *pattern)
{
	sigset_t set = work_directory_signals(), before;
	bool made;

	take_signals();
	sigprocmask(SIG_BLOCK, &set, &before);
	made = mkdtemp(pattern) != NULL;
	if (made)
		unfinished = pattern;
	sigprocmask(SIG_SETMASK, &before, NULL);
	return made;
}

void work_directory_keep(void)
{
	unfinished = NULL;
}

void work_directory_remove(const char *path)
{
	remove_tree(AT_FDCWD, path, DEPTH);
	work_directory_keep();
}
