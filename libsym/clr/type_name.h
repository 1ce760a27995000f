/* SPDX-License-Identifier: MIT */
/*
 * Types of a live runtime by the address of their MethodTable, and their names as the runtime's own
 * map writes the owner of a method: "Ns.Outer+Inner`1[Ns.A,Ns.B[]]".
 * Every type is checked against its class and its metadata before it is used.
 *
 * A type handle is the address of a MethodTable, or with bit 1 set that of a TypeDesc (pointer,
 * reference, type parameter, function pointer).
 */
#ifndef LIBSYM_CLR_TYPE_NAME_H
#define LIBSYM_CLR_TYPE_NAME_H

#include "libsym/base/buf.h"
#include "libsym/clr/module_metadata.h"

struct types;

struct type {
	uint64_t address; /* of the MethodTable */
	const struct module *module;
	/*
	 * TypeDef row in that module; 0 for arrays, and for the nameless type that owns the dynamic
	 * methods of a module.
	 */
	uint32_t rid;
	uint16_t virtual_count;
	bool is_array;
	bool is_added;    /* the image lacks its row: it has no name */
	bool is_volatile; /* its module, or that of an argument, is volatile */
	uint32_t name_bytes, owner_bytes;
	const char *name;  /* "" for a nameless type; not NUL terminated */
	const char *owner; /* "[assembly] name::", as methods have it before their own name */
};

struct sym_error *types_create(struct remote_memory *memory, const struct layout *layout,
			       struct modules *modules, struct types **ret);
void types_destroy(struct types *types);

/* NULL: check remote_state(), as for modules_get(). It lives until types_forget(). */
const struct type *types_get(struct types *types, uint64_t address);

/* Appends the name of a type handle; false with remote_state() set. */
bool types_write_handle(struct types *types, uint64_t handle, struct buf *out, bool *is_volatile);

/*
 * For a handle with bit 1 set that means the native form of a structure: the MethodTable of the
 * structure. 0 for others, or with remote_state() set.
 */
uint64_t types_native_value(struct types *types, uint64_t handle);

/* As modules_lack_row(), for a type that was asked for. */
bool types_lack_type(const struct types *types, uint64_t address);
/* As modules_lack_row(), for a method that belongs to the type. */
bool types_lack_method(struct types *types, const struct type *type, uint32_t rid);

/* Drops all types. Call it before modules are dropped, because types refer to them. */
void types_forget(struct types *types);

/* The lack of memory is recorded here. */
struct sym_error *types_error(const struct types *types);

DEFINE_GUARD(types, struct types *, types_destroy)
#define AUTO_TYPES GUARDED(types)

#endif
