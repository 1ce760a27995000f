/* SPDX-License-Identifier: MIT */
/* Arbitrary bytes as a jitdump: names lie inside, ranges do not overflow, and the whole file can be
 * read. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/format/perf/jitdump.h"
#include "libsym/perf/jitdump_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(const uint8_t *data, size_t size, bool swapped)
{
	struct jitdump_record record;
	struct jitdump_line line;

	if (jitdump_line_find(data, size, swapped, 0x100, swapped ? 64 : 0, 0x20, &line) &&
	    ((const uint8_t *)line.file < data ||
	     (const uint8_t *)line.file + line.file_bytes >= data + size))
		abort();
	if (jitdump_record_read(data, size, swapped, &record) != JITDUMP_GOOD)
		return;
	if (record.id == JITDUMP_LOAD && record.code_size_bytes &&
	    ((const uint8_t *)record.name < data ||
	     (const uint8_t *)record.name + record.name_bytes >= data + size))
		abort();
	if (record.code_address + record.code_size_bytes < record.code_address)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;
	struct source_match match;
	struct source_line line;
	int fd = memfd_create("jitdump", MFD_CLOEXEC);

	for (int swapped = 0; swapped < 2 && size > JITDUMP_HEADER_BYTES; swapped++)
		check_record(data + JITDUMP_HEADER_BYTES, size - JITDUMP_HEADER_BYTES, swapped);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	sym_error_destroy(jitdump_source_open(NULL, fd, "jitdump", 0, NULL, (struct unflushed){ 0 },
					      &source));
	if (source && jitdump_source_find(source, 0x1000, &match) == SOURCE_HIT && !match.name)
		abort();
	if (source && jitdump_source_find(source, 0x1000, &match) == SOURCE_HIT &&
	    jitdump_source_find_line(source, 0x1000, 0, match.name, &line) &&
	    (!line.line || !*line.file))
		abort();
	for (uint64_t time_ns = 1; source && time_ns; time_ns <<= 7)
		for (uint64_t address = 0; address < 0x6000; address += 0x800) {
			match.name = NULL;
			if (jitdump_source_find_at(source, address, time_ns, &match) ==
				    JITDUMP_THEN_NAMED &&
			    !match.name)
				abort();
		}
	close(fd);
	return 0;
}
