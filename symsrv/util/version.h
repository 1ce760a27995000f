/* SPDX-License-Identifier: MIT */
/* The version as text; the number stands in libsym.h. */
#ifndef SYMSRV_UTIL_VERSION_H
#define SYMSRV_UTIL_VERSION_H

#include "libsym/libsym.h"

#define SYMSRV_TEXT_(x) #x
#define SYMSRV_TEXT(x)  SYMSRV_TEXT_(x)
#define SYMSRV_VERSION                                                                             \
	SYMSRV_TEXT(SYM_VERSION_MAJOR)                                                             \
	"." SYMSRV_TEXT(SYM_VERSION_MINOR) "." SYMSRV_TEXT(SYM_VERSION_PATCH)

#endif
