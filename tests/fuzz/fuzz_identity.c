/* SPDX-License-Identifier: MIT */
/*
 * Arbitrary bytes as a file: no reader of identities reads outside, and every result lies inside.
 */
#include <stdlib.h>

#include "libsym/format/elf/elf_names_only.h"
#include "libsym/format/elf/elf_outline.h"
#include "libsym/format/file/header_id.h"
#include "libsym/format/file/pdb_id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The file that was made has names and nothing else, and the reader of identities takes it. */
static void check_names(const struct byte_source *source)
{
	struct elf_outline outline;
	struct byte_source made;
	const char *failure;
	struct buf names;

	buf_init(&names, 64 << 20);
	if (elf_names_only_make(source, &names, &failure)) {
		made = byte_source_over_memory(names.data, names.size_bytes);
		if (!elf_outline_read(&made, &outline, &failure) || outline.has_debug_info ||
		    outline.has_code || outline.needed_bytes > names.size_bytes)
			abort();
	}
	buf_deinit(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct byte_source source = byte_source_over_memory(data, size);
	struct elf_section_place place;
	struct pe_header_id pe;
	struct pe_r2rmap_id image_map;
	struct pe_pdb_id image_pdb;
	struct r2rmap_header_id map;
	const char *failure;
	uint8_t id[64];
	size_t id_bytes;

	elf_outline_read(&source, &(struct elf_outline){ 0 }, &failure);
	if (elf_outline_find_section(&source, ".text", &place, &failure) &&
	    !byte_source_covers(&source, place.offset, place.size_bytes))
		abort();
	check_names(&source);
	pdb_id_read(&source, &(struct pdb_id){ 0 }, &failure);
	if (header_id_read_pe(&source, &pe) + header_id_read_r2rmap(&source, &map) > 1)
		abort();
	header_id_read_pe_pdb(&source, &image_pdb);
	if (header_id_read_pe_r2rmap(&source, &image_map) && !image_map.name[0])
		abort();
	header_id_read_macho(&source, id);
	return header_id_read_wasm(&source, id, &id_bytes) && id_bytes > sizeof(id) ? (abort(), 0)
										    : 0;
}
