/* SPDX-License-Identifier: MIT */
/*
 * Supplies remote_memory with the memory of a core file: the core itself, then the mapped files.
 * A core omits pages that are in files, so their code and constants are needed.
 * A page that may have been written to or relocated differs from the file. If the core omits it, it
 * is unreadable.
 */
#include "libsym/snapshot/core_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/path.h"
#include "libsym/format/elf/elf_brief.h"
#include "libsym/process/core_process.h"
#include "libsym/snapshot/snapshot.h"

struct core_context {
	const struct sym_snapshot *snapshot;
	const struct core *core;
};

/*
 * A writable segment of an ELF file is relocated, and may be made read-only afterwards.
 * Bytes outside the pages of all segments were appended: the assemblies of a single-file
 * application, which the runtime maps as they are.
 */
static bool is_constant_in_elf(const struct object_file *object, uint64_t offset,
			       uint64_t *left_ret)
{
	uint64_t page = offset & ~(uint64_t)(REMOTE_PAGE_BYTES - 1), left = UINT64_MAX;
	uint8_t head[ELF_BRIEF_HEAD_BYTES];
	struct elf_brief brief;
	bool is_in_page = false;

	if (path_read_at(object->fd, head, sizeof(head), 0) ||
	    !elf_brief_parse(head, sizeof(head), &brief))
		return false;
	for (size_t i = 0; i < brief.load_count; i++) {
		const struct elf_brief_load *load = &brief.loads[i];
		uint64_t start = load->file.offset & ~(uint64_t)(REMOTE_PAGE_BYTES - 1);
		uint64_t end = load->file.offset + load->file.size_bytes;

		if (!load->writable && offset >= load->file.offset && offset < end) {
			*left_ret = end - offset;
			return true;
		}
		is_in_page |= page >= start && page < end;
		if (start > offset && start - offset < left)
			left = start - offset;
	}
	*left_ret = left;
	return !is_in_page;
}

/*
 * Reads the part of a mapped file at `address` that cannot differ from it, by the same rules as for
 * the core.
 */
static size_t read_file(const struct core_context *context, uint64_t address, void *room,
			size_t size_bytes)
{
	const struct address_space *space = context->snapshot->space;
	const struct elf_core_segment *segment = elf_core_find(&context->core->elf, address);
	size_t line = address_space_find(space, address);
	const struct sym_mapping *mapping;
	struct sym_image *image = NULL;
	uint64_t offset, left;

	if (line == ADDRESS_SPACE_NONE || (segment && segment->file_bytes))
		return 0;
	mapping = &space->mappings[line];
	if (mapping->protection & SYM_WRITE)
		return 0;
	sym_error_destroy(snapshot_image_of(context->snapshot, line, &image));
	if (!image || !image->object || image_trouble(image))
		return 0;
	offset = mapping->offset + (address - mapping->start_address);
	left = mapping->end_address - address;
	if (image->object->kind == SYM_IMAGE_ELF) {
		uint64_t constant;

		if (!is_constant_in_elf(image->object, offset, &constant))
			return 0;
		left = constant < left ? constant : left;
	}
	if (left > size_bytes)
		left = size_bytes;
	return path_read_at(image->object->fd, room, (size_t)left, offset) ? 0 : (size_t)left;
}

static size_t read_piece(const struct core_context *context, uint64_t address, uint8_t *room,
			 size_t size_bytes)
{
	size_t done = 0;

	while (done < size_bytes) {
		size_t count =
			core_read(context->core, address + done, room + done, size_bytes - done);

		if (!count)
			count = read_file(context, address + done, room + done, size_bytes - done);
		if (!count)
			break;
		done += count;
	}
	return done;
}

/* The rest of the page after the end of a file is zero. */
static size_t read_page(const struct core_context *context, uint64_t address, uint8_t *room,
			size_t size_bytes)
{
	size_t done = read_piece(context, address, room, size_bytes);
	uint64_t end =
		(address + done + REMOTE_PAGE_BYTES - 1) & ~(uint64_t)(REMOTE_PAGE_BYTES - 1);

	if (done && done < size_bytes && end > address + done) {
		size_t rest =
			(size_t)(end - address) < size_bytes ? (size_t)(end - address) : size_bytes;

		memset(room + done, 0, rest - done);
		done = rest;
	}
	return done;
}

static ssize_t core_memory_read(void *context, const struct iovec *rooms,
				const struct iovec *pieces, size_t count)
{
	size_t total = 0;

	for (size_t i = 0; i < count; i++) {
		size_t done = 0, last = 1;

		while (done < pieces[i].iov_len && last) {
			last = read_page(context, (uint64_t)(uintptr_t)pieces[i].iov_base + done,
					 (uint8_t *)rooms[i].iov_base + done,
					 pieces[i].iov_len - done);
			done += last;
		}
		total += done;
		if (done < pieces[i].iov_len)
			return total ? (ssize_t)total : -EFAULT;
	}
	return (ssize_t)total;
}

static struct sym_error *core_memory_error(void *context, int errno_value)
{
	const struct core_context *core = context;

	return sym_error_from_errno(errno_value, core->core->path, "cannot read");
}

struct sym_error *core_memory_open(const struct sym_snapshot *snapshot, struct remote_memory **ret)
{
	static const struct remote_memory_ops ops = {
		.read = core_memory_read,
		.error = core_memory_error,
		.close = free,
	};
	struct core_context *context = malloc(sizeof(*context));
	struct sym_error *error;

	if (!context)
		return &sym_error_no_memory;
	*context = (struct core_context){ snapshot, snapshot->process->core };
	error = remote_memory_create(&ops, context, ret);
	if (error)
		free(context);
	return error;
}
