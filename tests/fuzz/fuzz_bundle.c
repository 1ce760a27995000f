/* SPDX-License-Identifier: MIT */
/* Arbitrary bytes as a bundle manifest: rows point into the file, paths into the manifest. */
#include <stdlib.h>

#include "libsym/format/dotnet/bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bundle bundle = { 0 };
	uint64_t offset;

	bundle_find_header(data, size, &offset);
	sym_error_destroy(bundle_parse(data, size, size, &bundle));
	for (size_t i = 0; i < bundle.file_count; i++)
		if (bundle.files[i].offset > size ||
		    bundle.files[i].path + bundle.files[i].path_bytes > (const char *)data + size)
			abort();
	bundle_deinit(&bundle);
	return 0;
}
