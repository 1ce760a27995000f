/* SPDX-License-Identifier: MIT */
/*
 * How glibc buffers (libio/genops.c):
 * _IO_list_all leads to all streams.
 * The bytes from _IO_write_base to _IO_write_ptr were not passed to write() yet.
 * The pointer advances after the bytes are in place (_IO_new_file_xsputn).
 * After write() it goes back, a moment after the file has grown (new_do_write).
 */
#include "libsym/perf/unflushed_stdio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/limits.h"
#include "libsym/process/remote_memory.h"
#include "libsym/process/remote_symbol.h"

enum {
	MOST_STREAMS = 1 << 14,
	MOST_LOOKS = 16,
	COMPARED_BYTES = 4096
};

struct unflushed_stdio {
	const struct process *process;
	uint64_t stream_address;
};

/* ---- which stream it is ---------------------------------------------------------------- */

static bool is_c_library(const char *path)
{
	const char *name = path_file_name(path);

	return !strncmp(name, "libc.so.", strlen("libc.so.")) ||
	       !strncmp(name, "libc-2.", strlen("libc-2."));
}

/* Address of the list of streams; 0: none. */
static uint64_t find_list(const struct process *process, const struct address_space *space)
{
	struct remote_memory *memory AUTO_REMOTE_MEMORY = NULL;
	uint64_t address = 0;

	for (size_t i = 0; !address && i < space->file_count; i++) {
		const struct address_space_file *file = &space->files[i];
		const struct sym_mapping *first = &space->mappings[file->mapping_indexes[0]];

		if (!is_c_library(file->path) || first->offset)
			continue;
		if (!memory)
			sym_error_destroy(remote_memory_open_process(process->pid, &memory));
		if (memory)
			sym_error_destroy(remote_symbol_find(memory, first->start_address,
							     "_IO_list_all", &address));
	}
	return address;
}

static bool read_memory(const struct process *process, uint64_t address, void *room,
			size_t size_bytes)
{
	struct sym_error *error = process_read_memory(process, address, room, size_bytes);

	sym_error_destroy(error);
	return !error;
}

static bool writes_to(const struct process *process, const FILE *stream, const struct stat *wanted)
{
	char path[32];
	struct stat status;

	if (stream->_fileno < 0)
		return false;
	snprintf(path, sizeof(path), "fd/%d", stream->_fileno);
	return !fstatat(process->proc_fd, path, &status, 0) && path_is_same_file(&status, wanted);
}

/* Address of the stream; 0: none. */
static uint64_t find_stream(const struct process *process, uint64_t list_address,
			    const struct stat *wanted)
{
	uint64_t address;
	FILE stream;

	if (!read_memory(process, list_address, &address, sizeof(address)))
		return 0;
	for (size_t i = 0; address && i < MOST_STREAMS; i++) {
		if (!read_memory(process, address, &stream, sizeof(stream)))
			return 0;
		if (writes_to(process, &stream, wanted))
			return address;
		address = (uintptr_t)stream._chain;
	}
	return 0;
}

/* ---- what is in it --------------------------------------------------------------------- */

/* True when the file already has the bytes that the stream seems to hold. */
static bool has_been_written(int fd, const struct buf *held, uint64_t file_bytes)
{
	size_t bytes = held->size_bytes < COMPARED_BYTES ? held->size_bytes : COMPARED_BYTES;
	char end[COMPARED_BYTES];

	return bytes && bytes <= file_bytes && !path_read_at(fd, end, bytes, file_bytes - bytes) &&
	       !memcmp(end, held->data + held->size_bytes - bytes, bytes);
}

/*
 * Copies the unflushed bytes of a stream, for a file that does not grow in between. False: they do
 * not follow the file.
 */
static bool unflushed_stdio_copy(const struct unflushed_stdio *buffer, const FILE *stream, int fd,
				 struct buf *ret, struct stat *status)
{
	uint64_t bytes = (uintptr_t)stream->_IO_write_ptr - (uintptr_t)stream->_IO_write_base;
	off_t file_bytes = status->st_size;
	char *room;
	FILE after;

	buf_clear(ret);
	if (bytes > LIMIT_STDIO_BYTES)
		return false;
	room = buf_reserve(ret, (size_t)bytes);
	if (bytes && (!room || !read_memory(buffer->process, (uintptr_t)stream->_IO_write_base,
					    room, (size_t)bytes)))
		return false;
	ret->size_bytes = (size_t)bytes;
	return read_memory(buffer->process, buffer->stream_address, &after, sizeof(after)) &&
	       !fstat(fd, status) && status->st_size == file_bytes &&
	       after._IO_write_base == stream->_IO_write_base &&
	       after._IO_write_ptr >= stream->_IO_write_ptr &&
	       !has_been_written(fd, ret, (uint64_t)file_bytes);
}

/* As unflushed.read. */
static bool read_held(void *context, int fd, struct buf *ret, struct stat *status_ret)
{
	const struct unflushed_stdio *buffer = context;
	FILE stream;

	for (int i = 0; i < MOST_LOOKS; i++) {
		if (fstat(fd, status_ret) ||
		    !read_memory(buffer->process, buffer->stream_address, &stream,
				 sizeof(stream)) ||
		    !writes_to(buffer->process, &stream, status_ret))
			break;
		if (unflushed_stdio_copy(buffer, &stream, fd, ret, status_ret))
			return true;
	}
	buf_clear(ret);
	return false;
}

struct sym_error *unflushed_stdio_find(const struct process *process,
				       const struct address_space *space, int fd,
				       struct unflushed *ret)
{
	struct unflushed_stdio *buffer;
	struct stat status;
	uint64_t address;

	*ret = (struct unflushed){ 0 };
	if (process->recorded || fstat(fd, &status))
		return NULL;
	address = find_list(process, space);
	if (address)
		address = find_stream(process, address, &status);
	if (!address)
		return NULL;
	buffer = malloc(sizeof(*buffer));
	if (!buffer)
		return &sym_error_no_memory;
	*buffer = (struct unflushed_stdio){ .process = process, .stream_address = address };
	*ret = (struct unflushed){ .read = read_held, .close = free, .context = buffer };
	return NULL;
}
