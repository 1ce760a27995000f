/* SPDX-License-Identifier: MIT */
/* Makes small ReadyToRun images: tables at rva 0x1000, code (zeros) at 0x10000, everything else by
 * the recipe. Fields that are zero are omitted. */
#ifndef TESTS_SUPPORT_R2R_BUILDER_H
#define TESTS_SUPPORT_R2R_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"

#define R2R_BUILDER_TABLES_RVA 0x1000u
#define R2R_BUILDER_CODE_RVA   0x10000u
#define R2R_BUILDER_CODE_BYTES 0x1000u

struct r2r_recipe_function {
	uint32_t begin_rva, size_bytes;
};

enum r2r_recipe_fixups {
	FIXUPS_NONE,
	FIXUPS_BEHIND,
	FIXUPS_ELSEWHERE,
};

struct r2r_recipe_method {
	uint32_t rid;
	uint32_t function;
	enum r2r_recipe_fixups fixups;
};

struct r2r_recipe_instance {
	const char *signature;
	size_t signature_bytes;
	uint32_t function;
	const char *fixups; /* NULL: none */
	size_t fixup_bytes;
};

/* A row of section 101, whose cells have 8 bytes each. */
struct r2r_recipe_imports {
	size_t count;
	struct r2r_recipe_import {
		uint8_t kind;
		uint32_t rva; /* of a signature of this kind */
	} items[12];
};

struct r2r_recipe_component {
	size_t method_count;
	struct r2r_recipe_method methods[4];
	const struct buf *embedded_metadata;
};

struct r2r_recipe {
	uint16_t machine; /* as in the COFF header */
	uint16_t major_version, minor_version;
	uint32_t flags;
	const struct buf *metadata;
	bool through_export; /* no CLI header; the native header is exported as RTR_HEADER */
	size_t function_count;
	struct r2r_recipe_function functions[16];
	bool with_sentinel; /* counts a row of 0xff after the functions */
	size_t method_count;
	struct r2r_recipe_method methods[40];
	size_t instance_count;
	struct r2r_recipe_instance instances[8];
	size_t import_count;
	struct r2r_recipe_imports imports[2];
	size_t cold_count;
	uint32_t cold_pairs[4][2]; /* first cold function, hot function */
	uint32_t thunks_rva, thunks_bytes;
	const struct buf *manifest;
	const uint8_t (*manifest_mvids)[16];
	size_t manifest_mvid_count;
	size_t component_count;
	struct r2r_recipe_component components[4];
	const char *owner_composite;
};

#define INSTANCE(bytes, number)                                                                    \
	{                                                                                          \
		bytes, sizeof(bytes) - 1, number, NULL, 0                                          \
	}

#define INSTANCE_WITH_FIXUPS(bytes, number, nibbles)                                               \
	{                                                                                          \
		bytes, sizeof(bytes) - 1, number, nibbles, sizeof(nibbles) - 1                     \
	}

/* Appends the PE file to `out`. */
void build_r2r(struct buf *out, const struct r2r_recipe *recipe);

#endif
