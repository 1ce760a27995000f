/* SPDX-License-Identifier: MIT */
/*
 * ECMA-335 metadata (II.22 to II.24) as far as names need it: the root, its streams, the row layout
 * of every table, and accessors for the columns in use. Nothing is copied: accessors read the bytes
 * in place, with bounds checks.
 *
 * Rids start at 1. An accessor with a rid or an index out of range returns 0 or an empty string.
 */
#ifndef LIBSYM_FORMAT_DOTNET_METADATA_H
#define LIBSYM_FORMAT_DOTNET_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"

enum metadata_table {
	METADATA_MODULE = 0x00,
	METADATA_TYPE_REF = 0x01,
	METADATA_TYPE_DEF = 0x02,
	METADATA_METHOD_PTR = 0x05,
	METADATA_METHOD_DEF = 0x06,
	METADATA_MEMBER_REF = 0x0a,
	METADATA_MODULE_REF = 0x1a,
	METADATA_TYPE_SPEC = 0x1b,
	METADATA_ASSEMBLY = 0x20,
	METADATA_ASSEMBLY_REF = 0x23,
	METADATA_NESTED_CLASS = 0x29,
	METADATA_METHOD_SPEC = 0x2b,
	METADATA_TABLE_COUNT = 0x40,
};

struct metadata;

struct metadata_blob {
	const uint8_t *data;
	size_t size_bytes;
};

/* `data` is borrowed and must outlive the object. Errors: FORMAT, NO_MEMORY. */
struct sym_error *metadata_open(const void *data, size_t size_bytes, struct metadata **ret);
void metadata_close(struct metadata *metadata);

uint32_t metadata_row_count(const struct metadata *metadata, enum metadata_table table);

/* The module version id in row 1 of Module, as 16 bytes in the order of Guid.ToByteArray(). Returns
 * false if there is none. */
bool metadata_mvid(const struct metadata *metadata, uint8_t ret[16]);

/* Simple name of the assembly; "" if the module has no Assembly row. */
const char *metadata_assembly_name(const struct metadata *metadata);
const char *metadata_assembly_ref_name(const struct metadata *metadata, uint32_t rid);
/* Rid of the AssemblyRef with this simple name, ignoring case; 0 if there is none. */
uint32_t metadata_find_assembly_ref(const struct metadata *metadata, const char *name);
const char *metadata_module_ref_name(const struct metadata *metadata, uint32_t rid);

const char *metadata_type_def_name(const struct metadata *metadata, uint32_t rid);
const char *metadata_type_def_namespace(const struct metadata *metadata, uint32_t rid);
/* TypeDef rid of the enclosing class; 0 for a type that is not nested. */
uint32_t metadata_type_def_encloser(const struct metadata *metadata, uint32_t rid);

const char *metadata_type_ref_name(const struct metadata *metadata, uint32_t rid);
const char *metadata_type_ref_namespace(const struct metadata *metadata, uint32_t rid);
/* Resolution scope: which table, and the rid in it (0: null). */
uint32_t metadata_type_ref_scope(const struct metadata *metadata, uint32_t rid,
				 enum metadata_table *table_ret);

struct metadata_blob metadata_type_spec_signature(const struct metadata *metadata, uint32_t rid);

const char *metadata_method_name(const struct metadata *metadata, uint32_t rid);
struct metadata_blob metadata_method_signature(const struct metadata *metadata, uint32_t rid);
/* Rva of the body; 0 if the image has none. */
uint32_t metadata_method_rva(const struct metadata *metadata, uint32_t rid);
/* MethodAttributes (ECMA-335 II.23.1.10). */
uint16_t metadata_method_flags(const struct metadata *metadata, uint32_t rid);
/* MethodImplAttributes (ECMA-335 II.23.1.11). */
uint16_t metadata_method_impl_flags(const struct metadata *metadata, uint32_t rid);

/* TypeDef rid that owns a MethodDef rid; 0 if none does. */
uint32_t metadata_method_owner(const struct metadata *metadata, uint32_t rid);
/* The first MethodDef rid that a TypeDef owns; the others follow it. 0 if there is none. */
uint32_t metadata_first_method(const struct metadata *metadata, uint32_t type_rid);

const char *metadata_member_ref_name(const struct metadata *metadata, uint32_t rid);
struct metadata_blob metadata_member_ref_signature(const struct metadata *metadata, uint32_t rid);
uint32_t metadata_member_ref_parent(const struct metadata *metadata, uint32_t rid,
				    enum metadata_table *table_ret);

/* The generic method of an instantiation: a row of MethodDef or MemberRef. */
uint32_t metadata_method_spec_method(const struct metadata *metadata, uint32_t rid,
				     enum metadata_table *table_ret);

/* Writes 36 lower-case characters and a NUL. */
void metadata_format_guid(const uint8_t guid[16], char room[37]);

DEFINE_GUARD(metadata, struct metadata *, metadata_close)
#define AUTO_METADATA GUARDED(metadata)

#endif
