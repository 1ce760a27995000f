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

#include "libsym/libsym.h"

struct zip_writer;

/* `file` is borrowed, empty, and open for writing where it can be sought in. */
struct sym_error *zip_writer_create(FILE *file, struct zip_writer **ret)
	__attribute__((warn_unused_result));
void zip_writer_destroy(struct zip_writer *writer);

/* All of `source`, from its beginning. Errors: IO, NO_MEMORY. */
struct sym_error *zip_writer_add_file(struct zip_writer *writer, const char *name, FILE *source)
	__attribute__((warn_unused_result));
struct sym_error *zip_writer_add_bytes(struct zip_writer *writer, const char *name,
				       const void *bytes, size_t size_bytes)
	__attribute__((warn_unused_result));

/* Writes the directory; the archive is whole then. */
struct sym_error *zip_writer_finish(struct zip_writer *writer) __attribute__((warn_unused_result));

#endif
