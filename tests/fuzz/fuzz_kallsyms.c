/* SPDX-License-Identifier: MIT */
/* Arbitrary bytes as /proc/kallsyms: results lie inside the text, and no name is empty. */
#include <stdlib.h>

#include "libsym/format/linux/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct kallsyms_parser parser = { .next = text, .end = text + size };
	struct kallsyms_line line;

	while (size && kallsyms_parser_next(&parser, &line)) {
		if (!line.name_bytes || line.name < text ||
		    line.name + line.name_bytes > text + size ||
		    (line.module && line.module + line.module_bytes >= text + size))
			abort();
		(void)kallsyms_is_function(&line);
	}
	return 0;
}
