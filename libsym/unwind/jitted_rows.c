/* SPDX-License-Identifier: MIT */
#include "libsym/unwind/jitted_rows.h"

#include <stdlib.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/reader.h"
#include "libsym/format/dotnet/pe_unwind.h"

enum {
	LAST_STUB_KIND = 64, /* the word before a block of stubs is a small number */
	COUNT_OFFSET = 32,
	FUNCTIONS_OFFSET = 36,
	FUNCTION_BYTES = 12,
	MAX_FUNCTIONS = 4096, /* body and funclets of one method */
	BASE_ALIGNMENT = 8,   /* a heap of dynamic methods starts after its own header */
	/* header, 255 codes and one to align, function that it is chained to */
	INFO_BYTES = 4 + 2 * 256 + FUNCTION_BYTES,
};

/* One method while its row is made. */
struct method {
	const struct process *process;
	uint64_t start_address, size_bytes;
	uint64_t base_address; /* base of the RUNTIME_FUNCTION numbers */
	uint8_t info[INFO_BYTES];
};

static bool read_at(const struct process *process, uint64_t address, void *room, size_t size_bytes)
{
	struct sym_error *error = process_read_memory(process, address, room, size_bytes);

	sym_error_destroy(error);
	return !error;
}

static bool read_u64(const struct process *process, uint64_t address, uint64_t *ret)
{
	uint8_t bytes[8];
	struct reader reader = reader_over(bytes, sizeof(bytes));

	if (!read_at(process, address, bytes, sizeof(bytes)))
		return false;
	*ret = reader_u64(&reader);
	return true;
}

static struct pe_unwind_function read_function(struct reader *reader)
{
	struct pe_unwind_function function;

	function.begin_rva = reader_u32(reader);
	function.end_rva = reader_u32(reader);
	function.unwind_rva = reader_u32(reader);
	return function;
}

/*
 * Finds the function that contains the address. The functions must follow one another, from the
 * start of the method to its end: then this is the header of the method.
 */
static bool choose(struct method *method, struct reader *functions, uint32_t count,
		   uint64_t address, struct pe_unwind_function *ret)
{
	uint64_t offset = address - method->start_address, first = 0, end = 0;
	bool found = false;

	for (uint32_t i = 0; i < count; i++) {
		struct pe_unwind_function function = read_function(functions);

		if (i == 0)
			first = end = function.begin_rva;
		if (function.begin_rva != end || function.end_rva <= function.begin_rva)
			return false;
		end = function.end_rva;
		if (function.begin_rva - first <= offset && offset < end - first) {
			*ret = function;
			found = true;
		}
	}
	method->base_address = method->start_address - first;
	return found && end - first == method->size_bytes && first <= method->start_address &&
	       method->base_address % BASE_ALIGNMENT == 0;
}

static bool find_function(struct method *method, uint64_t address, struct pe_unwind_function *ret)
{
	uint64_t header, count;
	uint8_t *bytes AUTO_FREE = NULL;
	struct reader reader;

	if (!read_u64(method->process, method->start_address - 8, &header) ||
	    header <= LAST_STUB_KIND || header % 8 ||
	    !read_u64(method->process, header + COUNT_OFFSET, &count))
		return false;
	count &= UINT32_MAX;
	if (!count || count > MAX_FUNCTIONS)
		return false;
	bytes = calloc((size_t)count, FUNCTION_BYTES);
	if (!bytes || !read_at(method->process, header + FUNCTIONS_OFFSET, bytes,
			       (size_t)count * FUNCTION_BYTES))
		return false;
	reader = reader_over(bytes, (size_t)count * FUNCTION_BYTES);
	return choose(method, &reader, (uint32_t)count, address, ret);
}

static const uint8_t *info_at(void *context, uint32_t rva, size_t *available_bytes_ret)
{
	struct method *method = context;
	uint64_t address = method->base_address + rva;
	size_t size_bytes;

	/* Four bytes first: the rest may be unmapped. */
	if (!read_at(method->process, address, method->info, 4))
		return NULL;
	size_bytes = 4 + ((size_t)method->info[2] + 1) / 2 * 4;
	if (method->info[0] >> 3 & 4)
		size_bytes += FUNCTION_BYTES;
	if (!read_at(method->process, address, method->info, size_bytes))
		return NULL;
	*available_bytes_ret = size_bytes;
	return method->info;
}

static bool find_epilog(const struct method *method, const struct pe_unwind_function *function,
			uint32_t offset, struct frame_row *ret)
{
	uint32_t function_bytes = function->end_rva - function->begin_rva;
	uint8_t code[PE_UNWIND_EPILOG_BYTES];
	size_t size_bytes = sizeof(code);

	if (size_bytes > function_bytes - offset)
		size_bytes = function_bytes - offset;
	return read_at(method->process, method->base_address + function->begin_rva + offset, code,
		       size_bytes) &&
	       pe_unwind_epilog_row(code, size_bytes, offset, function_bytes, ret);
}

bool jitted_row_find(const struct process *process, uint64_t start_address, uint64_t size_bytes,
		     uint64_t address, bool is_call, struct frame_row *ret)
{
	struct method method = { .process = process,
				 .start_address = start_address,
				 .size_bytes = size_bytes };
	struct pe_unwind_function function;
	const uint8_t *info;
	size_t available;
	uint32_t offset;

	if (address - start_address >= size_bytes || !find_function(&method, address, &function))
		return false;
	offset = (uint32_t)(address - method.base_address - function.begin_rva);
	info = info_at(&method, function.unwind_rva, &available);
	if (!info)
		return false;
	if (!is_call && offset >= pe_unwind_prolog_bytes(info, available) &&
	    find_epilog(&method, &function, offset, ret))
		return true;
	return pe_unwind_row(&function, offset, info_at, &method, ret);
}
