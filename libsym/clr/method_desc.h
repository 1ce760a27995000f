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
#include "libsym/base/prefetch.h"
#include "libsym/clr/type_name.h"

struct methods;

/* `tiers` may be NULL. All is borrowed. */
struct sym_error *methods_create(struct remote_memory *memory, const struct layout *layout,
				 const struct layout_tiers *tiers, struct types *types,
				 struct methods **ret);
void methods_destroy(struct methods *methods);

enum method_outcome {
	METHOD_PENDING = 0, /* fetch, and ask again; nothing was written */
	METHOD_READ,
	METHOD_BAD, /* contradicts itself; nothing was written */
};

struct method_description {
	/* What the MethodDesc itself says. */
	uint64_t address, method_table, code_data;
	/* The signature of a variant that awaits, which is not that of its row; else no bytes. */
	uint64_t variant_address;
	uint32_t variant_bytes;
	uint32_t rid;
	uint16_t slot, flags3;
	uint8_t classification;
	const struct type *wanted; /* as types_want() has it */
	/* What its module says; of methods that are rows only. */
	const struct type *type;
	bool is_added; /* its row is none of the image */
	const char *name;
	struct metadata_blob signature;
};

/*
 * Reads what the MethodDesc says, notes its type for types_read_wanted(), and where its versions
 * begin.
 */
enum method_outcome methods_describe(struct methods *methods, uint64_t method_desc,
				     struct method_description *ret);

/* Completes a description that was READ. */
enum method_outcome methods_find_row(struct methods *methods,
				     struct method_description *description);

/* These tell the processor what will be read: methods_describe() of a chunk, once the MethodDesc is
 * at hand; methods_find_row(); methods_read_tier() behind `code_data`. */
void methods_prefetch_chunk(const struct methods *methods, uint64_t method_desc);
void methods_prefetch_row(const struct method_description *description);
void methods_prefetch_versions(const struct methods *methods,
			       const struct method_description *description);

/* Tells the processor what methods_write_described() will read. */
static inline void methods_prefetch_name(const struct method_description *description)
{
	prefetch(description->type->owner);
	prefetch(description->name);
	if (description->type->module->names)
		signature_names_prefetch(description->type->module->names,
					 description->signature.data);
}

/*
 * Appends the name of a method whose row was found. *is_volatile_ret: what was read can be recycled
 * or unloaded while it is read, so a name is good only when a second reading, with nothing kept in
 * between, yields the same. When BAD, *is_volatile_ret tells as much as was seen.
 */
enum method_outcome methods_write_described(struct methods *methods,
					    const struct method_description *description,
					    struct buf *out, bool *is_volatile_ret);

/* All three in one. */
enum method_outcome methods_write_name(struct methods *methods, uint64_t method_desc,
				       struct buf *out, bool *is_volatile_ret);

/* Class 7: its code can be freed and its MethodDesc used again. Valid right after a name that
 * was READ. */
bool methods_last_was_dynamic(const struct methods *methods);

/* The tier of a method that is compiled once: as it stands ("MinOptJitted") where its module was
 * built for debugging, or it says so itself. Of one whose row was found. */
const char *methods_only_tier(const struct method_description *description);

/* "OptimizedTier1" and its like, a hint; NULL when not known, of which BAD says that the next look
 * may know it. PENDING leaves *tier_ret alone. Only where methods_create() was told of tiers. */
enum method_outcome methods_read_tier(struct methods *methods,
				      const struct method_description *description, uint64_t code,
				      const char **tier_ret);

DEFINE_GUARD(methods, struct methods *, methods_destroy)
#define AUTO_METHODS GUARDED(methods)

#endif
