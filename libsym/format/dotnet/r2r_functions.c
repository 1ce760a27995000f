/* SPDX-License-Identifier: MIT */
/*
 * From runtime functions to ranges. The range of a method starts at its entry's runtime function
 * and ends with the last one before the next entry's. Several entries may share a runtime function
 * (folded code), so the next distinct one counts.
 *
 *   x64: u32 begin, u32 end, u32 unwind
 *   others: u32 begin (ARM: bit 0 is the thumb bit), u32 unwind; the length is
 *   in the unwind data: ARM64 (and its like) bits 0-17 * 4, ARM bits 0-17 * 2,
 *   x86 the first u32; up to format 10 (.NET 9) the first number of the GC
 *   information, 7 bits a byte, the highest first, bit 7 set in all but the last
 */
#include "libsym/format/dotnet/r2r_functions.h"

#include <stdlib.h>

#include "libsym/base/ascending.h"

static struct sym_error *r2r_functions_format_error(const char *what)
{
	return sym_error_create(SYM_ERROR_FORMAT, "not a usable ReadyToRun image: %s", what);
}

static uint32_t read_u32(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static uint32_t function_begin(const struct r2r *r2r, uint32_t number)
{
	uint32_t begin = read_u32(r2r->functions + (size_t)number * r2r->function_bytes);

	return r2r->pe->machine == PE_MACHINE_ARM ? begin & ~1u : begin;
}

/* Before .NET 10, x86 had no unwind data; its GC information starts with the length. */
static const uint16_t last_major_version_of_gc_lengths = 10;

static bool read_gc_info_length(const struct pe *pe, uint32_t rva, uint32_t *ret)
{
	size_t available_bytes;
	const uint8_t *bytes = pe_bytes_to_end(pe, rva, &available_bytes);
	uint32_t length = 0;

	for (size_t i = 0; bytes && i < available_bytes && i < 5; i++) {
		length = length << 7 | (bytes[i] & 0x7f);
		if (!(bytes[i] & 0x80)) {
			*ret = length;
			return true;
		}
	}
	return false;
}

/* Size of the code that the unwind data at `rva` covers. */
static bool read_unwind_length(const struct r2r *r2r, uint32_t rva, uint32_t *ret)
{
	const struct pe *pe = r2r->pe;
	const uint8_t *bytes;

	/* The packed form of ARM64 has the length in the field itself. */
	if (pe->machine == PE_MACHINE_ARM64 && rva & 3) {
		*ret = (rva >> 2 & 0x7ff) * 4;
		return true;
	}
	if (pe->machine == PE_MACHINE_I386 &&
	    r2r->major_version <= last_major_version_of_gc_lengths)
		return read_gc_info_length(pe, rva, ret);
	bytes = pe_bytes(pe, rva, 4);
	if (!bytes)
		return false;
	if (pe->machine == PE_MACHINE_I386)
		*ret = read_u32(bytes);
	else
		*ret = (read_u32(bytes) & 0x3ffff) * (pe->machine == PE_MACHINE_ARM ? 2 : 4);
	return true;
}

static bool function_end(const struct r2r *r2r, uint32_t number, uint64_t *ret)
{
	const uint8_t *row = r2r->functions + (size_t)number * r2r->function_bytes;
	uint32_t length;

	if (r2r->pe->machine == PE_MACHINE_AMD64) {
		*ret = read_u32(row + 4);
		return true;
	}
	if (!read_unwind_length(r2r, read_u32(row + 4), &length))
		return false;
	*ret = (uint64_t)function_begin(r2r, number) + length;
	return true;
}

/* Functions must ascend and lie inside the image, so that no range covers another method's code. */
static struct sym_error *check_functions(const struct r2r *r2r)
{
	uint32_t previous = 0;

	for (uint32_t i = 0; i < r2r->function_count; i++) {
		uint32_t begin = function_begin(r2r, i);
		uint64_t end;

		if (begin < previous || !function_end(r2r, i, &end) || end <= begin ||
		    end > r2r->pe->size_of_image_bytes)
			return r2r_functions_format_error("malformed runtime function");
		previous = begin;
	}
	return NULL;
}

static const uint8_t *find_hot_cold_map(const struct r2r *r2r, uint32_t *count_ret)
{
	struct pe_directory section = r2r_section(&r2r->header, R2R_SECTION_HOT_COLD_MAP);

	*count_ret = section.size_bytes / 8;
	if (!section.rva || !*count_ret)
		return NULL;
	return pe_bytes(r2r->pe, section.rva, section.size_bytes);
}

static struct sym_error *check_hot_cold_map(struct r2r *r2r)
{
	uint32_t count, previous = 0;
	const uint8_t *map = find_hot_cold_map(r2r, &count);

	r2r->first_cold = r2r->function_count;
	if (!map)
		return r2r_section(&r2r->header, R2R_SECTION_HOT_COLD_MAP).size_bytes
			       ? r2r_functions_format_error("hot/cold map lies outside the image")
			       : NULL;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t cold = read_u32(map + (size_t)i * 8);

		if (cold <= previous || cold >= r2r->function_count)
			return r2r_functions_format_error("malformed hot/cold map");
		previous = cold;
	}
	r2r->first_cold = read_u32(map);
	return NULL;
}

