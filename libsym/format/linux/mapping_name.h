/* SPDX-License-Identifier: MIT */
/*
 * Classifies a mapping by its name: the path in /proc/PID/maps, or the file name that perf records,
 * with " (deleted)" behind it or not. A JIT puts its code into memory or into a memory file.
 */
#ifndef LIBSYM_FORMAT_LINUX_MAPPING_NAME_H
#define LIBSYM_FORMAT_LINUX_MAPPING_NAME_H

#include <stdbool.h>
#include <stddef.h>

enum mapping_name_kind {
	MAPPING_NAME_FILE,
	MAPPING_NAME_MEMORY,      /* of no file; it may hold jitted code */
	MAPPING_NAME_MEMORY_FILE, /* memfd_create(); it may hold jitted code, or a loaded library */
	MAPPING_NAME_KERNEL,      /* [vdso], [stack] and the like; no JIT puts code there */
};

/* The name has `name_bytes` bytes and need not be terminated. */
enum mapping_name_kind mapping_name_kind(const char *name, size_t name_bytes);

/* Memory that .NET maps twice: once to write its code, once to run it (W^X). */
bool mapping_name_is_doublemapper(const char *name);

#endif
