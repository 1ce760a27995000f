/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/trace_archive.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/error.h"
#include "libsym/format/file/zip.h"
#include "mapgen/cli/temporary_file.h"
#include "mapgen/record/recording_file.h"

enum {
	METHOD_STORED = 0,
	METHOD_DEFLATE = 8,
	CHUNK_BYTES = 1 << 18,
	MOST_ABOUT_BYTES = 16 << 20,
	MOST_SYMBOLS_BYTES = 1 << 30, /* what name_table.c writes at most */
	MOST_STACKS_BYTES = 1 << 28,  /* what recorder.c writes at most */
	MOST_STREAMS = 1 << 10,
};

static const uint64_t most_file_bytes = 1ull << 40;

static bool read_file(const struct byte_source *source, void *room, size_t count, uint64_t offset)
{
	return !path_read_at(source->fd, room, count, offset);
}

/* ---- one member ------------------------------------------------------------------------------ */

/* Where unpacked bytes go: into memory of the size that the directory says, or into a file. */
struct target {
	char *memory;
	int fd;
	uint64_t size_bytes; /* so far */
	uint32_t crc;
};

struct unpacking {
	const struct byte_source *source;
	const struct zip_member *member;
	uint64_t offset, left_bytes; /* of packed bytes */
	struct target target;
};

static struct sym_error *damaged(const struct unpacking *unpacking, const char *why)
{
	return sym_error_create(SYM_ERROR_FORMAT, "%.*s in the archive %s",
				(int)unpacking->member->name_bytes, unpacking->member->name, why);
}

/* More than the directory says is never unpacked. */
static struct sym_error *put(struct unpacking *unpacking, const uint8_t *bytes, size_t count)
{
	struct target *target = &unpacking->target;
	int failure = 0;

	if (count > unpacking->member->size_bytes - target->size_bytes)
		return damaged(unpacking, "is longer than the archive says");
	if (target->memory)
		memcpy(target->memory + target->size_bytes, bytes, count);
	else
		failure = path_write_all(target->fd, bytes, count);
	if (failure)
		return sym_error_create(SYM_ERROR_IO, "cannot write a temporary file: %s",
					strerror(-failure));
	target->size_bytes += count;
	target->crc = (uint32_t)crc32(target->crc, bytes, (uInt)count);
	return NULL;
}

static struct sym_error *next_chunk(struct unpacking *unpacking, uint8_t *chunk, size_t *count_ret)
{
	size_t count =
		unpacking->left_bytes < CHUNK_BYTES ? (size_t)unpacking->left_bytes : CHUNK_BYTES;

	if (!byte_source_read(unpacking->source, chunk, count, unpacking->offset))
		return sym_error_create(SYM_ERROR_IO, "the archive cannot be read");
	unpacking->offset += count;
	unpacking->left_bytes -= count;
	*count_ret = count;
	return NULL;
}

static struct sym_error *copy_stored(struct unpacking *unpacking, uint8_t *chunk)
{
	struct sym_error *error = NULL;
	size_t count = 0;

	while (!error && unpacking->left_bytes) {
		error = next_chunk(unpacking, chunk, &count);
		if (!error)
			error = put(unpacking, chunk, count);
	}
	return error;
}

static struct sym_error *inflate_chunk(struct unpacking *unpacking, z_stream *stream, uint8_t *room,
				       int *status_ret)
{
	struct sym_error *error = NULL;

	do {
		stream->next_out = room;
		stream->avail_out = CHUNK_BYTES;
		*status_ret = inflate(stream, Z_NO_FLUSH);
		if (*status_ret == Z_MEM_ERROR)
			return &sym_error_no_memory;
		if (*status_ret != Z_OK && *status_ret != Z_STREAM_END &&
		    *status_ret != Z_BUF_ERROR)
			return damaged(unpacking, "is damaged");
		error = put(unpacking, room, CHUNK_BYTES - stream->avail_out);
	} while (!error && *status_ret == Z_OK && !stream->avail_out);
	return error;
}

static struct sym_error *inflate_all(struct unpacking *unpacking, uint8_t *chunk, uint8_t *room)
{
	z_stream stream = { 0 };
	struct sym_error *error = NULL;
	int status = Z_OK;
	size_t count = 0;