struct sym_error *r2r_read_functions(struct r2r *r2r)
{
	struct pe_directory section = r2r_section(&r2r->header, R2R_SECTION_RUNTIME_FUNCTIONS);
	struct sym_error *error;

	r2r->function_bytes = r2r->pe->machine == PE_MACHINE_AMD64 ? 12 : 8;
	if (!section.rva || !section.size_bytes)
		return NULL;
	r2r->functions = pe_bytes(r2r->pe, section.rva, section.size_bytes);
	if (!r2r->functions)
		return r2r_functions_format_error("runtime functions lie outside the image");
	r2r->function_count = section.size_bytes / r2r->function_bytes;
	/* Some writers count the sentinel after the table. */
	while (r2r->function_count && function_begin(r2r, r2r->function_count - 1) >= 0xfffffffe)
		r2r->function_count--;
	error = check_functions(r2r);
	return error ? error : check_hot_cold_map(r2r);
}

uint32_t r2r_function_at(const struct r2r *r2r, uint32_t rva)
{
	uint32_t first;

	if (r2r->pe->machine == PE_MACHINE_ARM)
		rva &= ~1u;
	first = (uint32_t)ASCENDING_COUNT(r2r->function_count, i,
					  function_begin(r2r, (uint32_t)i) < rva);
	return first < r2r->function_count && function_begin(r2r, first) == rva
		       ? first
		       : r2r->function_count;
}

/* ---- ranges --------------------------------------------------------------- */

static int compare_ranges(const void *left_item, const void *right_item)
{
	const struct r2r_range *left = left_item, *right = right_item;

	if (left->rva != right->rva)
		return left->rva < right->rva ? -1 : 1;
	if (left->kind != right->kind)
		return left->kind < right->kind ? -1 : 1;
	return left->entry < right->entry ? -1 : left->entry > right->entry;
}

/* The end of the functions [first, end). They may be nested, so it is not always the last one's. */
static uint64_t end_of_functions(const struct r2r *r2r, uint32_t first, uint32_t end)
{
	uint64_t last = 0, one = 0;

	for (uint32_t i = first; i < end; i++)
		if (function_end(r2r, i, &one) && one > last)
			last = one;
	return last;
}

static struct r2r_range range_of_functions(const struct r2r *r2r, uint32_t first, uint32_t end,
					   enum r2r_range_kind kind)
{
	uint32_t begin = function_begin(r2r, first);

	return (struct r2r_range){
		.rva = begin,
		.size_bytes = (uint32_t)(end_of_functions(r2r, first, end) - begin),
		.kind = kind,
	};
}

