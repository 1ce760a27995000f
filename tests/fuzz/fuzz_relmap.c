/* SPDX-License-Identifier: MIT */
/* Arbitrary bytes as a relative map: rows lie inside the text, none is a header row, and written
 * rows read back. */
#include <stdlib.h>
#include <string.h>

#include "libsym/format/dotnet/relmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct relmap_parser parser;
	struct relmap_row row;

	relmap_parser_init(&parser, text, size);
	while (relmap_parser_next(&parser, &row))
		if (row.rva >= 0xfffffffb || !row.name_bytes || row.name < text ||
		    row.name + row.name_bytes > text + size)
			abort();
	return 0;
}
