/* SPDX-License-Identifier: MIT */
/* Arbitrary bytes as a core file: results lie inside the file, sorted and disjoint. */
#include <stdlib.h>
#include <string.h>

#include "libsym/format/elf/elf_core.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct byte_source source = byte_source_over_memory(data, size);
	struct elf_core core;
	struct sym_error *error = elf_core_read(&source, "fuzz", &core);

	if (error) {
		sym_error_destroy(error);
		return 0;
	}
	for (size_t i = 0; i < core.segment_count; i++) {
		const struct elf_core_segment *segment = &core.segments[i];

		if (segment->file_bytes &&
		    !byte_source_covers(&source, segment->offset, segment->file_bytes))
			abort();
		if (i && segment[-1].address + segment[-1].memory_bytes > segment->address)
			abort();
		if (elf_core_find(&core, segment->address) != segment)
			abort();
	}
	for (size_t i = 0; i < core.file_count; i++) {
		if (strlen(core.files[i].path) > size)
			abort();
		if (i && core.files[i - 1].end_address > core.files[i].start_address)
			abort();
	}
	elf_core_deinit(&core);
	return 0;
}
