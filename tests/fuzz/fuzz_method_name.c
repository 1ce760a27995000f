/* SPDX-License-Identifier: MIT */
/* Short forms of any text, in a room of every small size. */
#include <stdlib.h>
#include <string.h>

#include "libsym/format/dotnet/method_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char room[64];

	for (size_t room_bytes = 0; room_bytes <= sizeof(room); room_bytes += 7) {
		size_t length = method_name_shorten((const char *)data, size, room, room_bytes);

		if (length > size || (room_bytes && strnlen(room, room_bytes) >= room_bytes))
			abort();
	}
	return 0;
}
