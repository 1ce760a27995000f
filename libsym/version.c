/* SPDX-License-Identifier: MIT */
/* The version of the library, from libsym.h. */
#include "libsym/libsym.h"

#define TEXT_OF(x)            #x
#define VERSION_TEXT(x, y, z) TEXT_OF(x) "." TEXT_OF(y) "." TEXT_OF(z)

const char *sym_version(void)
{
	return VERSION_TEXT(SYM_VERSION_MAJOR, SYM_VERSION_MINOR, SYM_VERSION_PATCH);
}
