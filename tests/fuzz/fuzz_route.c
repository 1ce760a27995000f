/* SPDX-License-Identifier: MIT */
/* Arbitrary bytes as a path: the text of a found key reads back as the same key. */
#include <stdlib.h>
#include <string.h>

#include "symsrv/http/http_text.h"
#include "symsrv/key/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[KEY_TEXT_BYTES], again[KEY_TEXT_BYTES];
	char *path = size < 4096 ? calloc(1, size + 1 + route_room_bytes(size)) : NULL;
	uint64_t first, count;
	struct route route;
	struct key key;

	if (!path)
		return 0;
	memcpy(path, data, size);
	if (http_range_parse(path, 100, &first, &count) == HTTP_RANGE_PART &&
	    (!count || first + count > 100))
		abort();
	route_parse(path, path + size + 1, &route);
	if (route.kind == ROUTE_SSQP || route.kind == ROUTE_DEBUGINFOD ||
	    route.kind == ROUTE_MAPS) {
		key_text(&route.key, text);
		if (!key_from_text(&key, text) || key_text(&key, again) != strlen(text) ||
		    strcmp(text, again))
			abort();
	}
	free(path);
	return 0;
}
