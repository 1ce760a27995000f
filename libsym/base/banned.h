/* SPDX-License-Identifier: MIT */
/*
 * Functions that have no place in this tree; developer builds refuse them.
 * System headers come first because some of them name the functions.
 */
#ifndef LIBSYM_BASE_BANNED_H
#define LIBSYM_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets atoi atol atoll strtok      \
	gmtime localtime ctime asctime mktemp tmpnam

#endif
