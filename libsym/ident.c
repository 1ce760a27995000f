/* SPDX-License-Identifier: MIT */
#include "libsym/ident.h"

#include <string.h>
#include <sys/stat.h>

#include "libsym/core_process.h"
#include "libsym/relocation_witness.h"

enum {
	COMPARED_BYTES = 4096
};

/*
 * Starts are known to a tick (10 ms) and are rounded down. A file that was made
 * just before its process is no suspect, and one that was changed so early was
 * changed before anything could be mapped.
 */
static const int64_t first_moments_ns = 20000000;

static bool is_after_start(const struct process *process, int64_t time_ns)
{
	return !process->recorded && (process->start_time_ns == PROCESS_TIME_UNKNOWN ||
				      time_ns >= process->start_time_ns + first_moments_ns);
}

bool ident_may_have_changed(const struct process *process, const struct image *image)
{
	return is_after_start(process, image->file.changed_ns);
}

/* The segment that begins the file, if it is loaded. */
static const struct image_segment *header_segment(const struct image *image)
{
	for (size_t i = 0; i < image->segment_count; i++)
		if (!image->segments[i].offset && image->segments[i].size_bytes)
			return &image->segments[i];
	return NULL;
}

static struct sym_error *compare_header(const struct process *process, const struct image *image,
					uint64_t address, size_t size_bytes)
{
	struct sparse_file view = image_view(image);
	uint8_t memory[COMPARED_BYTES];
	struct sym_error *error;

	error = process_read_memory(process, address, memory, size_bytes);
	if (error) {
		/* Not permitted, or not there: then memory is no witness. */
		sym_error_destroy(error);
		return NULL;
	}
	error = sparse_file_need(&view, image->path, 0, size_bytes);
	if (!error && memcmp(view.data, memory, size_bytes))
		error = sym_error_create_path(SYM_ERROR_STALE, image->path, SYM_OFFSET_UNKNOWN,
					      "the file was changed after it was mapped");
	sparse_file_deinit(&view);
	return error;
}

/*
 * The time of the last change of its inode, which nobody can set: a file may be
 * overwritten and given its old time again. But ownership and mode change it too.
 */
static bool inode_change_ns(const struct image *image, int64_t *ret)
{
	struct stat status;

	if (fstat(image->file.fd, &status))
		return false;
	*ret = sparse_file_inode_time_ns(&status);
	return true;
}

static bool inode_may_have_changed(const struct process *process, const struct image *image)
{
	int64_t change_ns;

	return inode_change_ns(image, &change_ns) && is_after_start(process, change_ns);
}

static struct sym_error *ask_pointers(const struct process *process, const struct image *image,
				      uint64_t load_base)
{
	struct sym_error *error = relocation_witness_ask(process, image, load_base);

	if (!error || sym_error_code(error) != SYM_ERROR_PERMISSION)
		return error;
	sym_error_destroy(error);
	if (!ident_may_have_changed(process, image))
		return NULL;
	return sym_error_create_path(SYM_ERROR_STALE, image->path, SYM_OFFSET_UNKNOWN,
				     "the file was changed after the process began, and without "
				     "its memory nobody can tell whether it was mapped by then");
}

/*
 * Where the process has the beginning of the file: where this placement has it or, if it is a copy
 * of code alone (node moves its built-in functions near to what it compiles), wherever else.
 * UINT64_MAX: nowhere.
 */
static uint64_t beginning_of_file(const struct image *image, const struct image_group *group,
				  uint64_t expected_address)
{
	uint64_t first = image->file.offset; /* of an image inside another file */
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

/* What the memory of the process says of a file that may have changed since it was mapped. */
static struct sym_error *ask_memory(const struct process *process, const struct image *image,
				    uint64_t load_base, const struct image_group *group)
{
	const struct image_segment *header = header_segment(image);
	bool is_flat = load_base == UINT64_MAX; /* as it lies in its file, loaded or not */
	uint64_t size_bytes, address;

	/* A change in place shows through wherever the process has no copy of a page: in headers
	 * too. */
	if (image->kind != SYM_IMAGE_ELF)
		return ask_pointers(process, image, load_base);
	if (!header && !is_flat)
		return NULL;
	address = beginning_of_file(image, group,
				    is_flat ? UINT64_MAX : load_base + header->position);
	if (address == UINT64_MAX)
		return NULL;
	size_bytes = is_flat ? image->file.size_bytes : header->size_bytes;
	size_bytes = size_bytes < COMPARED_BYTES ? size_bytes : COMPARED_BYTES;
	return compare_header(process, image, address, (size_t)size_bytes);
}

/*
 * A process that has ended is no witness, and the number of an inode that was its may be
 * another file's by now. One that nobody touched since the process was seen is what was mapped
 * then; that of an ELF file decides, whose memory says no more than that either. Of a PE file
 * its relocated pointers would have to be asked.
 */
static struct sym_error *ask_nobody(const struct image *image, int64_t seen_ns,
				    const struct sym_error *ended)
{
	int64_t change_ns;

	if (image->kind == SYM_IMAGE_ELF && inode_change_ns(image, &change_ns) &&
	    change_ns <= seen_ns)
		return NULL;
	return sym_error_create_path(SYM_ERROR_STALE, image->path, SYM_OFFSET_UNKNOWN,
				     "the file was changed after the process began, and nobody "
				     "can tell whether it was mapped by then: %s",
				     sym_error_message(ended));
}

struct sym_error *ident_check(const struct process *process, const struct image *image,
			      uint64_t load_base, const struct image_group *group)
{
	struct sym_error *error, *ended;

	if (process->core && !image->is_copy)
		return core_check_image(process, image, load_base);
	if (image->is_copy || (load_base == UINT64_MAX && image->kind != SYM_IMAGE_ELF) ||
	    !(ident_may_have_changed(process, image) || inode_may_have_changed(process, image)))
		return NULL;
	error = ask_memory(process, image, load_base, group);
	ended = process_check(process);
	if (ended && sym_error_code(ended) == SYM_ERROR_STALE) {
		sym_error_destroy(error);
		error = ask_nobody(image, group->seen_ns, ended);
	}
	sym_error_destroy(ended);
	return error;
}
