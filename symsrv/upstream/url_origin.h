/* SPDX-License-Identifier: MIT */
#ifndef SYMSRV_UPSTREAM_URL_ORIGIN_H
#define SYMSRV_UPSTREAM_URL_ORIGIN_H

#include <stdbool.h>

/* Whether scheme, host and port of two URLs are the same. */
bool url_same_origin(const char *left, const char *right);

#endif
