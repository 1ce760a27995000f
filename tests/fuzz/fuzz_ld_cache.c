/* SPDX-License-Identifier: MIT */
/* The dynamic linker's cache: results must lie and end inside it. */
#include <stdlib.h>
#include <string.h>

#include "libsym/bcc/ld_cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "", "c", "elf" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *path = ld_cache_search(data, size, names[i], 0x0303);

		if (path && ((const uint8_t *)path < data ||
			     !memchr(path, 0, size - (size_t)((const uint8_t *)path - data))))
			abort();
	}
	return 0;
}
