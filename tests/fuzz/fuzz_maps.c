/* SPDX-License-Identifier: MIT */
/* Arbitrary bytes as /proc/PID/maps: results lie inside the text, and ranges do not overflow. */
#include <stdlib.h>

#include "libsym/format/linux/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct maps_parser parser;
	struct maps_line line;
	char *room = malloc(size + 1);

	maps_parser_init(&parser, text, size);
	while (maps_parser_next(&parser, &line))
		if (line.start_address >= line.end_address || line.path < text ||
		    line.path + line.path_bytes > text + size ||
		    maps_unescape_path(line.path, line.path_bytes, room) > line.path_bytes)
			abort();
	free(room);
	return 0;
}
