/* SPDX-License-Identifier: MIT */
/*
 * Methods of a live runtime by the address of their MethodDesc, and their names as in the runtime's
 * own map: "instance void [A] Ns.T`1[Ns.A]::M(!0,int32)".
 * It handles ordinary, dynamic and array methods.
 * A method is named only if chunk, type, class and metadata agree.
 */
#ifndef LIBSYM_CLR_METHOD_DESC_H
#define LIBSYM_CLR_METHOD_DESC_H

#include "libsym/base/buf.h"
#include "libsym/clr/type_name.h"

struct methods;

/* `tiers` may be NULL. Everything is borrowed. */
struct sym_error *methods_create(struct remote_memory *memory, const struct layout *layout,
				 const struct layout_tiers *tiers, struct types *types,
				 struct methods **ret);
void methods_destroy(struct methods *methods);

enum method_outcome {
	METHOD_PENDING = 0, /* fetch, then call again; nothing was written */
	METHOD_READ,
	METHOD_BAD, /* inconsistent; nothing was written */
};

struct method_description {
	/* From the MethodDesc. */
	uint64_t address, method_table, code_data;
	/* The signature of an async variant, which differs from the row's; else no bytes. */
	uint64_t variant_address;
	uint32_t variant_bytes;
	uint32_t rid;
	uint16_t slot, flags3;
	uint8_t classification;
	/* From the module; for methods with a row only. */
	const struct type *type;
	bool is_added; /* the image lacks its row */
	const char *name;
	struct metadata_blob signature;
};

/* Reads the MethodDesc, and requests the start of its type and of its versions. */
enum method_outcome methods_describe(struct methods *methods, uint64_t method_desc,
				     struct method_description *ret);

/* The type and the MethodDef row that a MethodDesc belongs to. */
struct method_owner {
	uint64_t method_table;
	uint32_t rid; /* MethodDef */
};

/*
 * Reads that alone. Returns false for a method without a row (dynamic, of an array), or when
 * remote_state() is set. The methods may have been created without types.
 */
bool methods_read_owner(struct methods *methods, uint64_t method_desc, struct method_owner *ret);

/* Completes a description that was READ. */
enum method_outcome methods_find_row(struct methods *methods,
				     struct method_description *description);

/*
 * Appends the name of a method whose row was found.
 * *is_volatile_ret: the data can be recycled or unloaded during the reading. Then a name is valid
 * only if a second reading with an empty cache gives the same.
 * With BAD, *is_volatile_ret covers what was read.
 */
enum method_outcome methods_write_described(struct methods *methods,
					    const struct method_description *description,
					    struct buf *out, bool *is_volatile_ret);

/* Calls all three in order. */
enum method_outcome methods_write_name(struct methods *methods, uint64_t method_desc,
				       struct buf *out, bool *is_volatile_ret);

/*
 * Class 7: its code can be freed and its MethodDesc used again. Valid right after a name that was
 * READ.
 */
bool methods_last_was_dynamic(const struct methods *methods);

/*
 * The IL of a method whose row was found, valid until the next is read. *count_ret in bytes: 0 when
 * it has none, is too long, or remote_state() is set.
 */
const uint8_t *methods_read_il(struct methods *methods,
			       const struct method_description *description, uint32_t *count_ret);

/*
 * The tier of a method that is compiled once: not optimized ("MinOptJitted"), because its module
 * was built for debugging or it has that attribute. For a method whose row was found.
 */
const char *methods_only_tier(const struct method_description *description);

/*
 * "OptimizedTier1" and so on, a hint; NULL when unknown. With BAD the next look may find it.
 * PENDING does not write *tier_ret.
 * Only if methods_create() got tiers.
 */
enum method_outcome methods_read_tier(struct methods *methods,
				      const struct method_description *description, uint64_t code,
				      const char **tier_ret);

DEFINE_GUARD(methods, struct methods *, methods_destroy)
#define AUTO_METHODS GUARDED(methods)

#endif
