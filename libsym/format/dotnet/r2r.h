/* SPDX-License-Identifier: MIT */
/*
 * ReadyToRun images: which methods are precompiled, where their code is, and their names.
 * Format: dotnet/runtime docs/design/coreclr/botr/readytorun-format.md and
 * src/coreclr/inc/readytorun.h, header versions 2.x to 26.x (.NET 11).
 *
 * Opening reads the tables (sections 101, 102, 103, 109, 115, 120) and finds the extent of every
 * method. A name is formatted when it is requested.
 */
#ifndef LIBSYM_FORMAT_DOTNET_R2R_H
#define LIBSYM_FORMAT_DOTNET_R2R_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/error.h"
#include "libsym/format/dotnet/metadata.h"
#include "libsym/format/dotnet/pe.h"

enum r2r_flavour {
	R2R_NONE, /* no managed native header: IL only, or no CLI header */
	R2R_NGEN, /* fragile native image, 'NGE\0' */
	R2R_PLAIN,
	R2R_COMPONENT, /* its code is in a composite image; section 116 */
	R2R_COMPOSITE, /* section 115 */
};

/* The kind of native code by the headers, without reading a table. */
enum r2r_flavour r2r_flavour(const struct pe *pe);

/* File name of the composite that owns a component; points into the data. NULL if it is not a
 * component or the name is not a plain file name. */
const char *r2r_owner_composite(const struct pe *pe);

/*
 * Finds the metadata of another assembly by simple name, for composite images and larger version
 * bubbles. Returns NULL if it is not available. The metadata must stay valid as long as the image.
 *
 * mvid: for a component of a composite, the MVID that the composite has recorded (section 118);
 * NULL: not recorded. Metadata with another MVID must not be returned.
 */
struct r2r_assemblies {
	void *context;
	const struct metadata *(*find)(void *context, const char *simple_name, const uint8_t *mvid);
};

enum r2r_range_kind {
	R2R_METHOD = 0, /* a method: from its first to its last hot runtime function */
	R2R_COLD = 1,   /* the cold part of a method (section 120) */
	R2R_STUB = 2,   /* section 106, DelayLoadMethodCallThunks; one range per image */
};

struct r2r_range {
	uint32_t rva;
	uint32_t size_bytes;
	uint32_t entry; /* the method: an index for r2r_name(); unused for R2R_STUB */
	uint32_t kind;  /* enum r2r_range_kind */
};

struct r2r;

/*
 * `pe` and `metadata` are borrowed and must outlive the object; so must the target of `assemblies`
 * (may be NULL). `metadata` is the image's own; NULL only for a composite without a CLI header.
 *
 * Errors: FORMAT, UNSUPPORTED (an unknown header version, an NGEN image), LIMIT, NO_MEMORY.
 */
struct sym_error *r2r_open(const struct pe *pe, const struct metadata *metadata,
			   const struct r2r_assemblies *assemblies, struct r2r **ret);
void r2r_close(struct r2r *r2r);

/* Number of method entries of sections 103 and 109, and of stubs that resume methods. Aliases
 * count; cold parts do not. */
size_t r2r_method_count(const struct r2r *r2r);

/* Number of instance entries whose signature could not be decoded, and of runtime functions that
 * belong to no entry. */
size_t r2r_undecodable_count(const struct r2r *r2r);
size_t r2r_ownerless_count(const struct r2r *r2r);

/* All ranges sorted by rva, then in table order (103 by rid, then 109). Valid as long as the
 * object. */
const struct r2r_range *r2r_ranges(const struct r2r *r2r, size_t *count_ret);

/* Index into r2r_ranges() of the range that covers `rva`; SIZE_MAX if none does. The first alias in
 * table order wins. */
size_t r2r_find(const struct r2r *r2r, uint32_t rva);

enum r2r_dialect {
	R2R_NAME_RUNTIME,   /* as in the runtime's perf map and crossgen v1's maps */
	R2R_NAME_CROSSGEN2, /* as in crossgen2's maps */
};

/* Appends the name of a method entry. Thread safe. If its metadata is not available, appends
 * nothing, sets *why_ret to a static text, and returns false. */
bool r2r_name(const struct r2r *r2r, uint32_t entry, enum r2r_dialect dialect, struct buf *buf,
	      const char **why_ret);

/* Simple name of the assembly that an entry belongs to, also in composites; NULL if unknown. */
const char *r2r_entry_assembly(const struct r2r *r2r, uint32_t entry);

/*
 * MVID of the component that a method of a composite belongs to, as 36 characters: that of the
 * metadata that names it, which matches the composite's own record if there is one. NULL for other
 * images, and if it is unknown. Valid as long as the object.
 */
const char *r2r_entry_mvid(const struct r2r *r2r, uint32_t entry);

DEFINE_GUARD(r2r, struct r2r *, r2r_close)
#define AUTO_R2R GUARDED(r2r)

#endif
