/* SPDX-License-Identifier: MIT */
#include "libsym/format/dotnet/r2r_unwind.h"

#include "libsym/base/ascending.h"
#include "libsym/format/dotnet/r2r_internal.h"

enum {
	ROW_BYTES = 12
};

static struct pe_unwind_function r2r_unwind_row_at(const struct r2r_unwind *table, uint32_t number)
{
	struct reader row = reader_over(table->rows + (size_t)number * ROW_BYTES, ROW_BYTES);
	struct pe_unwind_function function;

	function.begin_rva = reader_u32(&row);
	function.end_rva = reader_u32(&row);
	function.unwind_rva = reader_u32(&row);
	return function;
}

bool r2r_unwind_open(const struct pe *pe, struct r2r_unwind *ret)
{
	struct pe_directory section = r2r_find_section(pe, R2R_SECTION_RUNTIME_FUNCTIONS);

	if (pe->machine != PE_MACHINE_AMD64 || !section.rva)
		return false;
	ret->count = section.size_bytes / ROW_BYTES;
	ret->rows = pe_bytes(pe, section.rva, (size_t)ret->count * ROW_BYTES);
	return ret->count && ret->rows;
}

bool r2r_unwind_find(const struct r2r_unwind *table, uint32_t rva, struct pe_unwind_function *ret)
{
	uint32_t low = (uint32_t)ASCENDING_COUNT(table->count, i,
						 r2r_unwind_row_at(table, i).begin_rva <= rva);

	if (!low)
		return false;
	*ret = r2r_unwind_row_at(table, low - 1);
	return rva < ret->end_rva;
}