static void add_range(struct r2r *r2r, struct r2r_range range, uint32_t entry)
{
	range.entry = entry;
	r2r->ranges[r2r->range_count++] = range;
}

/* `heads[f]` is the first entry whose first runtime function is f; `next` links them in table
 * order. */
struct entry_lists {
	uint32_t *heads; /* by runtime function: entry + 1, or 0 */
	uint32_t *next;  /* by entry: entry + 1, or 0 */
};

static void guard_entry_lists(struct entry_lists *lists)
{
	free(lists->heads);
	free(lists->next);
}

static bool list_entries(const struct r2r *r2r, struct entry_lists *lists)
{
	lists->heads = calloc((size_t)r2r->function_count + 1, sizeof(*lists->heads));
	lists->next = calloc(r2r->entry_count + 1, sizeof(*lists->next));
	if (!lists->heads || !lists->next)
		return false;
	for (size_t i = r2r->entry_count; i-- > 0;) {
		uint32_t *head = &lists->heads[r2r->entries[i].function];

		lists->next[i] = *head;
		*head = (uint32_t)i + 1;
	}
	return true;
}

static void add_methods(struct r2r *r2r, const struct entry_lists *lists)
{
	uint32_t first = 0, end;

	while (first < r2r->first_cold && !lists->heads[first])
		first++;
	r2r->ownerless_count += first;
	for (; first < r2r->first_cold; first = end) {
		uint32_t entry = lists->heads[first];
		struct r2r_range range;

		end = first + 1;
		while (end < r2r->first_cold && !lists->heads[end])
			end++;
		range = range_of_functions(r2r, first, end, R2R_METHOD);
		for (; entry; entry = lists->next[entry - 1])
			add_range(r2r, range, entry - 1);
	}
}

/*
 * Cold parts follow all hot code. Each extends from its first runtime function to the next pair's.
 */
static void add_cold_parts(struct r2r *r2r, const struct entry_lists *lists)
{
	uint32_t count;
	const uint8_t *map = find_hot_cold_map(r2r, &count);

	for (uint32_t i = 0; map && i < count; i++) {
		uint32_t first = read_u32(map + (size_t)i * 8);
		uint32_t hot = read_u32(map + (size_t)i * 8 + 4);
		uint32_t end =
			i + 1 < count ? read_u32(map + (size_t)(i + 1) * 8) : r2r->function_count;

		if (hot >= r2r->first_cold || !lists->heads[hot])
			r2r->ownerless_count += end - first;
		else
			add_range(r2r, range_of_functions(r2r, first, end, R2R_COLD),
				  lists->heads[hot] - 1);
	}
}

static void add_stubs(struct r2r *r2r)
{
	struct pe_directory section = r2r_section(&r2r->header, R2R_SECTION_DELAY_LOAD_THUNKS);

	if (section.rva && section.size_bytes &&
	    (uint64_t)section.rva + section.size_bytes <= r2r->pe->size_of_image_bytes)
		r2r->ranges[r2r->range_count++] = (struct r2r_range){
			.rva = section.rva,
			.size_bytes = section.size_bytes,
			.kind = R2R_STUB,
		};
}

struct sym_error *r2r_find_ranges(struct r2r *r2r)
{
	__attribute__((cleanup(guard_entry_lists))) struct entry_lists lists = { 0 };
	uint32_t cold_count;

	find_hot_cold_map(r2r, &cold_count);
	r2r->ranges = calloc(r2r->entry_count + cold_count + 1, sizeof(*r2r->ranges));
	if (!r2r->ranges || !list_entries(r2r, &lists))
		return &sym_error_no_memory;
	add_methods(r2r, &lists);
	add_cold_parts(r2r, &lists);
	add_stubs(r2r);
	ascending_sort_by(r2r->ranges, r2r->range_count, sizeof(*r2r->ranges), compare_ranges);
	return NULL;
}
