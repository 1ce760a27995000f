/* SPDX-License-Identifier: MIT */
/*
 * Metadata of the modules of a live runtime, copied from its memory: mapped images, flat files, and
 * assemblies emitted at run time.
 * No file is opened, so deleted and replaced files do not matter.
 * Names are made elsewhere.
 */
#ifndef LIBSYM_CLR_MODULE_METADATA_H
#define LIBSYM_CLR_MODULE_METADATA_H

#include "libsym/clr/layout.h"
#include "libsym/format/dotnet/metadata.h"
#include "libsym/process/remote_memory.h"

struct modules;

struct module {
	uint64_t address; /* of the Module */
	const struct metadata
		*metadata; /* lives as long as the table, or until modules_forget_volatile() */
	/* It can be unloaded or changed: what is read through it must be read twice. */
	bool is_volatile;
	bool is_unoptimized; /* built for debugging: its code is not optimized */
	bool may_tail_call;  /* it is F#, the only compiler that emits "tail." */
};

struct sym_error *modules_create(struct remote_memory *memory, const struct layout *layout,
				 struct modules **ret);
void modules_destroy(struct modules *modules);

/*
 * The module at `address`.
 * NULL: check remote_state(): PENDING (fetch and start again) or UNREADABLE (not a module with
 * metadata).
 */
const struct module *modules_get(struct modules *modules, uint64_t address);

/*
 * Address of `size_bytes` bytes at `rva` of a module's image; 0 when it has none, or remote_state()
 * is set.
 */
uint64_t module_rva_address(struct remote_memory *memory, const struct module *module, uint32_t rva,
			    uint32_t size_bytes);

/*
 * True when a module has methods that no copied metadata has. Hot reload may add methods to a
 * module. A profiler may have added a row, which the image then lacks.
 */
bool modules_any_editable(const struct modules *modules);

/* True when the image of the module lacks this row. */
bool modules_lack_row(struct modules *modules, const struct module *module,
		      enum metadata_table table, uint32_t rid);

/* The lack of memory is recorded here, because modules_get() returns no error. */
struct sym_error *modules_error(const struct modules *modules);

/* Drops all modules that can change and all that could not be read. */
void modules_forget_volatile(struct modules *modules);
/* Drops small ones too, between two readings. */
void modules_forget_small(struct modules *modules);

DEFINE_GUARD(modules, struct modules *, modules_destroy)
#define AUTO_MODULES GUARDED(modules)

#endif
