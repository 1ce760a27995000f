/* SPDX-License-Identifier: MIT */
/*
 * Makes small PE files (PE32+): headers, sections with given bytes, and directories. Each value
 * that a test may want to be wrong is a field.
 */
#ifndef TESTS_SUPPORT_PE_BUILDER_H
#define TESTS_SUPPORT_PE_BUILDER_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"

struct pe_recipe_section {
	uint32_t rva;
	uint32_t characteristics;
	const void *bytes;
	size_t size_bytes;
	uint32_t raw_offset;         /* 0: after the previous section */
	uint32_t virtual_size_bytes; /* 0: the number of bytes */
};

struct pe_recipe {
	uint16_t machine;
	uint32_t size_of_image_bytes; /* 0: up to the end of the last section, rounded */
	uint32_t export_rva, debug_rva, debug_size_bytes, cli_rva;
	size_t section_count;
	struct pe_recipe_section sections[8];
};

/* Appends the file to `out`. */
void build_pe(struct buf *out, const struct pe_recipe *recipe);

#endif
