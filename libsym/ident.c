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
static bool inode_may_have_changed(const struct process *process, const struct image *image)
{
	struct stat status;

	return !fstat(image->file.fd, &status) &&
	       is_after_start(process,
			      (int64_t)status.st_ctim.tv_sec * 1000000000 + status.st_ctim.tv_nsec);
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

struct sym_error *ident_check(const struct process *process, const struct image *image,
			      uint64_t load_base)
{
	const struct image_segment *header = header_segment(image);
	uint64_t size_bytes;

	if (process->core && !image->is_copy)
		return core_check_image(process, image, load_base);
	if (image->is_copy || load_base == UINT64_MAX ||
	    !(ident_may_have_changed(process, image) || inode_may_have_changed(process, image)))
		return NULL;
	/* A change in place shows through wherever the process has no copy of a page: in headers
	 * too. */
	if (image->kind != SYM_IMAGE_ELF)
		return ask_pointers(process, image, load_base);
	if (!header)
		return NULL;
	size_bytes = header->size_bytes < COMPARED_BYTES ? header->size_bytes : COMPARED_BYTES;
	return compare_header(process, image, load_base + header->position, (size_t)size_bytes);
}
