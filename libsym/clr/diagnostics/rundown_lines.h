/* SPDX-License-Identifier: MIT */
/*
 * The IL maps of all jitted methods, as a runtime reports them in a rundown (.NET Core 3.0 and
 * later). Precompiled methods have none there.
 *
 *	149, 150 MethodDCStart/EndILToNativeMap: u64 method, u64 rejit, u8 extent, u16 n,
 *		u32 il[n], u32 native[n]
 *	143, 144 MethodDCStart/EndVerbose of the same method follows, with start, size and token
 *	153, 154 ModuleDCStart/End: path; GUID, age and path of the PDB
 * dotnet/runtime src/coreclr/vm/ClrEtwAll.man; up to .NET 8 the maps are in every rundown.
 */
#ifndef LIBSYM_CLR_DIAGNOSTICS_RUNDOWN_LINES_H
#define LIBSYM_CLR_DIAGNOSTICS_RUNDOWN_LINES_H

#include "libsym/clr/diagnostics/diagnostics_socket.h"
#include "libsym/error.h"
#include "libsym/format/dotnet/il_map.h"

struct rundown_lines;

/* Parses the bytes of a session. Errors: as nettrace_parse(). */
struct sym_error *rundown_lines_parse(const void *data, size_t size_bytes,
				      struct rundown_lines **ret)
	__attribute__((warn_unused_result));
/* Requests a rundown with maps. Errors: as rundown_ask(). */
struct sym_error *rundown_lines_ask(const struct diagnostics_place *place,
				    struct rundown_lines **ret) __attribute__((warn_unused_result));
void rundown_lines_close(struct rundown_lines *lines);

/* A method with its map, whose entries ascend by native offset. */
struct rundown_map {
	uint32_t token;          /* 0x06000000 for a dynamic method */
	const char *module_path; /* NULL: not reported */
	const char *name;        /* of the method alone */
	const struct il_map_entry *entries;
	size_t count; /* 0: it has no map */
};

/* Returns false if no method has exactly this code. */
bool rundown_lines_find(const struct rundown_lines *lines, uint64_t start_address,
			uint64_t size_bytes, struct rundown_map *ret);

DEFINE_GUARD(rundown_lines, struct rundown_lines *, rundown_lines_close)
#define AUTO_RUNDOWN_LINES GUARDED(rundown_lines)

#endif
