/* SPDX-License-Identifier: MIT */
/*
 * Writes a zip archive: each member deflated, sizes in 64 bits, no times. The layout is described
 * in libsym/format/zip.h, which reads it.
 */
#ifndef MAPGEN_RECORD_ZIP_WRITER_H
#define MAPGEN_RECORD_ZIP_WRITER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "libsym/base/buf.h"
#include "libsym/libsym.h"

struct zip_writer {
	FILE *file; /* borrowed, empty, and open for writing where it can be sought in */
	struct buf directory;
	uint64_t member_count;
};

void zip_writer_init(struct zip_writer *writer, FILE *file);
void zip_writer_deinit(struct zip_writer *writer);

/* All of `source`, from its beginning. Errors: IO, NO_MEMORY. */
struct sym_error *zip_writer_add(struct zip_writer *writer, const char *name, FILE *source)
	__attribute__((warn_unused_result));
struct sym_error *zip_writer_add_bytes(struct zip_writer *writer, const char *name,
				       const void *bytes, size_t size_bytes)
	__attribute__((warn_unused_result));

/* Writes the directory; the archive is whole then. */
struct sym_error *zip_writer_finish(struct zip_writer *writer) __attribute__((warn_unused_result));

#endif
