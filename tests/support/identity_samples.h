/* SPDX-License-Identifier: MIT */
/*
 * The smallest files of each kind that have an identity, for tests of their
 * readers. Each function appends a whole file to `file`.
 */
#ifndef TESTS_SUPPORT_IDENTITY_SAMPLES_H
#define TESTS_SUPPORT_IDENTITY_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/base/buf.h"

struct sample_elf {
	const char *build_id; /* hex; NULL: none */
	bool is_32bit;
	bool has_text; /* else .text is NOBITS */
	bool has_debug_info;
	bool has_symbol_table;
	bool has_segments_only; /* no section headers */
};

void sample_elf(struct buf *file, const struct sample_elf *recipe);
void sample_pe(struct buf *file, uint32_t timestamp, uint32_t image_bytes);
/* Windows PDB; GUID bytes 00 11 22 ... ff as written down. `dbi_age` 0: no DBI stream. */
void sample_pdb(struct buf *file, uint32_t age, uint32_t dbi_age);
void sample_compressed_pdb(struct buf *file, uint32_t age);
void sample_portable_pdb(struct buf *file);
void sample_macho(struct buf *file);
void sample_wasm(struct buf *file);

#define SAMPLE_GUID "00112233445566778899aabbccddeeff"
#define SAMPLE_MAP                                                                                 \
	"FFFFFFFF 00 00112233445566778899AABBCCDDEEFF\nFFFFFFFE 00 1\n"                            \
	"FFFFFFFD 00 2\nFFFFFFFC 00 3\nFFFFFFFB 00 1\n00001000 0D N.T::M()\n"

#endif
