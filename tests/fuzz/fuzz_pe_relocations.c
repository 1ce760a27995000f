/* SPDX-License-Identifier: MIT */
/* Arbitrary bytes as the head of a PE file, then as its relocations: every pointer lies in its
 * page. */
#include <stdlib.h>

#include "libsym/format/dotnet/pe_relocations.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t head = size < 512 ? size : 512;
	struct pe_relocation_table where;
	struct pe_relocation_block block;
	struct reader table;
	uint32_t offset;

	if (pe_relocations_locate(data, head, &where) && (!where.rva || !where.size_bytes))
		abort();
	table = reader_over(data + head, size - head);
	while (pe_relocations_next_block(&table, &block))
		while (pe_relocations_next_pointer(&block, &offset))
			if (offset > 0xfff)
				abort();
	return 0;
}
