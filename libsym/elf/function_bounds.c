/* SPDX-License-Identifier: MIT */
/*
 * Reads all FDEs of .eh_frame (eh_frame.h), cuts each at the end of its segment, sorts them, and
 * removes overlaps (add_disjoint()). The result has 8 bytes per function: the distance to the first
 * function and the size. Look-ups are binary searches.
 */
#include "libsym/elf/function_bounds.h"

#include <stdlib.h>

#include "libsym/base/ascending.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/grow.h"
#include "libsym/base/lazy.h"
#include "libsym/elf/elf_sections.h"
#include "libsym/format/elf/eh_frame.h"
#include "libsym/index/index_sort.h"
#include "libsym/limits.h"

static void function_bounds_destroy(struct function_bounds *functions)
{
	if (functions)
		free(functions->items);
	free(functions);
}

DEFINE_GUARD(function_bounds, struct function_bounds *, function_bounds_destroy)

/* Uses the program headers only: .eh_frame_hdr contains the start of .eh_frame, whose last record
 * marks its end. */
static struct sym_error *find_by_segment(const struct object_file *object, struct sparse_file *view,
					 struct reader *ret, uint64_t *vaddr_ret)
{
	struct reader header;
	struct sym_error *error;

	error = object_file_read_in_view(object, view, object->unwind_vaddr, object->unwind_bytes,
					 &header);
	if (error ||
	    !eh_frame_header_read(header, object->unwind_vaddr, object->is_64bit, vaddr_ret))
		return error;
	return object_file_read_in_view(object, view, *vaddr_ret, UINT64_MAX, ret);
}

struct sym_error *function_bounds_records(const struct object_file *object,
					  struct elf_sections *sections, struct reader *ret,
					  uint64_t *vaddr_ret)
{
	const GElf_Shdr *section = elf_sections_find_named(sections, ".eh_frame");

	*ret = reader_over(NULL, 0);
	if (section) {
		*vaddr_ret = section->sh_addr;
		return elf_sections_bytes(sections, section, ret);
	}
	return object->unwind_bytes ? find_by_segment(object, &sections->view, ret, vaddr_ret)
				    : NULL;
}

/* Cuts a function at the end of its segment. Returns false if it is not in executable code (left
 * over by the linker). */
static bool clip_to_segment(const struct object_file *object, struct eh_frame_function *function)
{
	const struct object_segment *segment = object_file_find_segment(object, function->vaddr);
	uint64_t room;

	if (!segment)
		return false;
	room = segment->position_size_bytes - (function->vaddr - segment->position);
	if (function->size_bytes > room)
		function->size_bytes = room;
	return true;
}

/* The functions in file order. */
struct collected {
	struct eh_frame_function *items;
	size_t count, capacity;
};

static struct sym_error *collect_functions(const struct object_file *object, struct eh_frame frame,
					   struct collected *ret)
{
	struct eh_frame_function function;

	while (eh_frame_next(&frame, &function)) {
		if (!clip_to_segment(object, &function))
			continue;
		if (ret->count == LIMIT_INDEX_SYMBOLS)
			return sym_error_create(SYM_ERROR_LIMIT,
						"more than %zu functions (LIMIT_INDEX_SYMBOLS)",
						LIMIT_INDEX_SYMBOLS);
		if (!grow_items((void **)&ret->items, &ret->capacity, ret->count,
				sizeof(*ret->items)))
			return &sym_error_no_memory;
		ret->items[ret->count++] = function;
	}
	return NULL;
}

/*
 * If two functions have one start, the longer counts. A function that overlaps the next one is cut.
 */
static void add_disjoint(struct function_bounds *functions,
			 const struct eh_frame_function *function)
{
	struct function_extent *last =
		functions->count ? &functions->items[functions->count - 1] : NULL;
	uint64_t distance = function->vaddr - functions->base;
	struct function_extent extent = { (uint32_t)distance, (uint32_t)function->size_bytes };

	if (distance > UINT32_MAX || function->size_bytes > UINT32_MAX)
		return;
	if (last && last->distance == extent.distance) {
		if (last->size_bytes < extent.size_bytes)
			last->size_bytes = extent.size_bytes;
		return;
	}
	if (last && last->size_bytes > extent.distance - last->distance)
		last->size_bytes = extent.distance - last->distance;
	functions->items[functions->count++] = extent;
}

