/* SPDX-License-Identifier: MIT */
/* Arbitrary bytes as perfinfo-PID.map: paths lie inside the text, MVIDs have their form. */
#include <stdlib.h>
#include <string.h>

#include "libsym/format/dotnet/perfinfo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct perfinfo_parser parser;
	struct perfinfo_line line;

	perfinfo_parser_init(&parser, text, size);
	while (perfinfo_parser_next(&parser, &line))
		if (!line.path_bytes || line.path < text ||
		    line.path + line.path_bytes > text + size ||
		    strlen(line.mvid) != PERFINFO_MVID_CHARACTERS ||
		    (line.has_base && !line.base_address))
			abort();
	if (parser.good_lines + parser.bad_lines > size)
		abort();
	return 0;
}
