/* SPDX-License-Identifier: MIT */
/* Two bytes select an instruction in a function of 256 bytes. The rest is its unwind info, and the
 * code from the instruction on. A row uses a register that exists. */
#include <stdlib.h>

#include "libsym/format/dotnet/pe_unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	FUNCTION_BYTES = 256
};

struct bytes {
	const uint8_t *data;
	size_t size;
};

static const uint8_t *info_at(void *context, uint32_t rva, size_t *available_bytes_ret)
{
	const struct bytes *bytes = context;

	if (rva >= bytes->size)
		return NULL;
	*available_bytes_ret = bytes->size - rva;
	return bytes->data + rva;
}

static void check(const struct frame_row *row)
{
	if (row->cfa.kind != FRAME_REGISTER_OFFSET || row->cfa.reg >= FRAME_REGISTERS)
		abort();
	for (unsigned int i = 0; i < FRAME_REGISTERS; i++)
		if (row->registers[i].kind == FRAME_AT_REGISTER &&
		    row->registers[i].reg >= FRAME_REGISTERS)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pe_unwind_function function = { 0x1000, 0x1000 + FUNCTION_BYTES, 0 };
	struct frame_row row;
	struct bytes bytes;
	uint32_t offset;

	if (size < 2)
		return 0;
	bytes = (struct bytes){ data + 2, size - 2 };
	offset = data[0];
	pe_unwind_prolog_bytes(bytes.data, bytes.size);
	if (pe_unwind_row(&function, offset, info_at, &bytes, &row))
		check(&row);
	if (pe_unwind_epilog_row(bytes.data, bytes.size, offset, FUNCTION_BYTES, &row))
		check(&row);
	return 0;
}
