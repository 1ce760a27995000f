/* SPDX-License-Identifier: MIT */
/*
 * Reads all FDEs of .eh_frame (eh_frame.h), cuts each at the end of its segment, sorts them, and
 * removes overlaps (make_disjoint()). Look-ups are binary searches.
 */
#include "libsym/elf/function_bounds.h"

#include <stdlib.h>

#include "libsym/base/ascending.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/grow.h"
#include "libsym/base/lazy.h"
#include "libsym/elf/elf_sections.h"
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
static struct sym_error *collect_functions(const struct object_file *object, struct eh_frame frame,
					   struct function_bounds *ret)
{
	struct eh_frame_function function;
	size_t capacity = 0;

	while (eh_frame_next(&frame, &function)) {
		if (!clip_to_segment(object, &function))
			continue;
		if (ret->count == LIMIT_INDEX_SYMBOLS)
			return sym_error_create(SYM_ERROR_LIMIT,
						"more than %zu functions (LIMIT_INDEX_SYMBOLS)",
						LIMIT_INDEX_SYMBOLS);
		if (!grow_items((void **)&ret->items, &capacity, ret->count, sizeof(*ret->items)))
			return &sym_error_no_memory;
		ret->items[ret->count++] = function;
	}
	return NULL;
}

/*
 * If two functions have one start, the longer counts. A function that overlaps the next one is cut.
 * Returns false if out of memory.
 */
static bool make_disjoint(struct function_bounds *functions)
{
	size_t kept = 0;

	if (!index_sort_items(functions->items, sizeof(*functions->items), functions->count))
		return false;
	for (size_t i = 0; i < functions->count; i++) {
		struct eh_frame_function *last = kept ? &functions->items[kept - 1] : NULL;
		struct eh_frame_function next = functions->items[i];

		if (last && last->vaddr == next.vaddr) {
			if (last->size_bytes < next.size_bytes)
				last->size_bytes = next.size_bytes;
			continue;
		}
		if (last && last->size_bytes > next.vaddr - last->vaddr)
			last->size_bytes = next.vaddr - last->vaddr;
		functions->items[kept++] = next;
	}
	functions->count = kept;
	return true;
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
		error = collect_functions(object, eh_frame_over(records, vaddr, object->is_64bit),
					  functions);
	if (!error && !make_disjoint(functions))
		return &sym_error_no_memory;
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

static size_t count_up_to(const struct function_bounds *functions, uint64_t vaddr)
{
	return ascending_items_up_to(functions->items, functions->count, sizeof(*functions->items),
				     vaddr);
}

size_t function_bounds_find(const struct function_bounds *functions, uint64_t vaddr)
{
	size_t last = count_up_to(functions, vaddr) - 1;

	return last != FUNCTION_BOUNDS_NONE && vaddr - functions->items[last].vaddr <
						       functions->items[last].size_bytes
		       ? last
		       : FUNCTION_BOUNDS_NONE;
}

uint64_t function_bounds_next_after(const struct function_bounds *functions, uint64_t vaddr)
{
	size_t count = count_up_to(functions, vaddr);

	return count < functions->count ? functions->items[count].vaddr : UINT64_MAX;
}

uint64_t function_bounds_own_end(const struct function_bounds *functions, uint64_t vaddr,
				 uint64_t limit)
{
	size_t covering = function_bounds_find(functions, vaddr);
	uint64_t next = function_bounds_next_after(functions, vaddr);

	if (covering != FUNCTION_BOUNDS_NONE)
		return functions->items[covering].vaddr + functions->items[covering].size_bytes;
	if (limit < next)
		next = limit;
	return next - vaddr <= FUNCTION_BOUNDS_NEAR_BYTES ? next : vaddr + 1;
}
