/* SPDX-License-Identifier: MIT */
/*
 * The debug information that a JIT writes for a method: which part of it is the IL map.
 *
 *   precompiled (section 105), and the slim form of .NET 11:
 *     nibble integers size of bounds, size of variables; padding to a byte; bounds; variables
 *   fat form (.NET 11, first integer 0):
 *     sizes of bounds, variables, uninstrumented bounds, patchpoint, rich and async information
 *   jitted code up to .NET 10: a flag byte first
 *     1: patchpoint information follows; 2: rich information {u32 size, bytes} follows
 *     .NET 10: first integer 0xffffffff: then sizes of bounds and uninstrumented bounds
 * dotnet/runtime src/coreclr/vm/debuginfostore.cpp.
 */
#ifndef LIBSYM_FORMAT_DOTNET_DEBUG_INFO_H
#define LIBSYM_FORMAT_DOTNET_DEBUG_INFO_H

#include "libsym/format/dotnet/il_map.h"

enum debug_info_form {
	DEBUG_INFO_R2R_NIBBLE, /* precompiled, format below 16 */
	DEBUG_INFO_R2R_PACKED, /* format 16: .NET 10 */
	DEBUG_INFO_R2R_FAT,    /* format 17 and above: .NET 11 */
	DEBUG_INFO_JIT_NIBBLE, /* jitted code up to .NET 9 */
	DEBUG_INFO_JIT_PACKED, /* .NET 10 */
	DEBUG_INFO_JIT_FAT,    /* .NET 11 */
};

struct debug_info {
	const uint8_t *bounds;
	size_t bounds_bytes; /* 0: the method has no map */
	enum il_map_form form;
	const uint8_t *rich; /* inlined methods: rich debug info of .NET 7 on; NULL: none */
	size_t rich_bytes;
	size_t whole_bytes;  /* from the start of the blob to the end of what is used */
	const char *failure; /* NULL, or why it cannot be read; static */
	bool is_short;       /* it failed because more bytes are needed */
};

/* `bytes` may end after the blob. */
struct debug_info debug_info_read(const void *bytes, size_t size_bytes, enum debug_info_form form);

#endif
