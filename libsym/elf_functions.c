/* SPDX-License-Identifier: MIT */
#include "libsym/elf_functions.h"

#include <stdlib.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/lazy.h"
#include "libsym/elf_sections.h"
#include "libsym/format/eh_frame.h"
#include "libsym/limits.h"

void elf_functions_destroy(struct elf_functions *functions)
{
	if (functions)
		free(functions->items);
	free(functions);
}

DEFINE_GUARD(elf_functions, struct elf_functions *, elf_functions_destroy)

/* Bytes of the file at a vaddr: at most `size_bytes`, fewer where the segment ends. */
static struct sym_error *bytes_at(const struct image *image, struct sparse_file *view,
				  uint64_t vaddr, uint64_t size_bytes, struct reader *ret)
{
	struct sym_error *error;
	struct reader whole;
	uint64_t offset, left;

	*ret = reader_over(NULL, 0);
	if (!image_position_in_view(image, vaddr, &offset, &left))
		return NULL;
	if (size_bytes > left)
		size_bytes = left;
	error = sparse_file_need(view, image->path, offset, size_bytes);
	if (error)
		return error;
	whole = image_reader(image, view->data, view->size_bytes);
	*ret = reader_part(&whole, (size_t)offset, (size_t)size_bytes);
	return NULL;
}

/* By the program headers alone: the header says where .eh_frame begins, its last record where it
 * ends. */
static struct sym_error *find_by_segment(const struct image *image, struct sparse_file *view,
					 struct reader *ret, uint64_t *vaddr_ret)
{
	struct reader header;
	struct sym_error *error;

	error = bytes_at(image, view, image->unwind_vaddr, image->unwind_bytes, &header);
	if (error || !eh_frame_header_read(header, image->unwind_vaddr, image->is_64bit, vaddr_ret))
		return error;
	return bytes_at(image, view, *vaddr_ret, UINT64_MAX, ret);
}

static struct sym_error *find_records(const struct image *image, struct elf_sections *sections,
				      struct reader *ret, uint64_t *vaddr_ret)
{
	const GElf_Shdr *section = elf_sections_find_named(sections, ".eh_frame");

	*ret = reader_over(NULL, 0);
	if (section) {
		*vaddr_ret = section->sh_addr;
		return elf_sections_bytes(sections, section, ret);
	}
	return image->unwind_bytes ? find_by_segment(image, &sections->view, ret, vaddr_ret) : NULL;
}

/* Cut at the end of its segment; false for what is not in executable code (left over by the
 * linker). */
static bool fit(const struct image *image, struct eh_frame_function *function)
{
	const struct image_segment *segment = image_find_segment(image, function->vaddr);
	uint64_t room;

	if (!segment)
		return false;
	room = segment->position_size_bytes - (function->vaddr - segment->position);
	if (function->size_bytes > room)
		function->size_bytes = room;
	return true;
}

static struct sym_error *collect(const struct image *image, struct eh_frame frame, bool count_only,
				 struct elf_functions *functions)
{
	struct eh_frame_function function;

	functions->count = 0;
	while (eh_frame_next(&frame, &function)) {
		uint64_t distance = function.vaddr - functions->base;

		if (!fit(image, &function))
			continue;
		if (count_only) {
			if (!functions->count++ || function.vaddr < functions->base)
				functions->base = function.vaddr;
			continue;
		}
		if (distance > UINT32_MAX || function.size_bytes > UINT32_MAX)
			continue;
		functions->items[functions->count++] = (struct elf_function_extent){
			.distance = (uint32_t)distance,
			.size_bytes = (uint32_t)function.size_bytes,
		};
	}
	if (count_only && functions->count > LIMIT_INDEX_SYMBOLS)
		return sym_error_create(SYM_ERROR_LIMIT,
					"more than %zu functions (LIMIT_INDEX_SYMBOLS)",
					LIMIT_INDEX_SYMBOLS);
	return NULL;
}

