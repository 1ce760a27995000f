/* SPDX-License-Identifier: MIT */
/* Arbitrary bytes as /proc/PID/maps: mappings ascend, and every file mapping is found with its
 * path. */
#include <stdlib.h>

#include "libsym/process/address_space.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct address_space *space AUTO_ADDRESS_SPACE = NULL;
	size_t i, j;

	if (address_space_parse((const char *)data, size, &space))
		abort();
	for (i = 0; i < space->mapping_count; i++)
		if (address_space_find(space, space->mappings[i].end_address - 1) != i)
			abort();
	for (i = 0; i < space->file_count; i++)
		for (j = 0; j < space->files[i].mapping_count; j++)
			if (space->mappings[space->files[i].mapping_indexes[j]].path !=
			    space->files[i].path)
				abort();
	return 0;
}
