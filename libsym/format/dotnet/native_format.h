/* SPDX-License-Identifier: MIT */
/*
 * The containers of ReadyToRun tables ("native format"): variable-length integers, the sparse array
 * of section 103 and the hash table of section 109. A callback receives the positions of the
 * elements. Format: dotnet/runtime src/coreclr/vm/nativeformatreader.h.
 */
#ifndef LIBSYM_FORMAT_DOTNET_NATIVE_FORMAT_H
#define LIBSYM_FORMAT_DOTNET_NATIVE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/reader.h"

uint32_t native_format_unsigned(struct reader *reader);
int32_t native_format_signed(struct reader *reader);

/* Receives a copy of the reader, positioned at the element. Returns false to stop the walk. */
typedef bool native_format_visit(void *context, uint32_t index, struct reader element);

/* Visits the elements of the array at `position` with index < `max_index`, in ascending order.
 * Returns false if the array is malformed or larger, or if a visit returned false. */
bool native_format_array(const struct reader *reader, size_t position, uint32_t max_index,
			 native_format_visit *visit, void *context);

/* Finds one element of the array at `position`. Returns false if there is none, or it is malformed.
 */
bool native_format_array_find(const struct reader *reader, size_t position, uint32_t index,
			      struct reader *ret);

/* Visits all elements of the hash table at `position` in table order; `index` counts them. */
bool native_format_hashtable(const struct reader *reader, size_t position,
			     native_format_visit *visit, void *context);

#endif
