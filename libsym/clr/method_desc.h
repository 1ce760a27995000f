/* SPDX-License-Identifier: MIT */
/*
 * Methods of a live runtime by the address of their MethodDesc, and their names
 * as the runtime's own map has them: "instance void [A] Ns.T`1[Ns.A]::M(!0,int32)".
 * Knows ordinary, dynamic and array methods; a name is given only when
 * chunk, type, class and metadata agree with each other.
 */
#ifndef LIBSYM_CLR_METHOD_DESC_H
#define LIBSYM_CLR_METHOD_DESC_H

#include "libsym/base/buf.h"
#include "libsym/clr/type_name.h"

struct methods;

struct sym_error *methods_create(struct remote_memory *memory, const struct layout *layout,
				 struct modules *modules, struct types *types,
				 struct methods **ret);
void methods_destroy(struct methods *methods);

enum method_outcome {
	METHOD_PENDING = 0, /* fetch, and ask again; nothing was written */
	METHOD_NAMED,
	METHOD_BAD, /* contradicts itself; nothing was written */
};

/*
 * Appends the name. *is_volatile_ret: what was read can be recycled or
 * unloaded while it is read, so a name is good only when a second reading, with
 * nothing kept in between, yields the same.
 * When BAD, *is_volatile_ret tells as much as was seen.
 */
enum method_outcome methods_write_name(struct methods *methods, uint64_t method_desc,
				       struct buf *out, bool *is_volatile_ret);

/* Class 7: its code can be freed and its MethodDesc used again. Valid right after a reading that
 * was NAMED. */
bool methods_last_was_dynamic(const struct methods *methods);

/* "OptimizedTier1" and its like, a hint; NULL when not known. PENDING leaves *tier_ret alone. */
enum method_outcome methods_read_tier(struct methods *methods, const struct layout_tiers *tiers,
				      uint64_t method_desc, uint64_t code, const char **tier_ret);

DEFINE_GUARD(methods, struct methods *, methods_destroy)
#define AUTO_METHODS GUARDED(methods)

#endif