	if (inflateInit2(&stream, -MAX_WBITS))
		return &sym_error_no_memory;
	while (!error && status != Z_STREAM_END && unpacking->left_bytes) {
		error = next_chunk(unpacking, chunk, &count);
		if (error)
			break;
		stream.next_in = chunk;
		stream.avail_in = (uInt)count;
		error = inflate_chunk(unpacking, &stream, room, &status);
	}
	inflateEnd(&stream);
	if (!error && status != Z_STREAM_END)
		error = damaged(unpacking, "is cut");
	return error;
}

static struct sym_error *unpack(struct unpacking *unpacking)
{
	uint8_t *chunk AUTO_FREE = malloc(CHUNK_BYTES), *room AUTO_FREE = malloc(CHUNK_BYTES);
	struct sym_error *error;

	if (!chunk || !room)
		return &sym_error_no_memory;
	if (unpacking->member->method == METHOD_STORED)
		error = copy_stored(unpacking, chunk);
	else if (unpacking->member->method == METHOD_DEFLATE)
		error = inflate_all(unpacking, chunk, room);
	else
		return damaged(unpacking, "is packed in a way that no recording is");
	if (!error && (unpacking->target.size_bytes != unpacking->member->size_bytes ||
		       unpacking->target.crc != unpacking->member->crc))
		error = damaged(unpacking, "is damaged: its checksum is another");
	return error;
}

static struct sym_error *begin(const struct byte_source *source, const struct zip *zip,
			       const char *name, uint64_t most_bytes, struct unpacking *ret)
{
	struct sym_error *error;

	*ret = (struct unpacking){ .source = source, .target = { .fd = -1 } };
	error = zip_find(zip, name, strlen(name), &ret->member);
	if (!error && ret->member->size_bytes > most_bytes)
		error = sym_error_create(SYM_ERROR_LIMIT,
					 "%s in the archive has more than %llu bytes", name,
					 (unsigned long long)most_bytes);
	if (!error)
		error = zip_locate_packed(source, zip, ret->member, &ret->offset);
	if (!error)
		ret->left_bytes = ret->member->packed_bytes;
	return error;
}

/* Heap, NUL terminated. */
static struct sym_error *read_text(const struct byte_source *source, const struct zip *zip,
				   const char *name, uint64_t most_bytes, char **ret,
				   size_t *size_bytes_ret)
{
	struct unpacking unpacking;
	struct sym_error *error = begin(source, zip, name, most_bytes, &unpacking);
	char *text AUTO_FREE = NULL;

	if (error)
		return error;
	text = malloc((size_t)unpacking.member->size_bytes + 1);
	if (!text)
		return &sym_error_no_memory;
	unpacking.target.memory = text;
	error = unpack(&unpacking);
	if (error)
		return error;
	*size_bytes_ret = (size_t)unpacking.member->size_bytes;
	text[*size_bytes_ret] = '\0';
	*ret = STEAL(text);
	return NULL;
}

/* Unpacks a member to a file without a name. */
static struct sym_error *read_to_file(const struct byte_source *source, const struct zip *zip,
				      const char *name, int *ret)
{
	struct unpacking unpacking;
	struct sym_error *error = begin(source, zip, name, most_file_bytes, &unpacking);
	int fd AUTO_CLOSE = -1;

	if (!error)
		error = temporary_file_open(&fd);
	if (error)
		return error;
	unpacking.target.fd = fd;
	error = unpack(&unpacking);
	if (!error && lseek(fd, 0, SEEK_SET))
		error = sym_error_create(SYM_ERROR_IO, "lseek: %s", strerror(errno));
	if (!error)
		*ret = steal_fd(&fd);
	return error;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static struct sym_error *read_about(const struct byte_source *source, const struct zip *zip,
				    json_t **ret)
{
	char *text AUTO_FREE = NULL;
	size_t size_bytes;
	struct sym_error *error =
		read_text(source, zip, RECORDING_ABOUT, MOST_ABOUT_BYTES, &text, &size_bytes);
	json_int_t format;
	json_t *about;

	if (error)
		return error;
	about = json_loadb(text, size_bytes, 0, NULL);
	if (!json_is_object(about)) {
		json_decref(about);
		return sym_error_create(SYM_ERROR_FORMAT, "%s in the archive is no JSON object",
					RECORDING_ABOUT);
	}
	format = json_integer_value(json_object_get(about, "format"));
	if (format >= 1 && format <= RECORDING_FORMAT) {
		*ret = about;
		return NULL;
	}
	json_decref(about);
	if (format > RECORDING_FORMAT)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"the recording has format %lld, and this dotnet-mapgen "
					"reads up to %d: a newer one is needed",
					(long long)format, RECORDING_FORMAT);
	return sym_error_create(SYM_ERROR_FORMAT, "%s in the archive has no format number",
				RECORDING_ABOUT);
}

