/* SPDX-License-Identifier: MIT */
/*
 * ReadyToRun images: which methods are precompiled, where their code is, and
 * what they are called. Bytes in (struct pe), records out.
 * Format: dotnet/runtime docs/design/coreclr/botr/readytorun-format.md and
 * src/coreclr/inc/readytorun.h, header versions 2.x to 26.x (.NET 11).
 *
 * Opening reads the tables (sections 101, 102, 103, 109, 115, 120) and finds the
 * extent of every method; names are formatted one by one when asked.
 */
#ifndef LIBSYM_FORMAT_R2R_H
#define LIBSYM_FORMAT_R2R_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/error.h"
#include "libsym/format/metadata.h"
#include "libsym/format/pe.h"

enum r2r_flavour {
	R2R_NONE, /* no managed native header: IL only, or no CLI header at all */
	R2R_NGEN, /* fragile native image, 'NGE\0' */
	R2R_PLAIN,
	R2R_COMPONENT, /* its code is in a composite image; section 116 */
	R2R_COMPOSITE, /* section 115 */
};

/* What the managed native header says, without reading any table. */
enum r2r_flavour r2r_flavour(const struct pe *pe);

/* File name of the composite that owns a component (borrowed from the data); NULL when it is no
 * component or the name lies. */
const char *r2r_owner_composite(const struct pe *pe);

/*
 * How the reader reaches the metadata of another assembly (composite images,
 * larger version bubbles): by simple name. Returns NULL when it is not to be
 * had; what is returned must stay valid as long as the image.
 * For a component of a composite, `mvid` is what the composite says its MVID is
 * (section 118; NULL when it does not say): other metadata must not be returned.
 */
struct r2r_assemblies {
	void *context;
	const struct metadata *(*find)(void *context, const char *simple_name, const uint8_t *mvid);
};

enum r2r_range_kind {
	R2R_METHOD = 0, /* a method: begin of its first to end of its last hot runtime function */
	R2R_COLD = 1,   /* the cold part of a method (section 120) */
	R2R_STUB = 2,   /* section 106, DelayLoadMethodCallThunks, one range an image */
};

struct r2r_range {
	uint32_t rva;
	uint32_t size_bytes;
	uint32_t entry; /* which method: index for r2r_name(); unused for R2R_STUB */
	uint32_t kind;  /* enum r2r_range_kind */
};

struct r2r;

/*
 * `pe` and `metadata` (the image's own; NULL only for a composite without CLI header) are
 * borrowed and must outlive the object; so must what `assemblies` (may be NULL) points to.
 * Errors: FORMAT, UNSUPPORTED (a header from the future, an NGEN image), LIMIT, NO_MEMORY.
 */
struct sym_error *r2r_open(const struct pe *pe, const struct metadata *metadata,
			   const struct r2r_assemblies *assemblies, struct r2r **ret);
void r2r_close(struct r2r *r2r);

uint16_t r2r_major_version(const struct r2r *r2r);
uint16_t r2r_minor_version(const struct r2r *r2r);

/* Number of method entries of sections 103 and 109, and of stubs that resume methods (aliases
 * included, cold parts not). */
size_t r2r_method_count(const struct r2r *r2r);

/* Instance entries whose signature could not be decoded, and runtime functions that belong to no
 * entry. */
size_t r2r_undecodable_count(const struct r2r *r2r);
size_t r2r_ownerless_count(const struct r2r *r2r);

/* All ranges sorted by rva, then in table order (103 by rid, then 109); lives as long as the
 * object. */
const struct r2r_range *r2r_ranges(const struct r2r *r2r, size_t *count_ret);

/*
 * Index into r2r_ranges() of the range that covers `rva`, SIZE_MAX when none does.
 * Of aliases, the first in table order.
 */
size_t r2r_find(const struct r2r *r2r, uint32_t rva);

enum r2r_dialect {
	R2R_NAME_RUNTIME,   /* as the runtime's perf map and crossgen v1 write it */
	R2R_NAME_CROSSGEN2, /* as crossgen2's maps have it */
};

/*
 * Appends the name of a method entry. Thread safe. An entry whose metadata is not to be had appends
 * nothing and returns false; *why_ret is then a static text.
 */
bool r2r_name(const struct r2r *r2r, uint32_t entry, enum r2r_dialect dialect, struct buf *buf,
	      const char **why_ret);

/* Simple name of the assembly that an entry belongs to (component attribution in composites); NULL
 * when not known. */
const char *r2r_entry_assembly(const struct r2r *r2r, uint32_t entry);

/*
 * MVID of the component that a method of a composite belongs to, as 36 characters: that of the
 * metadata which names it, and what the composite says where it says something. NULL for other
 * images, and when it is not known. Lives as long as the object.
 */
const char *r2r_entry_mvid(const struct r2r *r2r, uint32_t entry);

DEFINE_GUARD(r2r, struct r2r *, r2r_close)
#define AUTO_R2R GUARDED(r2r)

#endif
