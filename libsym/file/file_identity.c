/* SPDX-License-Identifier: MIT */
/* Identifies a file: reads the first bytes of an open descriptor and calls the reader of that kind.
 * Reads headers only, and ignores the file's name. */
#include "libsym/file/file_identity.h"

#include "libsym/error.h"
#include "libsym/file/file_source.h"
#include "libsym/format/elf/elf_outline.h"
#include "libsym/format/file/header_id.h"
#include "libsym/format/file/pdb_id.h"

static void set_id(struct sym_identity *identity, const void *bytes, size_t count)
{
	memcpy(identity->id, bytes, count);
	identity->id_size_bytes = (uint32_t)count;
}

static bool identify_elf(const struct byte_source *source, struct sym_identity *ret,
			 uint64_t *needed, const char **failure)
{
	struct elf_outline outline;

	if (!elf_outline_read(source, &outline, failure))
		return false;
	ret->kind = SYM_IDENTITY_ELF;
	set_id(ret, outline.build_id, outline.build_id_bytes);
	ret->contents = (outline.has_code ? SYM_CONTENT_CODE : 0u) |
			(outline.has_symbol_table ? SYM_CONTENT_SYMBOL_TABLE : 0u) |
			(outline.has_debug_info ? SYM_CONTENT_DEBUG_INFO : 0u);
	*needed = outline.needed_bytes;
	return true;
}

static bool identify_pdb(const struct byte_source *source, struct sym_identity *ret,
			 uint64_t *needed, const char **failure)
{
	struct pdb_id id;

	if (!pdb_id_read(source, &id, failure))
		return false;
	ret->kind = id.container == PDB_PORTABLE ? SYM_IDENTITY_PORTABLE_PDB
		    : id.container == PDB_MSFZ   ? SYM_IDENTITY_COMPRESSED_PDB
						 : SYM_IDENTITY_PDB;
	set_id(ret, id.guid, sizeof(id.guid));
	ret->age = id.age;
	ret->timestamp = id.stamp;
	ret->contents = SYM_CONTENT_DEBUG_INFO;
	*needed = id.needed_bytes;
	return true;
}

static void identify_by_header(const struct byte_source *source, struct sym_identity *ret,
			       uint64_t *needed)
{
	struct pe_header_id pe;
	struct r2rmap_header_id map;
	size_t id_bytes;

	if (header_id_read_pe(source, &pe)) {
		ret->kind = SYM_IDENTITY_PE;
		ret->timestamp = pe.timestamp;
		ret->image_size_bytes = pe.image_bytes;
		ret->contents = SYM_CONTENT_CODE;
		*needed = pe.needed_bytes;
	} else if (header_id_read_r2rmap(source, &map)) {
		ret->kind = SYM_IDENTITY_RELATIVE_MAP;
		set_id(ret, map.signature, sizeof(map.signature));
		ret->age = map.version;
		ret->contents = SYM_CONTENT_SYMBOL_TABLE;
	} else if (header_id_read_macho(source, ret->id)) {
		ret->kind = SYM_IDENTITY_MACHO;
		ret->id_size_bytes = 16;
	} else if (header_id_read_wasm(source, ret->id, &id_bytes)) {
		ret->kind = SYM_IDENTITY_WASM;
		ret->id_size_bytes = (uint32_t)id_bytes;
	}
}

struct sym_error *file_identity_read_part(int fd, uint64_t offset, uint64_t size_bytes,
					  struct sym_identity *identity)
{
	struct sym_identity found = { .size = sizeof(found) };
	struct byte_source source;
	const char *failure = NULL;
	struct sym_error *error;
	uint64_t needed = 0;
	char magic[4] = "";

	if (identity->size < sizeof(found))
		return sym_error_create(SYM_ERROR_ARGUMENT, "sym_identity.size is not set");
	error = file_source_over(fd, offset, size_bytes, &source);
	if (error)
		return error;
	found.size = identity->size;
	found.file_size_bytes = source.size_bytes;
	if (source.size_bytes >= sizeof(magic) &&
	    !byte_source_read(&source, magic, sizeof(magic), 0))
		return sym_error_create(SYM_ERROR_IO, "cannot read the file");
	if (!memcmp(magic, "\177ELF", 4))
		identify_elf(&source, &found, &needed, &failure);
	else if (pdb_id_recognise(&source))
		identify_pdb(&source, &found, &needed, &failure);
	else
		identify_by_header(&source, &found, &needed);
	if (failure)
		return sym_error_create(SYM_ERROR_FORMAT, "%s", failure);
	if (needed > source.size_bytes)
		return sym_error_create(SYM_ERROR_FORMAT,
					"the file is truncated: %llu bytes instead of %llu or more",
					(unsigned long long)source.size_bytes,
					(unsigned long long)needed);
	*identity = found;
	return NULL;
}

struct sym_error *sym_identity_read(int fd, uint64_t size_bytes, struct sym_identity *identity)
{
	return file_identity_read_part(fd, 0, size_bytes, identity);
}

struct sym_error *sym_elf_section_find(int fd, uint64_t size_bytes, const char *name,
				       uint64_t *offset_ret, uint64_t *size_bytes_ret)
{
	struct elf_section_place place;
	struct byte_source source;
	const char *failure;
	struct sym_error *error;

	error = file_source_over(fd, 0, size_bytes, &source);
	if (error)
		return error;
	if (!elf_outline_find_section(&source, name, &place, &failure))
		return failure ? sym_error_create(SYM_ERROR_FORMAT, "%s", failure)
			       : sym_error_create(SYM_ERROR_NOT_FOUND, "no such section");
	*offset_ret = place.offset;
	*size_bytes_ret = place.size_bytes;
	return NULL;
}