static struct sym_error *read_records(const struct object_file *object, struct reader records,
				      uint64_t vaddr, struct function_bounds *functions)
{
	struct eh_frame frame = eh_frame_over(records, vaddr, object->is_64bit);
	struct collected collected = { 0 };
	struct sym_error *error = collect_functions(object, frame, &collected);
	uint32_t *order AUTO_FREE = NULL;

	if (!error && collected.count) {
		order = index_sort(&collected.items->vaddr, sizeof(*collected.items),
				   collected.count);
		functions->items = reallocarray(NULL, collected.count, sizeof(*functions->items));
		if (!order || !functions->items)
			error = &sym_error_no_memory;
	}
	if (!error && collected.count)
		functions->base = collected.items[order[0]].vaddr;
	for (size_t i = 0; !error && i < collected.count; i++)
		add_disjoint(functions, &collected.items[order[i]]);
	free(collected.items);
	return error;
}

static struct sym_error *read_functions(const struct object_file *object,
					struct function_bounds *functions)
{
	struct elf_sections sections AUTO_ELF_SECTIONS = { 0 };
	struct sym_error *error = elf_sections_read(object, &sections);
	struct reader records;
	uint64_t vaddr = 0;

	if (!error)
		error = function_bounds_records(object, &sections, &records, &vaddr);
	if (!error)
		error = read_records(object, records, vaddr, functions);
	return error;
}

static void *make_functions(const void *object)
{
	struct function_bounds *functions GUARDED(function_bounds) = calloc(1, sizeof(*functions));
	struct sym_error *error = functions ? read_functions(object, functions) : NULL;
	bool again = sym_error_is_no_memory(error);

	sym_error_destroy(error);
	if (error && functions)
		functions->count = 0;
	return again ? NULL : STEAL(functions);
}

static void destroy_functions(void *made)
{
	function_bounds_destroy(made);
}

const struct function_bounds *function_bounds_of(struct object_file *object)
{
	return lazy_get(&object->functions, make_functions, destroy_functions, object);
}

/* Number of functions that start at or before `vaddr`. */
static size_t count_up_to(const struct function_bounds *functions, uint64_t vaddr)
{
	if (vaddr < functions->base)
		return 0;
	vaddr -= functions->base;
	return ASCENDING_COUNT(functions->count, i, functions->items[i].distance <= vaddr);
}

size_t function_bounds_find(const struct function_bounds *functions, uint64_t vaddr)
{
	size_t count = count_up_to(functions, vaddr);
	const struct function_extent *found;

	if (!count)
		return FUNCTION_BOUNDS_NONE;
	found = &functions->items[count - 1];
	return vaddr - functions->base - found->distance < found->size_bytes ? count - 1
									     : FUNCTION_BOUNDS_NONE;
}

uint64_t function_bounds_next_after(const struct function_bounds *functions, uint64_t vaddr)
{
	size_t count = count_up_to(functions, vaddr);

	return count < functions->count ? functions->base + functions->items[count].distance
					: UINT64_MAX;
}

uint64_t function_bounds_own_end(const struct function_bounds *functions, uint64_t vaddr,
				 uint64_t limit)
{
	size_t covering = function_bounds_find(functions, vaddr);
	uint64_t next = function_bounds_next_after(functions, vaddr);

	if (covering != FUNCTION_BOUNDS_NONE)
		return functions->base + functions->items[covering].distance +
		       functions->items[covering].size_bytes;
	if (limit < next)
		next = limit;
	return next - vaddr <= FUNCTION_BOUNDS_NEAR_BYTES ? next : vaddr + 1;
}
