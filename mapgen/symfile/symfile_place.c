/* SPDX-License-Identifier: MIT */
/*
 * The list `.dotnet-mapgen` is written before each file, so a killed command leaves no unknown
 * file. symfile_place_save() writes it without the files that were removed, or removes it together
 * with the empty directories that were created here.
 */
#include "mapgen/symfile/symfile_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/foreign_file.h"
#include "libsym/base/path.h"
#include "mapgen/cli/message.h"
#include "mapgen/symfile/symfile.h"

enum {
	MOST_LIST_BYTES = 64 << 20
};

static const char list_name[] = ".dotnet-mapgen";

/* ---- the list ------------------------------------------------------------------------- */

static bool symfile_place_knows(char *const *items, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(items[i], path))
			return true;
	return false;
}

static bool symfile_place_add(char ***items, size_t *count, const char *path)
{
	char **grown;

	if (symfile_place_knows(*items, *count, path))
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

static void symfile_place_drop(char **items, size_t *count, size_t index)
{
	free(items[index]);
	memmove(items + index, items + index + 1, (*count - index - 1) * sizeof(*items));
	--*count;
}

/* Only damage or an attack leads out of the root. */
static bool is_inside(const char *path)
{
	return (!*path || *path == '/') && !strstr(path, "/../") &&
	       (strlen(path) < 3 || strcmp(path + strlen(path) - 3, "/..") != 0);
}

static struct sym_error *read_list(struct symfile_place *place)
{
	char *path AUTO_FREE = message_format("%s/%s", place->root, list_name);
	int fd AUTO_CLOSE =
		path ? foreign_file_open(-1, path, FOREIGN_NO_LINKS, NULL, NULL) : -ENOMEM;
	char *text AUTO_FREE = NULL;
	char *save = NULL;
	struct buf buf;

	if (fd == -ENOENT)
		return NULL;
	if (fd < 0)
		return sym_error_create(SYM_ERROR_IO, "%s: cannot open: %s", path, strerror(-fd));
	buf_init(&buf, MOST_LIST_BYTES);
	if (!path_read_all(fd, &buf))
		text = buf_steal(&buf, NULL);
	buf_deinit(&buf);
	if (!text)
		return sym_error_create(SYM_ERROR_IO, "%s: cannot read", path);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, "F ", 2) && strncmp(line, "D ", 2))
			continue;
		if (!is_inside(line + 2))
			continue;
		if (*line == 'F')
			symfile_place_add(&place->files, &place->file_count, line + 2);
		else
			symfile_place_add(&place->directories, &place->directory_count, line + 2);
	}
	return NULL;
}

/* The list has a path before the file exists, so that an interrupted command leaves no unknown
 * file. */
