/* SPDX-License-Identifier: MIT */
/* Arbitrary mangled names: the output is bounded. */
#include <stdlib.h>
#include <string.h>

#include "libsym/limits.h"
#include "libsym/symbols/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = strndup((const char *)data, size);
	struct buf text;

	if (!name)
		return 0;
	buf_init(&text, 2 * LIMIT_NAME_BYTES);
	buf_append_string(&text, "before");
	if (demangle(name, &text) ? text.size_bytes > LIMIT_NAME_BYTES + 6 : text.size_bytes != 6)
		abort();
	buf_deinit(&text);
	free(name);
	return 0;
}
