/* SPDX-License-Identifier: MIT */
/*
 * The containers of ReadyToRun tables ("native format"): variable-length
 * integers, the sparse array of section 103 and the hash table of section 109.
 * Knows nothing of what the elements mean; a callback gets their positions.
 * Format: dotnet/runtime src/coreclr/vm/nativeformatreader.h.
 */
#ifndef LIBSYM_FORMAT_NATIVE_FORMAT_H
#define LIBSYM_FORMAT_NATIVE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/reader.h"

uint32_t native_format_unsigned(struct reader *reader);
int32_t native_format_signed(struct reader *reader);

/*
 * Called with a cursor at the element (a copy to be moved at will). Returns
 * false to stop the walk.
 */
typedef bool native_format_visit(void *context, uint32_t index, struct reader element);

/*
 * Visits the elements of the array at `position` of `reader` in ascending order of index,
 * at most `max_elements` of them with index < max_index. False when the array is malformed or
 * larger, or a visit asked to stop.
 */
bool native_format_array(const struct reader *reader, size_t position, uint32_t max_index,
			 native_format_visit *visit, void *context);

/* Visits all elements of the hash table at `position` in table order; the index counts them. */
bool native_format_hashtable(const struct reader *reader, size_t position,
			     native_format_visit *visit, void *context);

#endif