static int compare(const void *left, const void *right)
{
	const struct elf_function_extent *a = left, *b = right;

	if (a->distance != b->distance)
		return a->distance < b->distance ? -1 : 1;
	return (a->size_bytes < b->size_bytes) - (a->size_bytes > b->size_bytes);
}

/* Of two that begin together the longer one; one that reaches into the next ends there. */
static void make_disjoint(struct elf_functions *functions)
{
	struct elf_function_extent *items = functions->items;
	size_t kept = 0;

	qsort(items, functions->count, sizeof(*items), compare);
	for (size_t i = 0; i < functions->count; i++) {
		struct elf_function_extent *last = kept ? &items[kept - 1] : NULL;

		if (last && last->distance == items[i].distance)
			continue;
		if (last && last->size_bytes > items[i].distance - last->distance)
			last->size_bytes = items[i].distance - last->distance;
		items[kept++] = items[i];
	}
	functions->count = kept;
}

static struct sym_error *read_records(const struct image *image, struct reader records,
				      uint64_t vaddr, struct elf_functions *functions)
{
	struct eh_frame frame = eh_frame_over(records, vaddr, image->is_64bit);
	struct sym_error *error = collect(image, frame, true, functions);

	if (error || !functions->count)
		return error;
	functions->items = reallocarray(NULL, functions->count, sizeof(*functions->items));
	if (!functions->items)
		return &sym_error_no_memory;
	error = collect(image, frame, false, functions);
	make_disjoint(functions);
	return error;
}

static struct sym_error *read_functions(const struct image *image, struct elf_functions *functions)
{
	struct elf_sections sections AUTO_ELF_SECTIONS = { 0 };
	struct sym_error *error = elf_sections_read(image, &sections);
	struct reader records;
	uint64_t vaddr = 0;

	if (!error)
		error = find_records(image, &sections, &records, &vaddr);
	if (!error)
		error = read_records(image, records, vaddr, functions);
	return error;
}

static void *make_functions(const void *image)
{
	struct elf_functions *functions GUARDED(elf_functions) = calloc(1, sizeof(*functions));
	struct sym_error *error = functions ? read_functions(image, functions) : NULL;
	bool again = error && sym_error_code(error) == SYM_ERROR_NO_MEMORY;

	sym_error_destroy(error);
	if (error && functions)
		functions->count = 0;
	return again ? NULL : STEAL(functions);
}

const struct elf_functions *elf_functions_of(struct image *image)
{
	return lazy_get(&image->functions, make_functions, image);
}

/* Number of functions that begin at or before `vaddr`. */
static size_t count_up_to(const struct elf_functions *functions, uint64_t vaddr)
{
	size_t low = 0, high = functions->count;

	if (vaddr < functions->base)
		return 0;
	vaddr -= functions->base;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (functions->items[middle].distance <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t elf_functions_find(const struct elf_functions *functions, uint64_t vaddr)
{
	size_t count = count_up_to(functions, vaddr);
	const struct elf_function_extent *found;

	if (!count)
		return ELF_FUNCTIONS_NONE;
	found = &functions->items[count - 1];
	return vaddr - functions->base - found->distance < found->size_bytes ? count - 1
									     : ELF_FUNCTIONS_NONE;
}

uint64_t elf_functions_end_of(const struct elf_functions *functions, uint64_t vaddr)
{
	size_t count = count_up_to(functions, vaddr);
	size_t covering = elf_functions_find(functions, vaddr);

	if (covering != ELF_FUNCTIONS_NONE)
		return functions->base + functions->items[covering].distance +
		       functions->items[covering].size_bytes;
	return count < functions->count ? functions->base + functions->items[count].distance
					: UINT64_MAX;
}

uint64_t elf_functions_next_after(const struct elf_functions *functions, uint64_t vaddr)
{
	size_t count = count_up_to(functions, vaddr);

	return count < functions->count ? functions->base + functions->items[count].distance
					: UINT64_MAX;
}
