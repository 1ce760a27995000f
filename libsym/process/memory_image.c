/* SPDX-License-Identifier: MIT */
/*
 * Rebuilding a file from memory.
 *
 *   memory_image_open()      copies a range as it is (the vDSO)
 *   memory_image_open_pe()   reads the section table, then copies each section to its file offset
 *   memory_image_collect()   copies each mapped line to its file offset
 *
 * The target is an anonymous memory file. It is opened like any other file.
 * What is copied is charged to the account of the process.
 */
#include "libsym/process/memory_image.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "libsym/base/memory_file.h"
#include "libsym/base/path.h"
#include "libsym/format/elf/elf_brief.h"
#include "libsym/limits.h"

enum {
	HEADER_BYTES = 4096,
	COPY_STEP_BYTES = 1 << 20,
	MOST_DYNAMIC_BYTES = 1 << 16
};

/* Adds to *charged, also when it fails. */
static struct sym_error *memory_image_copy(const struct process *process, uint64_t address,
					   uint64_t size_bytes, int fd, uint64_t offset,
					   uint64_t *charged)
{
	uint8_t *room AUTO_FREE = malloc(COPY_STEP_BYTES);
	struct sym_error *error;
	int failure;

	if (!room)
		return &sym_error_no_memory;
	error = budget_charge(process_account(process), size_bytes, NULL);
	if (error)
		return error;
	*charged += size_bytes;
	while (size_bytes) {
		size_t step = size_bytes < COPY_STEP_BYTES ? (size_t)size_bytes : COPY_STEP_BYTES;
		error = process_read_memory(process, address, room, step);
		if (error)
			return error;
		failure = memory_file_write(fd, room, step, offset);
		if (failure)
			return sym_error_from_errno(-failure, NULL, "copy of an image");
		address += step;
		offset += step;
		size_bytes -= step;
	}
	return NULL;
}

static struct sym_error *new_file(int *fd_ret)
{
	*fd_ret = memfd_create("libsym", MFD_CLOEXEC);
	return *fd_ret < 0 ? sym_error_from_errno(errno, NULL, "memfd_create") : NULL;
}

/* `error` is the result of copying. The image takes over what was charged, if it is created. */
static struct sym_error *memory_image_open_copy(const struct process *process,
						struct sym_error *error, int *fd, const char *path,
						uint64_t charged, struct object_file **ret)
{
	struct budget_account *account = process_account(process);

	if (!error)
		error = object_file_open(account, *fd, path, 0, SPARSE_FILE_TO_END, ret);
	if (error) {
		budget_release(account, charged);
		return error;
	}
	steal_fd(fd);
	(*ret)->memory_bytes = charged;
	return NULL;
}

struct sym_error *memory_image_open(const struct process *process, uint64_t address,
				    size_t size_bytes, const char *path, struct object_file **ret)
{
	int fd AUTO_CLOSE = -1;
	uint64_t charged = 0;
	struct sym_error *error = new_file(&fd);

	if (!error)
		error = memory_image_copy(process, address, size_bytes, fd, 0, &charged);
	return memory_image_open_copy(process, error, &fd, path, charged, ret);
}

/*
 * Reads the section table from the header page alone. pe_parse() needs the whole image, whose size
 * is only known from the table.
 */
struct section {
	uint32_t rva, raw_bytes, raw_offset;
};

static unsigned int read_sections(const uint8_t *header, struct section *sections,
				  uint32_t *header_bytes_ret)
{
	struct reader reader = reader_over(header, HEADER_BYTES);
	unsigned int count, optional_bytes;
	size_t pe;

	reader_seek(&reader, 0x3c);
	pe = reader_u32(&reader);
	reader_seek(&reader, pe);
	if (reader_u32(&reader) != 0x4550)
		return 0;
	reader_seek(&reader, pe + 6);
	count = reader_u16(&reader);
	reader_seek(&reader, pe + 20);
	optional_bytes = reader_u16(&reader);
	reader_seek(&reader, pe + 24 + 60);
	*header_bytes_ret = reader_u32(&reader);
	reader_seek(&reader, pe + 24 + optional_bytes);
	if (count > PE_MAX_SECTIONS)
		return 0;
	for (unsigned int i = 0; i < count; i++) {
		reader_skip(&reader, 12);
		sections[i].rva = reader_u32(&reader);
		sections[i].raw_bytes = reader_u32(&reader);
		sections[i].raw_offset = reader_u32(&reader);
		reader_skip(&reader, 16);
	}
	return reader_ok(&reader) ? count : 0;
}

static struct sym_error *copy_sections(const struct process *process, uint64_t base, int fd,
				       uint64_t *charged)
{
	struct section sections[PE_MAX_SECTIONS];
	uint8_t header[HEADER_BYTES];
	uint32_t header_bytes = 0;
	uint64_t total_bytes = 0;
	unsigned int count;
	struct sym_error *error = process_read_memory(process, base, header, sizeof(header));

	if (error)
		return error;
	count = read_sections(header, sections, &header_bytes);
	if (!count || header_bytes > HEADER_BYTES)
		return sym_error_create(SYM_ERROR_FORMAT, "no PE image at address 0x%llx",
					(unsigned long long)base);
	error = memory_image_copy(process, base, header_bytes, fd, 0, charged);
	for (unsigned int i = 0; !error && i < count; i++) {
		total_bytes += sections[i].raw_bytes;
		if (total_bytes > LIMIT_IMAGE_BYTES || sections[i].raw_offset > LIMIT_IMAGE_BYTES)
			return sym_error_create(SYM_ERROR_LIMIT,
						"the PE image at address 0x%llx is larger than "
						"%llu bytes",
						(unsigned long long)base,
						(unsigned long long)LIMIT_IMAGE_BYTES);
		error = memory_image_copy(process, base + sections[i].rva, sections[i].raw_bytes,
					  fd, sections[i].raw_offset, charged);
	}
	return error;
}

