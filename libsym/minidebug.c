/* SPDX-License-Identifier: MIT */
#include "libsym/minidebug.h"

#include <lzma.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/limits.h"

enum {
	STEP_BYTES = 1 << 16,
	/* What the decoder may take. xz -9 needs 65 MiB, and nobody uses more. */
	DECODER_BYTES = 128 << 20
};

/* True when all of it is in `fd`. */
static bool unpack_to(lzma_stream *stream, uint8_t *room, int fd)
{
	uint64_t total = 0;
	lzma_ret state = LZMA_OK;

	while (state == LZMA_OK) {
		size_t bytes;

		stream->next_out = room;
		stream->avail_out = STEP_BYTES;
		state = lzma_code(stream, LZMA_FINISH);
		bytes = STEP_BYTES - stream->avail_out;
		total += bytes;
		if (total > LIMIT_MINIDEBUG_BYTES || write(fd, room, bytes) != (ssize_t)bytes)
			return false;
	}
	return state == LZMA_STREAM_END;
}

static bool unpack(struct reader packed, int fd)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	uint8_t *room AUTO_FREE = malloc(STEP_BYTES);
	bool whole;

	if (!room || lzma_stream_decoder(&stream, DECODER_BYTES, 0) != LZMA_OK)
		return false;
	stream.next_in = packed.data;
	stream.avail_in = packed.size_bytes;
	whole = unpack_to(&stream, room, fd);
	lzma_end(&stream);
	return whole;
}

struct sym_error *minidebug_open(struct elf_sections *sections, struct image **ret)
{
	const GElf_Shdr *section = elf_sections_find_named(sections, ".gnu_debugdata");
	struct sym_error *error;
	struct reader packed;
	int fd AUTO_CLOSE = -1;

	*ret = NULL;
	if (!section)
		return NULL;
	error = elf_sections_bytes(sections, section, &packed);
	if (!error) {
		fd = memfd_create("libsym", MFD_CLOEXEC);
		if (fd < 0 || !unpack(packed, fd))
			return NULL;
		error = image_open(fd, sections->image->path, 0, SPARSE_FILE_TO_END, ret);
	}
	if (error && sym_error_code(error) == SYM_ERROR_NO_MEMORY)
		return error;
	/* A damaged one costs only itself. */
	sym_error_destroy(error);
	if (*ret)
		steal_fd(&fd);
	return NULL;
}