static struct sym_error *symfile_place_announce(const struct symfile_place *place, char kind,
						const char *path)
{
	char *line AUTO_FREE = message_format("%c %s\n", kind, path);
	int fd AUTO_CLOSE =
		openat(place->lock_fd, list_name,
		       O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
	int failure = fd < 0 ? -errno : path_write_all(fd, line, strlen(line));

	return failure ? sym_error_create(SYM_ERROR_IO, "%s/%s: cannot write: %s", place->root,
					  list_name, strerror(-failure))
		       : NULL;
}

struct sym_error *symfile_place_open(struct symfile_place *place, const char *root, bool create)
{
	struct stat status;
	bool is_new = create && stat(root, &status) != 0;
	struct sym_error *failure;

	*place = (struct symfile_place){ .root = root, .lock_fd = -1 };
	if (is_new) {
		int made = path_make_directories(root, 0755);

		if (made)
			return sym_error_create(SYM_ERROR_IO, "%s: cannot create: %s", root,
						strerror(-made));
	}
	place->lock_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (place->lock_fd < 0)
		return errno == ENOENT ? NULL
				       : sym_error_create(SYM_ERROR_IO, "%s: cannot open: %s", root,
							  strerror(errno));
	if (flock(place->lock_fd, LOCK_EX))
		return sym_error_create(SYM_ERROR_IO, "%s: cannot lock: %s", root, strerror(errno));
	failure = read_list(place);
	if (!failure && is_new) {
		failure = symfile_place_announce(place, 'D', "");
		symfile_place_add(&place->directories, &place->directory_count, "");
	}
	return failure;
}

void symfile_place_close(struct symfile_place *place)
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

static char *full_path(const struct symfile_place *place, const char *path)
{
	return message_format("%s%s", place->root, path);
}

bool symfile_place_origin(const struct symfile_place *place, const char *path, char *room,
			  size_t room_bytes)
{
	char *full AUTO_FREE = full_path(place, path);
	int fd AUTO_CLOSE = foreign_file_open(-1, full, 0, NULL, NULL);

	return fd >= 0 && symfile_recognise(fd, room, room_bytes);
}

static struct sym_error *make_directory(struct symfile_place *place, const char *path)
{
	char *full AUTO_FREE = full_path(place, path);
	struct stat status;
	struct sym_error *failure;

	if (!stat(full, &status))
		return NULL;
	failure = symfile_place_announce(place, 'D', path);
	if (failure)
		return failure;
	if (!mkdir(full, 0755))
		symfile_place_add(&place->directories, &place->directory_count, path);
	else if (errno != EEXIST)
		return sym_error_create(SYM_ERROR_IO, "%s: cannot create: %s", full,
					strerror(errno));
	return NULL;
}

/* Creates the missing directories of `path`, and remembers them. */
static struct sym_error *make_directories(struct symfile_place *place, const char *path)
{
	char *part AUTO_FREE = strdup(path);
	struct sym_error *failure = part ? NULL : &sym_error_no_memory;

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

enum symfile_put symfile_place_put(struct symfile_place *place, const char *path, const void *bytes,
				   size_t size_bytes, struct sym_error **failure_ret)
{
	char *full AUTO_FREE = full_path(place, path);
	char origin[64];
	struct stat status;
	bool is_same = false;
	int failure;

	/* The list has one line for each. */
	if (!is_inside(path) || strchr(path, '\n')) {
		*failure_ret = sym_error_create(SYM_ERROR_IO, "a path that cannot be listed");
		return SYMFILE_FAILED;
	}
	if (!lstat(full, &status)) {
		if (!symfile_place_origin(place, path, origin, sizeof(origin)))
			return SYMFILE_FOREIGN;
		is_same = path_has_content(AT_FDCWD, full, bytes, size_bytes);
	}
	*failure_ret = is_same ? NULL : make_directories(place, path);
	if (!*failure_ret && !symfile_place_knows(place->files, place->file_count, path))
		*failure_ret = symfile_place_announce(place, 'F', path);
	if (*failure_ret)
		return SYMFILE_FAILED;
	failure = is_same ? 0 : write_file(full, bytes, size_bytes);
	if (failure) {
		*failure_ret = sym_error_create(SYM_ERROR_IO, "%s: cannot write: %s", full,
						strerror(-failure));
		return SYMFILE_FAILED;
	}
	symfile_place_add(&place->files, &place->file_count, path);
	return is_same ? SYMFILE_SAME : SYMFILE_PUT;
}

struct sym_error *symfile_place_remove(struct symfile_place *place, const char *path)
{
	char *full AUTO_FREE = full_path(place, path);
	char origin[64];
	struct stat status;

	if (!lstat(full, &status)) {
		if (!symfile_place_origin(place, path, origin, sizeof(origin)))
			return sym_error_create(SYM_ERROR_IO,
						"%s: was not created by dotnet-mapgen; left alone",
						full);
		if (unlink(full))
			return sym_error_create(SYM_ERROR_IO, "%s: cannot remove: %s", full,
						strerror(errno));
	}
	for (size_t i = 0; i < place->file_count; i++)
		if (!strcmp(place->files[i], path)) {
			symfile_place_drop(place->files, &place->file_count, i);
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

/* Directories that are not empty stay, and stay in the list. The root is removed when the list is
 * gone. */
static void remove_directories(struct symfile_place *place)
{
	if (place->directory_count)
		qsort(place->directories, place->directory_count, sizeof(char *), deepest_first);
	for (size_t i = 0; i < place->directory_count;) {
		char *full AUTO_FREE = full_path(place, place->directories[i]);

		if (!*place->directories[i] || (rmdir(full) && errno != ENOENT))
			i++;
		else
			symfile_place_drop(place->directories, &place->directory_count, i);
	}
}

struct sym_error *symfile_place_save(struct symfile_place *place)
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
	if (text.failure)
		failure = text.failure == BUF_TOO_BIG ? -EFBIG : -ENOMEM;
	else
		failure = write_file(path, text.data, text.size_bytes);
	buf_deinit(&text);
	return failure ? sym_error_create(SYM_ERROR_IO, "%s: cannot write: %s", path,
					  strerror(-failure))
		       : NULL;
}
