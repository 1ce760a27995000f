/* SPDX-License-Identifier: MIT */
/* Names as in C#, with all flags, in rooms of small sizes. The first byte has the flags. */
#include <stdlib.h>
#include <string.h>

#include "libsym/format/csharp/csharp_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *name = (const char *)data + 1;
	size_t length;
	char *whole, room[64];

	if (!size)
		return 0;
	length = csharp_name(name, size - 1, data[0], NULL, 0);
	whole = malloc(length + 1);
	if (!whole || length > 4 * size + 1024 ||
	    csharp_name(name, size - 1, data[0], whole, length + 1) != length || whole[length])
		abort();
	for (size_t room_bytes = 1; room_bytes <= sizeof(room); room_bytes += 7) {
		size_t copied = length < room_bytes ? length : room_bytes - 1;

		if (csharp_name(name, size - 1, data[0], room, room_bytes) != length ||
		    memcmp(room, whole, copied) != 0 || room[copied])
			abort();
	}
	free(whole);
	return 0;
}
