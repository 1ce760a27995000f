/* SPDX-License-Identifier: MIT */
/*
 * The modules of a runtime that has jitted code, and their PDBs.
 *
 * A module whose file is mapped is an image of the process: its PDB is that of the image. A module
 * in other memory (a bundle, an array of bytes) is read from there, as far as the name of its PDB.
 */
#ifndef LIBSYM_CLR_JITTED_MODULES_H
#define LIBSYM_CLR_JITTED_MODULES_H

#include "libsym/clr/clr_target.h"
#include "libsym/clr/module_place.h"
#include "libsym/file/managed_line.h"

struct jitted_module {
	struct jitted_module *next;
	uint64_t address; /* of the Module; 0: known by its path */
	char *path;       /* NULL: known by its address */
	struct module_place place;
	struct sym_image *image; /* shared; NULL: none */
	struct sym_pdb *pdb;     /* without an image; NULL: `reason` says why */
	char *reason;
	char mvid[37];
};

void jitted_modules_deinit(struct jitted_module **modules);

/* The module at an address of the runtime's memory. Errors: NO_MEMORY. */
struct sym_error *jitted_modules_get(struct jitted_module **modules, struct remote_memory *memory,
				     const struct clr_target *target, uint64_t address,
				     const struct module_place *place, struct jitted_module **ret)
	__attribute__((warn_unused_result));
/* The module that the runtime loaded from a path. */
struct sym_error *jitted_modules_get_by_path(struct jitted_module **modules,
					     const struct clr_target *target, const char *path,
					     struct jitted_module **ret)
	__attribute__((warn_unused_result));

/* Sets token and MVID of a method. */
void jitted_module_name(const struct jitted_module *module, struct managed_line *line,
			uint32_t rid);
/* Sets file and line by the method and IL offset. */
void jitted_module_read_line(struct jitted_module *module, struct managed_line *line);

#endif
