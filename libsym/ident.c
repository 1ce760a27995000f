/* SPDX-License-Identifier: MIT */
#include "libsym/ident.h"

#include <string.h>

enum {
	COMPARED_BYTES = 4096
};

bool ident_may_have_changed(const struct process *process, const struct image *image)
{
	return !process->recorded && (process->start_time_ns == PROCESS_TIME_UNKNOWN ||
				      image->file.changed_ns >= process->start_time_ns);
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

struct sym_error *ident_check(const struct process *process, const struct image *image,
			      uint64_t load_base)
{
	const struct image_segment *header = header_segment(image);
	uint64_t size_bytes;

	if (load_base == UINT64_MAX || !header || !ident_may_have_changed(process, image))
		return NULL;
	size_bytes = header->size_bytes < COMPARED_BYTES ? header->size_bytes : COMPARED_BYTES;
	return compare_header(process, image, load_base + header->position, (size_t)size_bytes);
}