void trace_archive_deinit(struct trace_archive *archive)
{
	json_decref(archive->about);
	free(archive->symbols);
	free(archive->stacks);
	if (archive->perf_data_fd >= 0)
		close(archive->perf_data_fd);
	for (size_t i = 0; i < archive->stream_count; i++)
		close(archive->streams[i].fd);
	free(archive->streams);
	*archive = (struct trace_archive){ .perf_data_fd = -1 };
}

static struct sym_error *read_streams(const struct byte_source *source, const struct zip *zip,
				      struct trace_archive *archive)
{
	const json_t *streams = json_object_get(archive->about, "event_streams");
	size_t count = json_array_size(streams);
	struct sym_error *error = NULL;

	if (count > MOST_STREAMS)
		return sym_error_create(SYM_ERROR_LIMIT,
					"the recording has more than %d streams of events",
					MOST_STREAMS);
	archive->streams = calloc(count + 1, sizeof(*archive->streams));
	if (!archive->streams)
		return &sym_error_no_memory;
	for (size_t i = 0; !error && i < count; i++) {
		const json_t *about = json_array_get(streams, i);
		const char *member = json_string_value(json_object_get(about, "member"));
		struct trace_stream *stream = &archive->streams[i];

		if (!member)
			return sym_error_create(SYM_ERROR_FORMAT,
						"%s lists a stream of events without a name",
						RECORDING_ABOUT);
		stream->pid = (int32_t)json_integer_value(json_object_get(about, "pid"));
		stream->runtime = json_string_value(json_object_get(about, "runtime"));
		error = read_to_file(source, zip, member, &stream->fd);
		archive->stream_count += !error;
	}
	return error;
}

static struct sym_error *read_members(const struct byte_source *source, const struct zip *zip,
				      struct trace_archive *archive)
{
	struct sym_error *error = read_about(source, zip, &archive->about);

	if (!error)
		error = read_text(source, zip, RECORDING_SYMBOLS, MOST_SYMBOLS_BYTES,
				  &archive->symbols, &archive->symbols_bytes);
	if (!error)
		error = read_text(source, zip, RECORDING_STACKS, MOST_STACKS_BYTES,
				  &archive->stacks, &archive->stacks_bytes);
	if (!error)
		error = read_to_file(source, zip, RECORDING_PERF_DATA, &archive->perf_data_fd);
	return error ? error : read_streams(source, zip, archive);
}

struct sym_error *trace_archive_read(int fd, struct trace_archive *ret)
{
	struct byte_source source = { .read = read_file, .fd = fd };
	struct trace_archive archive = { .perf_data_fd = -1 };
	struct zip zip AUTO_ZIP = { 0 };
	struct sym_error *error;
	struct stat status;
	bool is_zip;

	if (fstat(fd, &status))
		return sym_error_create(SYM_ERROR_IO, "%s", strerror(errno));
	source.size_bytes = (uint64_t)status.st_size;
	error = zip_read(&source, &zip, &is_zip);
	if (!error && !is_zip)
		error = sym_error_create(SYM_ERROR_FORMAT,
					 "no whole zip archive: its end is missing");
	if (!error)
		error = read_members(&source, &zip, &archive);
	if (error)
		trace_archive_deinit(&archive);
	else
		*ret = archive;
	return error;
}
