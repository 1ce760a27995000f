/* SPDX-License-Identifier: MIT */
/* An upstream that is a directory: symbol store, build-id tree, or both. Nothing outside of it is
 * opened. */
#ifndef SYMSRV_DIR_UPSTREAM_H
#define SYMSRV_DIR_UPSTREAM_H

#include "symsrv/upstream.h"

/* Copies the file at the transfer's path to its arrival and fills in the result; blocks, but not
 * for room in the store: TRANSFER_WAITS. */
void dir_upstream_copy(struct transfer *transfer);

#endif
