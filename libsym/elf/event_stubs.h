/* SPDX-License-Identifier: MIT */
/* Where the code of a .NET runtime fires LTTng tracepoints. See sym_image_find_event_stubs(). */
#ifndef LIBSYM_ELF_EVENT_STUBS_H
#define LIBSYM_ELF_EVENT_STUBS_H

#include "libsym/file/object_file.h"

/* For each name the offset into the file of the one instruction; UINT64_MAX: none, or several. */
struct sym_error *event_stubs_find(const struct object_file *object, const char *const *names,
				   size_t count, uint64_t *offsets_ret)
	__attribute__((warn_unused_result));

#endif
