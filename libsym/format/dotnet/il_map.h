/* SPDX-License-Identifier: MIT */
/*
 * The JIT's map from native offsets to IL offsets ("bounds"), as it lies in precompiled images and
 * in the memory of a runtime, and the rule by which an offset gets an IL offset.
 *
 *   nibble integer: 3 bits a nibble, most significant group first, low nibble of a byte first;
 *                   bit 3 set: another nibble follows
 *   IL offsets are stored + 3; -3 is the epilog, -2 the prolog, -1 no mapping
 *   nibble form (up to .NET 9): n, then n times {native delta, IL + 3, source}
 *   packed form: n, dn - 1, di - 1, padding to a byte, then n records of bits without gaps:
 *                source (2 bits in .NET 10, 3 from .NET 11 on), native delta (dn), IL + 3 (di)
 * dotnet/runtime src/coreclr/vm/debuginfostore.cpp, inc/nibblestream.h.
 */
#ifndef LIBSYM_FORMAT_DOTNET_IL_MAP_H
#define LIBSYM_FORMAT_DOTNET_IL_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/base/reader.h"
#include "libsym/error.h"

enum {
	IL_OFFSET_NO_MAPPING = -1,
	IL_OFFSET_PROLOG = -2,
	IL_OFFSET_EPILOG = -3,
};

enum il_map_form {
	IL_MAP_NIBBLE,
	IL_MAP_PACKED_2, /* 2 bits of source */
	IL_MAP_PACKED_3,
};

enum il_map_limits {
	IL_MAP_MOST_ENTRIES = 1 << 16, /* of one method */
};

struct il_map_entry {
	uint32_t native_offset;
	int32_t il_offset;        /* negative: one of the three above */
	bool is_call_instruction; /* not of the map proper: debuggers use it */
};

/* Nibbles of a blob. `bytes` fails where they end. */
struct nibble_reader {
	struct reader bytes;
	uint8_t byte;
	bool has_high; /* the high nibble of `byte` is next */
};

uint8_t nibble_next(struct nibble_reader *reader); /* one nibble as it is */
uint32_t nibble_read(struct nibble_reader *reader);

/* A walk over the entries. They ascend by native offset. */
struct il_map {
	struct nibble_reader reader; /* at the next entry; packed form: at the first */
	enum il_map_form form;
	uint32_t count, next;
	uint8_t native_bits, il_bits, source_bits;
	uint32_t native_offset; /* of the last entry */
	const char *failure;    /* NULL, or why the walk ended early; static */
};

struct il_map il_map_begin(const void *bounds, size_t size_bytes, enum il_map_form form);
/* Returns false at the end, and on failure. */
bool il_map_next(struct il_map *map, struct il_map_entry *ret);

/* How an IL offset was found. */
enum il_quality {
	IL_NONE = 0, /* the map is malformed or empty */
	IL_EXACT,
	IL_NEAREST, /* no mapping there: that of the nearest mapped instruction before */
	IL_PROLOG,  /* prolog, epilog, or before the first entry */
};

/*
 * The IL offset of a native offset, which is that of an instruction.
 * Consumes the map. Where it is IL_EXACT or IL_PROLOG, it is the runtime's own answer
 * (src/coreclr/vm/debugdebugger.cpp, WalkILOffsetsCallback).
 */
enum il_quality il_map_find(struct il_map map, uint32_t native_offset, uint32_t *il_ret);

/* The same rule over entries in memory, which ascend by native offset. */
enum il_quality il_entries_find(const struct il_map_entry *entries, size_t count,
				uint32_t native_offset, uint32_t *il_ret);

/* Code of one method, in an image or in memory. */
struct il_code {
	uint64_t start, size_bytes;
};

/*
 * Appends where the answer of il_map_find() may change, as uint64_t: `start`, and each entry inside
 * the code. Consumes the map. A malformed map has the entries before its end.
 */
void il_map_append_rows(struct il_map map, struct il_code code, struct buf *ret);
/* As il_map_append_rows(), from entries in memory. */
void il_entries_append_rows(const struct il_map_entry *entries, size_t count, struct il_code code,
			    struct buf *ret);
/* Sorts rows and drops equal ones. Errors: NO_MEMORY, LIMIT, of the buffer. */
struct sym_error *il_rows_settle(struct buf *rows, size_t *count_ret)
	__attribute__((warn_unused_result));

#endif
