/* SPDX-License-Identifier: MIT */
#include "libsym/perf_map_writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/format/proc_text.h"
#include "libsym/limits.h"

static const char deleted_mark[] = " (deleted)";

enum {
	NAME_BYTES = 32
};

struct search {
	const struct process *process;
	const struct perf_map_naming *naming;
	struct perf_map_writers found;
	bool no_memory;
};

bool perf_map_writer_has(const struct perf_map_writer *writer, const struct stat *status)
{
	return writer->namespace_pid && path_is_same_file(&writer->status, status);
}

static void strip_end(char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	if (length > end_length && !strcmp(text + length - end_length, end))
		text[length - end_length] = '\0';
}

static bool is_open_for_writing(struct search *search, int32_t descriptor)
{
	char name[NAME_BYTES];
	struct sym_error *error;
	struct buf text;
	uint64_t flags;
	bool writing;

	snprintf(name, sizeof(name), "fdinfo/%" PRId32, descriptor);
	buf_init(&text, LIMIT_PROC_FILE_BYTES);
	error = process_read_file(search->process, name, &text);
	writing = !error && proc_fdinfo_flags(text.data, text.size_bytes, &flags) &&
		  (flags & O_ACCMODE) != O_RDONLY;
	search->no_memory |= error && sym_error_code(error) == SYM_ERROR_NO_MEMORY;
	sym_error_destroy(error);
	buf_deinit(&text);
	return writing;
}

static void take_own(struct search *search, const struct perf_map_writer *writer,
		     const char *directory)
{
	struct perf_map_writers *found = &search->found;
	char *copy;

	if (found->own_directory &&
	    (found->own.status.st_nlink > 0 || writer->status.st_nlink == 0))
		return;
	copy = strdup(directory);
	if (!copy) {
		search->no_memory = true;
		return;
	}
	free(found->own_directory);
	found->own_directory = copy;
	found->own = *writer;
}

/* The absolute path to which a link leads, as it was when the file was opened. */
static bool read_link(int directory_fd, const char *name, char *room, size_t room_bytes)
{
	ssize_t length = readlinkat(directory_fd, name, room, room_bytes - 1);

	if (length <= 0 || *room != '/')
		return false;
	room[length] = '\0';
	strip_end(room, deleted_mark);
	return true;
}

static void look_at_descriptor(struct search *search, int descriptors_fd, const char *name)
{
	const struct perf_map_naming *naming = search->naming;
	struct perf_map_writer writer = { 0 };
	char link[4097], *file_name;
	bool own;

	if ((strcmp(name, "0") && !proc_parse_id(name, &writer.descriptor)) ||
	    !read_link(descriptors_fd, name, link, sizeof(link)))
		return;
	strip_end(link, naming->aside);
	file_name = strrchr(link, '/') + 1;
	if (!proc_parse_file_name(file_name, naming->start, naming->end, &writer.namespace_pid))
		return;
	own = writer.namespace_pid == search->process->namespace_pid;
	if ((!own && search->found.other.namespace_pid) ||
	    !is_open_for_writing(search, writer.descriptor) ||
	    fstatat(descriptors_fd, name, &writer.status, 0) || !S_ISREG(writer.status.st_mode))
		return;
	/* What is left is the directory. */
	file_name[file_name == link + 1 ? 0 : -1] = '\0';
	if (own)
		take_own(search, &writer, link);
	else
		search->found.other = writer;
}

static struct sym_error *open_descriptors(const struct process *process, DIR **ret)
{
	int fd AUTO_CLOSE = openat(process->proc_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*ret = fd < 0 ? NULL : fdopendir(fd);
	if (!*ret)
		return sym_error_from_errno(errno, process->proc_path, "cannot look at its files");
	steal_fd(&fd);
	return NULL;
}

struct sym_error *perf_map_writers_find(const struct process *process,
					const struct perf_map_naming *naming,
					struct perf_map_writers *ret)
{
	struct search search = { .process = process, .naming = naming };
	DIR *directory GUARDED(dir) = NULL;
	struct sym_error *error = NULL;
	struct dirent *entry;

	search.found.own.descriptor = search.found.other.descriptor = -1;
	if (!process->recorded)
		error = open_descriptors(process, &directory);
	if (error)
		return error;
	while (directory && (entry = readdir(directory)))
		look_at_descriptor(&search, dirfd(directory), entry->d_name);
	if (search.no_memory) {
		perf_map_writers_deinit(&search.found);
		return &sym_error_no_memory;
	}
	*ret = search.found;
	return NULL;
}

void perf_map_writers_deinit(struct perf_map_writers *writers)
{
	free(writers->own_directory);
	writers->own_directory = NULL;
}

struct sym_error *perf_map_writer_open(const struct process *process,
				       const struct perf_map_writer *writer,
				       struct perf_map_file *ret)
{
	char name[NAME_BYTES], *path AUTO_FREE = NULL;
	struct stat status;
	int fd AUTO_CLOSE = -1;

	snprintf(name, sizeof(name), "fd/%" PRId32, writer->descriptor);
	if (asprintf(&path, "%s/%s", process->proc_path, name) < 0) {
		path = NULL;
		return &sym_error_no_memory;
	}
	fd = openat(process->proc_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status))
		return sym_error_from_errno(errno, path, "cannot open");
	/* The number may have been given to another file meanwhile. */
	if (!path_is_same_file(&status, &writer->status))
		return sym_error_create(SYM_ERROR_STALE, "it was closed");
	*ret = (struct perf_map_file){ steal_fd(&fd), STEAL(path), status };
	return NULL;
}

void perf_map_file_close(struct perf_map_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	*file = (struct perf_map_file){ .fd = -1 };
}