struct sym_error *memory_image_open_pe(const struct process *process, uint64_t base,
				       const char *path, struct object_file **ret)
{
	int fd AUTO_CLOSE = -1;
	uint64_t charged = 0;
	struct sym_error *error = new_file(&fd);

	if (!error)
		error = copy_sections(process, base, fd, &charged);
	error = memory_image_open_copy(process, error, &fd, path, charged, ret);
	if (error)
		return error;
	/* An empty key means that there is none. */
	(*ret)->keyed = true;
	return NULL;
}

/* ---- a file from its mappings ------------------------------------------------- */

static struct sym_error *copy_lines(const struct process *process,
				    const struct sym_mapping *mappings, const uint32_t *lines,
				    size_t line_count, bool changeable, int fd, uint64_t *charged)
{
	for (size_t i = 0; i < line_count; i++) {
		const struct sym_mapping *line = &mappings[lines[i]];
		bool may_change = line->protection & SYM_WRITE && !(line->protection & SYM_SHARED);
		struct sym_error *error;

		if (may_change != changeable || !(line->protection & SYM_READ))
			continue;
		error = memory_image_copy(process, line->start_address,
					  line->end_address - line->start_address, fd, line->offset,
					  charged);
		if (error)
			return error;
	}
	return NULL;
}

/* The sum of all bytes and the highest offset stay below the largest supported file. */
static bool fits_limits(const struct sym_mapping *mappings, const uint32_t *lines,
			size_t line_count)
{
	uint64_t total_bytes = 0;

	for (size_t i = 0; i < line_count; i++) {
		const struct sym_mapping *line = &mappings[lines[i]];
		uint64_t size_bytes = line->end_address - line->start_address;

		total_bytes += size_bytes;
		if (total_bytes > LIMIT_IMAGE_BYTES || line->offset > LIMIT_IMAGE_BYTES ||
		    size_bytes > LIMIT_IMAGE_BYTES - line->offset)
			return false;
	}
	return true;
}

/* Undoes the changes of the dynamic linker in the dynamic segment, where the old value is known. */
static struct sym_error *restore_dynamic(const struct sym_mapping *mappings, const uint32_t *lines,
					 size_t line_count, int fd)
{
	char head[ELF_BRIEF_HEAD_BYTES];
	ssize_t head_bytes = pread(fd, head, sizeof(head), 0);
	uint8_t *dynamic AUTO_FREE = NULL;
	struct elf_brief brief;
	uint64_t vaddr;
	size_t bytes;

	if (head_bytes <= 0 || !elf_brief_parse(head, (size_t)head_bytes, &brief) ||
	    !brief.dynamic.size_bytes || brief.dynamic.size_bytes > MOST_DYNAMIC_BYTES ||
	    !elf_brief_vaddr(&brief, brief.dynamic.offset, &vaddr))
		return NULL;
	bytes = (size_t)brief.dynamic.size_bytes;
	dynamic = malloc(bytes);
	if (!dynamic)
		return &sym_error_no_memory;
	if (path_read_at(fd, dynamic, bytes, brief.dynamic.offset))
		return NULL;
	for (size_t i = 0; i < line_count; i++) {
		const struct sym_mapping *line = &mappings[lines[i]];
		uint64_t inside = brief.dynamic.offset - line->offset;

		if (brief.dynamic.offset >= line->offset &&
		    inside < line->end_address - line->start_address)
			elf_brief_unrelocate(&brief, line->start_address + inside - vaddr, dynamic,
					     bytes);
	}
	if (pwrite(fd, dynamic, bytes, (off_t)brief.dynamic.offset) != (ssize_t)bytes)
		return sym_error_from_errno(errno, NULL, "copy of an image");
	return NULL;
}

struct sym_error *memory_image_collect(const struct process *process,
				       const struct sym_mapping *mappings, const uint32_t *lines,
				       size_t line_count, const char *path, int *fd_ret,
				       uint64_t *charged)
{
	int fd AUTO_CLOSE = -1;
	struct sym_error *error;

	if (!fits_limits(mappings, lines, line_count))
		return sym_error_create_path(SYM_ERROR_LIMIT, path, SYM_OFFSET_UNKNOWN,
					     "more than %llu bytes of it are mapped",
					     (unsigned long long)LIMIT_IMAGE_BYTES);
	error = new_file(&fd);
	if (!error)
		error = copy_lines(process, mappings, lines, line_count, true, fd, charged);
	if (!error)
		error = copy_lines(process, mappings, lines, line_count, false, fd, charged);
	if (!error)
		error = restore_dynamic(mappings, lines, line_count, fd);
	if (!error)
		*fd_ret = steal_fd(&fd);
	return error;
}
