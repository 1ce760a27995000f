/* SPDX-License-Identifier: MIT */
/*
 * Finds the perf maps that a process holds open for writing.
 *
 * It walks /proc/PID/fd and reads each link.
 * A link counts if its name is that of a perf map, with or without " (deleted)", and fdinfo shows
 * an open mode for writing.
 * A map with the process's own number is `own`; one with another number is inherited.
 */
#include "libsym/perf/perfmap_descriptors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/foreign_file.h"
#include "libsym/base/path.h"
#include "libsym/format/linux/proc_text.h"
#include "libsym/limits.h"

static const char deleted_mark[] = " (deleted)";

enum {
	NAME_BYTES = 32
};

struct search {
	const struct process *process;
	const struct perf_map_naming *naming;
	struct perfmap_descriptors found;
	struct sym_error *error; /* the first one: any descriptor may be the wanted one */
};

static void note_error(struct search *search, struct sym_error *error)
{
	/* The descriptor was closed in between, or the process has ended. */
	if (search->error || (error && sym_error_code(error) == SYM_ERROR_NOT_FOUND))
		sym_error_destroy(error);
	else
		search->error = error;
}

bool perfmap_descriptor_has(const struct perfmap_descriptor *writer, const struct stat *status)
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
	writing = !error && proc_text_fdinfo_flags(text.data, text.size_bytes, &flags) &&
		  (flags & O_ACCMODE) != O_RDONLY;
	note_error(search, error);
	buf_deinit(&text);
	return writing;
}

static void take_own(struct search *search, const struct perfmap_descriptor *writer,
		     const char *directory)
{
	struct perfmap_descriptors *found = &search->found;
	char *copy;

	if (found->own_directory &&
	    (found->own.status.st_nlink > 0 || writer->status.st_nlink == 0))
		return;
	copy = strdup(directory);
	if (!copy) {
		note_error(search, &sym_error_no_memory);
		return;
	}
	free(found->own_directory);
	found->own_directory = copy;
	found->own = *writer;
}

/* Reads the absolute target of a link, as it was when the file was opened. */
static bool read_link(struct search *search, int directory_fd, const char *name, char *room,
		      size_t room_bytes)
{
	ssize_t length = readlinkat(directory_fd, name, room, room_bytes - 1);

	if (length < 0)
		note_error(search, sym_error_from_errno(errno, search->process->proc_path,
							"cannot look at its files"));
	if (length <= 0 || *room != '/')
		return false;
	room[length] = '\0';
	strip_end(room, deleted_mark);
	return true;
}

static void look_at_descriptor(struct search *search, int descriptors_fd, const char *name)
{
	const struct perf_map_naming *naming = search->naming;
	struct perfmap_descriptor writer = { 0 };
	char link[4097], *file_name;
	bool own;

	if ((strcmp(name, "0") && !proc_text_parse_id(name, &writer.descriptor)) ||
	    !read_link(search, descriptors_fd, name, link, sizeof(link)))
		return;
	strip_end(link, naming->aside);
	file_name = strrchr(link, '/') + 1;
	if (!proc_text_parse_file_name(file_name, naming->start, naming->end,
				       &writer.namespace_pid))
		return;
	own = writer.namespace_pid == search->process->namespace_pid;
	if ((!own && search->found.other.namespace_pid) ||
	    !is_open_for_writing(search, writer.descriptor))
		return;
	if (fstatat(descriptors_fd, name, &writer.status, 0)) {
		note_error(search, sym_error_from_errno(errno, search->process->proc_path,
							"cannot look at its files"));
		return;
	}
	if (!S_ISREG(writer.status.st_mode))
		return;
	/* The directory remains. */
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

struct sym_error *perfmap_descriptors_find(const struct process *process,
					   const struct perf_map_naming *naming,
					   struct perfmap_descriptors *ret)
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
	errno = 0;
	while (directory && (entry = readdir(directory))) {
		look_at_descriptor(&search, dirfd(directory), entry->d_name);
		errno = 0;
	}
	if (errno)
		note_error(&search, sym_error_from_errno(errno, process->proc_path,
							 "cannot look at its files"));
	if (search.error) {
		perfmap_descriptors_deinit(&search.found);
		return search.error;
	}
	*ret = search.found;
	return NULL;
}

void perfmap_descriptors_deinit(struct perfmap_descriptors *writers)
{
	free(writers->own_directory);
	writers->own_directory = NULL;
}

struct sym_error *perfmap_descriptor_open(const struct process *process,
					  const struct perfmap_descriptor *writer,
					  struct perfmap_file *ret)
{
	char name[NAME_BYTES], *path AUTO_FREE = NULL;
	struct stat status;
	int fd AUTO_CLOSE = -1;

	snprintf(name, sizeof(name), "fd/%" PRId32, writer->descriptor);
	if (asprintf(&path, "%s/%s", process->proc_path, name) < 0) {
		path = NULL;
		return &sym_error_no_memory;
	}
	fd = foreign_file_open(process->proc_fd, name, FOREIGN_KERNEL_LINK, process_rights(process),
			       &status);
	if (fd < 0)
		return sym_error_from_errno(-fd, path, "cannot open");
	/* Another file may have got the number in between. */
	if (!path_is_same_file(&status, &writer->status))
		return sym_error_create(SYM_ERROR_STALE, "it was closed");
	*ret = (struct perfmap_file){ steal_fd(&fd), STEAL(path), status };
	return NULL;
}

void perfmap_file_close(struct perfmap_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	*file = (struct perfmap_file){ .fd = -1 };
}
