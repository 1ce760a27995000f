/* SPDX-License-Identifier: MIT */
/* Functions that this tree must not use; developer builds reject them. The system headers that name
 * them come first. */
#ifndef LIBSYM_BASE_BANNED_H
#define LIBSYM_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets atoi atol atoll strtok      \
	gmtime localtime ctime asctime mktemp tmpnam

#endif
