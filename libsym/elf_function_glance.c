/* SPDX-License-Identifier: MIT */
#include "libsym/elf_function_glance.h"

#include <stdlib.h>

#include "libsym/base/cleanup.h"

enum {
	RECORD_BYTES = 128 /* of an FDE or a CIE, as far as eh_frame.c ever looks at one */
};

struct elf_function_glance {
	const struct image *image;
	struct sparse_file view;
	uint64_t header_offset; /* in it */
	struct eh_frame_rows rows;
	uint64_t frame_offset; /* of the records in it; what has not been asked for is not there */
	struct eh_frame frame;
};

void elf_function_glance_close(struct elf_function_glance *glance)
{
	if (!glance)
		return;
	sparse_file_deinit(&glance->view);
	free(glance);
}

/* Sees to it that they are there, as far as the file goes. */
static bool need(struct elf_function_glance *glance, uint64_t offset, uint64_t size_bytes)
{
	struct sym_error *error;

	if (offset > glance->view.size_bytes)
		return false;
	if (size_bytes > glance->view.size_bytes - offset)
		size_bytes = glance->view.size_bytes - offset;
	error = sparse_file_need(&glance->view, glance->image->path, offset, size_bytes);
	sym_error_destroy(error);
	return !error;
}

/* False where there is nothing to be looked up in. */
static bool open_rows(struct elf_function_glance *glance)
{
	const struct image *image = glance->image;
	uint64_t bytes = image->unwind_bytes, left, rows_bytes;
	struct reader whole;

	if (!bytes ||
	    !image_position_in_view(image, image->unwind_vaddr, &glance->header_offset, &left))
		return false;
	if (bytes > left)
		bytes = left;
	if (!need(glance, glance->header_offset, EH_FRAME_HEADER_BYTES))
		return false;
	whole = image_reader(image, glance->view.data, glance->view.size_bytes);
	if (!eh_frame_rows_read(reader_part(&whole, (size_t)glance->header_offset, (size_t)bytes),
				image->unwind_vaddr, image->is_64bit, &glance->rows))
		return false;
	rows_bytes = (uint64_t)glance->rows.count * EH_FRAME_ROW_BYTES;
	if (!rows_bytes || rows_bytes > bytes - glance->rows.offset ||
	    !image_position_in_view(image, glance->rows.frame_vaddr, &glance->frame_offset, &left))
		return false;
	glance->frame =
		eh_frame_over(reader_part(&whole, (size_t)glance->frame_offset, (size_t)left),
			      glance->rows.frame_vaddr, image->is_64bit);
	return true;
}

struct sym_error *elf_function_glance_open(const struct image *image,
					   struct elf_function_glance **ret)
{
	struct elf_function_glance *glance AUTO_ELF_FUNCTION_GLANCE = calloc(1, sizeof(*glance));

	*ret = NULL;
	if (!glance)
		return &sym_error_no_memory;
	glance->image = image;
	glance->view = image_view(image);
	if (open_rows(glance))
		*ret = STEAL(glance);
	return NULL;
}

static bool row_at(struct elf_function_glance *glance, size_t number, struct eh_frame_row *ret)
{
	uint64_t offset =
		glance->header_offset + glance->rows.offset + (uint64_t)number * EH_FRAME_ROW_BYTES;

	if (!need(glance, offset, EH_FRAME_ROW_BYTES))
		return false;
	*ret = eh_frame_row_read(
		&glance->rows,
		image_reader(glance->image, glance->view.data + offset, EH_FRAME_ROW_BYTES));
	return true;
}

/* How many rows begin at or below `vaddr`; 0 also for a file that cannot be read. */
static size_t count_up_to(struct elf_function_glance *glance, uint64_t vaddr)
{
	size_t low = 0, high = glance->rows.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct eh_frame_row row;

		if (!row_at(glance, middle, &row))
			return 0;
		if (row.start <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool read_fde(struct elf_function_glance *glance, uint64_t vaddr,
		     struct eh_frame_function *ret)
{
	uint64_t offset = vaddr - glance->rows.frame_vaddr;
	size_t cie;

	return vaddr >= glance->rows.frame_vaddr && offset < glance->frame.records.size_bytes &&
	       need(glance, glance->frame_offset + offset, RECORD_BYTES) &&
	       eh_frame_cie_at(&glance->frame, (size_t)offset, &cie) &&
	       need(glance, glance->frame_offset + cie, RECORD_BYTES) &&
	       eh_frame_at(&glance->frame, (size_t)offset, ret);
}

/* What a function has of its segment, and in front of the next one. */
static void fit(struct elf_function_glance *glance, size_t number,
		const struct image_segment *segment, struct eh_frame_function *function)
{
	uint64_t room = segment->position_size_bytes - (function->vaddr - segment->position);
	struct eh_frame_row next;

	if (function->size_bytes > room)
		function->size_bytes = room;
	if (number + 1 < glance->rows.count && row_at(glance, number + 1, &next) &&
	    next.start > function->vaddr && next.start - function->vaddr < function->size_bytes &&
	    image_find_segment(glance->image, next.start))
		function->size_bytes = next.start - function->vaddr;
}

bool elf_function_glance_find(struct elf_function_glance *glance, uint64_t vaddr,
			      struct eh_frame_function *ret)
{
	size_t count = count_up_to(glance, vaddr);
	const struct image_segment *segment;
	struct eh_frame_row row, before;
	struct sym_error *changed;

	if (!count || !row_at(glance, count - 1, &row) || !read_fde(glance, row.fde, ret) ||
	    ret->vaddr != row.start)
		return false;
	/* Of two that begin together the longer one counts. */
	if (count > 1 && (!row_at(glance, count - 2, &before) || before.start == row.start))
		return false;
	segment = image_find_segment(glance->image, ret->vaddr);
	if (!segment)
		return false;
	fit(glance, count - 1, segment, ret);
	/* It was read piece by piece. */
	changed = sparse_file_check(&glance->view, glance->image->path);
	sym_error_destroy(changed);
	return !changed && vaddr - ret->vaddr < ret->size_bytes;
}
