/* SPDX-License-Identifier: MIT */
#include "libsym/sparse_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/huge_memory.h"
#include "libsym/base/path.h"
#include "libsym/base/sparse_memory.h"
#include "libsym/limits.h"

enum {
	PAGE_SHIFT = 12,
	PAGE_BYTES = 1 << PAGE_SHIFT,
	FEW_PAGES = 4, /* fewer come as cheaply one by one */
	WORD_BITS = 64
};

static int64_t in_ns(const struct timespec *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

int64_t sparse_file_time_ns(const struct stat *status)
{
	return in_ns(&status->st_mtim);
}

int64_t sparse_file_inode_time_ns(const struct stat *status)
{
	return in_ns(&status->st_ctim);
}

struct sym_error *sparse_file_init(struct sparse_file *file, int fd, const char *path,
				   uint64_t offset, uint64_t size_bytes)
{
	struct stat status;
	uint64_t available_bytes;

	if (fstat(fd, &status))
		return sym_error_from_errno(errno, path, "cannot examine");
	if (offset > (uint64_t)status.st_size)
		return sym_error_create_path(SYM_ERROR_FORMAT, path, offset, "beyond the end");
	available_bytes = (uint64_t)status.st_size - offset;
	if (size_bytes == SPARSE_FILE_TO_END)
		size_bytes = available_bytes;
	if (size_bytes > available_bytes)
		return sym_error_create_path(SYM_ERROR_FORMAT, path, offset,
					     "range ends beyond the end of the file");
	if (size_bytes > LIMIT_FILE_BYTES)
		return sym_error_create_path(SYM_ERROR_LIMIT, path, SYM_OFFSET_UNKNOWN,
					     "larger than %llu bytes (LIMIT_FILE_BYTES)",
					     (unsigned long long)LIMIT_FILE_BYTES);
	*file = (struct sparse_file){
		.fd = fd,
		.offset = offset,
		.size_bytes = (size_t)size_bytes,
		.changed_ns = sparse_file_time_ns(&status),
		.touched_ns = sparse_file_inode_time_ns(&status),
		.links = status.st_nlink,
		.file_size_bytes = (uint64_t)status.st_size,
	};
	return NULL;
}

void sparse_file_deinit(struct sparse_file *file)
{
	sparse_memory_destroy(file->data, file->size_bytes);
	free(file->present);
	file->data = NULL;
	file->present = NULL;
}

struct sparse_file sparse_file_again(const struct sparse_file *file)
{
	struct sparse_file again = *file;

	again.data = NULL;
	again.present = NULL;
	again.held_bytes = 0;
	return again;
}

static bool is_same(const struct sparse_file *file, const struct stat *status)
{
	return (uint64_t)status->st_size == file->file_size_bytes &&
	       sparse_file_time_ns(status) == file->changed_ns;
}

bool sparse_file_is_as_opened(const struct sparse_file *file)
{
	struct stat status;

	return !fstat(file->fd, &status) && is_same(file, &status) &&
	       (sparse_file_inode_time_ns(&status) == file->touched_ns ||
		status.st_nlink != file->links);
}

void sparse_file_note_trouble(const struct sparse_file *file, const struct sym_error *error)
{
	char *none = NULL, *text;

	if (!file->trouble || !error || sym_error_code(error) != SYM_ERROR_IO ||
	    sym_error_is_shortage(error) || atomic_load(file->trouble))
		return;
	text = strdup(sym_error_message(error));
	if (text && !atomic_compare_exchange_strong(file->trouble, &none, text))
		free(text);
}

static struct sym_error *fail(const struct sparse_file *file, int errno_value, const char *path,
			      const char *what)
{
	struct sym_error *error = sym_error_from_errno(errno_value, path, what);

	sparse_file_note_trouble(file, error);
	return error;
}

struct sym_error *sparse_file_check(const struct sparse_file *file, const char *path)
{
	struct stat status;

	if (fstat(file->fd, &status))
		return fail(file, errno, path, "cannot examine");
	if (!is_same(file, &status))
		return sym_error_create_path(SYM_ERROR_STALE, path, SYM_OFFSET_UNKNOWN,
					     "the file was changed after it was opened");
	return NULL;
}

struct sym_error *sparse_file_read_at(const struct sparse_file *file, const char *path, void *room,
				      size_t size_bytes, uint64_t offset)
{
	struct sym_error *changed;
	int failure;

	if (offset > file->size_bytes || size_bytes > file->size_bytes - offset)
		return sym_error_create_path(SYM_ERROR_FORMAT, path, offset, "beyond the end");
	failure = path_read_at(file->fd, room, size_bytes, file->offset + offset);
	if (!failure)
		return NULL;
	changed = sparse_file_check(file, path);
	return changed ? changed : fail(file, -failure, path, "cannot read");
}

/* Anonymous memory costs nothing until a page of it is written. */
static struct sym_error *make_room(struct sparse_file *file)
{
	size_t pages = (file->size_bytes >> PAGE_SHIFT) + 1;
	void *data;

	file->present = calloc(pages / WORD_BITS + 1, sizeof(*file->present));
	if (!file->present)
		return &sym_error_no_memory;
	data = sparse_memory_create(file->size_bytes);
	if (!data) {
		free(file->present);
		file->present = NULL;
		return &sym_error_no_memory;
	}
	file->data = data;
	return NULL;
}

static bool is_present(const struct sparse_file *file, size_t page)
{
	return file->present[page / WORD_BITS] >> (page % WORD_BITS) & 1;
}

static struct sym_error *read_pages(struct sparse_file *file, const char *path, size_t first,
				    size_t end)
{
	size_t from = first << PAGE_SHIFT;
	size_t to = end << PAGE_SHIFT;
	struct sym_error *error;

	if (to > file->size_bytes)
		to = file->size_bytes;
	if (to - from > LIMIT_IMAGE_BYTES - file->held_bytes)
		return sym_error_create_path(
			SYM_ERROR_LIMIT, path, from,
			"more than %llu bytes of it are asked for (LIMIT_IMAGE_BYTES)",
			(unsigned long long)LIMIT_IMAGE_BYTES);
	if (end - first >= FEW_PAGES)
		huge_memory_populate(file->data + from, to - from);
	error = sparse_file_read_at(file, path, file->data + from, to - from, from);
	if (error)
		return error;
	file->held_bytes += to - from;
	for (size_t page = first; page < end; page++)
		file->present[page / WORD_BITS] |= (uint64_t)1 << (page % WORD_BITS);
	return NULL;
}

struct sym_error *sparse_file_need(struct sparse_file *file, const char *path, uint64_t offset,
				   uint64_t size_bytes)
{
	struct sym_error *error = NULL;
	bool any = false;
	size_t page, end;

	if (offset >= file->size_bytes || !size_bytes)
		return NULL;
	if (size_bytes > file->size_bytes - offset)
		size_bytes = file->size_bytes - offset;
	if (!file->data)
		error = make_room(file);
	page = (size_t)offset >> PAGE_SHIFT;
	end = (size_t)((offset + size_bytes + PAGE_BYTES - 1) >> PAGE_SHIFT);
	while (!error && page < end) {
		size_t first = page;

		while (page < end && !is_present(file, page))
			page++;
		if (page > first) {
			error = read_pages(file, path, first, page);
			any = true;
		}
		while (page < end && is_present(file, page))
			page++;
	}
	return error || !any ? error : sparse_file_check(file, path);
}
