/* SPDX-License-Identifier: MIT */
/*
 * The debug information of precompiled methods (section 105): an array by the number of a method's
 * first runtime function. An element is a distance back to the blob; 0: the blob follows.
 * dotnet/runtime src/coreclr/vm/readytoruninfo.cpp, GetDebugInfo().
 */
#ifndef LIBSYM_FORMAT_DOTNET_R2R_DEBUG_H
#define LIBSYM_FORMAT_DOTNET_R2R_DEBUG_H

#include "libsym/format/dotnet/debug_info.h"
#include "libsym/format/dotnet/r2r.h"

/*
 * The debug information of a method entry. Returns false if there is none; ret->failure is then
 * NULL, or what is malformed.
 */
bool r2r_debug_find(const struct r2r *r2r, uint32_t entry, struct debug_info *ret);

/* The definition of a method entry. */
struct r2r_definition_of_entry {
	const struct metadata *metadata;
	uint32_t rid;
	bool is_own; /* of the image's own metadata */
};

/* Returns false with a reason, also for a stub that resumes a method. */
bool r2r_debug_method(const struct r2r *r2r, uint32_t entry, struct r2r_definition_of_entry *ret,
		      const char **why_ret);

/*
 * Bytes of IL of a method of the image's own metadata; 0 when it has no body, or it is malformed.
 */
uint32_t pe_il_bytes(const struct pe *pe, const struct metadata *metadata, uint32_t rid);

#endif
