/* SPDX-License-Identifier: MIT */
#include "libsym/unwind/r2r_rows.h"

#include <stdlib.h>

#include "libsym/base/cleanup.h"
#include "libsym/format/dotnet/r2r_unwind.h"

struct r2r_rows {
	struct object_file *object;
	const struct object_managed *managed;
	struct r2r_unwind table;
};

void r2r_rows_close(struct r2r_rows *rows)
{
	if (!rows)
		return;
	if (rows->managed)
		object_file_unuse_managed(rows->object);
	object_file_close(rows->object);
	free(rows);
}

DEFINE_GUARD(r2r_rows, struct r2r_rows *, r2r_rows_close)

struct sym_error *r2r_rows_open(struct object_file *object, struct r2r_rows **ret)
{
	struct r2r_rows *rows GUARDED(r2r_rows) = calloc(1, sizeof(*rows));
	struct sym_error *error;

	if (!rows)
		return &sym_error_no_memory;
	rows->object = object_file_share(object);
	error = object_file_use_managed(object, &rows->managed);
	if (error)
		return error;
	if (!r2r_unwind_open(&rows->managed->pe, &rows->table))
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"%s: no unwind information that can be read", object->path);
	*ret = STEAL(rows);
	return NULL;
}

static const uint8_t *info_at(void *context, uint32_t rva, size_t *available_bytes_ret)
{
	return pe_bytes_to_end(context, rva, available_bytes_ret);
}

bool r2r_rows_find(const struct r2r_rows *rows, uint32_t rva, bool is_call, struct frame_row *ret)
{
	const struct pe *pe = &rows->managed->pe;
	struct pe_unwind_function function;
	const uint8_t *code, *info;
	size_t available, info_bytes;
	uint32_t offset;

	if (!r2r_unwind_find(&rows->table, rva, &function))
		return false;
	offset = rva - function.begin_rva;
	code = pe_bytes_to_end(pe, rva, &available);
	info = pe_bytes_to_end(pe, function.unwind_rva, &info_bytes);
	if (!code || !info)
		return false;
	if (available > function.end_rva - rva)
		available = function.end_rva - rva;
	if (!is_call && offset >= pe_unwind_prolog_bytes(info, info_bytes) &&
	    pe_unwind_epilog_row(code, available, offset, function.end_rva - function.begin_rva,
				 ret))
		return true;
	return pe_unwind_row(&function, offset, info_at, (void *)pe, ret);
}
