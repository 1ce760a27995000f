/* SPDX-License-Identifier: MIT */
#include "tests/support/relocated_pe.h"

#include <string.h>

const uint64_t relocated_pe_base = 0x180000000;

void relocated_pe_put(uint8_t *file, size_t offset, uint64_t value, size_t size_bytes)
{
	memcpy(file + offset, &value, size_bytes);
}

static void put_section(uint8_t *file, size_t offset, uint32_t at)
{
	relocated_pe_put(file, offset + 8, RELOCATED_PE_PAGE, 4);
	relocated_pe_put(file, offset + 12, at, 4);
	relocated_pe_put(file, offset + 16, RELOCATED_PE_PAGE, 4);
	relocated_pe_put(file, offset + 20, at, 4);
	relocated_pe_put(file, offset + 36, 0xc0000040, 4);
}

void relocated_pe_build(uint8_t file[RELOCATED_PE_BYTES], uint64_t first)
{
	const size_t pe = 0x80, optional_header = pe + 24;
	size_t i;

	memset(file, 0, RELOCATED_PE_BYTES);
	relocated_pe_put(file, 0, 0x5a4d, 2);
	relocated_pe_put(file, 60, pe, 4);
	relocated_pe_put(file, pe, 0x4550, 4);
	relocated_pe_put(file, pe + 4, 0x8664, 2);
	relocated_pe_put(file, pe + 6, 2, 2);
	relocated_pe_put(file, pe + 20, 240, 2);
	relocated_pe_put(file, optional_header, 0x20b, 2);
	relocated_pe_put(file, optional_header + 24, relocated_pe_base, 8);
	relocated_pe_put(file, optional_header + 32, RELOCATED_PE_PAGE, 4);
	relocated_pe_put(file, optional_header + 36, 0x200, 4);
	relocated_pe_put(file, optional_header + 56, RELOCATED_PE_BYTES, 4);
	relocated_pe_put(file, optional_header + 60, 0x400, 4);
	relocated_pe_put(file, optional_header + 108, 16, 4);
	relocated_pe_put(file, RELOCATED_PE_DIRECTORY,
			 (uint64_t)(8 + 2 * RELOCATED_PE_POINTERS) << 32 | 2 * RELOCATED_PE_PAGE,
			 8);
	put_section(file, optional_header + 240, RELOCATED_PE_PAGE);
	put_section(file, optional_header + 240 + 40, 2 * RELOCATED_PE_PAGE);
	relocated_pe_put(file, 2 * RELOCATED_PE_PAGE,
			 (uint64_t)(8 + 2 * RELOCATED_PE_POINTERS) << 32 | RELOCATED_PE_PAGE, 8);
	for (i = 0; i < RELOCATED_PE_POINTERS; i++) {
		relocated_pe_put(file, RELOCATED_PE_PAGE + RELOCATED_PE_FIRST + 8 * i,
				 relocated_pe_base + first + 64 * i, 8);
		relocated_pe_put(file, 2 * RELOCATED_PE_PAGE + 8 + 2 * i,
				 10 << 12 | (RELOCATED_PE_FIRST + 8 * i), 2);
	}
}
