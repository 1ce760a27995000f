/* SPDX-License-Identifier: MIT */
#include "mapgen/relmap/cache_limit.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"

enum {
	KEY_DIGITS = 32 /* at least this many, of one entry */
};

struct entry {
	char *name;
	uint64_t size_bytes;
	struct timespec used;
};

struct entries {
	struct entry *items;
	size_t count;
	uint64_t size_bytes; /* of all entries */
};

void cache_limit_touch(int directory_fd)
{
	const struct timespec now[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_NOW } };

	(void)futimens(directory_fd, now);
}

static DIR *open_directory(int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !directory)
		close(fd);
	return directory;
}

static bool is_key(const char *name)
{
	size_t digits = strspn(name, "0123456789abcdef");

	return digits >= KEY_DIGITS && !name[digits];
}

/* The disk space of its files. */
static uint64_t bytes_below(DIR *directory)
{
	const struct dirent *item;
	uint64_t size_bytes = 0;
	struct stat status;

	while ((item = readdir(directory)))
		if (!fstatat(dirfd(directory), item->d_name, &status, AT_SYMLINK_NOFOLLOW) &&
		    S_ISREG(status.st_mode))
			size_bytes += (uint64_t)status.st_blocks * 512;
	return size_bytes;
}

static void add_entry(struct entries *entries, int cache_fd, const char *name)
{
	DIR *directory GUARDED(dir) = open_directory(cache_fd, name);
	struct entry *items;
	struct stat status;

	if (!directory || fstat(dirfd(directory), &status))
		return;
	items = reallocarray(entries->items, entries->count + 1, sizeof(*items));
	if (!items)
		return;
	entries->items = items;
	items[entries->count] = (struct entry){ .name = strdup(name),
						.size_bytes = bytes_below(directory),
						.used = status.st_mtim };
	if (!items[entries->count].name)
		return;
	entries->size_bytes += items[entries->count++].size_bytes;
}

static int by_use(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	if (a->used.tv_sec != b->used.tv_sec)
		return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
	if (a->used.tv_nsec != b->used.tv_nsec)
		return a->used.tv_nsec < b->used.tv_nsec ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Removes files only: this program makes no directories in it. */
static void remove_entry(int cache_fd, const char *name)
{
	DIR *directory GUARDED(dir) = open_directory(cache_fd, name);
	const struct dirent *item;

	while (directory && (item = readdir(directory)))
		(void)unlinkat(dirfd(directory), item->d_name, 0);
	(void)unlinkat(cache_fd, name, AT_REMOVEDIR);
}

void cache_limit_hold(int cache_fd, uint64_t most_bytes)
{
	DIR *cache GUARDED(dir) = open_directory(cache_fd, ".");
	struct entries entries = { 0 };
	const struct dirent *item;

	while (cache && (item = readdir(cache)))
		if (is_key(item->d_name))
			add_entry(&entries, cache_fd, item->d_name);
	if (entries.size_bytes > most_bytes)
		qsort(entries.items, entries.count, sizeof(*entries.items), by_use);
	for (size_t i = 0; i < entries.count; i++) {
		if (entries.size_bytes > most_bytes) {
			remove_entry(cache_fd, entries.items[i].name);
			entries.size_bytes -= entries.items[i].size_bytes;
		}
		free(entries.items[i].name);
	}
	free(entries.items);
}
