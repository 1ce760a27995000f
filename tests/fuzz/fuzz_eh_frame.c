/* SPDX-License-Identifier: MIT */
/* .eh_frame: the first byte selects the width of addresses, the rest are records. Queries where
 * functions start and end, and their rows at both ends and in the middle. */
#include <stdlib.h>

#include "libsym/format/elf/call_frame.h"
#include "libsym/format/elf/eh_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_rows(const uint8_t *data, size_t size, bool is_debug_frame)
{
	const struct call_frame_section section = { .records = reader_over(data, size),
						    .vaddr = is_debug_frame ? 0 : 0x401000,
						    .is_debug_frame = is_debug_frame };
	struct call_frame_function function;
	struct frame_row row;
	size_t offset = 0;

	do {
		if (!call_frame_read(&section, offset, &function))
			continue;
		if (function.end_vaddr <= function.start_vaddr)
			abort();
		call_frame_row_at(&section, &function, function.start_vaddr, &row);
		call_frame_row_at(&section, &function, function.end_vaddr - 1, &row);
		call_frame_row_at(&section, &function,
				  function.start_vaddr +
					  (function.end_vaddr - function.start_vaddr) / 2,
				  &row);
	} while (call_frame_next(&section, offset, &offset));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct eh_frame_function function;
	struct eh_frame frame;
	uint64_t vaddr;

	if (!size)
		return 0;
	frame = eh_frame_over(reader_over(data + 1, size - 1), 0x401000, data[0] & 1);
	while (eh_frame_next(&frame, &function))
		if (!function.size_bytes || function.vaddr > UINT64_MAX - function.size_bytes)
			abort();
	eh_frame_header_read(reader_over(data + 1, size - 1), 0x401000, data[0] & 1, &vaddr);
	read_rows(data + 1, size - 1, false);
	read_rows(data + 1, size - 1, true);
	return 0;
}
