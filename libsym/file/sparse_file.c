/* SPDX-License-Identifier: MIT */
/*
 * The bytes live in anonymous memory of the file's size, which costs nothing where nothing is read.
 * A bitmap has one bit for each 4 KiB page. sparse_file_need() reads the missing pages of a range
 * as runs; from MANY_BYTES on it skips holes with SEEK_DATA and SEEK_HOLE. A call that read
 * something ends with a check that size and mtime are as they were when the file was opened.
 */
#include "libsym/file/sparse_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/huge_memory.h"
#include "libsym/base/path.h"
#include "libsym/base/sparse_memory.h"
#include "libsym/limits.h"

enum {
	PAGE_SHIFT = 12,
	PAGE_BYTES = 1 << PAGE_SHIFT,
	FEW_PAGES = 4, /* fewer are read one by one at the same cost */
	/* From this size on the file is asked for holes: a small file can have a large sparse
	 * table. */
	MANY_BYTES = 1 << 20,
	WORD_BITS = 64
};

static int64_t timespec_ns(const struct timespec *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

int64_t sparse_file_time_ns(const struct stat *status)
{
	return timespec_ns(&status->st_mtim);
}

int64_t sparse_file_inode_time_ns(const struct stat *status)
{
	return timespec_ns(&status->st_ctim);
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
	if (file->data)
		budget_release(file->account, file->held_bytes);
	file->held_bytes = 0;
	file->data = NULL;
	file->present = NULL;
}

struct sparse_file sparse_file_duplicate(const struct sparse_file *file)
{
	struct sparse_file again = *file;

	again.data = NULL;
	again.present = NULL;
	again.held_bytes = 0;
	return again;
}

static bool is_unchanged(const struct sparse_file *file, const struct stat *status)
{
	return (uint64_t)status->st_size == file->file_size_bytes &&
	       sparse_file_time_ns(status) == file->changed_ns;
}

bool sparse_file_is_as_opened(const struct sparse_file *file)
{
	struct stat status;

	return !fstat(file->fd, &status) && is_unchanged(file, &status) &&
	       (sparse_file_inode_time_ns(&status) == file->touched_ns ||
		status.st_nlink != file->links);
}

void sparse_file_record_problem(const struct sparse_file *file, const struct sym_error *error)
{
	char *none = NULL, *text;

	if (!file->problem || !error || sym_error_code(error) != SYM_ERROR_IO ||
	    sym_error_is_shortage(error) || atomic_load(file->problem))
		return;
	text = strdup(sym_error_message(error));
	if (text && !atomic_compare_exchange_strong(file->problem, &none, text))
		free(text);
}

static struct sym_error *sparse_file_error(const struct sparse_file *file, int errno_value,
					   const char *path, const char *what)
{
	struct sym_error *error = sym_error_from_errno(errno_value, path, what);

	sparse_file_record_problem(file, error);
	return error;
}

struct sym_error *sparse_file_check(const struct sparse_file *file, const char *path)
{
	struct stat status;

	if (fstat(file->fd, &status))
		return sparse_file_error(file, errno, path, "cannot examine");
	if (!is_unchanged(file, &status))
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
	return changed ? changed : sparse_file_error(file, -failure, path, "cannot read");
}

/* Anonymous memory costs nothing until a page is written. */
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

/* Reads a range without holes. */
static struct sym_error *read_run(struct sparse_file *file, const char *path, size_t from,
				  size_t to)
{
	struct sym_error *error;

	if (to - from > LIMIT_IMAGE_BYTES - file->held_bytes)
		return sym_error_create_path(
			SYM_ERROR_LIMIT, path, from,
			"more than %llu bytes of it are requested (LIMIT_IMAGE_BYTES)",
			(unsigned long long)LIMIT_IMAGE_BYTES);
	error = budget_charge(file->account, to - from, path);
	if (error)
		return error;
	file->held_bytes += to - from;
	if (to - from >= (size_t)FEW_PAGES << PAGE_SHIFT)
		huge_memory_populate(file->data + from, to - from);
	return sparse_file_read_at(file, path, file->data + from, to - from, from);
}

/* Finds the next data in the range, and where it ends. Returns false if only a hole remains. If the
 * file system does not support this, all of it counts as data. */
static bool find_data(const struct sparse_file *file, size_t from, size_t to, size_t *start_ret,
		      size_t *end_ret)
{
	off_t start = lseek(file->fd, (off_t)(file->offset + from), SEEK_DATA), end;

	*start_ret = from;
	*end_ret = to;
	if (start < 0)
		return errno != ENXIO;
	if ((uint64_t)start - file->offset >= to)
		return false;
	*start_ret = (size_t)((uint64_t)start - file->offset);
	end = lseek(file->fd, start, SEEK_HOLE);
	if (end > start && (uint64_t)end - file->offset < to)
		*end_ret = (size_t)((uint64_t)end - file->offset);
	return true;
}

static struct sym_error *read_pages(struct sparse_file *file, const char *path, size_t first,
				    size_t end)
{
	size_t from = first << PAGE_SHIFT;
	size_t to = end << PAGE_SHIFT, start, stop;
	struct sym_error *error = NULL;

	if (to > file->size_bytes)
		to = file->size_bytes;
	if (to - from < MANY_BYTES)
		error = read_run(file, path, from, to);
	else
		for (size_t at = from; !error && at < to && find_data(file, at, to, &start, &stop);
		     at = stop)
			error = read_run(file, path, start, stop);
	if (error)
		return error;
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
