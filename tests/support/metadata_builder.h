/* SPDX-License-Identifier: MIT */
/*
 * Makes small ECMA-335 metadata: rows are added one by one; the result is a BSJB blob. Column
 * widths are fixed by hand for small tables (two bytes each, four with `wide_heaps`), independently
 * of the reader under test.
 */
#ifndef TESTS_SUPPORT_METADATA_BUILDER_H
#define TESTS_SUPPORT_METADATA_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"

#define BUILDER_TABLES 0x2d

struct metadata_builder {
	struct buf strings, blobs, guids;
	struct buf rows[BUILDER_TABLES];
	uint32_t counts[BUILDER_TABLES];
	bool wide_heaps; /* 4-byte heap indexes; set right after init */
};

/* Coded indexes, as in columns of other rows and in tokens of signatures. */
enum {
	SCOPE_MODULE = 0,
	SCOPE_MODULE_REF = 1,
	SCOPE_ASSEMBLY_REF = 2,
	SCOPE_TYPE_REF = 3,
	PARENT_TYPE_DEF = 0,
	PARENT_TYPE_REF = 1,
	PARENT_TYPE_SPEC = 4,
	TOKEN_TYPE_DEF = 0,
	TOKEN_TYPE_REF = 1,
	TOKEN_TYPE_SPEC = 2,
};

void metadata_builder_init(struct metadata_builder *builder);
void metadata_builder_deinit(struct metadata_builder *builder);

/* Each returns the rid of the new row. Strings and blobs are copied. */
uint32_t add_module(struct metadata_builder *builder, const char *name, const uint8_t mvid[16]);
uint32_t add_assembly(struct metadata_builder *builder, const char *name);
uint32_t add_assembly_ref(struct metadata_builder *builder, const char *name);
uint32_t add_module_ref(struct metadata_builder *builder, const char *name);
uint32_t add_type_ref(struct metadata_builder *builder, unsigned int scope_kind, uint32_t scope_rid,
		      const char *name_space, const char *name);
/* Methods added from now on belong to this type. */
uint32_t add_type_def(struct metadata_builder *builder, const char *name_space, const char *name);
uint32_t add_type_spec(struct metadata_builder *builder, const void *signature, size_t size_bytes);
uint32_t add_method(struct metadata_builder *builder, const char *name, const void *signature,
		    size_t size_bytes);
/* For the method that was added last. */
void set_method_rva(struct metadata_builder *builder, uint32_t rva);
void set_impl_flags(struct metadata_builder *builder, uint16_t flags);
uint32_t add_member_ref(struct metadata_builder *builder, unsigned int parent_kind,
			uint32_t parent_rid, const char *name, const void *signature,
			size_t size_bytes);
void add_nested(struct metadata_builder *builder, uint32_t nested, uint32_t encloser);

/* Appends the whole metadata to `out`. */
void build_metadata(const struct metadata_builder *builder, struct buf *out);

#endif
