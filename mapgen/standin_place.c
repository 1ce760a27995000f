/* SPDX-License-Identifier: MIT */
#include "mapgen/standin_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "mapgen/message.h"
#include "mapgen/standin_elf.h"

enum {
	MOST_LIST_BYTES = 64 << 20
};

static const char list_name[] = ".dotnet-mapgen";

/* ---- the list ------------------------------------------------------------------------- */

static bool knows(char *const *items, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(items[i], path))
			return true;
	return false;
}

static bool add(char ***items, size_t *count, const char *path)
{
	char **grown;

	if (knows(*items, *count, path))
		return true;
	grown = reallocarray(*items, *count + 1, sizeof(*grown));
	if (!grown)
		return false;
	*items = grown;
	grown[*count] = strdup(path);
	if (!grown[*count])
		return false;
	++*count;
	return true;
}

static void drop(char **items, size_t *count, size_t index)
{
	free(items[index]);
	memmove(items + index, items + index + 1, (*count - index - 1) * sizeof(*items));
	--*count;
}

/* What leads out of the root is nobody's honest line. */
static bool is_inside(const char *path)
{
	return (!*path || *path == '/') && !strstr(path, "/../") &&
	       (strlen(path) < 3 || strcmp(path + strlen(path) - 3, "/..") != 0);
}

static char *read_list(struct standin_place *place)
{
	char *path AUTO_FREE = message_format("%s/%s", place->root, list_name);
	int fd AUTO_CLOSE =
		path ? path_open_in_root(-1, path, PATH_NO_SYMLINKS | PATH_REGULAR) : -ENOMEM;
	char *text AUTO_FREE = NULL;
	char *save = NULL;
	struct buf buf;

	if (fd == -ENOENT)
		return NULL;
	if (fd < 0)
		return message_format("%s: cannot open: %s", path, strerror(-fd));
	buf_init(&buf, MOST_LIST_BYTES);
	if (!path_read_all(fd, &buf))
		text = buf_steal(&buf, NULL);
	buf_deinit(&buf);
	if (!text)
		return message_format("%s: cannot read", path);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, "F ", 2) && strncmp(line, "D ", 2))
			continue;
		if (!is_inside(line + 2))
			continue;
		if (*line == 'F')
			add(&place->files, &place->file_count, line + 2);
		else
			add(&place->directories, &place->directory_count, line + 2);
	}
	return NULL;
}

