/* SPDX-License-Identifier: MIT */
/* Arbitrary bytes as a zip archive: a located member lies inside, before the directory, and
 * overlaps no other. As a recording: build-ids are short and have an end. */
#include <stdlib.h>

#include "libsym/base/cleanup.h"
#include "libsym/format/file/zip.h"
#include "symsrv/lookup/recording_images.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool check_build_id(void *context, const char *build_id)
{
	(void)context;
	if (strlen(build_id) > 512)
		abort();
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct byte_source source = byte_source_over_memory(data, size);
	const struct zip_member *found;
	uint64_t offset, last_end = 0;
	struct sym_error *error;
	struct zip zip;
	bool is_zip;

	recording_images_each(&source, check_build_id, NULL);
	error = zip_read(&source, &zip, &is_zip);
	if (error) {
		sym_error_destroy(error);
		return 0;
	}
	for (size_t i = 0; i < zip.count; i++) {
		const struct zip_member *member = &zip.members[i];

		error = zip_locate(&source, &zip, member, &offset);
		if (!error && (offset < last_end || offset > zip.directory_offset ||
			       member->size_bytes > zip.directory_offset - offset))
			abort();
		if (!error)
			last_end = offset + member->size_bytes;
		sym_error_destroy(error);
		error = i < 64 ? zip_find(&zip, member->name, member->name_bytes, &found) : NULL;
		if (!error && i < 64 && found != member)
			abort();
		sym_error_destroy(error);
	}
	zip_deinit(&zip);
	return 0;
}
