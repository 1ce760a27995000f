/* SPDX-License-Identifier: MIT */
#include "libsym/minidebug.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/base/memory_file.h"
#include "libsym/limits.h"

enum {
	STEP_BYTES = 1 << 16,
	/* What the decoder may take. xz -9 needs 65 MiB, and nobody uses more. */
	DECODER_BYTES = 128 << 20
};

/* LZMA_STREAM_END when all of it is in `fd`. */
static lzma_ret unpack_to(lzma_stream *stream, uint8_t *room, int fd)
{
	uint64_t total = 0;
	lzma_ret state = LZMA_OK;

	while (state == LZMA_OK) {
		size_t bytes;
		int failure;

		stream->next_out = room;
		stream->avail_out = STEP_BYTES;
		state = lzma_code(stream, LZMA_FINISH);
		bytes = STEP_BYTES - stream->avail_out;
		if (total + bytes > LIMIT_MINIDEBUG_BYTES)
			return LZMA_MEMLIMIT_ERROR;
		failure = memory_file_write(fd, room, bytes, total);
		/* It is memory that it goes to. */
		if (failure)
			return failure == -EFBIG ? LZMA_MEMLIMIT_ERROR : LZMA_MEM_ERROR;
		total += bytes;
	}
	return state;
}

static lzma_ret unpack(struct reader packed, int fd)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	uint8_t *room AUTO_FREE = malloc(STEP_BYTES);
	lzma_ret state = room ? lzma_stream_decoder(&stream, DECODER_BYTES, 0) : LZMA_MEM_ERROR;

	if (state != LZMA_OK)
		return state;
	stream.next_in = packed.data;
	stream.avail_in = packed.size_bytes;
	state = unpack_to(&stream, room, fd);
	lzma_end(&stream);
	return state;
}

static struct sym_error *open_packed(struct reader packed, const char *path, struct image **ret)
{
	int fd AUTO_CLOSE = memfd_create("libsym", MFD_CLOEXEC);
	struct sym_error *error;
	lzma_ret state;

	if (fd < 0)
		return sym_error_from_errno(errno, path, "cannot unpack .gnu_debugdata");
	state = unpack(packed, fd);
	if (state == LZMA_MEM_ERROR)
		return &sym_error_no_memory;
	if (state != LZMA_STREAM_END)
		return NULL;
	error = image_open(fd, path, 0, SPARSE_FILE_TO_END, ret);
	if (!error)
		steal_fd(&fd);
	return error;
}

struct sym_error *minidebug_open(struct elf_sections *sections, struct image **ret)
{
	const GElf_Shdr *section = elf_sections_find_named(sections, ".gnu_debugdata");
	struct sym_error *error;
	struct reader packed;

	*ret = NULL;
	if (!section)
		return NULL;
	error = elf_sections_bytes(sections, section, &packed);
	if (!error)
		error = open_packed(packed, sections->image->path, ret);
	if (error && (sym_error_code(error) == SYM_ERROR_NO_MEMORY || sym_error_is_shortage(error)))
		return error;
	/* A damaged one costs only itself. */
	sym_error_destroy(error);
	return NULL;
}