/* The list has it before it is there: what is interrupted leaves nothing that is not known. */
static char *announce(const struct standin_place *place, char kind, const char *path)
{
	char *line AUTO_FREE = message_format("%c %s\n", kind, path);
	int fd AUTO_CLOSE =
		openat(place->lock_fd, list_name,
		       O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
	int failure = fd < 0 ? -errno : path_write_all(fd, line, strlen(line));

	return failure ? message_format("%s/%s: cannot write: %s", place->root, list_name,
					strerror(-failure))
		       : NULL;
}

char *standin_place_open(struct standin_place *place, const char *root, bool create)
{
	struct stat status;
	bool is_new = create && stat(root, &status) != 0;
	char *failure;

	*place = (struct standin_place){ .root = root, .lock_fd = -1 };
	if (is_new) {
		int made = path_make_directories(root, 0755);

		if (made)
			return message_format("%s: cannot make: %s", root, strerror(-made));
	}
	place->lock_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (place->lock_fd < 0)
		return errno == ENOENT
			       ? NULL
			       : message_format("%s: cannot open: %s", root, strerror(errno));
	if (flock(place->lock_fd, LOCK_EX))
		return message_format("%s: cannot lock: %s", root, strerror(errno));
	failure = read_list(place);
	if (!failure && is_new) {
		failure = announce(place, 'D', "");
		add(&place->directories, &place->directory_count, "");
	}
	return failure;
}

void standin_place_close(struct standin_place *place)
{
	for (size_t i = 0; i < place->file_count; i++)
		free(place->files[i]);
	for (size_t i = 0; i < place->directory_count; i++)
		free(place->directories[i]);
	free(place->files);
	free(place->directories);
	if (place->lock_fd >= 0)
		close(place->lock_fd);
}

/* ---- one file -------------------------------------------------------------------------- */

static char *full_path(const struct standin_place *place, const char *path)
{
	return message_format("%s%s", place->root, path);
}

bool standin_place_origin(const struct standin_place *place, const char *path, char *room,
			  size_t room_bytes)
{
	char *full AUTO_FREE = full_path(place, path);
	int fd AUTO_CLOSE = open(full, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat status;

	return fd >= 0 && !fstat(fd, &status) && S_ISREG(status.st_mode) &&
	       standin_elf_recognise(fd, room, room_bytes);
}

static char *make_directory(struct standin_place *place, const char *path)
{
	char *full AUTO_FREE = full_path(place, path);
	struct stat status;
	char *failure;

	if (!stat(full, &status))
		return NULL;
	failure = announce(place, 'D', path);
	if (failure)
		return failure;
	if (!mkdir(full, 0755))
		add(&place->directories, &place->directory_count, path);
	else if (errno != EEXIST)
		return message_format("%s: cannot make: %s", full, strerror(errno));
	return NULL;
}

/* Makes the directories of `path` that are missing, and remembers them. */
static char *make_directories(struct standin_place *place, const char *path)
{
	char *part AUTO_FREE = strdup(path);
	char *failure = part ? NULL : message_format("out of memory");

	for (char *slash = part; !failure && slash && (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		failure = make_directory(place, part);
		*slash = '/';
	}
	return failure;
}

static int write_file(const char *full, const void *bytes, size_t size_bytes)
{
	struct path_output output;
	int failure = path_output_open(&output, full);

	return failure ? failure : path_output_finish(&output, bytes, size_bytes, 0644);
}

enum standin_put standin_place_put(struct standin_place *place, const char *path, const void *bytes,
				   size_t size_bytes, char **failure_ret)
{
	char *full AUTO_FREE = full_path(place, path);
	char origin[64];
	struct stat status;
	bool is_same = false;
	int failure;

	/* The list has a line for each. */
	if (!is_inside(path) || strchr(path, '\n')) {
		*failure_ret = message_format("a path that cannot be listed");
		return STANDIN_FAILED;
	}
	if (!lstat(full, &status)) {
		if (!standin_place_origin(place, path, origin, sizeof(origin)))
			return STANDIN_FOREIGN;
		is_same = path_holds(AT_FDCWD, full, bytes, size_bytes);
	}
	*failure_ret = is_same ? NULL : make_directories(place, path);
	if (!*failure_ret && !knows(place->files, place->file_count, path))
		*failure_ret = announce(place, 'F', path);
	if (*failure_ret)
		return STANDIN_FAILED;
	failure = is_same ? 0 : write_file(full, bytes, size_bytes);
	if (failure) {
		*failure_ret = message_format("%s: cannot write: %s", full, strerror(-failure));
		return STANDIN_FAILED;
	}
	add(&place->files, &place->file_count, path);
	return is_same ? STANDIN_SAME : STANDIN_PUT;
}

char *standin_place_remove(struct standin_place *place, const char *path)
{
	char *full AUTO_FREE = full_path(place, path);
	char origin[64];
	struct stat status;

	if (!lstat(full, &status)) {
		if (!standin_place_origin(place, path, origin, sizeof(origin)))
			return message_format("%s: is not ours any more, and stays", full);
		if (unlink(full))
			return message_format("%s: cannot remove: %s", full, strerror(errno));
	}
	for (size_t i = 0; i < place->file_count; i++)
		if (!strcmp(place->files[i], path)) {
			drop(place->files, &place->file_count, i);
			break;
		}
	return NULL;
}

/* ---- saving ------------------------------------------------------------------------------ */

static int deepest_first(const void *left, const void *right)
{
	size_t a = strlen(*(char *const *)left), b = strlen(*(char *const *)right);

	return a > b ? -1 : a < b;
}

/* Those that are not empty stay, and stay in the list; the root comes when the list is gone. */
static void remove_directories(struct standin_place *place)
{
	if (place->directory_count)
		qsort(place->directories, place->directory_count, sizeof(char *), deepest_first);
	for (size_t i = 0; i < place->directory_count;) {
		char *full AUTO_FREE = full_path(place, place->directories[i]);

		if (!*place->directories[i] || (rmdir(full) && errno != ENOENT))
			i++;
		else
			drop(place->directories, &place->directory_count, i);
	}
}

char *standin_place_save(struct standin_place *place)
{
	char *path AUTO_FREE = message_format("%s/%s", place->root, list_name);
	struct buf text;
	int failure;

	if (place->lock_fd < 0)
		return NULL;
	remove_directories(place);
	if (!place->file_count) {
		unlink(path);
		if (place->directory_count && !*place->directories[place->directory_count - 1])
			rmdir(place->root);
		return NULL;
	}
	buf_init(&text, MOST_LIST_BYTES);
	for (size_t i = 0; i < place->directory_count; i++)
		buf_printf(&text, "D %s\n", place->directories[i]);
	for (size_t i = 0; i < place->file_count; i++)
		buf_printf(&text, "F %s\n", place->files[i]);
	failure = text.failure ? -ENOMEM : write_file(path, text.data, text.size_bytes);
	buf_deinit(&text);
	return failure ? message_format("%s: cannot write: %s", path, strerror(-failure)) : NULL;
}
