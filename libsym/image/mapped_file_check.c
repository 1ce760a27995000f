/* SPDX-License-Identifier: MIT */
#include "libsym/image/mapped_file_check.h"

#include <string.h>
#include <sys/stat.h>

#include "libsym/process/core_process.h"
#include "libsym/process/relocation_check.h"

enum {
	COMPARED_BYTES = 4096
};

/*
 * Start times have ticks of 10 ms and are rounded down.
 * A file that was made just before its process started is not suspect. A change that early precedes
 * any mapping.
 */
static const int64_t first_moments_ns = 20000000;

static bool is_after_start(const struct process *process, int64_t time_ns)
{
	return !process->recorded && (process->start_time_ns == PROCESS_TIME_UNKNOWN ||
				      time_ns >= process->start_time_ns + first_moments_ns);
}

bool mapped_file_check_may_have_changed(const struct process *process,
					const struct object_file *object)
{
	return is_after_start(process, object->file.changed_ns);
}

/* The segment at the start of the file, if it is loaded. */
static const struct object_segment *header_segment(const struct object_file *object)
{
	for (size_t i = 0; i < object->segment_count; i++)
		if (!object->segments[i].offset && object->segments[i].size_bytes)
			return &object->segments[i];
	return NULL;
}

static struct sym_error *compare_header(const struct process *process,
					const struct object_file *object, uint64_t address,
					size_t size_bytes)
{
	struct sparse_file view = object_file_view(object);
	uint8_t memory[COMPARED_BYTES];
	struct sym_error *error;

	error = process_read_memory(process, address, memory, size_bytes);
	if (error) {
		/* No permission, or no memory there: memory proves nothing. */
		sym_error_destroy(error);
		return NULL;
	}
	error = sparse_file_need(&view, object->path, 0, size_bytes);
	if (!error && memcmp(view.data, memory, size_bytes))
		error = sym_error_create_path(SYM_ERROR_STALE, object->path, SYM_OFFSET_UNKNOWN,
					      "the file was changed after it was mapped");
	sparse_file_deinit(&view);
	return error;
}

/*
 * The time of the last inode change, which no program can set. A file may be overwritten and get
 * its old mtime back. Changes of owner and mode count too.
 */
static bool inode_change_ns(const struct object_file *object, int64_t *ret)
{
	struct stat status;

	if (fstat(object->file.fd, &status))
		return false;
	*ret = sparse_file_inode_time_ns(&status);
	return true;
}

static bool inode_may_have_changed(const struct process *process, const struct object_file *object)
{
	int64_t change_ns;

	return inode_change_ns(object, &change_ns) && is_after_start(process, change_ns);
}

static struct sym_error *ask_pointers(const struct process *process,
				      const struct object_file *object, uint64_t load_base)
{
	struct sym_error *error = relocation_check_ask(process, object, load_base);

	if (!error || sym_error_code(error) != SYM_ERROR_PERMISSION)
		return error;
	sym_error_destroy(error);
	if (!mapped_file_check_may_have_changed(process, object))
		return NULL;
	return sym_error_create_path(SYM_ERROR_STALE, object->path, SYM_OFFSET_UNKNOWN,
				     "the file was changed after the process began, and without "
				     "its memory the mapped content cannot be checked");
}

/*
 * The address of the beginning of the file: in this placement, or in another one if this is a copy
 * of code only (node moves its built-in functions near to its jitted code).
 * UINT64_MAX: none.
 */
static uint64_t beginning_of_file(const struct object_file *object, const struct mapped_file *group,
				  uint64_t expected_address)
{
	uint64_t first = object->file.offset; /* of an image inside another file */
	uint64_t elsewhere = UINT64_MAX;

	for (size_t i = 0; i < group->mapping_count; i++) {
		const struct sym_mapping *line = &group->mappings[i];

		if (line->offset > first ||
		    first - line->offset >= line->end_address - line->start_address)
			continue;
		elsewhere = line->start_address + (first - line->offset);
		if (elsewhere == expected_address)
			return expected_address;
	}
	return elsewhere;
}

/* Compares a file that may have changed with the memory of the process. */
static struct sym_error *ask_memory(const struct process *process, const struct object_file *object,
				    uint64_t load_base, const struct mapped_file *group)
{
	const struct object_segment *header = header_segment(object);
	bool is_flat = load_base == UINT64_MAX; /* mapped as it is in its file, loaded or not */
	uint64_t size_bytes, address;

	/*
	 * A change in place is visible wherever the process has no own copy of a page, headers
	 * included.
	 */
	if (object->kind != SYM_IMAGE_ELF)
		return ask_pointers(process, object, load_base);
	if (!header && !is_flat)
		return NULL;
	address = beginning_of_file(object, group,
				    is_flat ? UINT64_MAX : load_base + header->position);
	if (address == UINT64_MAX)
		return NULL;
	size_bytes = is_flat ? object->file.size_bytes : header->size_bytes;
	size_bytes = size_bytes < COMPARED_BYTES ? size_bytes : COMPARED_BYTES;
	return compare_header(process, object, address, (size_t)size_bytes);
}

/*
 * For a process that has ended, memory proves nothing, and its inode may be another file by now.
 * A file that was not changed since its mappings were read is the mapped one. For an ELF file that
 * suffices: its memory would prove no more.
 * A PE file would need its relocated pointers.
 */
static struct sym_error *ask_nobody(const struct object_file *object, int64_t seen_ns,
				    const struct sym_error *ended)
{
	int64_t change_ns;

	if (object->kind == SYM_IMAGE_ELF && inode_change_ns(object, &change_ns) &&
	    change_ns <= seen_ns)
		return NULL;
	return sym_error_create_path(SYM_ERROR_STALE, object->path, SYM_OFFSET_UNKNOWN,
				     "the file was changed after the process began, and the "
				     "mapped content cannot be checked: %s",
				     sym_error_message(ended));
}

struct sym_error *mapped_file_check(const struct process *process, const struct object_file *object,
				    uint64_t load_base, const struct mapped_file *group)
{
	struct sym_error *error, *ended;

	if (process->core && !object->is_copy)
		return core_check_image(process, object, load_base);
	if (object->is_copy || (load_base == UINT64_MAX && object->kind != SYM_IMAGE_ELF) ||
	    !(mapped_file_check_may_have_changed(process, object) ||
	      inode_may_have_changed(process, object)))
		return NULL;
	error = ask_memory(process, object, load_base, group);
	ended = process_check(process);
	if (ended && sym_error_code(ended) == SYM_ERROR_STALE) {
		sym_error_destroy(error);
		error = ask_nobody(object, group->seen_ns, ended);
	}
	sym_error_destroy(ended);
	return error;
}
