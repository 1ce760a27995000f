/* SPDX-License-Identifier: MIT */
#include "libsym/format/linux/mapping_name.h"

#include <string.h>

static bool begins(const char *name, size_t name_bytes, const char *start)
{
	size_t bytes = strlen(start);

	return name_bytes >= bytes && !memcmp(name, start, bytes);
}

enum mapping_name_kind mapping_name_kind(const char *name, size_t name_bytes)
{
	static const char *const memory[] = { "//anon", "[anon:",    "[heap]",
					      "/SYSV",  "/dev/zero", "/anon_hugepage" };

	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		if (begins(name, name_bytes, memory[i]))
			return MAPPING_NAME_MEMORY;
	if (begins(name, name_bytes, "/memfd:"))
		return MAPPING_NAME_MEMORY_FILE;
	if (!name_bytes)
		return MAPPING_NAME_MEMORY;
	return *name == '[' ? MAPPING_NAME_KERNEL : MAPPING_NAME_FILE;
}

bool mapping_name_is_doublemapper(const char *name)
{
	return begins(name, strlen(name), "/memfd:doublemapper");
}
