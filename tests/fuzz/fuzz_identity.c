/* SPDX-License-Identifier: MIT */
/* A file of any bytes: no reader of identities leaves it, and what is found lies inside. */
#include <stdlib.h>

#include "libsym/format/elf_outline.h"
#include "libsym/format/header_id.h"
#include "libsym/format/pdb_id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct byte_source source = byte_source_over_memory(data, size);
	struct elf_section_place place;
	struct pe_header_id pe;
	struct map_header_id map;
	const char *failure;
	uint8_t id[64];
	size_t id_bytes;

	elf_outline_read(&source, &(struct elf_outline){ 0 }, &failure);
	if (elf_section_find(&source, ".text", &place, &failure) &&
	    !byte_source_covers(&source, place.offset, place.size_bytes))
		abort();
	pdb_id_read(&source, &(struct pdb_id){ 0 }, &failure);
	if (pe_header_id_read(&source, &pe) + map_header_id_read(&source, &map) > 1)
		abort();
	macho_uuid_read(&source, id);
	return wasm_build_id_read(&source, id, &id_bytes) && id_bytes > sizeof(id) ? (abort(), 0)
										   : 0;
}
