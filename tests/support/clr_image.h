/* SPDX-License-Identifier: MIT */
/*
 * Made-up memory of a process with a .NET runtime: an ELF file that exports a data contract, a
 * loader heap with modules, types and methods, code heaps with their maps. The contract has offsets
 * that no real runtime uses, so a result proves that the contract was read.
 */
#ifndef TESTS_SUPPORT_CLR_IMAGE_H
#define TESTS_SUPPORT_CLR_IMAGE_H

#include "libsym/clr/layout.h"
#include "tests/support/fake_memory.h"
#include "tests/support/metadata_builder.h"

enum {
	CLR_CLASS_ORDINARY = 0,
	CLR_CLASS_ARRAY = 4,
	CLR_CLASS_DYNAMIC = 7,
};

/* Module.Flags, and the flags of a module that was not built for debugging. */
enum {
	CLR_MODULE_FLAGS = 4,
	CLR_MODULE_OPTIMIZED = 0x800,
};

enum clr_module_kind {
	CLR_MODULE_MAPPED,
	CLR_MODULE_COLLECTIBLE, /* mapped, and part of an unloadable assembly */
	CLR_MODULE_EMITTED,
};

/* Positions in a module's image. */
enum {
	CLR_PE_CLI = 0x200,
	CLR_PE_FREE = 0x280,
	CLR_PE_METADATA = 0x300,
};

enum {
	CLR_HEAP_ORDINARY,
	CLR_HEAP_COLLECTIBLE,
	CLR_HEAP_COUNT,
};

struct clr_image {
	struct fake_memory fake;
	uint64_t base; /* of the ELF file */
	struct layout layout;
	struct layout_tiers tiers;
	struct layout_precodes precodes;
	uint64_t next; /* next free address in the loader heap */
	uint64_t fragments;
	struct clr_heap {
		uint64_t begin, used_bytes, node, nibbles;
	} heaps[CLR_HEAP_COUNT];
};

/* Positions in the ELF file, for tests that damage it. */
enum {
	CLR_ELF_DYNAMIC = 0x200,
	CLR_ELF_HASH = 0x400,
	CLR_ELF_SYMBOLS = 0x600,
	CLR_ELF_STRINGS = 0x700,
	CLR_ELF_DESCRIPTOR = 0x800,
	CLR_ELF_POINTERS = 0x900,
	CLR_ELF_TEXT = 0x1000,
	CLR_ELF_BYTES = 0x4000,
};

/* The data contract of the made-up runtime, as JSON. */
const char *clr_image_contract(void);

void clr_image_init(struct clr_image *image);
void clr_image_deinit(struct clr_image *image);

/* Zeroed room in the loader heap, aligned to 16. */
uint64_t clr_image_room(struct clr_image *image, size_t size_bytes);

uint64_t clr_image_add_module(struct clr_image *image, const struct metadata_builder *builder,
			      enum clr_module_kind kind);

/* Puts bytes at an rva, from CLR_PE_FREE to CLR_PE_METADATA, into the image of a module. */
void clr_image_put_at_rva(struct clr_image *image, uint64_t module, uint32_t rva, const void *bytes,
			  size_t size_bytes);

/* The MethodTable of a TypeDef row, with its class. */
uint64_t clr_image_add_type(struct clr_image *image, uint64_t module, uint32_t rid);
/* Makes the type an instance with these arguments, which are type handles. */
void clr_image_set_arguments(struct clr_image *image, uint64_t type, const uint64_t *arguments,
			     uint16_t count);
/* An array type; rank 0: one dimension from 0 ("[]"). */
uint64_t clr_image_add_array(struct clr_image *image, uint64_t module, uint64_t element,
			     uint8_t rank);

/* MethodDesc number `index` (in units of 8 bytes) of a chunk of its own. */
uint64_t clr_image_add_method(struct clr_image *image, uint64_t type, uint32_t rid,
			      unsigned int classification, uint8_t index);
/* The strings that dynamic and array methods store themselves; `name` may be NULL. */
void clr_image_set_stored(struct clr_image *image, uint64_t method, const char *name,
			  const void *signature, uint32_t signature_bytes);

/* Code of a method with `piece_count` pieces of 32 bytes; returns its start. */
uint64_t clr_image_add_code(struct clr_image *image, unsigned int heap, uint64_t method,
			    uint32_t piece_count);
uint64_t clr_image_add_stub(struct clr_image *image, unsigned int heap, uint32_t kind);
/* Removes a block from the map of its heap. */
void clr_image_free_code(struct clr_image *image, unsigned int heap, uint64_t start);

/* Adds a section to the range map; returns the address of its RangeSection. */
uint64_t clr_image_add_section(struct clr_image *image, uint64_t begin, uint64_t end,
			       uint32_t flags, uint64_t heap_node, uint64_t r2r_module);

#endif
