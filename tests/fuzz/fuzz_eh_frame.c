/* SPDX-License-Identifier: MIT */
/* .eh_frame: the first byte says the width of addresses, the rest are records. */
#include <stdlib.h>

#include "libsym/format/eh_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
	return 0;
}
