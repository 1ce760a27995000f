/* SPDX-License-Identifier: MIT */
/* An upstream that is a directory: symbol store, build-id tree, or both. Opens nothing outside of
 * it. */
#ifndef SYMSRV_UPSTREAM_DIR_UPSTREAM_H
#define SYMSRV_UPSTREAM_DIR_UPSTREAM_H

#include "symsrv/upstream/http_client.h"

/* Copies the file at the transfer's path to its arrival and sets the result. May block, but does
 * not wait for room in the store: TRANSFER_WAITS. */
void dir_upstream_copy(struct transfer *transfer);

#endif
