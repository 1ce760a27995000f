/* SPDX-License-Identifier: MIT */
/*
 * Metadata of the modules of a live runtime, copied out of its memory: that of
 * mapped images, of flat files that were loaded from anywhere, and of
 * assemblies that were emitted at run time. Opens no file, so deleted and
 * replaced ones make no difference. Knows where metadata lies; names are made
 * elsewhere.
 */
#ifndef LIBSYM_CLR_MODULE_METADATA_H
#define LIBSYM_CLR_MODULE_METADATA_H

#include "libsym/clr/layout.h"
#include "libsym/clr/remote_memory.h"
#include "libsym/format/metadata.h"
#include "libsym/format/signature_names.h"

struct modules;

struct module {
	uint64_t address; /* of the Module */
	const struct metadata
		*metadata; /* lives as long as the table, or until modules_forget_volatile() */
	struct signature_names *names; /* of its types in signatures; NULL: not kept */
	/* It can be unloaded or changed: what is read through it must be read twice. */
	bool is_volatile;
	bool is_unoptimized; /* built for debugging: its code is compiled as it stands */
	bool may_tail_call;  /* it is of F#, the one compiler that writes "tail." */
};

struct sym_error *modules_create(struct remote_memory *memory, const struct layout *layout,
				 struct modules **ret);
void modules_destroy(struct modules *modules);

/*
 * The module at `address`. NULL: look at remote_state(): PENDING (fetch and
 * start over) or UNREADABLE (what is there is no module with metadata).
 */
const struct module *modules_get(struct modules *modules, uint64_t address);

/*
 * The address of so many bytes that the image of a module has at `rva`; 0 where it has not, or
 * remote_state() tells more.
 */
uint64_t module_rva_address(struct remote_memory *memory, const struct module *module, uint32_t rva,
			    uint32_t size_bytes);

/*
 * Notes a module that will be asked for; modules_read_wanted() then reads all that were noted,
 * fetching as often as it takes.
 */
void modules_want(struct modules *modules, uint64_t address);
struct sym_error *modules_read_wanted(struct modules *modules);

/* Has a module been read that hot reload may add methods to, or one whose image lacks a row that
 * the runtime uses? A profiler may have added that. The metadata of these methods is in none of it.
 */
bool modules_any_editable(const struct modules *modules);

/* A type or method of the module is said to have this row: does its image lack it? */
bool modules_lack_row(struct modules *modules, const struct module *module,
		      enum metadata_table table, uint32_t rid);

/* Out of memory is remembered here, because modules_get() has no error. */
struct sym_error *modules_error(const struct modules *modules);

/* Forgets all modules that can change and all that could not be read. */
void modules_forget_volatile(struct modules *modules);
/* Small ones, too; between one reading and the next. */
void modules_forget_small(struct modules *modules);

DEFINE_GUARD(modules, struct modules *, modules_destroy)
#define AUTO_MODULES GUARDED(modules)

#endif
