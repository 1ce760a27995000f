/* SPDX-License-Identifier: MIT */
#include "libsym/elf/minidebug.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/base/memory_file.h"
#include "libsym/limits.h"

enum {
	STEP_BYTES = 1 << 16,
	/* Memory limit of the decoder. xz -9 needs 65 MiB. */
	DECODER_BYTES = 128 << 20
};

/* Returns LZMA_STREAM_END if everything is in `fd`. *total_ret bytes have been charged. */
static lzma_ret unpack_to(lzma_stream *stream, uint8_t *room, const struct object_file *object,
			  int fd, uint64_t *total_ret)
{
	struct budget_account *account = object_file_account(object);
	uint64_t total = 0;
	lzma_ret state = LZMA_OK;

	while (state == LZMA_OK) {
		size_t bytes;
		int failure;

		stream->next_out = room;
		stream->avail_out = STEP_BYTES;
		state = lzma_code(stream, LZMA_FINISH);
		bytes = STEP_BYTES - stream->avail_out;
		if (total + bytes > LIMIT_MINIDEBUG_BYTES ||
		    !budget_has_time(account, BUDGET_CPU, object->path) ||
		    !budget_reserve(account, bytes, object->path))
			return LZMA_MEMLIMIT_ERROR;
		*total_ret += bytes;
		failure = memory_file_write(fd, room, bytes, total);
		/* `fd` is a memory file, so a failure is out of memory. */
		if (failure)
			return failure == -EFBIG ? LZMA_MEMLIMIT_ERROR : LZMA_MEM_ERROR;
		total += bytes;
	}
	return state;
}

static uint64_t decoder_bytes(const struct object_file *object)
{
	uint64_t left_bytes = budget_left_bytes(object_file_account(object));

	return left_bytes < DECODER_BYTES ? left_bytes : DECODER_BYTES;
}

static lzma_ret unpack_xz(struct reader packed, const struct object_file *object, int fd,
			  uint64_t *total_ret)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	uint8_t *room AUTO_FREE = malloc(STEP_BYTES);
	lzma_ret state =
		room ? lzma_stream_decoder(&stream, decoder_bytes(object), 0) : LZMA_MEM_ERROR;

	if (state != LZMA_OK)
		return state;
	stream.next_in = packed.data;
	stream.avail_in = packed.size_bytes;
	state = unpack_to(&stream, room, object, fd, total_ret);
	lzma_end(&stream);
	return state;
}

static struct sym_error *open_packed(struct reader packed, const struct object_file *object,
				     struct object_file **ret)
{
	int fd AUTO_CLOSE = memfd_create("libsym", MFD_CLOEXEC);
	struct budget_account *account = object_file_account(object);
	uint64_t total_bytes = 0;
	struct sym_error *error = NULL;
	lzma_ret state;

	*ret = NULL;
	if (fd < 0)
		return sym_error_from_errno(errno, object->path, "cannot unpack .gnu_debugdata");
	state = unpack_xz(packed, object, fd, &total_bytes);
	if (state == LZMA_MEM_ERROR)
		error = &sym_error_no_memory;
	if (state == LZMA_STREAM_END)
		error = object_file_open(account, fd, object->path, 0, SPARSE_FILE_TO_END, ret);
	if (!*ret) {
		budget_release(account, total_bytes);
		return error;
	}
	(*ret)->memory_bytes = total_bytes;
	steal_fd(&fd);
	return NULL;
}

struct sym_error *minidebug_open(struct elf_sections *sections, struct object_file **ret)
{
	const GElf_Shdr *section = elf_sections_find_named(sections, ".gnu_debugdata");
	struct sym_error *error;
	struct reader packed;

	*ret = NULL;
	if (!section)
		return NULL;
	error = elf_sections_bytes(sections, section, &packed);
	if (!error)
		error = open_packed(packed, sections->object, ret);
	if (sym_error_is_no_memory(error) || sym_error_is_shortage(error))
		return error;
	/* A damaged section is ignored. */
	sym_error_destroy(error);
	return NULL;
}
