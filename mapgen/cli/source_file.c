/* SPDX-License-Identifier: MIT */
#include "mapgen/cli/source_file.h"

#include <string.h>

#include "libsym/base/path.h"

const char *source_file_name(const char *path)
{
	const char *backslash = strrchr(path, '\\');

	return backslash ? backslash + 1 : path_file_name(path);
}
