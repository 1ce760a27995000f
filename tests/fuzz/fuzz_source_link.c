/* SPDX-License-Identifier: MIT */
/* Source Link texts: a URL that is given is one that may be printed. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mapgen/debuginfo/source_link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct source_link *link, const char *file)
{
	struct buf url;

	buf_init(&url, 1 << 20);
	if (source_link_write_url(link, file, &url)) {
		buf_append_char(&url, '\0');
		if (strncmp(url.data, "http", 4) != 0)
			abort();
		for (const char *c = url.data; *c; c++)
			if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f || *c == '"')
				abort();
	}
	buf_deinit(&url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct source_link *link AUTO_SOURCE_LINK = NULL;
	struct sym_error *error = source_link_parse((const char *)data, size, &link);

	sym_error_destroy(error);
	if (!link)
		return 0;
	check(link, "/src/store/Store.cs");
	check(link, "C:\\src\\\"a b\".cs");
	check(link, "");
	return 0;
}
