/* SPDX-License-Identifier: MIT */
/* Where the image of a runtime's Module lies in memory, without reading its metadata. */
#ifndef LIBSYM_CLR_MODULE_PLACE_H
#define LIBSYM_CLR_MODULE_PLACE_H

#include "libsym/clr/layout.h"
#include "libsym/file/pdb_file.h"
#include "libsym/process/remote_memory.h"

struct module_place {
	uint64_t base; /* 0: the module has no image, as it was emitted at run time */
	uint32_t size_bytes;
	bool is_mapped;      /* by rva; else flat, by file offset */
	bool is_collectible; /* it can be unloaded */
	bool is_editable;    /* hot reload may have changed its methods */
};

/* Check remote_state() afterwards. */
void module_place_read(struct remote_memory *memory, const struct layout *layout, uint64_t module,
		       struct module_place *ret);

/* The parts of an image that say which PDB it names, copied from memory. */
struct module_copy {
	uint8_t *bytes; /* sparse_memory.h */
	size_t size_bytes;
	struct pe_debug debug;
	char mvid[37]; /* "" when unknown */
};

/* Errors: those of reading; FORMAT; LIMIT; NO_MEMORY. */
struct sym_error *module_copy_read(struct remote_memory *memory, const struct module_place *place,
				   struct module_copy *ret) __attribute__((warn_unused_result));
void module_copy_deinit(struct module_copy *copy);

#endif
