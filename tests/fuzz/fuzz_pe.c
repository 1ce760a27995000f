/* SPDX-License-Identifier: MIT */
/* Headers of PE files in both layouts, and every function that returns bytes of them. */
#include "libsym/format/dotnet/pe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int layout = PE_LAYOUT_FILE; layout <= PE_LAYOUT_LOADED; layout++) {
		struct pe pe;
		struct sym_error *error = pe_parse(&pe, data, size, (enum pe_layout)layout);
		volatile uint8_t sum = 0;

		for (uint32_t rva = 0; !error && rva < 0x20000; rva += 0x7f) {
			size_t available = 0;
			const uint8_t *bytes = pe_bytes_to_end(&pe, rva, &available);

			if (bytes)
				sum = sum + bytes[available - 1];
		}
		sym_error_destroy(error);
	}
	return 0;
}
